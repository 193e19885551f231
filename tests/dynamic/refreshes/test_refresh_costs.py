"""How AUTO compares two modes: by the bytes that they read, and by how long the last refreshes took."""

from __future__ import annotations

import pytest

from streamql.sources.queries.refresh_costs import (
    FULL,
    INCREMENTAL,
    SMALL_BYTES,
    Estimate,
    Timing,
    expected_ms,
    why_slower,
)

GB = 1 << 30


@pytest.mark.parametrize(
    ("incremental", "full", "why"),
    [
        (1, SMALL_BYTES - 1, "the tables are small"),
        (GB // 4, GB, None),
        (GB * 5 // 4, GB, None),
        (GB * 5 // 4 + 1, GB, "would read 1,280 MB, and a full one 1,024 MB"),
    ],
)
def test_without_timings_the_bytes_are_compared(incremental: int, full: int, why: str | None) -> None:
    said = why_slower(Estimate(incremental, full), list)
    assert said is None if why is None else why in str(said)


def test_timings_of_both_modes_are_compared() -> None:
    """Whatever the bytes are: here they are on the other side."""
    slow, fast = Timing(INCREMENTAL, 9000, GB), Timing(FULL, 3000, None)
    said = why_slower(Estimate(GB, 10 * GB), lambda: [slow, fast, slow])
    assert said == "by the last refreshes, an incremental refresh would take 9.0 s, and a full one 3.0 s"
    other = [Timing(INCREMENTAL, 3000, GB), Timing(INCREMENTAL, 9000, GB), Timing(FULL, 4000, None)]
    assert why_slower(Estimate(GB, GB // 2), lambda: other) is None


def test_one_slow_incremental_refresh_does_not_count() -> None:
    """It may be the first one of its process."""
    known = [Timing(INCREMENTAL, 6000, GB), Timing(FULL, 3000, GB)]
    assert why_slower(Estimate(GB, GB), lambda: known) is None
    assert why_slower(Estimate(GB, GB), lambda: [*known, Timing(INCREMENTAL, 8000, GB)]) is not None


def test_one_incremental_refresh_that_took_far_longer_counts() -> None:
    known = [Timing(INCREMENTAL, 9000, GB), Timing(FULL, 3000, GB)]
    assert why_slower(Estimate(GB, GB), lambda: known) is not None


@pytest.mark.parametrize("mode", [FULL, INCREMENTAL])
def test_timings_of_one_mode_do_not_count(mode: str) -> None:
    assert why_slower(Estimate(GB // 4, GB), lambda: [Timing(mode, 1, GB)] * 3) is None
    assert why_slower(Estimate(2 * GB, GB), lambda: [Timing(mode, 1, GB)] * 3) is not None


def test_the_first_refresh_stands_for_full_ones() -> None:
    """It compares no rows, so others take longer; until there are others. If incremental ones are slower than it, a full one is tried."""
    first = Timing(FULL, 2000, None, is_first=True)
    assert expected_ms([first], FULL, GB) == 2000
    assert expected_ms([Timing(FULL, 2500, GB), first], FULL, GB) == 2500
    twice = [Timing(INCREMENTAL, 2100, GB)] * 2
    assert why_slower(Estimate(GB, GB), lambda: [*twice, first]) is not None
    assert why_slower(Estimate(GB, GB), lambda: [Timing(FULL, 2500, GB), *twice, first]) is None
    assert why_slower(Estimate(GB, GB), lambda: [Timing(FULL, 2000, GB), *twice, first]) is not None


def test_small_tables_need_no_timings() -> None:
    """They are not read from the ledger then."""

    def asked() -> list[Timing]:
        raise AssertionError

    assert why_slower(Estimate(0, 1), asked) is not None


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


def test_the_newest_refreshes_count() -> None:
    """Two slow ones are enough, whatever was before."""
    slow, fast = Timing(INCREMENTAL, 9000, GB + GB // 10), Timing(INCREMENTAL, 1000, GB)
    assert expected_ms([slow, *[fast] * 9], INCREMENTAL, GB) == 1000
    assert expected_ms([slow, slow, *[fast] * 9], INCREMENTAL, GB) == pytest.approx(9000, rel=0.1)


def test_refreshes_before_a_load_count_until_there_is_another() -> None:
    """A full refresh of small tables says little of one that reads 10 GB."""
    small = [Timing(FULL, 800, SMALL_BYTES)] * 18
    assert expected_ms(small, FULL, 10 * GB) == pytest.approx(800 * 160 ** (1 / 3))
    assert expected_ms([Timing(FULL, 60000, 9 * GB), *small], FULL, 10 * GB) == pytest.approx(62000, rel=0.01)
