"""Finds the offset for a point in time that a statement names by AT, BEFORE, AS OF or END."""

from __future__ import annotations

import math
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.names import qualify
from streamql.dialect.statements import PointInTime
from streamql.engine.suggestions import missing_stream
from streamql.errors import StreamqlError
from streamql.model import Offset, Parts, SourceRef, TableSource, version_of
from streamql.reading import check_history
from streamql.sources.protocol import OpenSource, Point
from streamql.sources.tables.replaced import COMPARED
from streamql.sources.tables.table import OpenTable
from streamql.sources.views.query import QuerySource, in_tables_of
from streamql.times import now_us

_SECONDS_MAX = 100_000 * 365 * 86_400
"""More seconds than any table's history has. A number that is larger, infinite or NaN is a mistake."""


def offset_at(
    spark: SparkSession, source: OpenSource, point: PointInTime, current: StreamState | None = None
) -> Offset:
    """Returns the offset that a point in time names. `current`: the stream that is moved there; None: there is none yet.

    AT a version is that version. AT a time is the last version that was committed at or before it. BEFORE a version is the version before
    it. BEFORE a time is the last version that was committed before it. Raises INVALID_POINT_IN_TIME if the point is before or after the
    history of the source, and STREAM_NOT_FOUND.
    """
    if point.type == "STREAM":
        return _of_stream(spark, source, point)
    if point.positions is not None:
        base = None if current is None else current.offset.position
        positions = Parts.of({str(part): number for part, number in point.positions})
        return source.offset_at(Point(None, None, False, point.span, positions, base))
    if point.type == "VERSION":
        return source.offset_at(Point(point.version, None, point.before, point.span))
    return source.offset_at(Point(None, time_of(spark, point), point.before, point.span))


def _of_stream(spark: SparkSession, source: OpenSource, point: PointInTime) -> Offset:
    assert point.stream is not None
    name = qualify(spark, point.stream)
    state = catalog_of(spark).find(spark, name)
    if state is None:
        raise missing_stream(spark, point.stream, **_where(point))
    state = _in_source(state, source, point)
    check_history(state, source)
    if not point.before:
        return state.offset
    return Offset(source.one_earlier(state.offset.position, Point(None, None, point.before, point.span)))


def _in_source(state: StreamState, opened: OpenSource, point: PointInTime) -> StreamState:
    """Returns a stream with its offset as an offset in another source. Raises INVALID_POINT_IN_TIME if the other source has no such
    offset."""
    own, source = state.stream.source, opened.ref
    if _is_same(own, opened):
        _check_not_replaced(state, opened, point)
        return state
    if isinstance(own, QuerySource) and isinstance(source, QuerySource):
        found = in_tables_of(state.offset, own, source)
        if found is not None:  # another query over the same tables
            return replace(state, offset=found[0], stream=replace(state.stream, source=found[1]))
    if own.name.key == source.name.key:
        is_view = isinstance(own, QuerySource)
        was = "when it read other tables" if is_view else "before it was replaced, or dropped and created again"
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"stream {state.name} was made on {source.name} {was}: its offset means nothing in {'these' if is_view else 'this one'}",
            hint=f"leave the point out to start from now. {COMPARED}",
            **_where(point),
        )
    raise StreamqlError(
        "INVALID_POINT_IN_TIME",
        f"stream {state.name} is on {own.name}, not on {source.name}",
        hint="STREAM => takes a stream of the same source, or on a view of the same tables",
        **_where(point),
    )


def _is_same(own: SourceRef, opened: OpenSource) -> bool:
    """Returns whether a stream's source is an opened one. A table may have been replaced since: another table at its path is taken for it
    only if the opened source compares the logs itself (`check_history`), as its own type does."""
    if own.identity == opened.ref.identity:
        return True
    if not (isinstance(own, TableSource) and isinstance(opened, OpenTable)):
        return False
    path = opened.ref.path if own.type_name == opened.ref.type_name else ""
    return own.is_table(opened.ref.table_id, path, opened.id_at)


def _check_not_replaced(state: StreamState, opened: OpenSource, point: PointInTime) -> None:
    """Raises INVALID_POINT_IN_TIME if a stream by key stands before a replacement of its table, and the statement recognizes rows by
    their row ids: it would show all rows deleted and inserted."""
    if not isinstance(opened, OpenTable) or state.stream.source.type_name == opened.ref.type_name:
        return
    version = version_of(state.offset.position)
    if not opened.needs_tracking or opened.id_at(version) in (None, opened.ref.table_id):  # None: the stream is stale
        return
    raise StreamqlError(
        "INVALID_POINT_IN_TIME",
        f"{opened.ref.name} was replaced after version {version}, at which stream {state.name} stands, and row ids do not go over that",
        hint="add IDENTITY = KEY, in CHANGES IDENTITY => KEY; or VERSION => "
        f"{version}, which shows all rows deleted and inserted",
        **_where(point),
    )


def time_of(spark: SparkSession, point: PointInTime) -> int:
    """Returns the time that TIMESTAMP => or OFFSET => names, in microseconds since 1970. Raises INVALID_POINT_IN_TIME."""
    assert point.expression is not None
    is_time = point.type == "TIMESTAMP"
    try:
        value = F.expr(point.expression)
        # A time is taken as whole microseconds, because a double cannot represent all of them exactly.
        number = F.unix_micros(value.cast(TimestampType())) if is_time else value.cast("double")
        row = spark.range(1).select(number.alias("v")).first()
    except Exception as e:
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"{point.expression} is not a constant {'time' if is_time else 'number of seconds'}: {_first_line(e)}",
            hint="TIMESTAMP => '2026-01-31 12:00:00', or OFFSET => -3600 for an hour ago",
            **_where(point),
        ) from e
    if row is None or row["v"] is None:
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"{point.expression} is NULL as a time",
            hint="TIMESTAMP => '2026-01-31 12:00:00'",
            **_where(point),
        )
    if is_time:
        return int(row["v"])
    seconds = float(row["v"])
    if not (-_SECONDS_MAX <= seconds <= 0):
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"OFFSET => {point.expression} {'lies in the future' if seconds > 0 else 'is not a number of seconds ago'}",
            hint="OFFSET counts seconds back: OFFSET => -3600",
            **_where(point),
        )
    return now_us() + math.floor(seconds * 1_000_000)


def _where(point: PointInTime) -> dict[str, int]:
    return {} if point.span is None else {"line": point.span.line, "column": point.span.column}


def _first_line(e: Exception) -> str:
    return str(e).strip().split("\n")[0][:200]
