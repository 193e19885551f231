"""Small results as DataFrames, without a Spark job."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import frame, scala, session_of

Value = str | int | bool | None


def small_frame(spark: SparkSession, ddl: str, rows: Sequence[Sequence[Value]]) -> DataFrame:
    """Rows under a schema of STRING, BIGINT, BOOLEAN and TIMESTAMP_LTZ columns; times in milliseconds since 1970."""
    return frame(spark, scala(spark).session.Rows.frame(session_of(spark), ddl, json.dumps([list(r) for r in rows])))
