"""What a source of streams is: it has positions, and returns the rows that changed between two positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import JavaObject
from streamql.dialect.text.tokens import Span
from streamql.model import Interval, Offset, Parts, Position, SourceRef, StreamMode
from streamql.names import Name
from streamql.times import is_near, now_ms

HIDDEN_TYPE = "refresh"
"""The type of source of hidden streams. A dynamic table has a hidden stream on its query, which only its refreshes read and consume."""

HIDDEN_SUFFIX = "$refresh"
"""The suffix of the name of a hidden stream. It follows the name of its dynamic table."""


@dataclass(frozen=True)
class Backlog:
    """How much reading an interval would touch, found without a job. `rows_added` and `rows_removed` are upper bounds; None: not known.

    `versions`: the number of versions of a table, or of offsets of a topic. `has_data`: False if the interval certainly has no changes.
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
    """When an interval may become unreadable: `retention_ms` after its first change, which was made at `first_ms` (milliseconds since
    1970). If `retention_ms` is None, the interval stays readable."""

    first_ms: int
    retention_ms: int | None

    @property
    def at_ms(self) -> int | None:
        """Returns when the interval may become unreadable, in milliseconds since 1970. None: it stays readable."""
        return None if self.retention_ms is None else self.first_ms + self.retention_ms

    @property
    def is_soon(self) -> bool:
        """Returns whether it may be gone soon."""
        return self.retention_ms is not None and is_near(self.first_ms + self.retention_ms, self.retention_ms, now_ms())


@dataclass(frozen=True)
class Point:
    """A point in the history of a source, as a statement names it. It is one of: a `version`, a time in microseconds since 1970, or
    `positions` of some of the source's parts.

    `before`: the last position before that point is meant. `span`: the place in the statement, for errors; None: it is not known. `base`:
    the present position of the stream, which parts that `positions` leaves out keep; None: there is no stream yet.
    """

    version: int | None
    time_us: int | None
    before: bool
    span: Span | None = None
    positions: Parts | None = None
    base: Position | None = None

    @property
    def where(self) -> dict[str, int]:
        """Returns the place in the statement as keyword arguments of an error."""
        return {} if self.span is None else {"line": self.span.line, "column": self.span.column}


@dataclass(frozen=True)
class Peek:
    """The newest position of a source, read without opening the source. `time_ms`: when it was reached; None: not known. `is_same`: it is
    certainly the source that the stream saw. If it is False, only opening the source can tell."""

    position: Position
    time_ms: int | None
    is_same: bool


class OpenSource(Protocol):
    """A source that was found, in its present state. Only `batch_end` may run jobs; `changes` and `as_at` return lazy DataFrames."""

    @property
    def spark(self) -> SparkSession:
        """Returns the session that opened the source."""

    @property
    def ref(self) -> SourceRef:
        """Returns the source with its present name and path."""

    @property
    def latest(self) -> Position:
        """Returns the newest position."""

    def check_trackable(self, mode: StreamMode, where: Mapping[str, int]) -> None:
        """Raises an error if no stream of the mode can be created on the source. `where`: line and column of the source in the
        statement."""

    def check_start(self, offset: Offset) -> None:
        """Checks that a stream can start at an offset. Raises INVALID_POINT_IN_TIME."""

    def check_history(self, offset: Offset, seen: SourceRef, stream: Name) -> None:
        """Checks that the offset of a stream is a position in the source's history. `seen`: the source as the stream last saw it. Raises
        STREAM_STALE, STREAM_SOURCE_REPLACED."""

    def offset_at(self, point: Point) -> Offset:
        """Returns the offset that a point names. Raises INVALID_POINT_IN_TIME."""

    def one_earlier(self, position: Position, point: Point) -> Position:
        """Returns the position before another one. `point` names it in errors. Raises INVALID_POINT_IN_TIME."""

    def changes(self, interval: Interval, mode: StreamMode) -> DataFrame:
        """Returns the change set of an interval: the metadata columns, then the source's columns, then the hidden columns. Lazy."""

    def as_at(self, position: Position, frame: DataFrame, end: Position) -> DataFrame:
        """Returns a change set in the columns that the source has at a later position. `frame`: the change set of an interval that ends at
        `end`. Columns that were added after `end` are NULL. Lazy. Raises INCOMPATIBLE_SCHEMA_CHANGE."""

    def seen_at(self, position: Position) -> SourceRef:
        """Returns the source with the mark by which a position of its history is recognised later (`TableSource.seen`)."""

    def time_ms(self, position: Position) -> int | None:
        """Returns when a position was reached, in milliseconds since 1970. None: the source no longer has that time."""

    def lag(self, offset: Offset) -> int:
        """Returns how many versions the source has after an offset."""

    def first_step(self, interval: Interval) -> Interval:
        """Returns the shortest part of an interval, from its begin, that can be read alone. The interval must not be empty."""

    def batch_end(self, interval: Interval, mode: StreamMode, rows_max: int) -> Position:
        """Returns the end of the longest part of an interval, from its begin, that has at most `rows_max` changes. The part has at least
        one step (`first_step`), even if that has more changes. If the log alone does not tell, counts rows, which runs jobs."""

    def backlog(self, interval: Interval, mode: StreamMode) -> Backlog:
        """Returns how much reading an interval would touch. Raises what planning the read raises."""

    def expiry(self, interval: Interval, mode: StreamMode) -> Expiry | None:
        """Returns when an interval may become unreadable. None: never, or it has no changes. Raises STREAM_STALE."""

    def describe_move(self, stream: Name, mode: StreamMode, old: Offset, new: Offset) -> str | None:
        """Returns a text that says what a stream skips, or shows again, if its offset is set from `old` to `new`. None: there is no change
        between the two."""


Opened = OpenSource | Exception
"""A source that was opened, or the error that opening it raised."""


def _no_peek(_: SparkSession, sources: Sequence[Any]) -> list[Peek | None]:
    return [None] * len(sources)


def _start(_: Any, at: Offset, show_initial_rows: bool) -> Offset:
    return Offset(at.position, show_initial_rows or at.initial)


def _not_identified(_: SparkSession, __: SourceRef) -> SourceRef | None:
    return None


def _no_identity(_: Any) -> str | None:
    return None


def _no_query(_: SparkSession, __: Any) -> JavaObject | None:
    return None


def _no_dataset(_: SparkSession, __: Any) -> tuple[str, str] | None:
    return None


class Relation(Protocol):
    """Reads a source that SELECT names. `columns_only`: a DataFrame without rows is enough."""

    def __call__(self, spark: SparkSession, source: Any, *, columns_only: bool) -> DataFrame: ...


@dataclass(frozen=True)
class SourceType:
    """A type of source, which a feature registers (`sources.registry`).

    `label`: the name that SHOW STREAMS has for it. `read`: makes a source of what its `SourceRef.to_json` returned. `open`: opens a source;
    raises STREAM_SOURCE_MISSING, STREAM_SOURCE_REPLACED. `find`: returns the source of a name; None: the name does not stand for a source
    of this type. `peek`: returns the newest positions of several sources, read at once; None for a source that must be opened.

    Fields with defaults are for types that differ from tables:
    - `open_many`: opens the sources of several streams, given with their offsets, at once; None: they are opened one by one.
    - `statement_types`: the words that CREATE STREAM … ON takes for it. `default_mode`: the mode of a stream whose statement names none.
    - `start`: returns where a stream starts, by the offset that its statement names and SHOW_INITIAL_ROWS.
    - `relation`: reads a source whose name is not in Spark's catalogs; None: Spark finds the name itself.
    - `count_if_shrinking`: counts the rows of an interval by a job if a later read may find fewer rows. None, in place of the function or
      as its answer: a later read finds the same rows.
    - `keep_longer`: a hint how to keep the history of a source for longer; empty: by altering the tables that it holds.
    - `unit`: what lag and backlog count.
    - `identity`: the word by which IDENTITY = … names sources of this type; empty: it has none. `identify`: makes a source of this type of
      one of another type, with the same name; None, as its answer: that one cannot be followed so. `shown_identity`: how SHOW STREAMS
      shows by what the rows of a source are recognized; None, as its answer: rows of this type have no identity.
    - `named`: opens a Delta table that a query reads, which must have a name; None: it is not the type of such a table.
    - `consumed`: is called after a statement has consumed a stream on a source; None: nothing is called.
    - `query_plan`: returns the analysed query whose rows a source shows; None, as its answer: it is not a query. `dataset`: the
      namespace and name of a source outside of Delta, as OpenLineage writes them; None, as its answer: its path, or its name, says it.
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
    identity: str = ""
    identify: Callable[[SparkSession, SourceRef], SourceRef | None] = _not_identified
    shown_identity: Callable[[Any], str | None] = _no_identity
    named: Callable[[SparkSession, Any], OpenSource] | None = None
    consumed: Callable[[SparkSession, Any], None] | None = None
    query_plan: Callable[[SparkSession, Any], JavaObject | None] = _no_query
    dataset: Callable[[SparkSession, Any], tuple[str, str] | None] = _no_dataset
