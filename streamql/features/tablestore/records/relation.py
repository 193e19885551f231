"""`tablestore_records('table', after, through)`: the 6-tuples of a table and an interval, as a relation. It moves nothing.

`tablestore_records('stream')` is a read of the stream in the form RECORDS, which moves it as any read does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamql.catalog.states import StreamState
from streamql.consume.statement import Reads
from streamql.dialect import parse_name
from streamql.engine.points import offset_at
from streamql.engine.reads import find_stream, named_table, read_point
from streamql.engine.relations import NO_STREAM, node, read_node
from streamql.errors import StreamqlError
from streamql.features.tablestore.records.streams import open_stream
from streamql.features.tablestore.records.tuples import TableStream, stream_at, tuples_between
from streamql.model import Interval, StreamMode, version_of
from streamql.reading import read_stream
from streamql.shared import constants
from streamql.sources.protocol import OpenSource
from streamql.sources.tables.table import OpenTable, open_table

NAME = "tablestore_records"
RECORDS = "records"
"""The form of a read of a stream that shows the 6-tuples of its commits."""

_CHANGE_TYPE = constants("columns")["changeType"]
_HINT = f"{NAME}('db.t'), or {NAME}('db.t', 3, 7) for versions 4 to 7; texts are times"


def records(spark: SparkSession, arguments: list[Any], reads: Reads) -> Any:
    """Returns the node for the 6-tuples of a stream, which moves it, or of a table. Raises what `records_relation` and `changed_records`
    raise."""
    state = stream_named(spark, arguments)
    if state is None:
        found = records_relation(spark, arguments)
        return node(spark, found, NO_STREAM, len(found.columns))
    return read_node(spark, reads.read(state, lambda interval: read_stream(spark, state, interval, form=RECORDS)))


def changed_records(state: StreamState, source: OpenSource, interval: Interval) -> DataFrame:
    """Returns the 6-tuples of a stream's interval. Lazy. Raises UNSUPPORTED_SOURCE if the stream shows something else than the commits of
    a table."""
    if not isinstance(source, OpenTable) or state.stream.mode is not StreamMode.STANDARD or interval.initial:
        shown = "its table's rows first" if interval.initial else "other changes"
        raise StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"the records of stream {state.name} cannot be read: they are of all commits of a Delta table, and the stream shows {shown}",
            hint="consume it once if it shows initial rows; else CREATE STREAM … ON TABLE …, in the mode STANDARD",
        )
    versions = interval.versions
    stream = stream_at(source.spark, source.ref.name, source.table, source.snapshot)
    # A table whose rows are recognized by a key may have been replaced.
    if not source.needs_tracking and source.id_at(versions.after) != source.snapshot.table_id:
        raise StreamqlError(
            "STREAM_SOURCE_REPLACED",
            f"{source.ref.name} was replaced after version {versions.after}, and the records of stream {state.name} are of one table",
            hint=f"SELECT … FROM {state.name} shows what differs; ALTER STREAM {state.name} SET OFFSET VERSION n goes on behind that",
            source=str(source.ref.name),
        )
    return tuples_between(stream, versions.after, versions.through).withColumn(_CHANGE_TYPE, F.lit("INSERT"))


def stream_named(spark: SparkSession, arguments: Sequence[object]) -> StreamState | None:
    """Returns the stream whose records are asked for. None: the name is not a stream's. Raises INVALID_ARGUMENT if points are named too."""
    name = arguments[0] if arguments else None
    state = find_stream(spark, parse_name(name)) if isinstance(name, str) else None
    if state is not None and len(arguments) > 1:
        raise StreamqlError(
            "INVALID_ARGUMENT",
            f"{NAME} of the stream {state.name} takes no points: it shows what there is to consume",
            hint=f"name the table to choose versions: {NAME}('{state.stream.source.name}', 3, 7)",
        )
    return state


def records_relation(spark: SparkSession, arguments: Sequence[object]) -> DataFrame:
    """Returns the 6-tuples of a table's changes after a point, up to another one: the key, columnName, timestamp, columnValue, opType and
    sequenceInfo. Lazy.

    `arguments`: the table's name, which is not a stream's; then maybe `after` and `through`, which are versions (integers) or times (texts,
    as AT and END take them). Without them, all that can be read. Raises INVALID_ARGUMENT, INVALID_POINT_IN_TIME, TABLE_NOT_FOUND,
    CHANGE_TRACKING_DISABLED, PRIMARY_KEY_NOT_DECLARED, STREAM_STALE, and what reading changes raises.
    """
    name, *points = arguments
    if not isinstance(name, str) or len(points) > 2:
        raise StreamqlError("INVALID_ARGUMENT", f"{NAME} takes a table, and up to two points", hint=_HINT)
    stream = open_stream(spark, name, is_only_read=True)
    history = stream.history
    after = _version(spark, stream, points[0]) if points else history.beginning
    through = _version(spark, stream, points[1]) if len(points) == 2 else stream.latest.version
    if after > through:
        raise StreamqlError(
            "INVALID_POINT_IN_TIME", f"version {through} lies before the start, version {after}", hint=_HINT
        )
    after = max(after, history.began)
    return tuples_between(stream, after, through)


def _version(spark: SparkSession, stream: TableStream, point: object) -> int:
    """Returns the version that a number or a time names. Raises INVALID_POINT_IN_TIME."""
    point_type = "VERSION" if isinstance(point, int) else "TIMESTAMP"
    source = open_table(spark, named_table(spark, stream.name))
    return version_of(offset_at(spark, source, read_point(point_type, point, False)).position)
