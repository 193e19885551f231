"""Makes DataFrames of small results without a Spark job."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import frame, scala, session_of

Value = str | int | bool | None


def small_frame(spark: SparkSession, ddl: str, rows: Sequence[Sequence[Value]]) -> DataFrame:
    """Returns a DataFrame of rows. `ddl`: its columns, of the types STRING, BIGINT, BOOLEAN and TIMESTAMP_LTZ. Times in the rows are
    milliseconds since 1970."""
    return frame(spark, scala(spark).session.Rows.frame(session_of(spark), ddl, json.dumps([list(r) for r in rows])))
