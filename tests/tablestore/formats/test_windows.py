"""Windows of exports: days, the commits of a window, and trimmed history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.errors import StreamqlError
from streamql.features.tablestore.jobs.windows import (
    History,
    Slice,
    Window,
    check_retained,
    of_day,
    parse_date,
    select,
)

HOUR = 3_600_000


@dataclass(frozen=True)
class At:
    version: int
    time_ms: int


def commits(*times: int) -> list[At]:
    return [At(v, t) for v, t in enumerate(times)]


def test_start_is_in_the_window_and_end_is_not() -> None:
    log = commits(10, 20, 30, 40)
    assert select(log, Window(20, 40), -1, resumed=False) == Slice(1, 3, reached_end=True)
    assert select(log, Window(21, 41), -1, resumed=False) == Slice(2, 4, reached_end=False)
    assert select(log, Window(11, 20), -1, resumed=False) == Slice(1, 1, reached_end=True)
    assert select(log, Window(41, 50), -1, resumed=False) == Slice(4, 4, reached_end=False)
    assert select([], Window(1, 2), 6, resumed=False) == Slice(7, 7, reached_end=False)


def test_a_resumed_window_skips_nothing() -> None:
    """The earlier export ended at the end of the log, before its own end: what was committed since belongs to the next window."""
    log = commits(10, 20, 30)
    assert select(log[1:], Window(25, 40), 0, resumed=True) == Slice(1, 3, reached_end=False)
    assert select(log[1:], Window(25, 40), 0, resumed=False) == Slice(2, 3, reached_end=False)


def test_gaps_are_faults() -> None:
    with pytest.raises(ValueError, match="commit 2 follows 0"):
        select([At(0, 1), At(2, 2)], Window(0, 9), -1, resumed=False)


@given(
    st.lists(st.integers(0, 60), max_size=12),
    st.lists(st.integers(0, 60), min_size=2, max_size=6, unique=True).map(sorted),
    st.data(),
)
def test_windows_side_by_side_hold_each_commit_once(times: list[int], bounds: list[int], data: st.DataObject) -> None:
    """Resumed or not, also if clocks go back: a window begins at the commit before which the one before it ended."""
    log = commits(*times)
    found = [select(log, Window(*pair), -1, resumed=False) for pair in pairwise(bounds)]
    for before, after in pairwise(found):
        assert after.first == before.next
    for i, (before, window) in enumerate(zip(found, pairwise(bounds[1:]), strict=False)):
        assert select(log[before.next :], Window(*window), before.next - 1, resumed=True) == found[i + 1]
    whole = select(log, Window(bounds[0], bounds[-1]), -1, resumed=False)
    assert (whole.first, whole.next) == (found[0].first, found[-1].next)
    hint = data.draw(st.integers(-1, found[0].first - 1))
    assert select(log[hint + 1 :], Window(bounds[0], bounds[1]), hint, resumed=False) == found[0]


def test_a_day_has_the_hours_of_its_zone() -> None:
    assert of_day(date(2015, 11, 11), "UTC") == Window(1447200000000, 1447286400000)
    assert of_day(date(2015, 11, 11), "Asia/Shanghai").start_ms == 1447200000000 - 8 * HOUR
    for zone in ("+08:00", "GMT+8", "UTC+08", "+0800", "+08:00:00"):
        assert of_day(date(2015, 11, 11), zone) == of_day(date(2015, 11, 11), "Asia/Shanghai")
    assert of_day(date(2015, 11, 11), "-01:30").start_ms == 1447200000000 + 3 * HOUR // 2
    lengths = [w.end_ms - w.start_ms for day in (29, 30) if (w := of_day(date(2025, 3, day), "Europe/Berlin"))]
    assert lengths == [24 * HOUR, 23 * HOUR]
    # Clocks went from 0:00 to 1:00: the day begins at 1:00, which is 3:00 in UTC.
    assert of_day(date(2017, 10, 15), "America/Sao_Paulo") == Window(1508036400000, 1508036400000 + 23 * HOUR)


def test_days_that_are_none() -> None:
    assert parse_date("20160229") == date(2016, 2, 29)
    for text in ("20150229", "2015111", "201511110", "2015-1-1", "", "２０１５１１１１"):  # noqa: RUF001 - wide digits are digits for str.isdigit
        with pytest.raises(ValueError, match=r"."):
            parse_date(text)
    for day, zone, message in (
        (date(1969, 12, 31), "UTC", "1970"),
        (date(9999, 12, 31), "-12:00", "9999"),
        (date(2015, 1, 1), "Mars/Phobos", "Mars/Phobos"),
        (date(2015, 1, 1), "../etc", "etc"),
    ):
        with pytest.raises(StreamqlError, match=message) as e:
            of_day(day, zone)
        assert e.value.code == "INVALID_JOB"


def test_reading_begins_where_tracking_did_or_where_history_is_left() -> None:
    assert History(began=3, retained_after=-1, earliest_ms=10).beginning == 3
    assert History(began=3, retained_after=7, earliest_ms=10).beginning == 7


def test_a_window_before_retention_is_refused_and_one_before_tracking_is_not() -> None:
    check_retained(History(began=3, retained_after=3, earliest_ms=100), Window(1, 200), "t")
    trimmed = History(began=3, retained_after=4, earliest_ms=100)
    check_retained(trimmed, Window(100, 200), "t")
    with pytest.raises(
        StreamqlError, match=r"before the history of t: it begins at 1970-01-01 00:00:00.100Z \(100\)"
    ) as e:
        check_retained(trimmed, Window(99, 200), "t")
    assert e.value.code == "STREAM_STALE"
    assert e.value.facts["earliest_time_ms"] == 100
    with pytest.raises(StreamqlError, match="no commit"):
        check_retained(History(began=3, retained_after=4, earliest_ms=None), Window(99, 200), "t")
