"""How long Delta keeps the history of a table, by the table's properties."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from streamql.delta.table import duration_ms
from streamql.model import StreamMode, Versions

FILE_RETENTION, LOG_RETENTION = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


def file_retention_ms(spark: SparkSession, configuration: Mapping[str, str]) -> int:
    """Returns how long after its removal VACUUM leaves a file, in milliseconds."""
    return duration_ms(spark, configuration.get(FILE_RETENTION, "interval 1 week"))


def log_retention_ms(spark: SparkSession, configuration: Mapping[str, str]) -> int:
    """Returns how long after a commit Delta may remove it from the log, in milliseconds."""
    return duration_ms(spark, configuration.get(LOG_RETENTION, "interval 30 days"))


def history_ms(spark: SparkSession, configuration: Mapping[str, str], interval: Versions, mode: StreamMode) -> int:
    """Returns how long after the first commit of an interval it may become unreadable, in milliseconds: the shorter of Delta's file and log
    retention. The first read of a STANDARD stream that shows its table's rows takes those of the interval's end: it needs the log, and
    no file that was removed."""
    log_ms = log_retention_ms(spark, configuration)
    if interval.initial and mode is StreamMode.STANDARD:
        return log_ms
    return min(file_retention_ms(spark, configuration), log_ms)
