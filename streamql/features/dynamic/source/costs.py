"""What AUTO compares before a refresh: the bytes that both modes read, and how long earlier refreshes took. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

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

RETRIED_SHARE = 0.5
"""If an incremental refresh reads more than this share of a full one, and all of the last TIMINGS_MAX were incremental, a full one is
tried: it takes at most about twice as long, once in so many refreshes."""

SIMILAR_DOUBLINGS = 3
"""Refreshes of at most 8 times as many or as few bytes count alone, if there are some."""

BYTES_EXPONENT = 1 / 3
"""How a refresh's time grows with its bytes: eight times as many take twice as long, because planning, jobs and commits take much of it."""


@dataclass(frozen=True)
class TableReads:
    """What a refresh reads of a table. `size`: the bytes of its files. `incremental`, `full`: how often each mode reads them. `changes`:
    the bytes of its change set."""

    size: int
    incremental: int
    full: int
    changes: int = 0

    def bytes_of(self, mode: str) -> int:
        """Returns the bytes that a mode reads. A change set counts twice: an incremental refresh computes it and reads it."""
        return self.incremental * self.size + 2 * self.changes if mode == INCREMENTAL else self.full * self.size


@dataclass(frozen=True)
class Estimate:
    """The bytes that an incremental and a full refresh read, by the sizes of files. Files that are skipped count as if they were read.
    `tables`: of which tables, by their ids."""

    incremental: int
    full: int
    tables: Mapping[str, TableReads] = field(default_factory=dict)

    @classmethod
    def of_tables(cls, tables: Mapping[str, TableReads]) -> Estimate:
        """Returns the estimate of a query that reads tables."""
        incremental, full = (sum(t.bytes_of(mode) for t in tables.values()) for mode in (INCREMENTAL, FULL))
        return cls(incremental, full, tables)

    @property
    def is_small(self) -> bool:
        """Returns whether the tables are so small that a full refresh takes less time in any case."""
        return self.full < SMALL_BYTES

    def of(self, mode: str) -> int:
        """Returns the bytes of a mode."""
        return self.incremental if mode == INCREMENTAL else self.full


@dataclass(frozen=True)
class Chosen:
    """The mode that AUTO takes, and `why`, as messages say it."""

    mode: str
    why: str


@dataclass(frozen=True)
class Timing:
    """How long a refresh took. `bytes`: its estimate; None: it had none, because AUTO did not choose its mode. `is_first`: whether it
    filled an empty table. `has_failed`: then its duration says nothing."""

    mode: str
    duration_ms: int
    bytes: int | None
    is_first: bool = False
    has_failed: bool = False


Timings = Callable[[], Sequence[Timing]]
"""Returns the last refreshes of a table, the newest first. Called only if they matter, because they are in the ledger."""


def expected_ms(timings: Sequence[Timing], mode: str, size: int) -> float | None:
    """Returns how long a refresh takes that reads so many bytes: the median of what earlier ones of its mode tell. None: there is none.

    Those of the most similar bytes count, and the newest of them. Of an even number, the median is the lower one of the middle. Those
    without an estimate count if there are no others. The first refresh of the table counts if no other one was full. Others compare its
    rows, too, and take up to twice as long. But if it is faster than incremental ones, a full one must be tried: AUTO would never learn how
    long it takes.
    """
    own = [t for t in timings if t.mode == mode and not t.has_failed]
    later = [t for t in own if not t.is_first]
    ordered = sorted(later, key=lambda t: math.inf if t.bytes is None else round(_doublings(t.bytes, size)))
    similar = [t for t in ordered if t.bytes is not None and _doublings(t.bytes, size) <= SIMILAR_DOUBLINGS]
    found = [t.duration_ms * _scale(t.bytes, size) for t in similar[:NEAREST] or ordered[:NEAREST] or own]
    return statistics.median_low(found) if found else None


def _ratio(then: int, now: int) -> float:
    return max(now, 1 << 20) / max(then, 1 << 20)


def _doublings(then: int, now: int) -> float:
    return abs(math.log2(_ratio(then, now)))


def _scale(then: int | None, now: int) -> float:
    return 1.0 if then is None else float(_ratio(then, now) ** BYTES_EXPONENT)


def _fall_back(timings: Sequence[Timing]) -> bool:
    """Returns whether the last incremental refreshes failed, and the full ones succeeded that ran instead."""
    tried = []
    for later, one in zip([None, *timings], timings, strict=False):
        ran_again = later is not None and later.mode == FULL and not later.has_failed
        if one.mode == INCREMENTAL and (ran_again or not one.has_failed):
            tried.append(one.has_failed)
    return len(tried) >= TRIALS and all(tried[:TRIALS])


def choose(read: Estimate, timings: Timings) -> Chosen:
    """Returns the mode that takes less time.

    Compares how long both modes took if enough of the last refreshes had both, and the bytes if not.
    """
    if read.is_small:
        return Chosen(FULL, f"the tables have less than {bytes_text(SMALL_BYTES)}, so AUTO refreshes fully")
    known = timings()
    incremental, full = (expected_ms(known, mode, read.of(mode)) for mode in (INCREMENTAL, FULL))
    trials = sum(t.mode == INCREMENTAL and not t.has_failed for t in known)
    if _fall_back(known):
        return Chosen(FULL, "the last incremental refreshes failed")
    if incremental is not None and full is not None and (trials >= TRIALS or incremental > TRIAL_SHARE_MAX * full):
        times = f"{seconds_text(incremental)}, and a full one {seconds_text(full)}"
        why = f"by the last refreshes, an incremental refresh would take {times}"
        return Chosen(INCREMENTAL if incremental <= full else FULL, why)
    if sum(t.mode == INCREMENTAL for t in known) >= TIMINGS_MAX and read.incremental > RETRIED_SHARE * read.full:
        return Chosen(FULL, f"none of the last {TIMINGS_MAX} refreshes was full, so AUTO measures one")
    is_more = read.incremental > READ_SHARE_MAX * read.full
    limit = f" (AUTO takes up to {READ_SHARE_MAX} times as much)" if read.incremental > read.full else ""
    sizes = f"{bytes_text(read.incremental)}, and a full one {bytes_text(read.full)}{limit}"
    return Chosen(FULL if is_more else INCREMENTAL, f"an incremental refresh would read {sizes}")


def bytes_text(count: int) -> str:
    """Returns a number of bytes for people. The sizes of small files vary from run to run, so it does not tell them apart."""
    return "less than 1 MB" if count < 1 << 20 else f"{count / (1 << 20):,.0f} MB"


def seconds_text(milliseconds: float) -> str:
    """Returns a duration in seconds, for people."""
    return f"{milliseconds / 1000:,.1f} s"
