"""Dynamic tables and materialized views: their definitions, and streams on them.

The definition is an entry of the catalog. The rows are in a Delta table, the *backing table*. A view with the dynamic table's name shows
the columns of that table without the key columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.store import catalog_of
from streamql.catalog.stored import StoredTable
from streamql.changes import change_set
from streamql.errors import StreamqlError
from streamql.features.dynamic.source.queries import NO_STATES
from streamql.model import Interval, Offset, Position, SourceRef, StreamMode, TableSource, Versions
from streamql.names import Name
from streamql.shared import constants
from streamql.sources.definitions import Definition, DefinitionType
from streamql.sources.protocol import Backlog, Expiry, Point, SourceType
from streamql.sources.tables.replaced import COMPARED
from streamql.sources.tables.table import OpenTable, open_table

TYPES = (DefinitionType.DYNAMIC_TABLE, DefinitionType.MATERIALIZED_VIEW)

BACKING_PREFIX = constants("dynamicTables")["backingPrefix"]
"""The prefix of the names of backing tables. The first 12 hexadecimal digits of the definition's id follow."""


@dataclass(frozen=True)
class Schedule:
    """When a table is due. Times in milliseconds.

    `lag_ms`: TARGET_LAG. `interval_ms`: REFRESH INTERVAL. `start_ms`: the first tick of the interval. `is_downstream`: the table is due
    when a table that reads it is due. If none of them is set, only statements refresh the table.
    """

    lag_ms: int | None = None
    interval_ms: int | None = None
    start_ms: int = 0
    is_downstream: bool = False


@dataclass(frozen=True)
class DynamicTable:
    """A dynamic table or a materialized view.

    `query`: the text of its query. `schema`, `properties`: the query's columns, and the settings with which it was written, as the
    extension's JSON. `backing`: the backing table. `columns`: the columns that it shows. `keys`: the columns of the backing table that
    identify a row. `states`: the columns from which incremental refreshes compute its aggregates, as a schema in JSON; None: they are not
    known yet. `stream_id`: the id of the hidden stream, whose consumptions are its refreshes. `former`: its former names, each with the
    time when it lost the name, in milliseconds since 1970.
    """

    definition: Definition
    query: str
    schema: str
    properties: str
    backing: TableSource
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    states: str | None
    stream_id: str
    schedule: Schedule
    refresh_mode: str = "AUTO"
    is_suspended: bool = False
    former: tuple[tuple[Name, int], ...] = ()

    @property
    def name(self) -> Name:
        """Returns its name."""
        return self.definition.name

    @property
    def stored(self) -> StoredTable:
        """Returns the form in which the kernel knows the table."""
        return StoredTable(self.definition, self.backing, self.columns)

    @property
    def label(self) -> str:
        """Returns the words that statements have for it: DYNAMIC TABLE or MATERIALIZED VIEW."""
        return self.definition.type.value.upper()

    @property
    def stored_columns(self) -> list[str]:
        """Returns the columns of the backing table: the shown columns, the keys that are not among these, and the states."""
        shown = {c.lower() for c in self.columns}
        states = [field["name"] for field in json.loads(self.states)["fields"]] if self.states else []
        return [*self.columns, *(k for k in self.keys if k.lower() not in shown), *states]

    def names_since(self, time_ms: int) -> list[Name]:
        """Returns the names that it had at that time or later, and has no longer. A text that was written then may use them."""
        return [n for n, lost_ms in self.former if lost_ms >= time_ms]

    def to_definition(self) -> Definition:
        """Returns the entry of the catalog."""
        options = {
            "query": self.query,
            "schema": self.schema,
            "properties": self.properties,
            "backing": json.dumps(self.backing.to_json()),
            "keys": json.dumps(self.keys),
            "states": self.states or json.dumps(NO_STATES),
            "stream_id": self.stream_id,
            "schedule": json.dumps(vars(self.schedule)),
            "refresh_mode": self.refresh_mode,
            "is_suspended": json.dumps(self.is_suspended),
            "former": json.dumps([[n.parts, at] for n, at in self.former]),
        }
        return replace(self.definition, options=options, columns=self.columns)

    @classmethod
    def of(cls, definition: Definition) -> DynamicTable:
        """Returns the table that an entry of the catalog defines."""
        o = definition.options
        return cls(
            definition,
            o["query"],
            o["schema"],
            o["properties"],
            _backing_of(o["backing"]),
            definition.columns,
            tuple(json.loads(o["keys"])),
            o.get("states", json.dumps(NO_STATES)),
            o["stream_id"],
            _schedule_of(o["schedule"]),
            o["refresh_mode"],
            json.loads(o["is_suspended"]),
            tuple((Name.of(parts), int(at)) for parts, at in json.loads(o.get("former", "[]"))),
        )


# Many statements look at all tables, and all of them are decoded each time.
@lru_cache(maxsize=4096)
def _backing_of(text: str) -> TableSource:
    return TableSource.from_json(json.loads(text))


@lru_cache(maxsize=4096)
def _schedule_of(text: str) -> Schedule:
    return Schedule(**json.loads(text))


def find_dynamic(spark: SparkSession, name: Name) -> DynamicTable | None:
    """Returns the dynamic table or materialized view of a name; None: the name stands for neither."""
    for type_ in TYPES:
        definition = catalog_of(spark).definition(spark, name, type_)
        if definition is not None:
            return DynamicTable.of(definition)
    return None


def dynamic_of_id(spark: SparkSession, uid: str) -> DynamicTable | None:
    """Returns the dynamic table or materialized view whose definition has an id, whatever its name is now. None: it was dropped or
    replaced."""
    return next((t for t in all_dynamic(spark) if t.definition.uuid == uid), None)


# -- streams on it


@dataclass(frozen=True)
class DynamicSource:
    """A reference to a dynamic table by the id of its backing table. `definition_type`: whether it is a dynamic table or a materialized
    view."""

    name: Name
    table: TableSource
    definition_type: DefinitionType

    @property
    def type_name(self) -> str:
        """Returns the name of its type in `sources.registry`."""
        return _names[self.definition_type]

    @property
    def identity(self) -> str:
        """Returns Delta's id of the backing table."""
        return self.table.table_id

    @property
    def path(self) -> str:
        """Returns where the files of the backing table are."""
        return self.table.path

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form, which its type reads."""
        return {"name": list(self.name.parts), "table": self.table.to_json()}

    def holds(self, interval: Interval) -> list[tuple[TableSource, Versions]]:
        """Returns the backing table with the interval."""
        return [(self.table, interval.versions)]


@dataclass(frozen=True)
class OpenDynamic:
    """A dynamic table that was found. It is an `OpenSource` that forwards to its backing table, and shows only the dynamic table's
    columns."""

    spark: SparkSession
    ref: DynamicSource
    shown: DynamicTable
    table: OpenTable

    @property
    def latest(self) -> int:
        """Returns the newest version of the backing table."""
        return self.table.latest

    def check_trackable(self, mode: StreamMode, where: Mapping[str, int]) -> None:
        """Raises RESERVED_COLUMN_NAME, CHANGE_TRACKING_DISABLED."""
        self.table.check_trackable(mode, where)

    def check_start(self, offset: Offset) -> None:
        """Checks that all commits since an offset can be read as changes. Raises INVALID_POINT_IN_TIME."""
        self.table.check_start(offset)

    def one_earlier(self, position: Position, point: Point) -> int:
        """Returns the version before another one. Raises INVALID_POINT_IN_TIME."""
        return self.table.one_earlier(position, point)

    def time_ms(self, position: Position) -> int | None:
        """Returns when a version was committed, in milliseconds since 1970. None: its commit is no longer in the log."""
        return self.table.time_ms(position)

    def lag(self, offset: Offset) -> int:
        """Returns the number of versions after an offset."""
        return self.table.lag(offset)

    def describe_move(self, stream: Name, mode: StreamMode, old: Offset, new: Offset) -> str | None:
        """Returns a text that says how many versions and rows a stream skips, or shows again. None: there is no change between the
        offsets."""
        return self.table.describe_move(stream, mode, old, new)

    def first_step(self, interval: Interval) -> Interval:
        """Returns the first commit of an interval."""
        return self.table.first_step(interval)

    def backlog(self, interval: Interval, mode: StreamMode) -> Backlog:
        """Counts what reading an interval would touch."""
        return self.table.backlog(interval, mode)

    def expiry(self, interval: Interval, mode: StreamMode) -> Expiry | None:
        """Returns when an interval may become unreadable. Raises STREAM_STALE."""
        return self.table.expiry(interval, mode)

    def check_history(self, offset: Offset, seen: SourceRef, stream: Name) -> None:
        """Checks that the offset is in the history of the backing table. Raises STREAM_STALE, STREAM_SOURCE_REPLACED."""
        self.table.check_history(offset, seen.table if isinstance(seen, DynamicSource) else seen, stream)

    def offset_at(self, point: Point) -> Offset:
        """Returns the offset that a point names. Raises INVALID_POINT_IN_TIME."""
        return self.table.offset_at(point)

    def seen_at(self, position: Position) -> DynamicSource:
        """Returns the source with the mark by which a version is recognised later (`TableSource.seen`)."""
        return replace(self.ref, table=self.table.seen_at(position))

    def changes(self, interval: Interval, mode: StreamMode) -> DataFrame:
        """Returns the change set of an interval, in the columns that the dynamic table shows. Lazy."""
        t = self.table
        return change_set(self.spark, t.table.path, interval.versions, mode, t.table, t.snapshot, self.shown.stored)

    def as_at(self, position: Position, frame: DataFrame, end: Position) -> DataFrame:
        """Returns a change set with the types that its columns have at a later version. `frame`: that of an interval that ends at `end`.
        Lazy."""
        return self.table.as_at(position, frame, end, self.shown.columns)

    def batch_end(self, interval: Interval, mode: StreamMode, rows_max: int) -> Position:
        """Returns the end of the longest part of an interval with at most `rows_max` changes."""
        return self.table.batch_end(interval, mode, rows_max)


def open_dynamic(spark: SparkSession, source: DynamicSource) -> OpenDynamic:
    """Opens a dynamic table, which is found by its backing table. Raises STREAM_SOURCE_MISSING, STREAM_SOURCE_REPLACED."""
    found = find_dynamic(spark, source.name)
    # If the table was renamed, another one may have its former name.
    if found is None or found.backing.table_id != source.table.table_id:
        found = dynamic_of_backing(spark, source.table.table_id) or found
    if found is None:
        raise StreamqlError(
            "STREAM_SOURCE_MISSING",
            f"the {source.definition_type.value} {source.name} no longer exists",
            hint="DROP the stream, or CREATE OR REPLACE it on another source",
            source=str(source.name),
        )
    if found.backing.table_id != source.table.table_id:
        raise StreamqlError(
            "STREAM_SOURCE_REPLACED",
            f"the {source.definition_type.value} {source.name} was replaced, or dropped and created again",
            hint=f"CREATE OR REPLACE the stream on it as it is now. {COMPARED}",
            source=str(source.name),
        )
    table = open_table(spark, source.table)
    ref = replace(source, name=found.name, table=table.ref)
    return OpenDynamic(spark, ref, found, table)


def all_dynamic(spark: SparkSession) -> list[DynamicTable]:
    """Returns all dynamic tables and materialized views, by name."""
    definitions = [d for type_ in TYPES for d in catalog_of(spark).definitions(spark, type_)]
    return sorted((DynamicTable.of(d) for d in definitions), key=lambda t: t.name.key)


def dynamic_of_backing(spark: SparkSession, table_id: str) -> DynamicTable | None:
    """Returns the dynamic table or materialized view whose backing table has an id; None: there is none."""
    return next((t for t in all_dynamic(spark) if t.backing.table_id == table_id), None)


def _find(definition_type: DefinitionType, spark: SparkSession, name: Name) -> DynamicSource | None:
    definition = catalog_of(spark).definition(spark, name, definition_type)
    return None if definition is None else DynamicSource(name, DynamicTable.of(definition).backing, definition_type)


def _read(definition_type: DefinitionType, data: Mapping[str, Any]) -> DynamicSource:
    return DynamicSource(Name.of(data["name"]), TableSource.from_json(data["table"]), definition_type)


_names = {DefinitionType.DYNAMIC_TABLE: "dynamic_table", DefinitionType.MATERIALIZED_VIEW: "materialized_view"}


def _type(definition_type: DefinitionType) -> SourceType:
    label = definition_type.value.upper()
    return SourceType(
        name=_names[definition_type],
        label=label,
        read=lambda data: _read(definition_type, data),
        open=open_dynamic,
        find=lambda spark, name: _find(definition_type, spark, name),
        statement_types=("TABLE", label),
    )


DYNAMIC_TABLE = _type(DefinitionType.DYNAMIC_TABLE)
MATERIALIZED_VIEW = _type(DefinitionType.MATERIALIZED_VIEW)
