"""What a check of the doctor is: it examines the catalog, the streams or their sources. It may fix problems that need no choice by the
user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Generic, Literal, TypeVar

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.errors import StreamqlError
from streamql.model import Interval
from streamql.reading import interval_now
from streamql.sources.protocol import Opened, OpenSource
from streamql.sources.registry import open_many, open_source

Severity = Literal["error", "warning"]
ForFix = TypeVar("ForFix")

CATALOG = "(catalog)"
"""The subject of findings that do not concern a single stream."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, or will be. `subject`: a stream, a table, or the catalog. `remedy`: what to do; if `is_fixed`, what was
    done."""

    subject: str
    severity: Severity
    code: str
    what: str
    remedy: str
    is_fixed: bool = False


@dataclass(frozen=True)
class Problem(Generic[ForFix]):
    """What a check found. `for_fix`: what the fix needs; None: there is no fix, or it needs a choice by the user."""

    finding: Finding
    for_fix: ForFix | None = None


class About(IntEnum):
    """What a check is about. Checks run in this order, and findings are shown in it. A check sees the results of earlier fixes, so the
    tables that streams read are checked before the streams.
    """

    CATALOG = 1
    EXTERNAL_TABLES = 2
    """Tables of other systems."""
    DYNAMIC_TABLES = 3
    """Tables that queries define."""
    STREAMS = 4
    ROWS = 5
    """The rows of tables."""
    TASKS = 6
    """What runs by itself."""


class Check(ABC, Generic[ForFix]):
    """A check for one type of problem."""

    about: ClassVar[About] = About.STREAMS
    reads_rows: ClassVar[bool] = False
    """Whether it reads all rows of tables, so that it runs only if the user asks for it."""

    @abstractmethod
    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterable[Problem[ForFix]]:
        """Finds the problems, and changes nothing. `states`: all streams, read just before."""

    def fix(self, spark: SparkSession, problems: Sequence[Problem[ForFix]]) -> list[Finding]:  # noqa: ARG002 - fixes take it
        """Fixes the problems that have `for_fix`. Returns the findings to show: what was done, or the problem if it was not fixed."""
        return [p.finding for p in problems]


def finding_of(subject: str, e: StreamqlError) -> Finding:
    """Returns an error of streamql as a finding."""
    return Finding(subject, "error", e.code, e.message, e.hint)


def with_sources(spark: SparkSession, states: Sequence[StreamState]) -> list[tuple[StreamState, Opened | None]]:
    """Returns the streams with their sources, as far as these can be opened at once. None: the source must be opened alone."""
    return list(zip(states, open_many(spark, [(s.stream.source, s.offset) for s in states]), strict=True))


def unread(spark: SparkSession, state: StreamState, opened: Opened | None) -> tuple[OpenSource, Interval] | None:
    """Returns the source of a stream, and the interval that the stream still has to read. None: the interval is empty, or the source cannot
    be opened, which the check of sources reports. `opened`: as `with_sources` returns it."""
    try:
        source = open_source(spark, state.stream.source, opened)
        interval = interval_now(spark, state, source)
    except Exception:
        return None
    return None if interval.is_empty else (source, interval)
