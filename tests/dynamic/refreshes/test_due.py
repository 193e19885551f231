"""When dynamic tables are due, by made-up facts."""

from __future__ import annotations

from dataclasses import replace

from streamql.features.dynamic.refreshes.due import (
    BACKOFF_MAX_MS,
    BACKOFF_MS,
    Timing,
    backoff_ms,
    due_times,
    held_by,
    is_due,
    next_due,
)
from streamql.features.dynamic.source.table import Schedule

NOW = 1_790_000_000_000
MINUTE = 60_000
LAG = Schedule(lag_ms=10 * MINUTE)
TICKS = Schedule(interval_ms=5 * MINUTE, start_ms=NOW - 100 * MINUTE - 7_000)
TICK = NOW - 7_000
"""The last tick of TICKS."""

DOWNSTREAM = Schedule(is_downstream=True)


def at(table: Timing, now_ms: int = NOW, **others: Timing) -> int | None:
    """When a table is due that stands beside others."""
    return due_times({"t": table, **others}, now_ms)["t"]


def test_a_lag_is_kept_below_its_target() -> None:
    behind = Timing(LAG, behind_since_ms=NOW - 4 * MINUTE, duration_ms=MINUTE)
    assert at(behind) == NOW + 5 * MINUTE  # 9 minutes behind then, and the refresh takes one
    assert at(replace(behind, duration_ms=0)) == NOW + 6 * MINUTE
    assert is_due(at(replace(behind, behind_since_ms=NOW - 9 * MINUTE)), NOW)
    assert (
        at(replace(behind, duration_ms=60 * MINUTE)) == NOW - 4 * MINUTE
    )  # longer than the target: with the first change


def test_a_table_that_shows_all_is_due_with_the_first_change_at_the_earliest() -> None:
    current = Timing(LAG, duration_ms=MINUTE)
    assert at(current) == NOW + 9 * MINUTE
    changed = replace(current, behind_since_ms=NOW + 1)
    assert at(changed, NOW + 9 * MINUTE + 1) == NOW + 9 * MINUTE + 1


def test_what_a_table_reads_is_refreshed_with_it_and_takes_its_time() -> None:
    below = Timing(Schedule(), duration_ms=3 * MINUTE)
    behind = Timing(LAG, behind_since_ms=NOW - 6 * MINUTE, duration_ms=MINUTE, reads=("below",))
    assert at(behind, below=below) == NOW
    assert at(below, above=behind) is None  # it has no schedule, and is refreshed in the run of the other


def test_ticks() -> None:
    table = Timing(TICKS, behind_since_ms=TICK - 1, tried_ms=TICK - MINUTE)
    assert at(table) == TICK
    assert at(replace(table, tried_ms=TICK)) == TICK + 5 * MINUTE
    assert at(replace(table, behind_since_ms=TICK + 1)) == TICK + 5 * MINUTE  # that change came behind the tick
    assert at(replace(table, behind_since_ms=None)) == TICK + 5 * MINUTE
    assert at(replace(table, tried_ms=None)) == TICK


def test_a_start_in_the_future_is_the_first_tick() -> None:
    later = replace(TICKS, start_ms=NOW + MINUTE)
    assert at(Timing(later, behind_since_ms=NOW - MINUTE)) == NOW + MINUTE
    assert at(Timing(later, is_filled=False, behind_since_ms=NOW - MINUTE)) == NOW + MINUTE


def test_a_table_that_was_never_filled_is_due_if_it_has_a_schedule() -> None:
    for schedule in (LAG, TICKS):
        assert is_due(at(Timing(schedule, is_filled=False, behind_since_ms=NOW - 1)), NOW)
    for schedule in (Schedule(), DOWNSTREAM):
        assert at(Timing(schedule, is_filled=False, behind_since_ms=NOW - 1)) is None
    empty = Timing(DOWNSTREAM, is_filled=False)
    assert is_due(at(empty, above=Timing(LAG, is_filled=False, behind_since_ms=NOW - 1, reads=("t",))), NOW)


def test_downstream_is_due_with_the_first_of_its_readers() -> None:
    table = Timing(DOWNSTREAM)
    soon = Timing(LAG, behind_since_ms=NOW - 8 * MINUTE, reads=("t",))
    late = Timing(LAG, behind_since_ms=NOW, reads=("t",))
    assert at(table, soon=soon, late=late) == NOW + 2 * MINUTE
    assert (
        at(table, between=Timing(DOWNSTREAM, reads=("t",)), soon=replace(soon, reads=("between",))) == NOW + 2 * MINUTE
    )
    assert at(table) is None
    assert at(table, soon=replace(soon, is_suspended=True)) is None


def test_suspended_tables_are_never_due_nor_what_reads_them() -> None:
    suspended = Timing(LAG, is_suspended=True, behind_since_ms=0)
    reader = Timing(LAG, behind_since_ms=0, reads=("s",))
    beyond = Timing(LAG, behind_since_ms=0, reads=("reader",))
    tables = {"s": suspended, "reader": reader, "beyond": beyond, "other": Timing(LAG, behind_since_ms=0)}
    assert due_times(tables, NOW) == {"s": None, "reader": None, "beyond": None, "other": 10 * MINUTE}
    assert held_by(tables) == {"reader": "s", "beyond": "s"}


def test_a_failure_is_tried_again_after_a_pause() -> None:
    assert [backoff_ms(n) for n in (0, 1, 2, 3, 100)] == [0, BACKOFF_MS, 2 * BACKOFF_MS, 4 * BACKOFF_MS, BACKOFF_MAX_MS]
    for schedule in (LAG, TICKS):
        failed = Timing(
            schedule, behind_since_ms=NOW - 1000 * MINUTE, tried_ms=NOW - 2000, failures=2, failed_ms=NOW - 1000
        )
        assert at(failed) == NOW - 1000 + 2 * BACKOFF_MS
        assert is_due(at(failed, NOW + MINUTE), NOW + MINUTE)


def test_what_reads_a_failed_table_waits_with_it() -> None:
    failed = Timing(LAG, behind_since_ms=0, failures=1, failed_ms=NOW - 1000)
    reader = Timing(LAG, behind_since_ms=0, reads=("failed",))
    assert at(reader, failed=failed) == NOW - 1000 + BACKOFF_MS


def test_the_next_of_several() -> None:
    assert next_due([None, 5, 3, None]) == 3
    assert next_due([None]) is None
