"""The relations that names and functions in a statement stand for, as nodes of Spark's plan: change sets, and tables at a point in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.statement import Reads
from streamql.delta.jvm import JavaObject, analyzed, scala
from streamql.engine.as_of import read_arguments, stream_and_table, table_at
from streamql.engine.reads import batch_size, find_stream, named_relation
from streamql.errors import StreamqlError
from streamql.model import Interval
from streamql.reading import ImageReading, StreamReading, parse_read, read_image, read_stream
from streamql.shared import constants
from streamql.sources.registry import open_source

NO_STREAM = ""
"""The description of a node that advances no stream: a change query, or a stream that is asked only for its columns."""

_ACCESS = constants("access")


def relation(reads: Reads, name: Sequence[str], access: str, options: Mapping[str, str]) -> JavaObject:
    """Returns the node that stands for a name. None: no stream and no external table has the name.

    `access`: how the statement uses the name. `options`: its WITH (…). Raises what reading it raises, UNSUPPORTED_STATEMENT,
    UNSUPPORTED_TARGET.
    """
    spark, state = reads.spark, find_stream(reads.spark, tuple(name))
    if state is None:
        frame = named_relation(spark, tuple(name), access, dict(options))
        return None if frame is None else analyzed(frame)
    _check_access(state, access)
    if access == _ACCESS["columns"]:
        latest = open_source(spark, state.stream.source).latest
        reading = read_stream(spark, state, Interval(latest, latest))
        return node(spark, reading.frame, NO_STREAM, reading.visible)
    rows_max = batch_size(options)
    return read_node(
        spark,
        reads.read(
            state, lambda interval: read_stream(spark, state, interval, rows_max), is_batch=rows_max is not None
        ),
    )


def _check_access(state: StreamState, access: str) -> None:
    if access == _ACCESS["streaming"]:
        raise StreamqlError(
            "UNSUPPORTED_STATEMENT",
            f"readStream on the stream {state.name}: it is read and consumed by SQL statements",
            hint="INSERT INTO target SELECT … FROM the stream, on a schedule",
        )
    if access == _ACCESS["write"]:
        raise StreamqlError(
            "UNSUPPORTED_TARGET",
            f"{state.name} is a stream, which shows the changes of {state.stream.source.name} and cannot be written",
            hint=f"write into {state.stream.source.name}",
        )


def relation_as_of(reads: Reads, arguments: Sequence[Any], home: Sequence[str]) -> JavaObject:
    """Returns the node that stands for a table at a point in time, or at the begin or end of the interval of a stream. `home`: the catalog
    and schema of the view whose text has the reference. Raises what reading it raises."""
    spark, asked = reads.spark, read_arguments(list(arguments), list(home))
    form = asked.form
    if form is None:
        return analyzed(table_at(spark, asked))
    state, table = stream_and_table(spark, asked)
    reading = reads.read(
        state, lambda interval: read_image(spark, state, form, table.table_id, interval), for_table=True
    )
    return _image_node(spark, reading)


def rebound_table(reads: Reads, description: str) -> JavaObject:
    """Returns a new node for a table that is read AT a stream or at its END, if the stream's interval changed since. None: it did not
    change. `description`: of the node that the plan has."""
    old = parse_read(description)
    state = catalog_of(reads.spark).by_uuid(reads.spark, old.uuid)
    seen = None if state is None else reads.seen(state)
    if state is None or seen in (None, old.interval):
        return None
    return _image_node(reads.spark, read_image(reads.spark, state, old.form, old.table_id, seen, old.interval))


def node(spark: SparkSession, frame: DataFrame, description: str, visible: int) -> JavaObject:
    """Returns the node of a change set. `visible`: how many of its columns SELECT * shows."""
    return scala(spark).plans.Plans.streamRead(analyzed(frame), description, visible)


def read_node(spark: SparkSession, reading: StreamReading) -> JavaObject:
    """Returns the node of a read of a stream. The stream advances when a statement with this node commits."""
    return node(spark, reading.frame, reading.description, reading.visible)


def _image_node(spark: SparkSession, reading: ImageReading) -> JavaObject:
    return scala(spark).plans.Plans.tableRead(analyzed(reading.frame), reading.description)
