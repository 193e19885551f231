"""AT, BEFORE, AS OF, END: from a point in time as written to a version of the source."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamql.catalog.store import catalog_of
from streamql.delta.names import qualify
from streamql.dialect.statements import PointInTime
from streamql.errors import StreamqlError
from streamql.model import Offset
from streamql.reading import check_history
from streamql.sources.table import OpenSource
from streamql.times import iso, now_ms


def offset_at(spark: SparkSession, source: OpenSource, point: PointInTime) -> Offset:
    """The offset that a point names: the last version at or before it; BEFORE, the version before that one; later than the latest, the
    latest. Raises INVALID_POINT_IN_TIME, naming what can be read, and STREAM_NOT_FOUND."""
    if point.kind == "STREAM":
        return _of_stream(spark, source, point)
    version = _version(spark, source, point)
    return Offset(_checked(source, version - 1 if point.before else version, point))


def _of_stream(spark: SparkSession, source: OpenSource, point: PointInTime) -> Offset:
    assert point.stream is not None
    name = qualify(spark, point.stream)
    state = catalog_of(spark).find(spark, name)
    if state is None:
        raise StreamqlError(
            "STREAM_NOT_FOUND", f"there is no stream {name}", hint="SHOW STREAMS lists those there are", **_where(point)
        )
    if state.stream.source.table_id != source.source.table_id:
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"stream {name} is on {state.stream.source.name}, not on {source.source.name}",
            hint="STREAM => takes a stream of the same source",
            **_where(point),
        )
    check_history(state, source)
    if not point.before:
        return state.offset
    return Offset(_checked(source, state.offset.version - 1, point))


def _version(spark: SparkSession, source: OpenSource, point: PointInTime) -> int:
    if point.kind == "VERSION":
        assert point.version is not None
        return min(point.version, source.latest.version)
    time_ms = time_of(spark, point)
    version = source.table.version_at(time_ms)
    if version < 0:
        raise _outside(source, f"{iso(time_ms)} lies before the history of {source.source.name}", point)
    return version


def time_of(spark: SparkSession, point: PointInTime) -> int:
    """The time that TIMESTAMP => or OFFSET => names, in milliseconds since 1970. Raises INVALID_POINT_IN_TIME."""
    assert point.expression is not None
    kind = "timestamp" if point.kind == "TIMESTAMP" else "double"
    try:
        value = F.expr(point.expression)
        number = value.cast("timestamp").cast("double") if kind == "timestamp" else value.cast("double")
        row = spark.range(1).select(number.alias("v")).first()
    except Exception as e:
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"{point.expression} is no constant {'time' if kind == 'timestamp' else 'number of seconds'}: {_first_line(e)}",
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
    value_seconds = float(row["v"])
    if point.kind == "TIMESTAMP":
        return round(value_seconds * 1000)
    if value_seconds > 0:
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"OFFSET => {point.expression} lies in the future",
            hint="OFFSET counts seconds back: OFFSET => -3600",
            **_where(point),
        )
    return round(now_ms() + value_seconds * 1000)


def _checked(source: OpenSource, version: int, point: PointInTime) -> int:
    """The version, if every commit after it can still be read: logs lose their commits from the first on."""
    latest = source.latest
    if version < 0 or not (version == latest.version or source.table.has_commit(latest, version + 1)):
        raise _outside(source, f"version {version} lies before the history of {source.source.name}", point)
    return version


def _outside(source: OpenSource, what: str, point: PointInTime) -> StreamqlError:
    first, time_ms = source.table.earliest()
    return StreamqlError(
        "INVALID_POINT_IN_TIME",
        f"{what}: the earliest that can be read is version {first} ({iso(time_ms)})",
        hint=f"VERSION => {first}, or leave the point out to start from now",
        earliest_version=first,
        earliest_time_ms=time_ms,
        **_where(point),
    )


def _where(point: PointInTime) -> dict[str, int]:
    return {} if point.span is None else {"line": point.span.line, "column": point.span.column}


def _first_line(e: Exception) -> str:
    return str(e).strip().split("\n")[0][:200]
