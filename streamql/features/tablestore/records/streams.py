"""The TableStore stream of a table by its name."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from streamql.delta.names import qualify
from streamql.delta.table import DeltaTable
from streamql.dialect import parse_name
from streamql.engine.reads import named_table
from streamql.features.tablestore.jobs.shards import Followed
from streamql.features.tablestore.records.tuples import TableStream, recorded_stream, stream_at


def open_stream(
    spark: SparkSession, text: str, known: Sequence[Followed] = (), *, is_only_read: bool = False
) -> TableStream:
    """Returns the stream of a table, which is named as SQL names it. `known`: as `stream_at` takes it.

    Writes the table's property of shards if that is missing or outdated, unless `is_only_read`. Raises TABLE_NOT_FOUND,
    NOT_A_DELTA_TABLE, UNSUPPORTED_SOURCE, SYNTAX_ERROR, and what `stream_at` and `recorded_stream` raise.
    """
    name = qualify(spark, parse_name(text))
    table = DeltaTable(spark, named_table(spark, name).path)
    stream = stream_at(spark, name, table, known=known)
    return stream if is_only_read else recorded_stream(stream, {})
