"""Finds streams and sources by name, and reads change queries, external tables, and what the functions about streams return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.names import is_temporary_view, look_up, qualify
from streamql.delta.rows import small_frame
from streamql.dialect import parse_name, quote_string
from streamql.dialect.statements import PointInTime
from streamql.engine.points import offset_at
from streamql.engine.suggestions import missing_stream, missing_table
from streamql.errors import StreamqlError
from streamql.model import (
    Interval,
    SourceRef,
    StreamMode,
    TableSource,
    is_ordered,
    parts_or_none,
    version_or_none,
)
from streamql.names import Name
from streamql.reading import interval_now, is_due
from streamql.shared import constants
from streamql.sources.protocol import HIDDEN_TYPE
from streamql.sources.registry import find_source, identified, open_source, source_types, type_of
from streamql.sources.tables.source_type import find_table


def find_stream(spark: SparkSession, parts: Sequence[str]) -> StreamState | None:
    """Returns the stream that a name stands for in this session; None: there is none."""
    try:
        name = qualify(spark, tuple(parts))
    except StreamqlError:
        return None
    found = catalog_of(spark).find(spark, name)
    return None if found is not None and found.stream.source.type_name == HIDDEN_TYPE else found


def need_stream(
    spark: SparkSession, parts: Sequence[str], line: int | None = None, column: int | None = None
) -> StreamState:
    """Returns the stream of a name. Raises STREAM_NOT_FOUND, whose hint has the nearest names."""
    state = find_stream(spark, parts)
    if state is not None:
        return state
    raise missing_stream(spark, parts, line, column)


def batch_size(options: Mapping[str, str]) -> int | None:
    """Returns MAX_BATCH_SIZE of `WITH (…)`; None: it is not set. Raises INVALID_PROPERTY for another option, and INVALID_ARGUMENT if the
    value is not a positive number of rows."""
    for key in options:
        if key.lower() == "consume":
            raise StreamqlError(
                "UNSUPPORTED_CLAUSE",
                "CONSUME is a clause of a query's text",
                hint="SELECT … FROM s WITH (CONSUME = TRUE); a DML statement consumes by itself",
            )
        if key.lower() != "max_batch_size":
            raise StreamqlError(
                "INVALID_PROPERTY", f"a stream has no option {key}", hint="MAX_BATCH_SIZE = n", option=key
            )
    for key, value in options.items():
        if not value.isdigit() or int(value) < 1:
            raise StreamqlError(
                "INVALID_ARGUMENT",
                f"{key} takes a positive number of rows, not {value!r}",
                hint="MAX_BATCH_SIZE = 1000",
            )
        return int(value)
    return None


def named_source(spark: SparkSession, name: Name, line: int | None = None, column: int | None = None) -> SourceRef:
    """Returns the source of a name. Raises TABLE_NOT_FOUND, NOT_A_DELTA_TABLE, UNSUPPORTED_SOURCE."""
    source = find_source(spark, name)
    if source is None:
        raise _no_source(spark, name, line, column)
    return source


def identified_as(spark: SparkSession, source: SourceRef, identity: str | None, where: Mapping[str, int]) -> SourceRef:
    """Returns the source with its rows recognized by an identity; None: by its own. `where`: the line and column of the source. Raises
    UNSUPPORTED_SOURCE, and what the source raises that has no such identity."""
    if identity is None:
        return source
    found = identified(spark, source, identity)
    if found is None:
        label = type_of(source).label.lower()
        raise StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"IDENTITY = {identity} takes a Delta table, and {source.name} is {with_article(label)}",
            hint="leave IDENTITY out",
            **where,
        )
    return found


def with_article(noun: str) -> str:
    """Returns a noun with its indefinite article."""
    return f"{'an' if noun[0] in 'AEIOUaeiou' else 'a'} {noun}"


def named_table(spark: SparkSession, name: Name, line: int | None = None, column: int | None = None) -> TableSource:
    """Returns the Delta table of a name. Raises TABLE_NOT_FOUND, NOT_A_DELTA_TABLE, UNSUPPORTED_SOURCE."""
    table = find_table(spark, name)
    if table is None:
        raise _no_source(spark, name, line, column)
    return table


def _no_source(spark: SparkSession, name: Name, line: int | None, column: int | None) -> StreamqlError:
    """Returns the error for a name that is not a source. It says what the name stands for."""
    found = look_up(spark, name)
    where = {"line": line, "column": column}
    if found.type == "missing" and find_source(spark, name) is not None:
        return StreamqlError(
            "NOT_A_DELTA_TABLE",
            f"{name} is an external table, and this statement takes a Delta table",
            hint="a stream on an external table needs no change tracking: CREATE STREAM s ON EXTERNAL TABLE …",
            **where,
        )
    if found.type == "missing" and is_temporary_view(spark, name):
        return StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"{name.object} is a temporary view, which only this session has; a stream needs a source that every session finds",
            hint=f"CREATE VIEW {name.object} AS …, without TEMPORARY",
            **where,
        )
    if found.type == "view":
        return StreamqlError(
            "NOT_A_DELTA_TABLE",
            f"{name} is a view, and this statement takes a Delta table",
            hint="name the table that the view reads",
            **where,
        )
    if found.type == "managed":
        return StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"the commits of {name} are managed by its catalog, which streams cannot follow",
            hint="make the stream on a Delta table whose log has its commits (without the feature catalogManaged)",
            **where,
        )
    if found.type == "other":
        return StreamqlError(
            "NOT_A_DELTA_TABLE",
            f"{name} is a {found.provider or 'foreign'} table: streams need a Delta table, or an external table on Kafka",
            hint=f"CONVERT TO DELTA, or CREATE TABLE … USING delta AS SELECT * FROM {name}",
            **where,
        )
    if catalog_of(spark).find(spark, name) is not None:
        return StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"{name} is a stream, and this statement takes a table",
            hint="name the table that the stream is on; DESCRIBE STREAM shows it",
            **where,
        )
    return missing_table(spark, name, line, column)


def changes_of(spark: SparkSession, arguments: Sequence[object]) -> DataFrame:
    """Returns the rows of `t CHANGES (…) AT … END …`. They have the columns of a stream, the hidden ones last. No offset moves."""
    parts, mode, point_type, value, before, *rest = arguments
    name = qualify(spark, parse_name(str(parts)))
    found = named_source(spark, name)
    word, _, identity = str(mode).partition(" ")
    source = open_source(spark, identified_as(spark, found, identity or None, {}))
    start = offset_at(spark, source, read_point(str(point_type), value, bool(before))).position
    end = offset_at(spark, source, read_point(str(rest[0]), rest[1], False)).position if rest else source.latest
    if not is_ordered(start, end):
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"END (version {end}) lies before the start (version {start})",
            hint="END is the last version that is shown, and must not be earlier than AT",
        )
    return source.changes(Interval(start, end), StreamMode(word))


def read_point(point_type: str, value: object, before: bool) -> PointInTime:
    """Returns the point in time that the arguments of a function name. Raises INVALID_POINT_IN_TIME for a version that is not a number."""
    if point_type == "VERSION":
        if not isinstance(value, int) or isinstance(value, bool):
            raise StreamqlError("INVALID_POINT_IN_TIME", f"VERSION => {value} is not a version", hint="VERSION => 3")
        return PointInTime("VERSION", before, version=value)
    if point_type == "STREAM":
        return PointInTime("STREAM", before, stream=parse_name(str(value)))
    if point_type == "TIMESTAMP" and isinstance(value, int):  # microseconds, from an expression
        return PointInTime("TIMESTAMP", before, expression=f"timestamp_micros({value})")
    if point_type == "TIMESTAMP":
        return PointInTime("TIMESTAMP", before, expression=quote_string(str(value)))
    return PointInTime("OFFSET", before, expression=str(value))


_ACCESS = constants("access")


def named_relation(
    spark: SparkSession, parts: Sequence[str], access: str, options: Mapping[str, str]
) -> DataFrame | None:
    """Returns the rows of a source that is not in Spark's catalogs, such as an external table. None: the name does not stand for one.

    `access`: how the statement uses the name. `options`: its WITH (…). Raises what reading it raises, UNSUPPORTED_TARGET for a statement
    that would write it, and INVALID_PROPERTY for options, because it takes none.
    """
    try:
        name = qualify(spark, tuple(parts))
    except StreamqlError:
        return None
    for type_ in source_types().values():
        if type_.relation is None or (source := type_.find(spark, name)) is None:
            continue
        if access == _ACCESS["streaming"]:
            raise StreamqlError(
                "UNSUPPORTED_STATEMENT",
                f"readStream on the {type_.label.lower()} {source.name}: it is read by SQL statements",
                hint=f"CREATE STREAM s ON {type_.label} {source.name}, and INSERT INTO target SELECT … FROM s on a schedule",
            )
        if access == _ACCESS["write"]:
            raise StreamqlError(
                "UNSUPPORTED_TARGET",
                f"the {type_.label.lower()} {source.name} cannot be written",
                hint="INSERT INTO a Delta table; to send messages, df.write.format('kafka')",
            )
        # Refused, because options of Spark's own connector, such as startingOffsets, would have no effect.
        for key in options:
            raise StreamqlError(
                "INVALID_PROPERTY",
                f"the {type_.label.lower()} {source.name} has no option {key} that a query could set",
                hint="filter by its columns, or CREATE OR REPLACE it with other OPTIONS; MAX_BATCH_SIZE belongs to a stream",
                option=key,
            )
        return type_.relation(spark, source, columns_only=access == _ACCESS["columns"])
    return None


BACKLOG_COLUMNS = (
    "versions BIGINT, rows_added BIGINT, rows_removed BIGINT, files BIGINT, bytes BIGINT, has_data BOOLEAN, "
    "from_version BIGINT, through_version BIGINT, from_position STRING, through_position STRING"
)


def backlog_frame(spark: SparkSession, state: StreamState) -> DataFrame:
    """Returns the row of stream_backlog('s'): how much there is to consume, from the log alone."""
    source = open_source(spark, state.stream.source)
    interval = interval_now(spark, state, source)
    b = source.backlog(interval, state.stream.mode)
    row = [
        b.versions,
        b.rows_added,
        b.rows_removed,
        b.files,
        b.bytes,
        is_due(state, source, interval, b),
        version_or_none(interval.after),
        version_or_none(interval.through),
        parts_or_none(interval.after),
        parts_or_none(interval.through),
    ]
    return small_frame(spark, BACKLOG_COLUMNS, [row])


def table_time_micros(spark: SparkSession, state: StreamState) -> int | None:
    """Returns when the version at the stream's offset was committed, in microseconds since 1970; None: the log no longer has it."""
    source = open_source(spark, state.stream.source)
    time_ms = source.time_ms(state.offset.position)
    return None if time_ms is None else time_ms * 1000
