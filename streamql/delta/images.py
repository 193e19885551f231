"""Relational pieces that Spark has and its DataFrame interface lacks."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession

from streamql.delta.jvm import frame, java_frame, jvm, scala


def unfold(
    spark: SparkSession, df: DataFrame, names: Sequence[str], first: Sequence[Column], second: Sequence[Column]
) -> DataFrame:
    """Each row becomes two: its first half, then its second, both under the same names. Computes `df` once."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None

    def array(kind: object, items: Sequence[object]) -> object:
        result = gateway.new_array(kind, len(items))
        for i, item in enumerate(items):
            result[i] = item
        return result

    column = jvm(spark).org.apache.spark.sql.Column
    return frame(
        spark,
        scala(spark).Images.unfold(
            java_frame(df),
            array(jvm(spark).java.lang.String, names),
            array(column, [c._jc for c in first]),
            array(column, [c._jc for c in second]),
        ),
    )
