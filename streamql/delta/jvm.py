"""The one place where Python reaches into the JVM of a Spark session."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

JavaObject = Any
"""An object behind Py4J; it has no type that Python could check."""


def scala(spark: SparkSession) -> JavaObject:
    """The package of streamql's own Scala classes."""
    return jvm(spark).org.apache.spark.sql.streamql


def jvm(spark: SparkSession) -> JavaObject:
    """Py4J's view of the JVM."""
    return spark.sparkContext._jvm


def session_of(spark: SparkSession) -> JavaObject:
    """The JVM's session behind a Python one."""
    return spark._jsparkSession


def frame(spark: SparkSession, java_frame: JavaObject) -> DataFrame:
    """A Python DataFrame over a Dataset of the JVM."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    return ClassicDataFrame(java_frame, spark)


def java_frame(df: DataFrame) -> JavaObject:
    """The JVM's Dataset behind a Python DataFrame."""
    return df._jdf


def analyzed(df: DataFrame) -> JavaObject:
    """The analysed logical plan of a DataFrame."""
    return df._jdf.queryExecution().analyzed()


def java_list(spark: SparkSession, items: list[Any]) -> JavaObject:
    """A java.util.List of the items."""
    result = jvm(spark).java.util.ArrayList()
    for item in items:
        result.add(item)
    return result


def long_array(spark: SparkSession, items: list[int]) -> JavaObject:
    """A long[] of the items."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    result = gateway.new_array(gateway.jvm.long, len(items))
    for i, item in enumerate(items):
        result[i] = item
    return result
