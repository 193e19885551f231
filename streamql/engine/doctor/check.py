"""What a check of the doctor is: it examines the catalog, the streams and their sources, and fixes what needs no choice."""

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
Facts = TypeVar("Facts")

CATALOG = "(catalog)"
"""The subject of findings that concern no single stream."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, or will be: with which stream, table or the catalog, and what to do. `is_fixed`: it has been done."""

    subject: str
    severity: Severity
    code: str
    what: str
    remedy: str
    is_fixed: bool = False


@dataclass(frozen=True)
class Problem(Generic[Facts]):
    """What a check found. `facts`: what its fix needs; None: there is no fix without a choice of the user's."""

    finding: Finding
    facts: Facts | None = None


class About(IntEnum):
    """What a check is about. Checks run, and findings are shown, in this order: a check sees what the fixes before it have done.

    Therefore what streams read is checked before they are.
    """

    CATALOG = 1
    EXTERNAL_TABLES = 2
    """Tables of other systems."""
    DYNAMIC_TABLES = 3
    """Tables that queries define."""
    STREAMS = 4


class Check(ABC, Generic[Facts]):
    """One thing that can be wrong."""

    about: ClassVar[About] = About.STREAMS

    @abstractmethod
    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterable[Problem[Facts]]:
        """Finds the problems, and changes nothing. `states`: all streams, read just before."""

    def fix(self, spark: SparkSession, problems: Sequence[Problem[Facts]]) -> list[Finding]:  # noqa: ARG002 - fixes take it
        """Fixes the problems that have facts. The findings to show: what was done, or what was found if there was no fix or it failed."""
        return [p.finding for p in problems]


def finding_of(subject: str, e: StreamqlError) -> Finding:
    """Returns an error of ours as a finding."""
    return Finding(subject, "error", e.code, e.message, e.hint)


def with_sources(spark: SparkSession, states: Sequence[StreamState]) -> list[tuple[StreamState, Opened | None]]:
    """Streams, with those sources that are opened together. None: the source is to be opened alone."""
    return list(zip(states, open_many(spark, [(s.stream.source, s.offset) for s in states]), strict=True))


def unread(spark: SparkSession, state: StreamState, opened: Opened | None) -> tuple[OpenSource, Interval] | None:
    """Returns the source of a stream and the interval that it has still to read; None: there is none, or it cannot be opened, which the
    check of sources reports. `opened`: as `with_sources` gives it."""
    try:
        source = open_source(spark, state.stream.source, opened)
        interval = interval_now(spark, state, source)
    except Exception:
        return None
    return None if interval.is_empty else (source, interval)
