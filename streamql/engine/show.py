"""SHOW STREAMS, DESCRIBE STREAM, SHOW CREATE STREAM: what there is, a broken stream with its reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of, now_ms
from streamql.delta.jvm import activate
from streamql.delta.names import qualify, schema_exists
from streamql.delta.rows import Value, small_frame
from streamql.delta.table import look_at
from streamql.dialect.statements import DescribeStream, ShowCreateStream, ShowStreams
from streamql.engine.reads import need_stream
from streamql.errors import StreamqlError
from streamql.model import Interval
from streamql.reading import commit_time_ms, interval_now
from streamql.sources.table import OpenSource, backlog, open_source, retention_ms

SHOW_COLUMNS = (
    "name STRING, schema_name STRING, table_name STRING, source_type STRING, mode STRING, offset_version BIGINT, "
    "offset_timestamp TIMESTAMP, lag_versions BIGINT, lag_seconds BIGINT, has_data BOOLEAN, stale BOOLEAN, stale_after TIMESTAMP, "
    "invalid_reason STRING, comment STRING, create_time TIMESTAMP, last_consumed TIMESTAMP"
)
DESCRIBE_COLUMNS = "info_name STRING, info_value STRING"
CREATE_COLUMNS = "createtab_stmt STRING"


@dataclass(frozen=True)
class StreamStatus:
    """How a stream stands, looked at now. Times in milliseconds since 1970; None: not known, or nothing to say."""

    offset_time_ms: int | None = None
    lag_versions: int | None = None
    lag_seconds: int | None = None
    has_data: bool | None = None
    stale: bool = False
    stale_after_ms: int | None = None
    invalid_reason: str | None = None
    source_name: str | None = None


LOOKS_AT_ONCE = 8


def statuses(spark: SparkSession, states: Sequence[StreamState]) -> list[StreamStatus]:
    """`status_of` many streams. Their tables are looked at together; only streams that lag, or are broken, are looked at one by one."""
    glances = look_at(spark, sorted({s.stream.source.path for s in states}))

    def status(state: StreamState) -> StreamStatus:
        glance, source = glances[state.stream.source.path], state.stream.source
        is_current = (glance.version, glance.table_id) == (state.offset.version, source.table_id)
        if is_current and not catalog_of(spark).was_restored(state):
            return StreamStatus(glance.time_ms, 0, 0, state.offset.initial, source_name=str(source.name))
        return status_of(spark, state)

    with ThreadPoolExecutor(LOOKS_AT_ONCE, initializer=activate, initargs=(spark,)) as pool:
        return list(pool.map(status, states))


def status_of(spark: SparkSession, state: StreamState) -> StreamStatus:
    """Lag, data, staleness and what is wrong: from the log alone. Never raises for a broken stream: it says why."""
    try:
        source = open_source(spark, state.stream.source)
    except StreamqlError as e:
        return StreamStatus(invalid_reason=_reason(e))
    name = str(source.source.name)
    offset_time = commit_time_ms(source, state.offset.version)
    try:
        interval = interval_now(spark, state, source)
        lag = interval.through - interval.after
        if not lag:
            return StreamStatus(offset_time, 0, 0, interval.initial, source_name=name)
        first = source.commits(Interval(interval.after, interval.after + 1))[0].time_ms
        data = interval.initial or backlog(source, interval, state.stream.mode).has_data
        seconds = max(0, (now_ms() - first) // 1000)
        return StreamStatus(offset_time, lag, seconds, data, False, _stale_after(source, first), source_name=name)
    except StreamqlError as e:
        lag = max(0, source.latest.version - state.offset.version)
        return StreamStatus(offset_time, lag, None, None, e.code == "STREAM_STALE", None, _reason(e), name)


def _stale_after(source: OpenSource, first_ms: int) -> int:
    return first_ms + retention_ms(source.latest)


def _reason(e: StreamqlError) -> str:
    return f"{e.code}: {e.message}"


def show_streams(spark: SparkSession, statement: ShowStreams) -> DataFrame:
    """The streams of a schema, the current one unless named: one row each, SHOW_COLUMNS."""
    catalog, schema = _schema(spark, statement)
    states = [
        s for s in catalog_of(spark).all(spark) if (s.name.catalog, s.name.schema.lower()) == (catalog, schema.lower())
    ]
    rows = [_row(state, status) for state, status in zip(states, statuses(spark, states), strict=True)]
    frame = small_frame(spark, SHOW_COLUMNS, rows)
    if statement.like is not None:
        frame = frame.where(F.col("name").rlike(_pattern(statement.like)))
    if statement.where is not None:
        frame = frame.where(F.expr(statement.where))
    return frame if statement.limit is None else frame.limit(statement.limit)


def _schema(spark: SparkSession, statement: ShowStreams) -> tuple[str, str]:
    if statement.schema is None:
        here = qualify(spark, ("_",))
        return here.catalog, here.schema
    there = qualify(spark, (*statement.schema, "_"))
    if not schema_exists(spark, there.catalog, there.schema):
        raise StreamqlError(
            "SCHEMA_NOT_FOUND", f"there is no schema {there.schema}", hint="SHOW SCHEMAS lists those there are"
        )
    return there.catalog, there.schema


def _pattern(like: str) -> str:
    """SQL's LIKE pattern (% and _, literal after a backslash), or Spark's SHOW pattern (* and |), as a regular expression."""
    special = {"%": ".*", "_": ".", "*": ".*", "|": "|"}
    tokens = re.findall(r"\\.|.", like, re.DOTALL)
    return "(?i)^(" + "".join(special.get(t) or re.escape(t[-1]) for t in tokens) + ")$"


def _row(state: StreamState, status: StreamStatus) -> list[Value]:
    stream = state.stream
    return [
        stream.name.object,
        stream.name.schema,
        status.source_name or str(stream.source.name),
        "TABLE",
        stream.mode.value,
        state.offset.version,
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
    ]


def describe_stream(spark: SparkSession, statement: DescribeStream) -> DataFrame:
    """All that is known of a stream, a row a fact: info_name, info_value."""
    state = _need(spark, statement)
    names = [c.split(" ")[0] for c in SHOW_COLUMNS.split(", ")]
    values = _row(state, status_of(spark, state))
    times = {n for n, c in zip(names, SHOW_COLUMNS.split(", "), strict=True) if c.endswith("TIMESTAMP")}
    facts: list[list[Value]] = [[n, _text(spark, v, n in times)] for n, v in zip(names, values, strict=True)]
    stream = state.stream
    more = {
        "definition": stream.definition,
        "stream_id": stream.uuid,
        "source_id": stream.source.table_id,
        "source_path": stream.source.path,
        "show_initial_rows": _boolean(stream.show_initial_rows),
        "initial_rows_pending": _boolean(state.offset.initial),
        "created_by": stream.created_by,
        "events": str(state.sequence),
        "consuming_now": None
        if state.claim is None
        else f"{state.claim.owner.user}@{state.claim.owner.host}:{state.claim.owner.pid}",
    }
    facts.extend([[k, v] for k, v in more.items()])
    return small_frame(spark, DESCRIBE_COLUMNS, facts)


def _text(spark: SparkSession, value: Value, is_time: bool) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return _boolean(value)
    if is_time:
        row = small_frame(spark, "t TIMESTAMP", [[value]]).select(F.col("t").cast("string")).first()
        return None if row is None else str(row[0])
    return str(value)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def show_create_stream(spark: SparkSession, statement: ShowCreateStream) -> DataFrame:
    """The statement that made the stream, as it was written."""
    return small_frame(spark, CREATE_COLUMNS, [[_need(spark, statement).stream.definition]])


def _need(spark: SparkSession, statement: DescribeStream | ShowCreateStream) -> StreamState:
    span = statement.name_span
    return need_stream(spark, statement.name, span.line if span else None, span.column if span else None)
