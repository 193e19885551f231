"""Which commits an export holds: [start, end) on commit time, the day of a `date`, and the history that is still there.

Source of the rules: DataX, otsstreamreader. A job skips records until the first one at or after its start. It ends before the first one
at or after its end, or at the end of the log. Therefore slices of a history hold each record once, even if the clock of a writer was set
back in between: the commits before an end are the same ones that a job skips that starts there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo

from streamql.errors import StreamqlError
from streamql.times import iso

TIME_MAX_MS = 253_402_300_800_000
"""The first millisecond of the year 10000. No window reaches beyond it."""

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?([0-5]\d)(?::?([0-5]\d))?)?\Z")
_DATE = re.compile(r"\d{8}\Z", re.ASCII)


class Timed(Protocol):
    """A commit, as `streamql.delta.log.Commit` has it."""

    @property
    def version(self) -> int:
        """Returns the version that it made."""

    @property
    def time_ms(self) -> int:
        """Returns when it was made, in milliseconds since 1970."""


@dataclass(frozen=True, order=True)
class Window:
    """The times [start, end) of an export, in milliseconds since 1970."""

    start_ms: int
    end_ms: int

    def __post_init__(self) -> None:
        if not 0 <= self.start_ms < self.end_ms <= TIME_MAX_MS:
            raise ValueError(f"not a window: [{self.start_ms}, {self.end_ms})")

    def __str__(self) -> str:
        return f"[{iso(self.start_ms)}, {iso(self.end_ms)})"


@dataclass(frozen=True)
class Slice:
    """The commits of an export: versions [first, next). `reached_end`: the log has a commit at or after the end of the window. If it
    has none, the export ended at the end of the log."""

    first: int
    next: int
    reached_end: bool

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.next:
            raise ValueError(f"not a slice: [{self.first}, {self.next})")

    @property
    def is_empty(self) -> bool:
        """Returns whether it has no commit."""
        return self.first == self.next


@dataclass(frozen=True)
class History:
    """Which changes of a table can be read: those after version `began`, at which tracking began, and after `retained_after`.

    `retained_after`: the newest version whose changes are gone. -1: none are gone. `earliest_ms`: when the first commit was made that
    can be read, in milliseconds since 1970. None: there is no such commit yet.
    """

    began: int
    retained_after: int
    earliest_ms: int | None

    @property
    def beginning(self) -> int:
        """Returns the version after which reading begins, if no position is known."""
        return max(self.began, self.retained_after)

    @property
    def is_trimmed(self) -> bool:
        """Returns whether changes of the stream are gone."""
        return self.retained_after > self.began


def parse_date(text: str) -> date:
    """Returns the day that a text names as yyyyMMdd. Raises ValueError for anything else."""
    if not _DATE.match(text):
        raise ValueError(f"not a date: {text}")
    return date(int(text[:4]), int(text[4:6]), int(text[6:]))


def of_day(day: date, zone: str) -> Window:
    """Returns the window of a day in a time zone, which is named as `spark.sql.session.timeZone` names it.

    A day has 23 or 25 hours if clocks are changed in it. Raises INVALID_JOB if the zone is unknown, or if the day is not in the years
    1970 to 9999.
    """
    info = _zone(zone)
    try:
        starts = [datetime(d.year, d.month, d.day, tzinfo=info) for d in (day, day + timedelta(days=1))]
        return Window(*(round(start.timestamp() * 1000) for start in starts))
    except (OverflowError, ValueError) as e:
        raise StreamqlError("INVALID_JOB", f"the date {day:%Y%m%d} is not in the years 1970 to 9999") from e


def _zone(name: str) -> tzinfo:
    found = _OFFSET.match(name)
    try:
        if found:
            sign, hours, minutes, seconds = found.groups()
            offset = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
            return timezone(-offset if sign == "-" else offset)
        return timezone.utc if name in ("Z", "UTC", "GMT", "UT") else ZoneInfo(name)
    except (LookupError, OSError, ValueError) as e:  # ZoneInfoNotFoundError is a KeyError
        raise StreamqlError(
            "INVALID_JOB",
            f"the day of date cannot be computed: the session's time zone {name} is unknown here",
            hint="give startTimestampMillis and endTimestampMillis instead of date",
            zone=name,
        ) from e


def select(commits: Iterable[Timed], window: Window, after: int, *, resumed: bool) -> Slice:
    """Returns which of the commits after version `after` an export of the window holds.

    `commits`: those after it in the order of versions, without a gap; the iteration stops at the end of the window. `resumed`: `after` is
    where a finished export ended, so none is skipped. Raises ValueError if the commits do not follow one another.
    """
    first = next_version = after + 1
    started = resumed
    for commit in commits:
        if commit.version != next_version:
            raise ValueError(f"commit {commit.version} follows {next_version - 1}")
        if commit.time_ms >= window.end_ms:
            return Slice(first, next_version, reached_end=True)
        started = started or commit.time_ms >= window.start_ms
        next_version += 1
        if not started:
            first = next_version
    return Slice(first, next_version, reached_end=False)


def check_retained(history: History, window: Window, table: str) -> None:
    """Checks that no change of a window is gone. Raises STREAM_STALE, which names the earliest time."""
    if history.is_trimmed and (history.earliest_ms is None or window.start_ms < history.earliest_ms):
        raise trimmed(history, f"the window {window}", table)


def trimmed(history: History, what: str, table: str) -> StreamqlError:
    """Returns the error for what reaches before the history of a table; it names the earliest time that can be read."""
    earliest = history.earliest_ms
    begins = "no commit of it is left" if earliest is None else f"it begins at {iso(earliest)} ({earliest})"
    hint = "" if earliest is None else f'"startTimestampMillis": {earliest} is the earliest start'
    return StreamqlError(
        "STREAM_STALE",
        f"{what} reaches before the history of {table}: {begins}",
        hint=hint or "start a window after the newest commit",
        earliest_version=history.beginning + 1,
        earliest_time_ms=earliest,
    )
