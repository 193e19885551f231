"""The Python side of the session extension: what the JVM calls, and how our errors reach it as Spark's own."""

from __future__ import annotations

import functools
import json
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamql import dialect, engine
from streamql.bridge.errors import explained
from streamql.consume import consume, session_transactions
from streamql.consume.effects import reported_to_client
from streamql.consume.pins import PinnedIntervals
from streamql.consume.statement import Reads
from streamql.delta.command import Command
from streamql.delta.jvm import JavaObject, has_classes, java_frame, java_list, jvm, scala, session_of
from streamql.delta.names import columns_of
from streamql.engine import statement_types
from streamql.engine.functions import sql_functions
from streamql.engine.guards import guard
from streamql.engine.properties import check_new_table, created_properties
from streamql.engine.reads import find_stream, need_stream
from streamql.engine.relations import rebound_table, relation, relation_as_of
from streamql.engine.retention import check_vacuum
from streamql.engine.suggestions import hint_for
from streamql.errors import StreamqlError
from streamql.extension.settings import EXTENSIONS, not_installed

log = logging.getLogger("streamql")

P = ParamSpec("P")
R = TypeVar("R")


def guarded(method: Callable[Concatenate[Handler, P], R]) -> Callable[Concatenate[Handler, P], R]:
    """Turns every exception of a method into one that the JVM throws as Spark's own. The user sees its message, and no Python traceback."""

    @functools.wraps(method)
    def wrapper(self: Handler, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except Exception as e:
            raise Py4JJavaError("streamql", self.java_exception(e)) from None

    return wrapper


class Handler:
    """Implements the Scala trait `Handler`. Its only state are the intervals that running statements have pinned."""

    class Java:
        implements = ("org.apache.spark.sql.streamql.bridge.Handler",)

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._spark = spark
        self._pinned = PinnedIntervals()

    # -- the trait

    @guarded
    def plan(self, jsession: JavaObject, delegate: JavaObject, sql: str) -> JavaObject:
        """Returns the plan of a statement of streamql (a command), or of a statement of Spark in which clauses of streamql were replaced.
        None: the text has none of these, and Spark parses it as it is."""
        statement = dialect.parse(sql)
        plans = scala(self._spark).plans.Plans
        if statement is not None:
            return plans.command(sql, statement_types()[type(statement)].columns_of(statement))
        spark = self._session(jsession)
        rewrite = dialect.rewrite(
            sql, lambda parts: find_stream(spark, parts) is not None, lambda parts: columns_of(spark, parts)
        )
        if rewrite is None:
            return None
        asked = [need_stream(spark, parts).stream.uuid for parts in rewrite.consumed]
        for warning in rewrite.warnings:
            log.warning("%s", warning)
        try:
            plan = self._parsed(spark, delegate, sql, rewrite.text)
        except Exception:
            explanation = dialect.explain_rejected(sql)
            if explanation is not None:
                raise explanation from None
            raise
        return plans.consumeQuery(plan, java_list(spark, asked)) if rewrite.consume else plan

    def _parsed(self, spark: SparkSession, delegate: JavaObject, sql: str, text: str) -> JavaObject:
        """Returns Spark's plan of a spliced statement. If Spark rejects it, tries the rewrites for rejected statements."""
        try:
            return self._spliced(spark, delegate, sql, text)
        except Exception:
            rewritten = dialect.rewrite_rejected(text, lambda parts: columns_of(spark, parts))
            if rewritten is None:
                raise
            return self._spliced(spark, delegate, sql, rewritten)

    def _spliced(self, spark: SparkSession, delegate: JavaObject, sql: str, text: str) -> JavaObject:
        """Returns Spark's plan of a spliced text. The splices add names in backquotes. A setting (quotedRegexColumnNames) would make Spark
        take these for regular expressions, so it is off for this text."""
        if "`" in sql:  # the user has backquotes too, which may be regular expressions
            return delegate.parse(text)
        return scala(spark).session.Neutral.parseNames(session_of(spark), delegate, text)

    @guarded
    def bind(self, sql: str, names: JavaObject, literals: JavaObject) -> str:
        """Returns the statement with its parameters replaced by literals: by name, or, if there are no names, in their order."""
        values = list(literals)
        return dialect.bind(sql, dict(zip(names, values, strict=True)) if len(names) else values)

    @guarded
    def rejected(self, jsession: JavaObject, delegate: JavaObject, sql: str) -> JavaObject:
        """Returns the plan of a statement that Spark's parser rejected, once it is rewritten. Raises an error that explains it if it
        resembles a statement of streamql. None: Spark's own error stands."""
        spark = self._session(jsession)
        rewritten = dialect.rewrite_rejected(sql, lambda parts: columns_of(spark, parts))
        if rewritten is not None:
            return self._spliced(spark, delegate, sql, rewritten)
        explanation = dialect.explain_rejected(sql)
        if explanation is not None:
            raise explanation
        return None

    @guarded
    def resolve(self, jsession: JavaObject, name: Sequence[str], request: str, pin: str) -> JavaObject:
        """Returns the node that stands for a stream or an external table; None: neither has the name."""
        reads, asked = self._reads(jsession, pin), json.loads(request)
        with session_transactions.pending_on_failure(reads.spark, asked.get("writer")):
            return relation(reads, name, asked["access"], asked["options"])

    @guarded
    def asOf(self, jsession: JavaObject, arguments: Sequence[Any], request: str, pin: str) -> JavaObject:  # noqa: N802 (the trait's name)
        """Returns the node that stands for a table at a point in time, or at the begin or end of the interval of a stream."""
        reads, context = self._reads(jsession, pin), json.loads(request)
        with session_transactions.pending_on_failure(reads.spark, context.get("writer")):
            return relation_as_of(reads, arguments, context["home"])

    @guarded
    def reboundTable(self, jsession: JavaObject, description: str, pin: str) -> JavaObject:  # noqa: N802
        """Returns a new node for a table that is read AT a stream or at its END, if the stream's interval changed since. None: it did not
        change."""
        return rebound_table(self._reads(jsession, pin), description)

    @guarded
    def function(self, jsession: JavaObject, name: str, arguments: Sequence[Any], pin: str) -> JavaObject:
        """Returns the result of a SQL function of streamql: a value, or the node of a relation."""
        reads = self._reads(jsession, pin)
        return sql_functions()[name](reads.spark, list(arguments), reads)

    @guarded
    def run(self, jsession: JavaObject, sql: str) -> JavaObject:
        """Runs a statement of streamql, and returns its rows."""
        spark = self._session(jsession)
        with reported_to_client(spark):
            frame = engine.run(spark, sql)
        return java_list(spark, []) if frame is None else java_frame(frame).collectAsList()

    @guarded
    def consume(self, jsession: JavaObject, command: JavaObject) -> JavaObject:
        """Runs a statement that consumes streams, and returns its rows."""
        spark = self._session(jsession)
        with reported_to_client(spark):
            try:
                return consume(spark, Command(spark, command))
            except (Py4JJavaError, PySparkException) as e:  # the latter, if PySpark knows the class
                raise (explained(e) or e) from e

    @guarded
    def guard(self, jsession: JavaObject, command: str, name: Sequence[str]) -> None:
        """Refuses a command of Spark on a name that is a stream's."""
        guard(self._session(jsession), command, tuple(name))

    @guarded
    def created(self, jsession: JavaObject, properties: str, provider: str) -> str | None:
        """Returns the properties that a new table gets in place of those that its statement names. None: it gets those that the statement
        names."""
        return created_properties(self._session(jsession), properties, provider)

    @guarded
    def checkNew(self, jsession: JavaObject, name: Sequence[str], properties: str, columns: str) -> None:  # noqa: N802 (the trait's name)
        """Refuses a new table if its properties do not go with its columns."""
        check_new_table(self._session(jsession), tuple(name), json.loads(properties), json.loads(columns)["fields"])

    @guarded
    def guardVacuum(self, jsession: JavaObject, path: str, hours: float | None) -> None:  # noqa: N802 (the trait's name)
        """Refuses a VACUUM that would remove files which a stream needs. `hours`: of RETAIN; None: the table's own retention."""
        check_vacuum(self._session(jsession), path, hours)

    @guarded
    def hint(self, jsession: JavaObject, error: str, name: Sequence[str], known: Sequence[str]) -> str | None:
        """Returns a hint for an error of Spark: what to type instead. None: there is no hint."""
        return hint_for(self._session(jsession), error, list(name), list(known))

    @guarded
    def closed(self, jsession: JavaObject) -> None:
        """Ends the transaction that a session has left open when a server closed it."""
        session_transactions.abandon(self._session(jsession))

    # -- Java's own methods, which Py4J sends here too

    def toString(self) -> str:  # noqa: N802 (Java's name)
        """Returns the name that Java's logs show."""
        return "streamql.bridge.Handler"

    def hashCode(self) -> int:  # noqa: N802 (Java's name)
        """Hashes by identity."""
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        """Compares by identity."""
        return other is self

    # -- helpers

    def _session(self, jsession: JavaObject) -> SparkSession:
        """Returns a Python session over the JVM session that the statement runs in."""
        return SparkSession(self._context, jsession)

    def _reads(self, jsession: JavaObject, pin: str) -> Reads:
        """Returns what a statement sees of streams. `pin`: the name that the JVM gave the statement."""
        return Reads(self._session(jsession), pin, self._pinned)

    def java_exception(self, e: Exception) -> JavaObject:
        """Returns the exception that the JVM throws: Spark's own as it came, and an error of streamql under its code."""
        if isinstance(e, Py4JJavaError):
            return e.java_exception
        origin = getattr(e, "_origin", None)
        if origin is not None:
            return origin
        if not isinstance(e, StreamqlError):
            log.debug("internal error", exc_info=e)
            e = StreamqlError(
                "INTERNAL_ERROR",
                f"{type(e).__name__}: {e}",
                hint="a fault of streamql: please report it, with what logging level DEBUG of 'streamql' shows",
            )
        return scala(self._spark).bridge.Errors.of(e.code, str(e), e.line, e.column)


_installed: set[str] = set()
"""The applications for which a handler is installed."""
_install_lock = threading.Lock()


def install(spark: SparkSession) -> None:
    """Makes this process answer the calls of the session's JVM, unless another one already does. A second call does nothing.

    Raises EXTENSION_NOT_INSTALLED, with the lines to add, if the session was made without the extension.
    """
    context = spark.sparkContext
    application = str(context.applicationId)
    with _install_lock:
        if application in _installed:
            return
        _check_extension(spark)
        # A sidecar that already answers is not replaced: it may hold open transactions.
        if not scala(spark).bridge.Sidecar.isServing():
            scala(spark).bridge.Bridge.register(answering(spark))
        _installed.add(application)


def answering(spark: SparkSession) -> Handler:
    """Returns a handler in this process that the session's JVM can call."""
    from pyspark.java_gateway import ensure_callback_server_started

    gateway = spark.sparkContext._gateway
    assert gateway is not None
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs every exception that goes to the JVM
    gateway.callback_server_parameters.propagate_java_exceptions = True
    ensure_callback_server_started(gateway)
    # Py4J binds the port, and listens later, in a thread of its own: on a busy machine the JVM's first call could come before that.
    gateway._callback_server.server_socket.listen()
    scala(spark).bridge.Wire.prompt(gateway.java_gateway_server)
    return Handler(spark)


def _check_extension(spark: SparkSession) -> None:
    extensions = spark.sparkContext.getConf().get("spark.sql.extensions", "") or ""
    if EXTENSIONS[-1] not in [e.strip() for e in extensions.split(",")]:
        raise not_installed("this Spark session was made without the streamql extension")
    # Spark only logs that it cannot load an extension, and starts without it.
    if not has_classes(jvm(spark), EXTENSIONS):
        raise not_installed("the JVM of this Spark session has no streamql jars")
