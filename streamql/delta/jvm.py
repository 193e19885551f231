"""The one place where Python reaches into the JVM of a Spark session."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaClass
from pyspark.sql import DataFrame, SparkSession

JavaObject = Any
"""An object behind Py4J; it has no type that Python could check."""


class _Known:
    """A package or class of the JVM whose members are asked for once: Py4J asks the JVM at each look what kind of thing a name is."""

    def __init__(self, target: JavaObject) -> None:
        self._target = target

    def __getattr__(self, name: str) -> JavaObject:
        member = getattr(self._target, name)
        if isinstance(member, JavaClass):
            member = _Known(member)
        setattr(self, name, member)
        return member

    def __call__(self, *arguments: JavaObject) -> JavaObject:
        return self._target(*arguments)


_packages: WeakKeyDictionary[JavaObject, _Known] = WeakKeyDictionary()


def scala(spark: SparkSession) -> JavaObject:
    """The package of streamql's own Scala classes."""
    view = jvm(spark)
    package = _packages.get(view)
    if package is None:
        package = _packages[view] = _Known(view.org.apache.spark.sql.streamql)
    return package


def jvm(spark: SparkSession) -> JavaObject:
    """Py4J's view of the JVM."""
    return spark.sparkContext._jvm


def session_of(spark: SparkSession) -> JavaObject:
    """The JVM's session behind a Python one."""
    return spark._jsparkSession


def activate(spark: SparkSession) -> None:
    """Makes a session the current one of the JVM thread that serves this thread: Delta takes settings from there."""
    jvm(spark).org.apache.spark.sql.classic.SparkSession.setActiveSession(session_of(spark))


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
