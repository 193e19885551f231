"""Spark sessions that have the extension: an embedded one, or a caller's own builder."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import has_classes
from streamql.dialect import quote_string
from streamql.errors import StreamqlError
from streamql.extension import embedded, metastore
from streamql.extension.host import java
from streamql.extension.settings import (
    EXTENSIONS,
    conf_lines,
    is_one_process,
    joined,
    lists_of_spark,
    not_installed,
)
from streamql.settings import CONNECTORS
from streamql.sources.registry import source_types

DATA_DEFAULT = "streamql-data"
_HAS_DATA = "stream_has_data"


class _Embedded(NamedTuple):
    spark: SparkSession
    data: Path


# PySpark says so on stderr when a session starts, whether or not pandas is used; a start is quiet here.
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)

log = logging.getLogger("streamql")

_lock = threading.Lock()
_embedded: _Embedded | None = None


def session(data: str | os.PathLike[str] = DATA_DEFAULT, conf: Mapping[str, str] | None = None) -> SparkSession:
    """Returns the embedded session over the data directory `data`, made if it is not there: tables, views and streams in it persist.

    `conf` overrides any setting. A second call for the same directory gives the same session; other processes may use the directory
    at the same time. Raises INVALID_ARGUMENT if this process has a session over another directory, or one that streamql did not make; also
    for an unknown connector, and for the address of an object store. Raises JAVA_NOT_FOUND, JAR_BUILD_FAILED.
    """
    global _embedded
    directory, given = embedded.arguments(data, conf)
    with _lock:
        running = _running()
        if running is None:
            _embedded = _Embedded(_start(directory, given), directory)
            return _embedded.spark
        if running.data != directory:
            raise StreamqlError(
                "INVALID_ARGUMENT",
                f"this process has a session over {running.data} already; there can be one at a time",
                hint=f"stop it first (session.stop()), or use another process for {directory}",
                running=str(running.data),
                asked=str(directory),
            )
        for key, value in given.items():
            if running.spark.conf.isModifiable(key):
                running.spark.conf.set(key, value)
        return running.spark


def _running() -> _Embedded | None:
    """This process's embedded session, if it has not been stopped. Raises INVALID_ARGUMENT for a session that is not ours."""
    context = SparkContext._active_spark_context
    if context is None:
        return None
    if _embedded is not None and _embedded.spark.sparkContext is context:
        return _embedded
    raise StreamqlError(
        "INVALID_ARGUMENT",
        "this process has a Spark session that streamql did not make",
        hint="use that one, made with streamql.configure(SparkSession.builder).getOrCreate(), or stop it first",
    )


def _start(data: Path, overrides: dict[str, str]) -> SparkSession:
    gateway = SparkContext._gateway
    if gateway is not None and not has_classes(gateway.jvm, (*EXTENSIONS, metastore.DRIVER)):
        raise StreamqlError(
            "EXTENSION_NOT_INSTALLED",
            "this process started a JVM without the jars of an embedded session, and a process has one JVM",
            hint="start Python again and call streamql.session() first",
        )
    starting = embedded.started(data, overrides) if gateway is None else None
    settings = starting.conf if starting is not None else embedded.embedded_conf(data, overrides)
    from streamql import bridge

    bridge.silence()
    if is_one_process(settings["spark.master"]):
        # Python workers run this Python, not whichever `python3` is first on PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if starting is not None:
        # While the JVM starts: what the first call into it imports, and with it pandas; and what the first look at a stream imports.
        with contextlib.suppress(ImportError):
            import_module("pyspark.testing.utils")
        source_types()
        gateway = starting.attach()
    assert gateway is not None
    spark_conf = SparkConf(_jvm=gateway.jvm)
    for key, value in settings.items():
        spark_conf.set(key, value)
    context = SparkContext(conf=spark_conf, gateway=gateway)
    try:
        spark = SparkSession(context)
        spark.conf.get("spark.sql.warehouse.dir")  # makes the session's state, by all settings that were given
        make_lake(data, settings)
        bridge.install(spark)
    except BaseException:
        context.stop()
        raise
    return spark


def make_lake(data: Path, settings: Mapping[str, str]) -> None:
    """Makes the data directory and its metastore, if they are not there: at the end of a start, so that a failed one leaves nothing.
    `settings`: as `embedded_conf` returns them."""
    metastore.prepare(data, metastore.location(settings["spark.sql.warehouse.dir"]))


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Add the extension, Delta Lake and their jars to a builder: `streamql.configure(SparkSession.builder).getOrCreate()`.

    Extensions and jars that the builder or Spark's spark-defaults.conf names stay, before ours. A JVM that runs already takes the
    extension, but no jars: under `spark-submit`, its settings must name them. Raises EXTENSION_NOT_INSTALLED if such a JVM lacks the jars,
    INVALID_ARGUMENT if the builder connects to a server or names an unknown connector, JAVA_NOT_FOUND, JAR_BUILD_FAILED.
    """
    if "spark.remote" in builder._options or "SPARK_REMOTE" in os.environ:
        raise StreamqlError(
            "INVALID_ARGUMENT",
            "the builder connects to a server, and a client cannot add the extension to it",
            hint="start the server with streamql server --connect, or with the settings of streamql conf; and use the builder as it is",
        )
    java()
    gateway = _running_gateway()
    if gateway is not None and not has_classes(gateway.jvm, EXTENSIONS):
        raise not_installed("the JVM of this process runs already, without streamql's jars")
    options = {**lists_of_spark(), **builder._options}
    for key, value in conf_lines(options.get(CONNECTORS.key, ""), options).items():
        builder.config(key, joined(key, options.get(key), value))
    make = builder.getOrCreate

    def make_and_install() -> SparkSession:
        from streamql import bridge

        made = make()
        bridge.install(made)
        return made

    builder.getOrCreate = make_and_install  # type: ignore[method-assign]  # the caller's own call makes the session
    return builder


_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Environment variable: the port of the JVM that has started this process, as spark-submit does."""


def _running_gateway() -> JavaGateway | None:
    """Returns the gateway to this process's JVM; None: there is no JVM yet."""
    if SparkContext._gateway is None and _SUBMITTED in os.environ:
        SparkContext._ensure_initialized()  # it attaches, as the first session would
    return SparkContext._gateway


def run_sql(
    text: str, spark: SparkSession | None = None, args: Mapping[str, object] | Sequence[object] | None = None
) -> DataFrame:
    """`spark.sql(text, args)` in a session that can do what streamql does: `spark`, the active one, or else the embedded one.

    Raises StreamqlError for what streamql refuses, INVALID_ARGUMENT if the session was stopped; Spark's own exceptions for the rest.
    """
    from streamql import bridge

    chosen = _chosen(spark)
    if not _is_remote(chosen):  # a Connect server sees to it itself
        bridge.install(chosen)
    try:
        return chosen.sql(text, args=None if args is None else dict(args) if isinstance(args, Mapping) else list(args))
    except PySparkException as e:
        ours = bridge.as_streamql_error(e)
        if ours is None:
            raise
        raise ours from None


def has_data(stream: str, spark: SparkSession | None = None) -> bool:
    """Returns what the SQL function stream_has_data says of a stream. Raises what `run_sql` raises."""
    row = run_sql(f"SELECT {_HAS_DATA}({quote_string(stream)})", spark).first()
    assert row is not None
    return bool(row[0])


def _chosen(spark: SparkSession | None) -> SparkSession:
    """Returns the session for a statement: `spark`, the active one, or else the embedded one. Raises INVALID_ARGUMENT if it was stopped:
    another one would read other data, or have other settings."""
    found = spark or SparkSession.getActiveSession()
    if found is None and SparkContext._active_spark_context is not None:  # it is another thread's
        return session()
    if found is None and SparkContext._gateway is None:  # there was none yet
        is_new = not metastore.file_of(Path(DATA_DEFAULT)).exists()
        found = session()
        if is_new:
            log.warning(
                "made a new lakehouse in %s; streamql.session(DIRECTORY) takes another", Path(DATA_DEFAULT).absolute()
            )
        return found
    if found is not None and (_is_remote(found) or found.sparkContext._jsc is not None):
        return found
    again = "make it again" if _embedded is None else f"make it again by streamql.session({str(_embedded.data)!r})"
    raise StreamqlError("INVALID_ARGUMENT", "the Spark session of this process was stopped", hint=again)


def _is_remote(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect.")


@contextlib.contextmanager
def transaction(spark: SparkSession | None = None) -> Iterator[SparkSession]:
    """BEGIN TRANSACTION, then COMMIT, or ROLLBACK where the body raises; the session that it is open in."""
    chosen = _chosen(spark)
    run_sql("BEGIN TRANSACTION", chosen)
    try:
        yield chosen
        run_sql("COMMIT", chosen)
    except BaseException as e:
        try:
            run_sql("ROLLBACK", chosen)
        except StreamqlError as reported:
            # It is half done; or whole, by a COMMIT whose answer was lost; or others have ended it.
            if reported.code in ("CONSUMPTION_PARTIALLY_COMMITTED", "TRANSACTION_COMMITTED", "CLAIM_LOST"):
                getattr(e, "add_note", log.warning)(str(reported))  # exceptions of Python 3.10 take no notes
        raise
