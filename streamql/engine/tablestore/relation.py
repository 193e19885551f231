"""`tablestore_records('table', after, through)`: the 6-tuples of a table and an interval, as a relation. It moves nothing.

`tablestore_records('stream')` is a read of the stream (`reading.ReadForm.RECORDS`), which moves it as any read does.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState
from streamql.dialect import parse_name
from streamql.engine.points import offset_at
from streamql.engine.reads import find_stream, named_table, read_point
from streamql.engine.tablestore.streams import open_stream
from streamql.errors import StreamqlError
from streamql.model import version_of
from streamql.shared import constants
from streamql.sources.tables.table import open_table
from streamql.sources.tables.tablestore_stream import TableStream, tuples_between

_NAME = constants("functions")["records"]
_HINT = f"{_NAME}('db.t'), or {_NAME}('db.t', 3, 7) for versions 4 to 7; texts are times"


def stream_named(spark: SparkSession, arguments: Sequence[object]) -> StreamState | None:
    """Returns the stream whose records are asked for. None: the name is not a stream's. Raises INVALID_ARGUMENT if points are named too."""
    name = arguments[0] if arguments else None
    state = find_stream(spark, parse_name(name)) if isinstance(name, str) else None
    if state is not None and len(arguments) > 1:
        raise StreamqlError(
            "INVALID_ARGUMENT",
            f"{_NAME} of the stream {state.name} takes no points: it shows what there is to consume",
            hint=f"name the table to choose versions: {_NAME}('{state.stream.source.name}', 3, 7)",
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
        raise StreamqlError("INVALID_ARGUMENT", f"{_NAME} takes a table, and up to two points", hint=_HINT)
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
