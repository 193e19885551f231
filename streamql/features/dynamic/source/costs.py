"""Chooses the mode of a refresh for REFRESH_MODE = AUTO. It compares the bytes that both modes read, or how long earlier refreshes took.
Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

AUTO, FULL, INCREMENTAL = "AUTO", "FULL", "INCREMENTAL"
"""The values of REFRESH_MODE. A FULL refresh computes the whole query. An INCREMENTAL one computes the changes from those of the tables."""

SMALL_BYTES = 4 << 20
"""If the tables have fewer bytes than this, both modes take about as long: the time goes into planning, jobs and commits. From about
10 MB on, incremental refreshes of sums and joins were faster (by a third, of a million rows of 12 MB)."""

READ_SHARE_MAX = 1.25
"""An incremental refresh may read up to so many times the bytes of a full one and take no longer, because it joins and groups fewer
rows."""

TRIALS = 2
"""The durations of incremental refreshes count only if at least so many of the last refreshes were incremental. The first one in a process
also compiles code, and so takes longer."""

TRIAL_SHARE_MAX = 2
"""If one incremental refresh took more than so many times as long as a full one, its duration counts at once."""

TIMINGS_MAX = 20
"""How many of the last refreshes count. If none of them had a mode, the modes are compared by bytes again, so that AUTO may try that
mode."""

NEAREST = 3
"""How many refreshes of a mode count: those with the most similar numbers of bytes."""

RETRIED_SHARE = 0.5
"""If all of the last TIMINGS_MAX refreshes were incremental, and one reads more than this share of the bytes of a full one, a full one is
tried. That takes at most about twice as long, and happens once in TIMINGS_MAX refreshes."""

SIMILAR_DOUBLINGS = 3
"""If there are refreshes with at most 8 times more or fewer bytes (three doublings), only these count."""

BYTES_EXPONENT = 1 / 3
"""How the time of a refresh grows with its bytes: eight times as many bytes take twice as long, because planning, jobs and commits take a
large part of the time."""


@dataclass(frozen=True)
class TableReads:
    """What a refresh reads of a table. `size`: the bytes of the table's files. `incremental`, `full`: how often each mode reads these.
    `changes`: the bytes of the table's change set."""

    size: int
    incremental: int
    full: int
    changes: int = 0

    def bytes_of(self, mode: str) -> int:
        """Returns the bytes that a mode reads. A change set counts twice, because an incremental refresh computes it and reads it."""
        return self.incremental * self.size + 2 * self.changes if mode == INCREMENTAL else self.full * self.size


@dataclass(frozen=True)
class Estimate:
    """The bytes that an incremental and a full refresh read, by the sizes of files. Files that Spark may skip count as well. `tables`: by
    table id."""

    incremental: int
    full: int
    tables: Mapping[str, TableReads] = field(default_factory=dict)

    @classmethod
    def of_tables(cls, tables: Mapping[str, TableReads]) -> Estimate:
        """Returns the estimate of a query by what is read of its tables."""
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
    """The mode that AUTO takes, and why, as a text for messages."""

    mode: str
    why: str


@dataclass(frozen=True)
class Timing:
    """How long a refresh took. `bytes`: the bytes by its estimate; None: it had none, because AUTO did not choose its mode. `is_first`: it
    filled an empty table. `has_failed`: it failed, so its duration does not count."""

    mode: str
    duration_ms: int
    bytes: int | None
    is_first: bool = False
    has_failed: bool = False


Timings = Callable[[], Sequence[Timing]]
"""Returns the last refreshes of a table, the newest first. It is called only if they are needed, because it may read the ledger in a
job."""


def expected_ms(timings: Sequence[Timing], mode: str, size: int) -> float | None:
    """Returns the expected duration of a refresh that reads `size` bytes: the median of earlier refreshes of its mode, scaled to this size.
    None: there are no earlier ones.

    The refreshes with the most similar numbers of bytes count, and of these the newest. The median of an even number is the lower middle
    one. Refreshes without an estimate count if there are no others.

    The first refresh of the table counts only if there is no other full one. Other full refreshes take up to twice as long, because they
    also compare rows. Yet if the first one was faster than incremental ones, a full one has to be tried: otherwise AUTO would never learn
    how long one takes.
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
    """Returns whether the last incremental refreshes failed, and full refreshes ran in their place and succeeded."""
    tried = []
    for later, one in zip([None, *timings], timings, strict=False):
        ran_again = later is not None and later.mode == FULL and not later.has_failed
        if one.mode == INCREMENTAL and (ran_again or not one.has_failed):
            tried.append(one.has_failed)
    return len(tried) >= TRIALS and all(tried[:TRIALS])


def choose(read: Estimate, timings: Timings) -> Chosen:
    """Returns the mode that probably takes less time. If enough of the last refreshes had each mode, it compares their durations. Otherwise
    it compares the bytes that both modes read."""
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
    """Returns a number of bytes as text for messages. The sizes of small files vary from run to run, so everything below 1 MB has one
    text."""
    return "less than 1 MB" if count < 1 << 20 else f"{count / (1 << 20):,.0f} MB"


def seconds_text(milliseconds: float) -> str:
    """Returns a duration in seconds, as text for messages."""
    return f"{milliseconds / 1000:,.1f} s"
