"""Queries over Delta tables as sources of streams. Their positions are the versions of the tables that they read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamql.delta.queries import TrackedQuery
from streamql.errors import StreamqlError
from streamql.model import Interval, Offset, Parts, Position, SourceRef, StreamMode, TableSource, Versions
from streamql.names import Name
from streamql.sources.protocol import Backlog, Expiry, Point
from streamql.sources.registry import read_source, source_json
from streamql.sources.tables.history import check_all_trackable
from streamql.sources.tables.table import OpenTable
from streamql.sources.views import history, reading
from streamql.sources.views.positions import parts_of, versions_of


@dataclass(frozen=True)
class QuerySource:
    """A query as a stream refers to it.

    `type_name`: its type of source. `digest`: identifies the query; if it differs, the query is another one. `tables`: a pair (part, table)
    for each table that the query reads, in the order in which the query names them. The part is the name that the table had when the stream
    was created.

    Only for the query of a dynamic table: `texts`: a digest of the views and functions that it reads; empty: it reads none. `plan`: a
    digest of the plan that Spark makes of it; empty: an earlier version of streamql refreshed the table last. `clock`: what it reads of the
    clock, as `DynamicQuery` has it. `tried_ms`: when the last refresh began that claimed the stream or failed, in milliseconds since 1970;
    0: there was none. If `clock` or `tried_ms` is None, an earlier version of streamql refreshed the table last. `attempt`: how many
    refreshes have claimed the stream.
    """

    type_name: str
    name: Name
    digest: str
    tables: tuple[tuple[str, TableSource], ...]
    texts: str = ""
    plan: str = ""
    clock: str | None = None
    tried_ms: int | None = None
    attempt: int = 0

    @property
    def identity(self) -> str:
        """Returns the digest of the query and the ids of its tables."""
        return " ".join([self.digest, *(table.table_id for _, table in self.tables)])

    @property
    def path(self) -> str:
        """Returns an empty text: a query has no files of its own."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """Returns what `from_json` reads back."""
        tables = [[part, source_json(table)] for part, table in self.tables]
        known = {"digest": self.digest, "tables": tables, "texts": self.texts, "plan": self.plan}
        refreshed = {"clock": self.clock, "tried_ms": self.tried_ms, "attempt": self.attempt or None}
        return {"name": list(self.name.parts), **known, **{k: v for k, v in refreshed.items() if v is not None}}

    @classmethod
    def from_json(cls, type_name: str, data: Mapping[str, Any]) -> QuerySource:
        """Returns the source that `to_json` wrote. Raises LookupError, TypeError or ValueError for anything else."""
        tables = tuple((str(part), _table(table)) for part, table in data["tables"])
        texts, plan, clock = str(data.get("texts", "")), str(data.get("plan", "")), data.get("clock")
        tried, attempt = data.get("tried_ms"), int(data.get("attempt", 0))
        name, said = Name.of(data["name"]), str(data["digest"])
        clock, tried = None if clock is None else str(clock), None if tried is None else int(tried)
        return cls(type_name, name, said, tables, texts, plan, clock, tried, attempt)

    def holds(self, interval: Interval) -> list[tuple[TableSource, Versions]]:
        """Returns the tables, each with its versions in the interval."""
        return [(table, versions_of(interval, part)) for part, table in self.tables]


def _table(data: Mapping[str, Any]) -> TableSource:
    found = read_source(data)
    if not isinstance(found, TableSource):
        raise ValueError(f"not a table: {found.type_name}")
    return found


def digest(said: object) -> str:
    """Returns 32 hexadecimal digits that identify a value. `said`: a value that JSON can hold."""
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]


def in_tables_of(offset: Offset, old: QuerySource, new: QuerySource) -> tuple[Offset, QuerySource] | None:
    """Converts an offset of the query `old` into one of the query `new`, whose parts may have other names for the same tables.

    Returns the offset, and `new` with the tables as the offset was seen with them. None: the two queries do not read the same tables.
    """
    parts = {table.table_id: part for part, table in new.tables}
    if old.type_name != new.type_name or set(parts) != {table.table_id for _, table in old.tables}:
        return None
    versions = parts_of(offset.position)
    position = Parts.of({parts[table.table_id]: versions[part] for part, table in old.tables})
    tables = tuple((parts[table.table_id], table) for _, table in old.tables)
    return Offset(position, offset.initial), replace(new, tables=tables)


@dataclass(frozen=True)
class OpenTables:
    """The opened tables that a query reads. It is the common part of every `OpenSource` whose positions are versions of several tables.

    `tables`: by part. `label`: the word that messages use for the source.
    """

    spark: SparkSession
    ref: QuerySource
    tables: Mapping[str, OpenTable]
    label: str

    @cached_property
    def latest(self) -> Parts:
        """Returns the newest versions of the tables."""
        return Parts.of({part: table.latest for part, table in self.tables.items()})

    @property
    def only_table(self) -> OpenTable | None:
        """Returns the table if the query reads only one; None: it reads several."""
        return next(iter(self.tables.values())) if len(self.tables) == 1 else None

    def offset_of(self, offset: Offset, part: str) -> Offset:
        """Returns the offset of one of the tables. `part`: the table's part."""
        return Offset(parts_of(offset.position)[part], offset.initial)

    # -- checks

    def check_start(self, offset: Offset) -> None:
        """Checks that all commits of the tables since an offset can be read as changes. Raises INVALID_POINT_IN_TIME."""
        for part, table in self.tables.items():
            table.check_start(self.offset_of(offset, part))

    def check_history(self, offset: Offset, seen: SourceRef, stream: Name) -> None:
        """Checks that the offset is in the history of each table. Raises STREAM_STALE, STREAM_SOURCE_REPLACED."""
        known = dict(seen.tables) if isinstance(seen, QuerySource) else {}
        for part, table in self.tables.items():
            table.check_history(self.offset_of(offset, part), known.get(part, table.ref), stream)

    # -- points in its history

    def offset_at(self, point: Point) -> Offset:
        """Returns the offset of a point: the version that each table had at a time, or the versions that are named by table. Raises
        INVALID_POINT_IN_TIME."""
        return Offset(Parts.of(history.versions_at(self, point)))

    def one_earlier(self, position: Position, point: Point) -> Position:
        """Returns the position before another one, for a query of one table. Raises INVALID_POINT_IN_TIME if there are several tables."""
        if self.only_table is None:
            raise history.no_versions(self, point)
        ((part, version),) = parts_of(position).items()
        return Parts.of({part: self.only_table.one_earlier(version, point)})

    def seen_at(self, position: Position) -> QuerySource:
        """Returns the source with the mark by which the version of each table is recognised later (`TableSource.seen`)."""
        versions = parts_of(position)
        tables = tuple((part, table.seen_at(versions[part])) for part, table in self.tables.items())
        return replace(self.ref, tables=tables)

    def time_ms(self, position: Position) -> int | None:
        """Returns when the latest of the position's versions was committed, in milliseconds since 1970. None: the log of a table no longer
        has its version."""
        times = [self.tables[part].time_ms(version) for part, version in parts_of(position).items()]
        known = [time for time in times if time is not None]
        return max(known) if len(known) == len(times) else None

    def lag(self, offset: Offset) -> int:
        """Returns how many versions all tables together have after an offset."""
        return sum(table.lag(self.offset_of(offset, part)) for part, table in self.tables.items())

    def describe_move(self, stream: Name, mode: StreamMode, old: Offset, new: Offset) -> str | None:
        """Returns a text that says how many versions and rows of each table a stream skips, or shows again. None: there is no change
        between the offsets."""
        said = [
            table.describe_move(stream, mode, self.offset_of(old, part), self.offset_of(new, part))
            for part, table in self.tables.items()
        ]
        moves = [
            f"{text} of {part}" if len(self.tables) > 1 else text
            for part, text in zip(self.tables, said, strict=True)
            if text is not None
        ]
        return "; ".join(moves) or None

    # -- reading

    def first_step(self, interval: Interval) -> Interval:
        """Returns the interval of the first commit in an interval, of whichever table made it first."""
        return Interval(interval.after, history.steps(self, interval)[0])

    def backlog_of_tables(self, interval: Interval, mode: StreamMode, *, rows_known: bool) -> Backlog:
        """Returns how much reading an interval of all tables would touch. `rows_known`: the query reads one table once, so that the table's
        rows are a bound of the query's."""
        found = [t.backlog(_of_table(interval, part), mode) for part, t in self.tables.items()]
        counts = [(b.rows_added, b.rows_removed) for b in found] if rows_known else [(None, None)]
        rows_added, rows_removed = counts[0]
        return Backlog(
            sum(b.versions for b in found),
            rows_added,
            rows_removed,
            sum(b.files for b in found),
            sum(b.bytes for b in found),
            any(b.has_data for b in found),
        )

    def expiry(self, interval: Interval, mode: StreamMode) -> Expiry | None:
        """Returns when the first of the tables may become unreadable. None: no table has a commit in the interval. Raises STREAM_STALE."""
        found = [t.expiry(_of_table(interval, part), mode) for part, t in self.tables.items()]
        return min((e for e in found if e is not None), key=lambda e: e.at_ms or 2**63, default=None)


@dataclass(frozen=True)
class OpenQuery(OpenTables):
    """An analysed query and the opened tables that it reads. It is an `OpenSource`."""

    query: TrackedQuery

    def check_trackable(self, mode: StreamMode, where: Mapping[str, int]) -> None:  # noqa: ARG002 - tables have both modes
        """Raises RESERVED_COLUMN_NAME, and CHANGE_TRACKING_DISABLED for the tables that do not track changes."""
        reading.check_columns(self, where)
        check_all_trackable(self.tables.values(), where)

    def changes(self, interval: Interval, mode: StreamMode) -> DataFrame:
        """Returns the change set of an interval: the net changes of the query's rows. Lazy."""
        return reading.changes(self, interval, mode)

    def as_at(self, position: Position, frame: DataFrame, end: Position) -> DataFrame:  # noqa: ARG002 - the protocol's
        """Returns `frame` as it is, because the columns of a query do not change: a query with other columns is another query."""
        return frame

    def batch_end(self, interval: Interval, mode: StreamMode, rows_max: int) -> Position:
        """Returns the end of the longest part of an interval, from its begin, with at most `rows_max` changes. It has at least one commit.
        The commits of all tables are taken in the order of their times. Initial rows are never divided."""
        if interval.initial:
            return interval.through if mode is StreamMode.STANDARD else interval.after
        return interval.through if interval.is_empty else history.batch_end(self, interval, mode, rows_max)

    def backlog(self, interval: Interval, mode: StreamMode) -> Backlog:
        """Returns how much reading an interval of all tables would touch. The rows are not known if the query joins tables."""
        return self.backlog_of_tables(interval, mode, rows_known=self.query.reads_one_table_once)


def _of_table(interval: Interval, part: str) -> Interval:
    versions = versions_of(interval, part)
    return Interval(versions.after, versions.through, versions.initial)


def not_found(source: QuerySource, label: str, code: str, what: str, hint: str) -> StreamqlError:
    """Returns the error for a view or dynamic table that no longer exists, or has another query. `label`: the word for it in messages."""
    return StreamqlError(code, f"the {label} {source.name} {what}", hint=hint, source=str(source.name))
