"""When dynamic tables are due. Pure.

A schedule is one of three. TARGET_LAG: the rows are never behind for longer than a target. REFRESH INTERVAL: a refresh begins at each tick
of an interval. TARGET_LAG = DOWNSTREAM: the table is refreshed when a table that reads it is due.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamql.features.dynamic.source.graph import in_order, readers
from streamql.features.dynamic.source.table import Schedule

BACKOFF_MS = 10_000
"""The pause after a refresh that failed. It doubles with each further failure in a row."""

BACKOFF_MAX_MS = 600_000
DOUBLINGS_MAX = 30


@dataclass(frozen=True)
class Timing:
    """The properties of a table that say when it is due. Times in milliseconds since 1970, durations in milliseconds.

    `is_filled`: a refresh has succeeded since the table was created, or since a source was replaced. `behind_since_ms`: when the first
    change was made that the table does not show; None: it shows all. `tried_ms`: when its last refresh began, successful or not; None: it
    had none. `duration_ms`: how long its last successful refresh took. `failures`: how many refreshes have failed in a row up to now.
    `failed_ms`: when the last of these ended. `reads`: the ids of the dynamic tables that it reads.
    """

    schedule: Schedule
    is_suspended: bool = False
    is_filled: bool = True
    behind_since_ms: int | None = None
    tried_ms: int | None = None
    duration_ms: int = 0
    failures: int = 0
    failed_ms: int = 0
    reads: tuple[str, ...] = ()


def backoff_ms(failures: int) -> int:
    """Returns the pause after a number of failures in a row, in milliseconds."""
    return int(min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** min(failures - 1, DOUBLINGS_MAX))) if failures else 0


def held_by(tables: Mapping[str, Timing]) -> dict[str, str]:
    """Returns {table: suspended table} for the tables that read a suspended table, directly or through others. No run refreshes them."""
    found = {}
    for uid in tables:
        suspended = [other for other in _upstream(tables, uid) if tables[other].is_suspended]
        if suspended:
            found[uid] = suspended[0]
    return found


def due_times(tables: Mapping[str, Timing], now_ms: int) -> dict[str, int | None]:
    """Returns when each table is due, by its id. It is due now if the time is not after `now_ms`. None: its schedule never refreshes it.

    A later time is the earliest at which the table can be due, because sources that have no changes now may have some soon.
    """
    read_by = readers({uid: list(t.reads) for uid, t in tables.items()})
    held = held_by(tables)
    found: dict[str, int | None] = {}

    def time_of(uid: str) -> int | None:
        if uid not in found:
            table = tables[uid]
            at: int | None = None
            if not (table.is_suspended or uid in held):
                if table.schedule.is_downstream:
                    below = [t for other in read_by.get(uid, ()) if (t := time_of(other)) is not None]
                    at = min(below, default=None)
                else:
                    at = _own_time(tables, uid, now_ms)
            found[uid] = None if at is None else max(at, _pause_ends(tables, uid))
        return found[uid]

    return {uid: time_of(uid) for uid in tables}


def is_due(at_ms: int | None, now_ms: int) -> bool:
    """Returns whether a time that `due_times` returned has come."""
    return at_ms is not None and at_ms <= now_ms


def next_due(times: Iterable[int | None]) -> int | None:
    """Returns the earliest of the times. None: no table has a schedule that refreshes it."""
    return min((t for t in times if t is not None), default=None)


def tick_before(schedule: Schedule, now_ms: int) -> int | None:
    """Returns the last tick of an interval up to now. None: there was none yet."""
    assert schedule.interval_ms
    if now_ms < schedule.start_ms:
        return None
    return now_ms - (now_ms - schedule.start_ms) % schedule.interval_ms


def _own_time(tables: Mapping[str, Timing], uid: str, now_ms: int) -> int | None:
    table, schedule = tables[uid], tables[uid].schedule
    if schedule.lag_ms is None and schedule.interval_ms is None:
        return None
    if not table.is_filled or table.failures:
        since = table.behind_since_ms or 0
        return max(since, schedule.start_ms) if schedule.interval_ms is not None else since
    if schedule.lag_ms is not None:
        since = now_ms if table.behind_since_ms is None else table.behind_since_ms
        return since + max(0, schedule.lag_ms - _duration(tables, uid))
    assert schedule.interval_ms is not None
    tick = tick_before(schedule, now_ms)
    if tick is None:
        return schedule.start_ms
    came = table.tried_ms is None or table.tried_ms < tick
    # A change after the tick waits for the next tick, because at this tick there was nothing to refresh.
    if came and table.behind_since_ms is not None and table.behind_since_ms <= tick:
        return tick
    return tick + schedule.interval_ms


def _duration(tables: Mapping[str, Timing], uid: str) -> int:
    """Returns how long the last refreshes took in sum: of the table, and of the tables that it reads, which are refreshed first."""
    return sum(tables[other].duration_ms for other in (uid, *_upstream(tables, uid)))


def _pause_ends(tables: Mapping[str, Timing], uid: str) -> int:
    """Returns when the pauses after failures end, both of the table and of those that it reads. If one of these fails again, the table
    cannot be refreshed either."""
    chosen = [tables[other] for other in (uid, *_upstream(tables, uid))]
    return max((t.failed_ms + backoff_ms(t.failures) for t in chosen if t.failures), default=0)


def _upstream(tables: Mapping[str, Timing], uid: str) -> list[str]:
    """Returns the tables that a table reads, directly or through others."""
    reads = {other: [r for r in t.reads if r in tables] for other, t in tables.items()}
    return [other for other in in_order([uid], reads) if other != uid]
