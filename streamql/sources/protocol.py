"""What a source of streams is: something that has positions, and rows that changed between two of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from streamql.dialect.text.tokens import Span
from streamql.model import Interval, Offset, Parts, Position, SourceRef, StreamMode
from streamql.names import Name
from streamql.times import is_near, now_ms

HIDDEN_TYPE = "refresh"
"""The type of source of hidden streams: the query of a dynamic table. Only a refresh reads and consumes such a stream."""

HIDDEN_SUFFIX = "$refresh"
"""What the name of a hidden stream has after that of its dynamic table."""


@dataclass(frozen=True)
class Backlog:
    """What reading an interval would touch, without a job. `rows_added` and `rows_removed` are upper bounds; None: not known.

    `versions` counts what the source commits: versions of a table, or offsets of a topic.
    """

    versions: int
    rows_added: int | None
    rows_removed: int | None
    files: int
    bytes: int
    has_data: bool


NO_BACKLOG = Backlog(versions=0, rows_added=0, rows_removed=0, files=0, bytes=0, has_data=False)


@dataclass(frozen=True)
class Expiry:
    """When an interval may become unreadable: `retention_ms` after its first change, which was made at `first_ms`. In milliseconds.
    `retention_ms` None: it stays readable."""

    first_ms: int
    retention_ms: int | None

    @property
    def at_ms(self) -> int | None:
        """Returns the time after which it may be gone, in milliseconds since 1970. None: it stays."""
        return None if self.retention_ms is None else self.first_ms + self.retention_ms

    @property
    def is_soon(self) -> bool:
        """Returns whether it may be gone soon."""
        return self.retention_ms is not None and is_near(self.first_ms + self.retention_ms, self.retention_ms, now_ms())


@dataclass(frozen=True)
class Point:
    """A point in the history of a source: a version, a time in microseconds since 1970, or positions of some of its parts. `before`: the
    last position before it.

    `span`: where the statement names it, for errors; None: no place is known. `base`: the offset of the stream that `positions` move;
    None: there is no stream yet.
    """

    version: int | None
    time_us: int | None
    before: bool
    span: Span | None = None
    positions: Parts | None = None
    base: Position | None = None

    @property
    def where(self) -> dict[str, int]:
        """Returns the place in the statement, as facts of an error."""
        return {} if self.span is None else {"line": self.span.line, "column": self.span.column}


@dataclass(frozen=True)
class Peek:
    """The version of a source, read without opening it. `is_same`: it is still the source that it was."""

    position: Position
    time_ms: int | None
    is_same: bool


class OpenSource(Protocol):
    """A source that was found, as it is now. All methods but `changes` answer without a job."""

    @property
    def spark(self) -> SparkSession:
        """Returns the session it was opened in."""

    @property
    def ref(self) -> SourceRef:
        """Returns the source, where it is now."""

    @property
    def latest(self) -> Position:
        """Returns the newest position."""

    def check_trackable(self, mode: StreamMode, where: Mapping[str, int]) -> None:
        """Raises an error if no stream of the mode can be made on it. `where`: line and column of the source in the statement."""

    def check_start(self, offset: Offset) -> None:
        """Checks that a stream can start at an offset. Raises INVALID_POINT_IN_TIME."""

    def check_history(self, offset: Offset, seen: SourceRef, stream: Name) -> None:
        """Checks that the offset of a stream means something in the source's history; `seen`: the source as the stream saw it. Raises
        STREAM_STALE, STREAM_SOURCE_REPLACED."""

    def offset_at(self, point: Point) -> Offset:
        """Returns the offset that a point names. Raises INVALID_POINT_IN_TIME."""

    def one_earlier(self, position: Position, point: Point) -> Position:
        """Returns the position before another one. `point` names it in errors. Raises INVALID_POINT_IN_TIME."""

    def changes(self, interval: Interval, mode: StreamMode) -> DataFrame:
        """Returns the change set of an interval: the metadata columns, the source's columns, the hidden ones. Lazy."""

    def as_at(self, position: Position, frame: DataFrame, end: Position) -> DataFrame:
        """Returns the change set of an interval that ends at `end` in the source's columns of a later position, NULL in those that came
        since. Lazy. Raises INCOMPATIBLE_SCHEMA_CHANGE."""

    def seen_at(self, position: Position) -> SourceRef:
        """Returns the source with what a position of its history is recognised by."""

    def time_ms(self, position: Position) -> int | None:
        """Returns when a position was reached, in milliseconds since 1970. None: the source no longer tells."""

    def lag(self, offset: Offset) -> int:
        """Returns how many versions the source has after an offset."""

    def first_step(self, interval: Interval) -> Interval:
        """Returns the smallest part of an interval, from its begin, that can be read alone. The interval is not empty."""

    def batch_end(self, interval: Interval, mode: StreamMode, rows_max: int) -> Position:
        """Returns the end of the longest part of an interval, from its begin, with at most `rows_max` changes; at least one step. Counts
        rows if the log alone is not enough, which runs jobs."""

    def backlog(self, interval: Interval, mode: StreamMode) -> Backlog:
        """Counts what reading an interval would touch. Raises what planning it raises."""

    def expiry(self, interval: Interval, mode: StreamMode) -> Expiry | None:
        """Returns when an interval may become unreadable. None: never, or nothing is in it. Raises STREAM_STALE."""

    def describe_move(self, stream: Name, mode: StreamMode, old: Offset, new: Offset) -> str | None:
        """Says what a stream skips, or shows again, if its offset is set. None: no change lies between."""


Opened = OpenSource | Exception
"""A source that was opened, or why it could not be."""


def _no_peek(_: SparkSession, sources: Sequence[Any]) -> list[Peek | None]:
    return [None] * len(sources)


def _start(_: Any, at: Offset, show_initial_rows: bool) -> Offset:
    return Offset(at.position, show_initial_rows or at.initial)


class Relation(Protocol):
    """How SELECT reads a source by its name. `columns_only`: a frame without rows is enough."""

    def __call__(self, spark: SparkSession, source: Any, *, columns_only: bool) -> DataFrame: ...


@dataclass(frozen=True)
class SourceType:
    """A type of source, as `sources.registry` has it.

    `label`: what SHOW STREAMS calls it. `read`: reads what `SourceRef.to_json` returned. `open`: finds a source; raises
    STREAM_SOURCE_MISSING, STREAM_SOURCE_REPLACED. `find`: the source that a name stands for; None: the name is nothing of this type.
    `peek`: the version of each of several sources, read at once; None: that one must be opened.

    Fields with defaults are for types that differ from tables:
    `open_many`: opens the sources of several streams with their offsets at once; None: one by one.
    `statement_types`: what CREATE STREAM … ON may call it. `default_mode`: of a stream whose statement names none.
    `start`: where a stream starts, by the offset that its statement names and SHOW_INITIAL_ROWS.
    `relation`: reads a source whose name Spark's catalogs do not have; None: they have it.
    `count_if_shrinking`: counts the rows of an interval by a job, if a second read of it may find less. None, as function or answer: a
    second read finds the same.
    `keep_longer`: what keeps its history for longer, as advice; empty: the tables that it holds are to be altered.
    `unit`: what lag and backlog count.
    """

    name: str
    label: str
    read: Callable[[Mapping[str, Any]], SourceRef]
    open: Callable[[SparkSession, Any], OpenSource]
    find: Callable[[SparkSession, Name], SourceRef | None]
    peek: Callable[[SparkSession, Sequence[Any]], Sequence[Peek | None]] = _no_peek
    open_many: Callable[[SparkSession, Sequence[tuple[Any, Offset]]], Sequence[Opened]] | None = None
    statement_types: tuple[str, ...] = ("TABLE",)
    default_mode: StreamMode = StreamMode.STANDARD
    start: Callable[[Any, Offset, bool], Offset] = _start
    relation: Relation | None = None
    count_if_shrinking: Callable[[SparkSession, Any, Interval], int | None] | None = None
    keep_longer: str = ""
    unit: str = "version"
