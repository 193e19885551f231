"""Python's access to the JVM of a Spark session: its classes, sessions, DataFrames and errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaClass, JavaPackage
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from streamql.errors import SPARK_WRAPPERS

JavaObject = Any
"""An object behind Py4J; it has no type that Python could check."""


class _Known:
    """A package or class of the JVM that keeps its members. Py4J itself asks the JVM at each access what a name stands for."""

    def __init__(self, target: JavaObject) -> None:
        self._target = target

    def __getattr__(self, name: str) -> JavaObject:
        member = getattr(self._target, name)
        if isinstance(member, JavaClass | JavaPackage):
            member = _Known(member)
        setattr(self, name, member)
        return member

    def __call__(self, *arguments: JavaObject) -> JavaObject:
        return self._target(*arguments)


_packages: WeakKeyDictionary[JavaObject, _Known] = WeakKeyDictionary()


def scala(spark: SparkSession) -> JavaObject:
    """Returns the package of streamql's own Scala classes. It has a package for each folder of the sources."""
    view = jvm(spark)
    package = _packages.get(view)
    if package is None:
        package = _packages[view] = _Known(view.org.apache.spark.sql.streamql)
    return package


def jvm(spark: SparkSession) -> JavaObject:
    """Returns Py4J's view of the JVM."""
    return spark.sparkContext._jvm


def has_classes(view: JavaObject, names: Iterable[str]) -> bool:
    """Returns whether the JVM behind a Py4J view can load classes: from its class path, or from what spark-submit has added to it
    (--jars)."""
    loader = view.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        for name in names:
            loader.loadClass(name)
    except Py4JJavaError:  # ClassNotFoundException
        return False
    return True


def session_of(spark: SparkSession) -> JavaObject:
    """Returns the JVM's session behind a Python one."""
    return spark._jsparkSession


def session_id(spark: SparkSession) -> str:
    """Returns the id of the JVM's session behind a Python one."""
    return str(session_of(spark).sessionUUID())


def set_in_transaction(spark: SparkSession, is_open: bool) -> None:
    """Tells the JVM whether a transaction is open in a session. In a transaction, the JVM refuses writes that read no stream."""
    scala(spark).session.OpenTransactions.set(session_of(spark), is_open)


def sessions_in_transaction(spark: SparkSession) -> list[str]:
    """Returns the ids of the sessions in which, as far as the JVM knows, a transaction is open."""
    return str(scala(spark).session.OpenTransactions.ids()).split()


_cancellations = 0
"""How often `cancel_waiting` was called in this process."""


def cancel_waiting() -> None:
    """Ends all waits of this process for streams and brokers. A shell calls it at Ctrl-C, which does not interrupt the thread of the
    statement as a server's cancel does."""
    global _cancellations
    _cancellations += 1


class Waiting:
    """A wait of the statement that this thread runs. A user can cancel it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._cancellations = _cancellations

    def is_cancelled(self) -> bool:
        """Returns whether `cancel_waiting` was called since, or a server's client has cancelled the statement. In the latter case, Spark
        has interrupted the statement's thread in the JVM."""
        return _cancellations != self._cancellations or bool(
            jvm(self._spark).java.lang.Thread.currentThread().isInterrupted()
        )


def activate(spark: SparkSession) -> None:
    """Makes a session the active one of the JVM thread that serves this thread. Delta takes settings from the active session."""
    jvm(spark).org.apache.spark.sql.classic.SparkSession.setActiveSession(session_of(spark))


def frame(spark: SparkSession, java_frame: JavaObject) -> DataFrame:
    """Returns a Python DataFrame over a Dataset of the JVM."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    return ClassicDataFrame(java_frame, spark)


def java_frame(df: DataFrame) -> JavaObject:
    """Returns the JVM's Dataset behind a Python DataFrame."""
    return df._jdf


def analyzed(df: DataFrame) -> JavaObject:
    """Returns the analysed logical plan of a DataFrame."""
    return df._jdf.queryExecution().analyzed()


def java_list(spark: SparkSession, items: list[Any]) -> JavaObject:
    """Returns a java.util.List of the items."""
    result = jvm(spark).java.util.ArrayList()
    for item in items:
        result.add(item)
    return result


ERROR_CHARACTERS_MAX = 1000
"""How many characters of an error are shown and stored."""


def message(e: BaseException) -> str:
    """Returns the message of an error. If a write fails, Spark throws either the error of a task or a wrapper of it, which depends on the
    order of the tasks. Of a wrapper, this returns the message of its cause."""
    if not isinstance(e, Py4JJavaError):
        return str(e)
    thrown = e.java_exception
    while (text := str(thrown.getMessage() or thrown.toString())).startswith(SPARK_WRAPPERS):
        cause = thrown.getCause()
        if cause is None:
            break
        thrown = cause
    return text


def sentence(e: BaseException) -> str:
    """Returns the first line of an error's message, which is shown and stored."""
    return (message(e).strip().split("\n")[0] or type(e).__name__)[:ERROR_CHARACTERS_MAX]


@dataclass(frozen=True)
class Cause:
    """The innermost cause of an error, which Spark may have wrapped in the error of the write. `class_name`: its Java class; empty: the
    error comes from Python. `sql_state`: that of the innermost cause that has one; None: no cause has one."""

    class_name: str = ""
    sql_state: str | None = None


def cause_of(e: BaseException) -> Cause:
    """Returns the innermost cause of an error."""
    thrown = e.java_exception if isinstance(e, Py4JJavaError) else getattr(e, "_origin", None)
    found = Cause()
    while thrown is not None:
        state = found.sql_state
        with contextlib.suppress(Py4JError):  # it is not an exception of Spark, and has no such method
            state = thrown.getSqlState() or state
        found = Cause(thrown.getClass().getName(), state)
        thrown = thrown.getCause()
    return found


_STATE_OF_CONFLICTS = "2D521"
"""The SQLSTATE of Delta's errors for a commit that conflicts with a concurrent one."""


def is_conflict(e: BaseException) -> bool:
    """Returns whether Delta refused a commit because another one was made meanwhile."""
    return cause_of(e).sql_state == _STATE_OF_CONFLICTS
