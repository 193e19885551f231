"""The messages of a Kafka topic as rows: of an external table, and of a stream's change set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamql.changes import HIDDEN_COLUMNS
from streamql.delta.neutral import neutral
from streamql.features.kafka.brokers import Brokers, messages
from streamql.features.kafka.language.kafka import KAFKA_COLUMNS
from streamql.model import METADATA_COLUMNS

COLUMNS: Mapping[str, str] = dict(KAFKA_COLUMNS)
"""The columns of an external table, with their types. A table may have some of them, in any order."""

Ends = Mapping[int, tuple[int, int]]
"""[begin, end) of partitions."""

_METADATA_TYPES = ("STRING", "BIGINT", "TIMESTAMP_LTZ")
_HIDDEN_TYPES = ("STRING", "BOOLEAN", "STRING") * 2


def window(ends: Ends) -> tuple[dict[int, int], dict[int, int]]:
    """Returns the begins and the ends of those partitions that have something between them."""
    open_ends = {p: e for p, e in ends.items() if e[0] < e[1]}
    return {p: begin for p, (begin, _) in open_ends.items()}, {p: end for p, (_, end) in open_ends.items()}


def rows(spark: SparkSession, brokers: Brokers, topic: str, columns: Sequence[str], ends: Ends) -> DataFrame:
    """Returns the messages between offsets in the columns of a table. Lazy."""
    begin, end = window(ends)
    if not begin:
        return no_rows(spark, columns)
    return messages(spark, brokers, topic, begin, end).select(*(_column(name) for name in columns))


def no_rows(spark: SparkSession, columns: Sequence[str]) -> DataFrame:
    """Returns the columns of a table without a row."""
    return _nothing(spark, {name: COLUMNS[name] for name in columns})


def changes(spark: SparkSession, brokers: Brokers, topic: str, columns: Sequence[str], ends: Ends) -> DataFrame:
    """Returns the messages between offsets as a change set: INSERTs, with the offset as their version and their own time. The row id is the
    partition and the offset. Lazy."""
    begin, end = window(ends)
    if not begin:
        metadata = dict(zip(METADATA_COLUMNS, _METADATA_TYPES, strict=True))
        hidden = dict(zip(HIDDEN_COLUMNS, _HIDDEN_TYPES, strict=True))
        return _nothing(spark, {**metadata, **{name: COLUMNS[name] for name in columns}, **hidden})
    found = messages(spark, brokers, topic, begin, end)
    insert = F.lit("INSERT")
    row_id = F.concat_ws(":", F.col("partition"), F.col("offset"))
    metadata_columns = zip(METADATA_COLUMNS, (insert, F.col("offset"), F.col("timestamp")), strict=True)
    hidden_columns = zip(HIDDEN_COLUMNS, (insert, F.lit(False), row_id) * 2, strict=True)
    return found.select(
        *(column.alias(name) for name, column in metadata_columns),
        *(_column(name) for name in columns),
        *(column.alias(name) for name, column in hidden_columns),
    )


def _column(name: str) -> Column:
    """Returns a column of an external table, from those of Spark's connector."""
    if name == "timestamp_type":  # org.apache.kafka.common.record.TimestampType
        number = F.col("timestampType")
        return F.when(number == 0, "CreateTime").when(number == 1, "LogAppendTime").alias(name)
    return F.col(name)


def _nothing(spark: SparkSession, types: Mapping[str, str]) -> DataFrame:
    """Columns without a row: no job runs for them."""
    typed = (F.lit(None).cast(sql_type).alias(name) for name, sql_type in types.items())
    return neutral(spark).range(0).select(*typed).limit(0)
