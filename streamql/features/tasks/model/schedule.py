"""Schedules of tasks: an interval, or cron's fields in a time zone, and the times (ticks) at which they make a task due.

Ticks of an interval are counted from a start. Ticks of cron are those of Debian's cron, by the library cronsim. A time that the change of
the clocks leaves out comes at the end of the gap. A time that comes twice counts once, unless the hour is a wildcard.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from streamql.durations import in_words, read_seconds

INTERVAL_SECONDS_MAX = 366 * 86_400
ZONE_DEFAULT = "UTC"
ALLOWED = "'5 minutes', or 'USING CRON 0 9 * * MON Europe/Berlin'"

_FIELDS = (5, 6)
_FIELD = re.compile(r"[\d*/,?#L-]|LW?$|(MON|TUE|WED|THU|FRI|SAT|SUN)(?![A-Za-z])", re.IGNORECASE)
"""The beginning of one of cron's fields, the last of which has days of the week. Names of time zones begin otherwise."""


class ScheduleError(ValueError):
    """A text that is not a schedule. Its message says why."""


@dataclass(frozen=True)
class Schedule:
    """Either `interval_ms`, in milliseconds, or `cron` (five fields, or six that begin with seconds) in the time zone `zone`."""

    interval_ms: int | None = None
    cron: str = ""
    zone: str = ""

    def __str__(self) -> str:
        if self.interval_ms is not None:
            return in_words(self.interval_ms, is_exact=True, is_long=True)
        return f"USING CRON {self.cron} {self.zone}"

    def tick_up_to(self, now_ms: int, start_ms: int) -> int | None:
        """Returns the last tick that is not after `now_ms`, in milliseconds since 1970. None: there was none after `start_ms`."""
        if self.interval_ms is not None:
            count = (now_ms - start_ms) // self.interval_ms
            return start_ms + count * self.interval_ms if count > 0 else None
        # cronsim goes back to before a time
        before = _at(now_ms, self.zone) + timedelta(seconds=1)
        tick = _ms(next(CronSim(self.cron, before, reverse=True)))
        return tick if tick > start_ms else None

    def tick_after(self, now_ms: int, start_ms: int) -> int:
        """Returns the first tick after `now_ms`, in milliseconds since 1970."""
        if self.interval_ms is not None:
            return start_ms + (max(0, now_ms - start_ms) // self.interval_ms + 1) * self.interval_ms
        return _ms(next(CronSim(self.cron, _at(max(now_ms, start_ms), self.zone))))


def read_schedule(text: str) -> Schedule:
    """Returns the schedule of a text: `5 minutes`, or `USING CRON fields [zone]`. Raises ScheduleError."""
    words = text.split()
    if [word.upper() for word in words[:2]] == ["USING", "CRON"]:
        return _cron(words[2:])
    seconds = read_seconds(text)
    if seconds is None:
        raise ScheduleError(f"{text!r} is not a schedule")
    if not 1 <= seconds <= INTERVAL_SECONDS_MAX:
        raise ScheduleError(f"an interval has 1 second to 366 days, not {text!r}")
    return Schedule(int(seconds * 1000))


def _cron(words: list[str]) -> Schedule:
    has_zone = bool(words) and len(words) > _FIELDS[0] and _FIELD.match(words[-1]) is None
    zone = words.pop() if has_zone else ZONE_DEFAULT
    fields = ["*" if word == "?" else word for word in words]
    if len(fields) not in _FIELDS:
        raise ScheduleError(f"cron has five fields, or six with seconds, not {len(fields)}")
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ScheduleError(f"there is no time zone {zone!r}") from None
    cron = " ".join(fields)
    try:
        next(CronSim(cron, datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))))
    except CronSimError as e:
        raise ScheduleError(f"cron does not take {cron!r}: {str(e).lower()}") from None
    except StopIteration:
        raise ScheduleError(f"no time matches {cron!r}") from None
    return Schedule(cron=cron, zone=zone)


def _at(ms: int, zone: str) -> datetime:
    """Returns a time in a zone, in whole seconds."""
    return datetime.fromtimestamp(ms // 1000, ZoneInfo(zone))


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
