"""The TableStore stream of a table by its name."""

from __future__ import annotations

from pyspark.sql import SparkSession

from streamql.delta.names import qualify
from streamql.delta.table import DeltaTable
from streamql.dialect import parse_name
from streamql.engine.reads import named_table
from streamql.sources.table_stream import TableStream, stream_at


def open_stream(spark: SparkSession, text: str, *, is_only_read: bool = False) -> TableStream:
    """Returns the stream of a table, which is named as SQL names it. `is_only_read`: as `stream_at` takes it.

    Raises TABLE_NOT_FOUND, NOT_A_DELTA_TABLE, UNSUPPORTED_SOURCE, SYNTAX_ERROR, and what `stream_at` raises.
    """
    name = qualify(spark, parse_name(text))
    table = DeltaTable(spark, named_table(spark, name).path)
    return stream_at(spark, name, table, is_only_read=is_only_read)
