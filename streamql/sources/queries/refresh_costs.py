"""What AUTO compares before a refresh: the bytes that both modes read, and how long earlier refreshes took. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

AUTO, FULL, INCREMENTAL = "AUTO", "FULL", "INCREMENTAL"
"""What REFRESH_MODE may be. How a refresh finds what differs: it computes the whole query, or follows the changes of the tables."""

SMALL_BYTES = 64 << 20
"""Tables of fewer bytes are read in less time than the statements take by which a refresh finds what a change touches."""

READ_SHARE_MAX = 1.25
"""An incremental refresh that reads so many times as much as a full one takes as long: it joins and groups only few of the rows."""

TRIALS = 2
"""How many of the last refreshes must have been incremental for their durations to count. The first one in a process also compiles code."""

TRIAL_SHARE_MAX = 2
"""An incremental refresh that took so many times as long as a full one is not tried again soon."""

TIMINGS_MAX = 20
"""How many of the last refreshes count. A mode that none of them had is compared by bytes again, so AUTO tries it again."""

NEAREST = 3
"""How many of a mode's refreshes count: those of the most similar bytes."""

SIMILAR_DOUBLINGS = 3
"""Refreshes of at most 8 times as many or as few bytes count alone, if there are some."""

BYTES_EXPONENT = 1 / 3
"""How a refresh's time grows with its bytes: eight times as many take twice as long, because planning, jobs and commits take much of it."""


@dataclass(frozen=True)
class Estimate:
    """The bytes that an incremental and a full refresh read, by the sizes of files. Files that are skipped count as if they were read."""

    incremental: int
    full: int

    @property
    def is_small(self) -> bool:
        """Returns whether the tables are so small that a full refresh takes less time in any case."""
        return self.full < SMALL_BYTES

    def of(self, mode: str) -> int:
        """Returns the bytes of a mode."""
        return self.incremental if mode == INCREMENTAL else self.full


@dataclass(frozen=True)
class Timing:
    """How long a refresh took. `bytes`: its estimate; None: it had none. `is_first`: whether it filled an empty table."""

    mode: str
    duration_ms: int
    bytes: int | None
    is_first: bool = False


Timings = Callable[[], Sequence[Timing]]
"""Returns the last refreshes of a table, the newest first. Called only if they matter, because they are in the ledger."""


def expected_ms(timings: Sequence[Timing], mode: str, size: int) -> float | None:
    """Returns how long a refresh takes that reads so many bytes: the median of what earlier ones of its mode tell. None: there is none.

    Those of the most similar bytes count, and the newest of them. Of an even number, the median is the lower one of the middle. The
    first refresh of the table counts if no other one was full. Others compare its rows, too, and take up to twice as long. But if it is
    faster than incremental ones, a full one must be tried: AUTO would never learn how long it takes.
    """
    own = [t for t in timings if t.mode == mode]
    later = [t for t in own if not t.is_first]
    ordered = sorted(later, key=lambda t: _doublings(t.bytes, size))
    nearest = [t for t in ordered if _doublings(t.bytes, size) <= SIMILAR_DOUBLINGS][:NEAREST] or ordered[:NEAREST]
    found = [t.duration_ms * _scale(t.bytes, size) for t in nearest or own]
    return statistics.median_low(found) if found else None


def _ratio(then: int | None, now: int) -> float:
    return 1.0 if then is None else max(now, 1 << 20) / max(then, 1 << 20)


def _doublings(then: int | None, now: int) -> int:
    return round(abs(math.log2(_ratio(then, now))))


def _scale(then: int | None, now: int) -> float:
    return float(_ratio(then, now) ** BYTES_EXPONENT)


def why_slower(read: Estimate, timings: Timings) -> str | None:
    """Returns why a full refresh takes less time, as messages say it. None: an incremental one does.

    Compares how long both modes took if enough of the last refreshes had both, and the bytes if not.
    """
    if read.is_small:
        return "the tables are small, so a full refresh takes less time"
    known = timings()
    incremental, full = (expected_ms(known, mode, read.of(mode)) for mode in (INCREMENTAL, FULL))
    trials = sum(t.mode == INCREMENTAL for t in known)
    if incremental is not None and full is not None and (trials >= TRIALS or incremental > TRIAL_SHARE_MAX * full):
        if incremental <= full:
            return None
        times = f"{seconds_text(incremental)}, and a full one {seconds_text(full)}"
        return f"by the last refreshes, an incremental refresh would take {times}"
    if read.incremental > READ_SHARE_MAX * read.full:
        return (
            f"an incremental refresh would read {bytes_text(read.incremental)}, and a full one {bytes_text(read.full)}"
        )
    return None


def bytes_text(count: int) -> str:
    """Returns a number of bytes for people. The sizes of small files vary from run to run, so it does not tell them apart."""
    return "less than 1 MB" if count < 1 << 20 else f"{count / (1 << 20):,.0f} MB"


def seconds_text(milliseconds: float) -> str:
    """Returns a duration in seconds, for people."""
    return f"{milliseconds / 1000:,.1f} s"
