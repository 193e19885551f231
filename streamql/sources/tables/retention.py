"""How long Delta keeps the history of a table, by the table's properties."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from streamql.delta.table import duration_ms
from streamql.model import StreamMode, Versions

FILE_RETENTION, LOG_RETENTION = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


def file_retention_ms(spark: SparkSession, configuration: Mapping[str, str]) -> int:
    """Returns for how long VACUUM keeps a file after a commit removed it, in milliseconds."""
    return duration_ms(spark, configuration.get(FILE_RETENTION, "interval 1 week"))


def log_retention_ms(spark: SparkSession, configuration: Mapping[str, str]) -> int:
    """Returns for how long Delta keeps a commit in the log, in milliseconds."""
    return duration_ms(spark, configuration.get(LOG_RETENTION, "interval 30 days"))


def history_ms(spark: SparkSession, configuration: Mapping[str, str], interval: Versions, mode: StreamMode) -> int:
    """Returns for how long an interval is readable after its first commit, in milliseconds. It is the shorter of Delta's file retention and
    log retention.

    An interval with initial rows of a STANDARD stream needs the log only. Its changes are the table's rows at the end of the interval, so
    no removed file is read.
    """
    log_ms = log_retention_ms(spark, configuration)
    if interval.initial and mode is StreamMode.STANDARD:
        return log_ms
    return min(file_retention_ms(spark, configuration), log_ms)
