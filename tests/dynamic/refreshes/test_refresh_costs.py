"""How AUTO compares two modes: by the bytes that they read, and by how long the last refreshes took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamql.features.dynamic.source.costs import (
    FULL,
    INCREMENTAL,
    SMALL_BYTES,
    TIMINGS_MAX,
    Chosen,
    Estimate,
    TableReads,
    Timing,
    choose,
    expected_ms,
)

GB = 1 << 30
BY_BYTES = "an incremental refresh would read 1,280 MB, and a full one 1,024 MB"


@pytest.mark.parametrize(
    ("incremental", "full", "mode", "why"),
    [
        (1, SMALL_BYTES - 1, FULL, "the tables have less than 4 MB, so AUTO refreshes fully"),
        (GB // 4, GB, INCREMENTAL, "an incremental refresh would read 256 MB, and a full one 1,024 MB"),
        (GB * 5 // 4, GB, INCREMENTAL, f"{BY_BYTES} (AUTO takes up to 1.25 times as much)"),
        (GB * 5 // 4 + 1, GB, FULL, f"{BY_BYTES} (AUTO takes up to 1.25 times as much)"),
    ],
)
def test_without_timings_the_bytes_are_compared(incremental: int, full: int, mode: str, why: str) -> None:
    assert choose(Estimate(incremental, full), list) == Chosen(mode, why)


def test_timings_of_both_modes_are_compared() -> None:
    """Whatever the bytes are: here they are on the other side."""
    slow, fast = Timing(INCREMENTAL, 9000, GB), Timing(FULL, 3000, None)
    said = choose(Estimate(GB, 10 * GB), lambda: [slow, fast, slow])
    why = "by the last refreshes, an incremental refresh would take 9.0 s, and a full one 3.0 s"
    assert said == Chosen(FULL, why)
    other = [Timing(INCREMENTAL, 3000, GB), Timing(INCREMENTAL, 9000, GB), Timing(FULL, 4000, None)]
    assert choose(Estimate(GB, GB // 2), lambda: other).mode == INCREMENTAL


def test_one_slow_incremental_refresh_does_not_count() -> None:
    """It may be the first one of its process."""
    known = [Timing(INCREMENTAL, 6000, GB), Timing(FULL, 3000, GB)]
    assert choose(Estimate(GB, GB), lambda: known).mode == INCREMENTAL
    assert choose(Estimate(GB, GB), lambda: [*known, Timing(INCREMENTAL, 8000, GB)]).mode == FULL


def test_one_incremental_refresh_that_took_far_longer_counts() -> None:
    known = [Timing(INCREMENTAL, 9000, GB), Timing(FULL, 3000, GB)]
    assert choose(Estimate(GB, GB), lambda: known).mode == FULL


@pytest.mark.parametrize("mode", [FULL, INCREMENTAL])
def test_timings_of_one_mode_do_not_count(mode: str) -> None:
    assert choose(Estimate(GB // 4, GB), lambda: [Timing(mode, 1, GB)] * 3).mode == INCREMENTAL
    assert choose(Estimate(2 * GB, GB), lambda: [Timing(mode, 1, GB)] * 3).mode == FULL


def test_the_first_refresh_stands_for_full_ones() -> None:
    """It compares no rows, so others take longer; until there are others. If incremental ones are slower than it, a full one is tried."""
    first = Timing(FULL, 2000, None, is_first=True)
    assert expected_ms([first], FULL, GB) == 2000
    assert expected_ms([Timing(FULL, 2500, GB), first], FULL, GB) == 2500
    twice = [Timing(INCREMENTAL, 2100, GB)] * 2
    assert choose(Estimate(GB, GB), lambda: [*twice, first]).mode == FULL
    assert choose(Estimate(GB, GB), lambda: [Timing(FULL, 2500, GB), *twice, first]).mode == INCREMENTAL
    assert choose(Estimate(GB, GB), lambda: [Timing(FULL, 2000, GB), *twice, first]).mode == FULL


def test_small_tables_need_no_timings() -> None:
    """They are not read from the ledger then."""

    def asked() -> list[Timing]:
        raise AssertionError

    assert choose(Estimate(0, 1), asked).mode == FULL


def test_the_expected_time_follows_the_bytes() -> None:
    """Eight times as many take twice as long: much of the time is what each refresh takes."""
    timings = [Timing(FULL, 4000, GB), Timing(FULL, 9000, GB), Timing(FULL, 1000, GB), Timing(INCREMENTAL, 70, None)]
    assert expected_ms(timings, FULL, GB) == 4000
    assert expected_ms(timings, FULL, 8 * GB) == pytest.approx(8000)
    assert expected_ms(timings, FULL, GB // 8) == pytest.approx(2000)
    assert expected_ms(timings, INCREMENTAL, 3 * GB) == 70
    assert expected_ms([], FULL, GB) is None
    assert expected_ms([Timing(FULL, 1000, 0)], FULL, 10) == 1000  # a MB or less costs the same


def test_refreshes_of_similar_bytes_count() -> None:
    """Of a refresh after a large change, small ones say little."""
    small, large = Timing(INCREMENTAL, 1000, GB // 64), Timing(INCREMENTAL, 1500, GB)
    assert expected_ms([small] * 9 + [large] * 3, INCREMENTAL, GB) == 1500
    assert expected_ms([small] * 9 + [large] * 2, INCREMENTAL, GB) == 1500
    assert expected_ms([small] * 9 + [large] * 3, INCREMENTAL, GB // 64) == 1000


def test_refreshes_of_eight_times_the_bytes_are_similar() -> None:
    near, far = Timing(FULL, 1000, 8 * GB), Timing(FULL, 5000, 9 * GB)
    assert expected_ms([far, near, far], FULL, GB) == pytest.approx(500)


def test_refreshes_without_an_estimate_count_if_there_are_no_others() -> None:
    """REFRESH_MODE was set to INCREMENTAL, and the tables may have had any size then."""
    forced, known = Timing(INCREMENTAL, 1000, None), Timing(INCREMENTAL, 9000, 5 * GB)
    assert expected_ms([forced, forced, known], INCREMENTAL, 5 * GB) == 9000
    assert expected_ms([forced, forced], INCREMENTAL, 5 * GB) == 1000


def test_a_full_refresh_is_tried_if_there_was_none_for_long() -> None:
    """The first refresh is often slow, because its process has just begun. Behind 20 others it no longer counts."""
    known = [Timing(INCREMENTAL, 60_000, GB)] * TIMINGS_MAX
    assert choose(Estimate(GB, GB), lambda: known).mode == FULL
    assert choose(Estimate(GB // 2, GB), lambda: known).mode == INCREMENTAL
    assert choose(Estimate(GB, GB), lambda: known[1:]).mode == INCREMENTAL
    assert choose(Estimate(GB, GB), lambda: [Timing(FULL, 70_000, GB), *known[1:]]).mode == INCREMENTAL


def test_refreshes_that_failed_tell_only_that() -> None:
    """A full one that was tried may have run out of memory. An incremental one may fail each time."""
    failed = replace(Timing(FULL, 10, GB), has_failed=True)
    known = [Timing(INCREMENTAL, 60_000, GB)] * TIMINGS_MAX
    assert choose(Estimate(GB, GB), lambda: [failed, *known[1:]]).mode == INCREMENTAL
    not_computed = replace(failed, mode=INCREMENTAL)
    full = Timing(FULL, 90_000, GB)
    said = choose(Estimate(GB, GB), lambda: [full, not_computed, full, not_computed, *known[:16]])
    assert said == Chosen(FULL, "the last incremental refreshes failed")
    assert choose(Estimate(GB, GB), lambda: [full, not_computed, *known[:18]]).mode == INCREMENTAL
    assert choose(Estimate(GB, GB), lambda: [full] * TIMINGS_MAX).mode == INCREMENTAL
    both = [failed, not_computed, failed, not_computed]  # a row of the source, perhaps
    assert choose(Estimate(GB, GB), lambda: [*both, *known[:15], full]).mode == INCREMENTAL


def test_change_sets_count_twice() -> None:
    tables = {"a": TableReads(1000, 0, 1, changes=10), "b": TableReads(500, 2, 1)}
    assert Estimate.of_tables(tables) == Estimate(1020, 1500, tables)


def test_the_newest_refreshes_count() -> None:
    """Two slow ones are enough, whatever was before."""
    slow, fast = Timing(INCREMENTAL, 9000, GB + GB // 10), Timing(INCREMENTAL, 1000, GB)
    assert expected_ms([slow, *[fast] * 9], INCREMENTAL, GB) == 1000
    assert expected_ms([slow, slow, *[fast] * 9], INCREMENTAL, GB) == pytest.approx(9000, rel=0.1)


def test_refreshes_before_a_load_count_until_there_is_another() -> None:
    """A full refresh of small tables says little of one that reads 10 GB."""
    small = [Timing(FULL, 800, 64 << 20)] * 18
    assert expected_ms(small, FULL, 10 * GB) == pytest.approx(800 * 160 ** (1 / 3))
    assert expected_ms([Timing(FULL, 60000, 9 * GB), *small], FULL, 10 * GB) == pytest.approx(62000, rel=0.01)
