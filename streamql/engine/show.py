"""SHOW STREAMS, DESCRIBE STREAM and SHOW CREATE STREAM. A broken stream is shown with the reason."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.names import qualify, schema_exists
from streamql.delta.rows import Value, small_frame
from streamql.dialect.statements import DescribeStream, ShowCreateStream, ShowStreams
from streamql.dialect.text.tokens import NameParts
from streamql.engine.reads import need_stream
from streamql.engine.status import status_of, statuses, warn_of_unreadable
from streamql.engine.stream_facts import StreamStatus
from streamql.errors import StreamqlError
from streamql.model import parts_or_none, version_or_none
from streamql.sources.registry import type_of
from streamql.terms import terms_of

SHOW_COLUMNS = (
    "name STRING, schema_name STRING, table_name STRING, source_type STRING, mode STRING, offset_version BIGINT, "
    "offset_timestamp TIMESTAMP_LTZ, lag_versions BIGINT, lag_seconds BIGINT, has_data BOOLEAN, stale BOOLEAN, stale_after TIMESTAMP_LTZ, "
    "invalid_reason STRING, comment STRING, create_time TIMESTAMP_LTZ, last_consumed TIMESTAMP_LTZ, offset_position STRING, "
    "identity STRING"
)
TERSE_COLUMNS = "name STRING, schema_name STRING, table_name STRING, mode STRING, create_time TIMESTAMP_LTZ"
DESCRIBE_COLUMNS = "info_name STRING, info_value STRING"
CREATE_COLUMNS = "createtab_stmt STRING"


def show_streams(spark: SparkSession, statement: ShowStreams) -> DataFrame:
    """Returns the streams of a schema, one row for each. The schema is the one that the statement names, else the current one. The columns
    are SHOW_COLUMNS. With TERSE they are TERSE_COLUMNS, which the catalog has, so that no source is read."""
    catalog, schema = listed_schema(spark, statement.schema)
    warn_of_unreadable(spark)
    states = _in_schema(spark, catalog, schema)
    if statement.like is not None:  # first, so that the sources of the other streams are not read
        pattern = re.compile(like_pattern(statement.like))
        states = [s for s in states if pattern.search(s.name.object)]
    if statement.terse:
        frame = small_frame(spark, TERSE_COLUMNS, [_terse_row(state) for state in states])
    else:
        rows = [_row(state, status) for state, status in zip(states, statuses(spark, states), strict=True)]
        frame = small_frame(spark, SHOW_COLUMNS, rows)
    return narrowed(frame, None, statement.where, statement.limit)


def narrowed(frame: DataFrame, like: str | None, where: str | None, limit: int | None) -> DataFrame:
    """Returns the rows of a listing that its clauses leave. None: the statement does not have the clause. `like`: of the column `name`."""
    if like is not None:
        frame = frame.where(F.col("name").rlike(like_pattern(like)))
    if where is not None:
        frame = frame.where(F.expr(where))
    return frame if limit is None else frame.limit(limit)


def listed_schema(spark: SparkSession, named: NameParts | None) -> tuple[str, str]:
    """Returns the catalog and schema that a SHOW statement lists. `named`: the schema that it names; None: the current one.

    Drivers may share a catalog of streams without sharing a metastore. So a schema that exists only in names of streams is accepted as
    well. Raises SCHEMA_NOT_FOUND.
    """
    if named is None:
        here = qualify(spark, ("_",))
        return here.catalog, here.schema
    there = qualify(spark, (*named, "_"))
    if not schema_exists(spark, there.catalog, there.schema) and not _in_schema(spark, there.catalog, there.schema):
        raise StreamqlError(
            "SCHEMA_NOT_FOUND", f"there is no schema {there.schema}", hint="SHOW SCHEMAS lists those there are"
        )
    return there.catalog, there.schema


def _in_schema(spark: SparkSession, catalog: str, schema: str) -> list[StreamState]:
    return [s for s in catalog_of(spark).all(spark) if s.name.is_in(catalog, schema)]


def like_pattern(like: str) -> str:
    """Translates a LIKE pattern of SQL (% and _, literal after a backslash) or a SHOW pattern of Spark (* and |) into a regular
    expression."""
    special = {"%": ".*", "_": ".", "*": ".*", "|": "|"}
    tokens = re.findall(r"\\.|.", like, re.DOTALL)
    return "(?i)^(" + "".join(special.get(t) or re.escape(t[-1]) for t in tokens) + ")$"


def _terse_row(state: StreamState) -> list[Value]:
    """Returns a row of TERSE_COLUMNS. A renamed table has the name with which it was last seen, because finding its new name takes opening
    it."""
    stream = state.stream
    return [stream.name.object, stream.name.schema, str(stream.source.name), stream.mode.value, stream.created_at_ms]


def _row(state: StreamState, status: StreamStatus) -> list[Value]:
    stream = state.stream
    return [
        stream.name.object,
        stream.name.schema,
        status.source_name or str(stream.source.name),
        type_of(stream.source).label,
        stream.mode.value,
        version_or_none(state.offset.position),
        status.offset_time_ms,
        status.lag_versions,
        status.lag_seconds,
        status.has_data,
        status.stale,
        status.stale_after_ms,
        status.invalid_reason,
        stream.comment,
        stream.created_at_ms,
        state.last_consumed_ms,
        parts_or_none(state.offset.position),
        type_of(stream.source).shown_identity(stream.source),
    ]


def describe_stream(spark: SparkSession, statement: DescribeStream) -> DataFrame:
    """Returns all properties of a stream, one row (info_name, info_value) for each."""
    state = _need(spark, statement)
    names = [c.split(" ")[0] for c in SHOW_COLUMNS.split(", ")]
    status = status_of(spark, state)
    values = _row(state, status)
    times = {n for n, c in zip(names, SHOW_COLUMNS.split(", "), strict=True) if c.endswith("TIMESTAMP_LTZ")}
    rows: list[list[Value]] = [[n, _text(spark, v, n in times)] for n, v in zip(names, values, strict=True)]
    stream = state.stream
    more = {
        "definition": stream.definition,
        "stream_id": stream.uuid,
        "source_id": stream.source.identity,
        "source_path": stream.source.path or None,
        "show_initial_rows": _boolean(stream.show_initial_rows),
        "latest_position": status.latest_position,
        "initial_rows_pending": _boolean(state.offset.initial),
        "created_by": stream.created_by,
        "events": str(state.sequence),
        "consuming_now": None
        if state.claim is None
        else f"{state.claim.owner.user}@{state.claim.owner.host}:{state.claim.owner.pid}",
    }
    rows.extend([[k, v] for k, v in more.items()])
    rows.extend([name, value] for type_, text in terms_of(stream) for name, value in type_.shown(text))
    return small_frame(spark, DESCRIBE_COLUMNS, rows)


def _text(spark: SparkSession, value: Value, is_time: bool) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return _boolean(value)
    return time_text(spark, value) if is_time else str(value)


def time_text(spark: SparkSession, milliseconds: Value) -> str | None:
    """Returns a time as text in the session's time zone."""
    row = small_frame(spark, "t TIMESTAMP_LTZ", [[milliseconds]]).select(F.col("t").cast("string")).first()
    return None if row is None else str(row[0])


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def show_create_stream(spark: SparkSession, statement: ShowCreateStream) -> DataFrame:
    """Returns the statement that created the stream, as the user wrote it."""
    return small_frame(spark, CREATE_COLUMNS, [[_need(spark, statement).stream.definition]])


def _need(spark: SparkSession, statement: DescribeStream | ShowCreateStream) -> StreamState:
    span = statement.name_span
    return need_stream(spark, statement.name, span.line if span else None, span.column if span else None)
