"""Schedules: how they are written, and their ticks, also where clocks are changed."""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.features.tasks.model.schedule import Schedule, ScheduleError, read_schedule

BERLIN = ZoneInfo("Europe/Berlin")
HOUR_MS = 3_600_000


def ms(*when: int, zone: ZoneInfo | timezone = BERLIN, fold: int = 0) -> int:
    year, month, day, hour, minute = when
    return int(datetime(year, month, day, hour, minute, tzinfo=zone, fold=fold).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("5 minutes", "5 minutes"),
        ("60 MINUTE", "1 hour"),
        ("90 s", "90 seconds"),
        ("using cron 0 9 * * mon Europe/Berlin", "USING CRON 0 9 * * mon Europe/Berlin"),
        ("USING CRON 0 9-17 * * SUN America/Los_Angeles", "USING CRON 0 9-17 * * SUN America/Los_Angeles"),
        ("USING CRON 0 0 0 * * * Asia/Tokyo", "USING CRON 0 0 0 * * * Asia/Tokyo"),
        ("USING CRON 0 3 * * ?", "USING CRON 0 3 * * * UTC"),
        ("USING CRON 0 0 L * * UTC", "USING CRON 0 0 L * * UTC"),
        ("USING CRON 0 0 10-20 * TUE,THU UTC", "USING CRON 0 0 10-20 * TUE,THU UTC"),
    ],
)
def test_spellings(text: str, shown: str) -> None:
    assert str(read_schedule(text)) == shown


@pytest.mark.parametrize(
    "text", ["", "5", "0 s", "often", "USING CRON", "USING CRON * * * *", "USING CRON 61 * * * * UTC",
             "USING CRON 0 9 * * MON Europe/Berln", "USING CRON 0 0 31 2 * UTC", "400 days"],
)  # fmt: skip
def test_what_is_not_a_schedule(text: str) -> None:
    with pytest.raises(ScheduleError):
        read_schedule(text)


def test_the_change_of_clocks() -> None:
    """02:30 does not exist on 29 March 2026, and exists twice on 25 October: each day has one tick."""
    daily = read_schedule("USING CRON 30 2 * * * Europe/Berlin")
    at = ms(2026, 3, 28, 12, 0)
    spring = []
    for _ in range(2):
        at = daily.tick_after(at, 0)
        spring.append(at)
    assert spring == [ms(2026, 3, 29, 3, 0), ms(2026, 3, 30, 2, 30)]
    assert daily.tick_up_to(ms(2026, 3, 29, 12, 0), 0) == spring[0]
    first = daily.tick_after(ms(2026, 10, 24, 12, 0), 0)
    assert (first, daily.tick_after(first, 0)) == (ms(2026, 10, 25, 2, 30), ms(2026, 10, 26, 2, 30))
    quarter = read_schedule("USING CRON */15 * * * * Europe/Berlin")
    autumn = [ms(2026, 10, 25, 1, 55)]
    while autumn[-1] < ms(2026, 10, 25, 4, 0):
        autumn.append(quarter.tick_after(autumn[-1], 0))
    assert {b - a for a, b in pairwise(autumn[1:])} == {HOUR_MS // 4}  # no gap, and none twice


@given(st.sampled_from(["*/7 * * * *", "30 2 * * *", "0 9 * * MON", "15 1,2,3 1 * *", "*/20 * * * * *"]),
       st.integers(ms(2026, 1, 1, 0, 0), ms(2028, 1, 1, 0, 0)))  # fmt: skip
def test_ticks_before_and_after_are_neighbours(cron: str, now: int) -> None:
    schedule = Schedule(cron=cron, zone="Europe/Berlin")
    before, after = schedule.tick_up_to(now, 0), schedule.tick_after(now, 0)
    assert before is not None
    assert before <= now < after
    assert schedule.tick_up_to(after, 0) == after
    assert schedule.tick_up_to(after - 1000, 0) == before


@given(st.integers(1, 10**7), st.integers(0, 10**13), st.integers(0, 10**13))
def test_ticks_of_an_interval_begin_behind_its_start(seconds: int, start: int, now: int) -> None:
    schedule = Schedule(seconds * 1000)
    before, after = schedule.tick_up_to(now, start), schedule.tick_after(now, start)
    assert after > max(now, start)
    assert (after - start) % (seconds * 1000) == 0
    assert (before is None) == (now - start < seconds * 1000)
    if before is not None:
        assert before == after - seconds * 1000


def test_several_missed_ticks_are_one() -> None:
    schedule = read_schedule("1 minute")
    assert schedule.tick_up_to(ms(2026, 1, 2, 0, 0), ms(2026, 1, 1, 0, 0)) == ms(2026, 1, 2, 0, 0)
    hourly = read_schedule("USING CRON 0 * * * * UTC")
    assert hourly.tick_up_to(ms(2026, 1, 2, 0, 30, zone=timezone.utc), 0) == ms(2026, 1, 2, 0, 0, zone=timezone.utc)
