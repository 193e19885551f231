"""The Python side of the session extension: what the JVM calls, and how our errors reach it as Spark's own."""

from __future__ import annotations

import functools
import json
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streamql import dialect, engine
from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.consume import consume, transactions
from streamql.consume.effects import reported_to_client
from streamql.delta.command import Command
from streamql.delta.jvm import JavaObject, analyzed, has_classes, java_frame, java_list, jvm, scala, session_of
from streamql.delta.kafka import explained
from streamql.delta.names import columns_of
from streamql.engine.as_of import followed_stream, read_arguments, table_at
from streamql.engine.guards import guard
from streamql.engine.properties import created_properties
from streamql.engine.reads import (
    backlog_frame,
    batch_size,
    changes_of,
    find_stream,
    named_relation,
    need_stream,
    table_time_micros,
)
from streamql.engine.retention import check_vacuum
from streamql.engine.suggestions import hint_for
from streamql.engine.tablestore.relation import records_relation, stream_named
from streamql.errors import StreamqlError
from streamql.extension.settings import EXTENSIONS, not_installed
from streamql.model import Interval
from streamql.reading import (
    Pin,
    PinnedIntervals,
    ReadForm,
    has_data,
    read_image,
    read_stream,
    read_token,
    visible_columns,
)
from streamql.shared import constants
from streamql.sources.registry import open_source

log = logging.getLogger("streamql")

P = ParamSpec("P")
R = TypeVar("R")

NO_STREAM = ""
"""The token of what reads no stream and moves none: a change query, or a stream that is asked for its columns."""

_ACCESS = constants("access")
_FUNCTIONS = constants("functions")


def guarded(method: Callable[Concatenate[Handler, P], R]) -> Callable[Concatenate[Handler, P], R]:
    """Turns every exception into one that the JVM throws on as Spark's own: the user sees a sentence, never a Python traceback."""

    @functools.wraps(method)
    def wrapper(self: Handler, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except Exception as e:
            raise Py4JJavaError("streamql", self.java_exception(e)) from None

    return wrapper


class Handler:
    """Implements the Scala trait `Handler`. Stateless but for the intervals that running statements have pinned."""

    class Java:
        implements = ("org.apache.spark.sql.streamql.Handler",)

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._spark = spark
        self._pinned = PinnedIntervals()

    # -- the trait

    @guarded
    def plan(self, jsession: JavaObject, delegate: JavaObject, sql: str) -> JavaObject:
        """Plans one of our statements as a command, or one with pieces of its text spliced; None: it is Spark's as it is."""
        statement = dialect.parse(sql)
        plans = scala(self._spark).Plans
        if statement is not None:
            return plans.command(sql, engine.columns_of(statement))
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
            command = dialect.explain_rejected(sql)
            if command is not None:
                raise command from None
            raise
        return plans.consumeQuery(plan, java_list(spark, asked)) if rewrite.consume else plan

    def _parsed(self, spark: SparkSession, delegate: JavaObject, sql: str, text: str) -> JavaObject:
        """Spark's plan of a spliced statement, which may need another rewrite if Spark rejects it."""
        try:
            if "`" in sql:  # the user's own may be patterns of names
                return delegate.parse(text)
            return scala(spark).Neutral.parseNames(session_of(spark), delegate, text)
        except Exception:
            rewritten = dialect.rewrite_rejected(text, lambda parts: columns_of(spark, parts))
            if rewritten is None:
                raise
            return delegate.parse(rewritten)

    @guarded
    def bind(self, sql: str, names: JavaObject, literals: JavaObject) -> str:
        """Returns the statement with its parameters replaced by literals: of those names, or in their order if there are no names."""
        values = list(literals)
        return dialect.bind(sql, dict(zip(names, values, strict=True)) if len(names) else values)

    @guarded
    def rejected(self, jsession: JavaObject, delegate: JavaObject, sql: str) -> JavaObject:
        """Returns what Spark's parser rejected: rewritten, or explained if it resembles a statement of streamql; None: Spark's command
        stands."""
        spark = self._session(jsession)
        rewritten = dialect.rewrite_rejected(sql, lambda parts: columns_of(spark, parts))
        if rewritten is not None:
            return delegate.parse(rewritten)
        command = dialect.explain_rejected(sql)
        if command is not None:
            raise command
        return None

    @guarded
    def resolve(self, jsession: JavaObject, name: Sequence[str], request: str, pin: str) -> JavaObject:
        """Returns the node that stands for a stream's change set; None: no stream has the name."""
        spark = self._session(jsession)
        asked = json.loads(request)
        with transactions.pending_on_failure(spark, asked.get("writer")):
            return self._resolved(spark, name, asked["access"], asked["options"], pin)

    def _resolved(
        self, spark: SparkSession, name: Sequence[str], access: str, options: dict[str, str], pin: str
    ) -> JavaObject:
        state = find_stream(spark, tuple(name))
        if state is None:
            frame = named_relation(spark, tuple(name), access, options)
            return None if frame is None else analyzed(frame)
        if access == _ACCESS["streaming"]:
            raise StreamqlError(
                "UNSUPPORTED_STATEMENT",
                f"readStream on the stream {state.name}: it is read and consumed by SQL statements",
                hint="INSERT INTO target SELECT … FROM the stream, on a schedule",
            )
        if access == _ACCESS["write"]:
            raise StreamqlError(
                "UNSUPPORTED_TARGET",
                f"{state.name} is a stream, which shows the changes of {state.stream.source.name} and cannot be written",
                hint=f"write into {state.stream.source.name}",
            )
        if access == _ACCESS["columns"]:
            latest = open_source(spark, state.stream.source).latest
            reading = read_stream(spark, state, Interval(latest, latest))
            return scala(spark).Plans.streamRead(analyzed(reading.frame), NO_STREAM, reading.visible)
        rows_max = batch_size(options)
        reading = read_stream(spark, state, self._seen(spark, state, pin, None if rows_max is None else pin), rows_max)
        pinned = self._pin(spark, state, Pin(reading.interval, pin))
        if pinned != reading.interval:
            reading = read_stream(spark, state, pinned)
        return scala(spark).Plans.streamRead(analyzed(reading.frame), reading.token, reading.visible)

    def _seen(self, spark: SparkSession, state: StreamState, pin: str, batch_of: str | None = None) -> Interval | None:
        """Returns the interval of a stream that the statement, or its transaction, has read; None: none. `batch_of`: as
        `PinnedIntervals.get` has it."""
        block = transactions.current(spark)
        in_block = None if block is None else block.interval(state, batch_of)
        if in_block is not None:
            return in_block
        earlier = self._pinned.get(pin, state.stream.uuid, batch_of)
        return None if earlier is None else earlier.interval

    def _pin(self, spark: SparkSession, state: StreamState, pin: Pin) -> Interval:
        """Pins what a statement has read; the interval that it is to see."""
        interval = self._pinned.put(pin.statement, state.stream.uuid, pin)
        block = transactions.current(spark)
        if block is not None:
            block.pin(state.stream.uuid, interval, pin.statement, pin.follows)
        return interval

    @guarded
    def asOf(self, jsession: JavaObject, arguments: Sequence[Any], request: str, pin: str) -> JavaObject:  # noqa: N802 (the trait's name)
        """Returns the node that stands for a table at a point, or at the begin or end of what the statement sees of a stream."""
        spark = self._session(jsession)
        context = json.loads(request)
        with transactions.pending_on_failure(spark, context.get("writer")):
            asked = read_arguments(list(arguments), context["home"])
            if asked.form is None:
                return analyzed(table_at(spark, asked))
            state, table = followed_stream(spark, asked)
            reading = read_image(spark, state, asked.form, table.table_id, self._seen(spark, state, pin))
            pinned = self._pin(spark, state, Pin(reading.interval, pin, follows=True))
            if pinned != reading.interval:
                reading = read_image(spark, state, asked.form, table.table_id, pinned)
            return scala(spark).Plans.follower(analyzed(reading.frame), reading.token)

    @guarded
    def follow(self, jsession: JavaObject, token: str, pin: str) -> JavaObject:
        """Returns the node for a table that is read at a stream of which the statement sees another interval by now; None: it sees the
        same."""
        spark = self._session(jsession)
        old = read_token(token)
        state = catalog_of(spark).by_uuid(spark, old.uuid)
        seen = None if state is None else self._seen(spark, state, pin)
        if state is None or seen in (None, old.interval):
            return None
        reading = read_image(spark, state, old.form, old.table_id, seen, old.interval)
        return scala(spark).Plans.follower(analyzed(reading.frame), reading.token)

    @guarded
    def function(self, jsession: JavaObject, name: str, arguments: Sequence[Any], pin: str) -> JavaObject:
        """stream_has_data, stream_table_timestamp: a value; the others are relations."""
        spark = self._session(jsession)
        values = list(arguments)
        if name == _FUNCTIONS["changes"]:
            changes = changes_of(spark, values)
            return scala(spark).Plans.streamRead(analyzed(changes), NO_STREAM, visible_columns(changes))
        if name == _FUNCTIONS["records"]:
            return self._records(spark, values, pin)
        if len(values) != 1 or not isinstance(values[0], str):
            raise StreamqlError(
                "INVALID_ARGUMENT", f"{name} takes one name of a stream", hint=f"{name}('db.s')", function=name
            )
        state = need_stream(spark, dialect.parse_name(values[0]))
        if name == _FUNCTIONS["hasData"]:
            return has_data(spark, state)
        if name == _FUNCTIONS["tableTimestamp"]:
            return table_time_micros(spark, state)
        frame = backlog_frame(spark, state)
        return analyzed(frame if name == _FUNCTIONS["backlog"] else frame.select("has_data"))

    def _records(self, spark: SparkSession, arguments: Sequence[Any], pin: str) -> JavaObject:
        """Returns the node for the 6-tuples of a stream, which moves it, or of a table."""
        state = stream_named(spark, arguments)
        if state is None:
            records = records_relation(spark, arguments)
            return scala(spark).Plans.streamRead(analyzed(records), NO_STREAM, len(records.columns))
        reading = read_stream(spark, state, self._seen(spark, state, pin), form=ReadForm.RECORDS)
        pinned = self._pin(spark, state, Pin(reading.interval, pin))
        if pinned != reading.interval:
            reading = read_stream(spark, state, pinned, form=ReadForm.RECORDS)
        return scala(spark).Plans.streamRead(analyzed(reading.frame), reading.token, reading.visible)

    @guarded
    def run(self, jsession: JavaObject, sql: str) -> JavaObject:
        """Runs one of our own statements; its rows."""
        spark = self._session(jsession)
        with reported_to_client(spark):
            frame = engine.run(spark, sql)
        return java_list(spark, []) if frame is None else java_frame(frame).collectAsList()

    @guarded
    def consume(self, jsession: JavaObject, command: JavaObject) -> JavaObject:
        """Runs a statement that consumes streams; its rows."""
        spark = self._session(jsession)
        with reported_to_client(spark):
            try:
                return consume(spark, Command(spark, command))
            except Py4JJavaError as e:
                raise (explained(e) or e) from e

    @guarded
    def guard(self, jsession: JavaObject, command: str, name: Sequence[str]) -> None:
        """Refuses a command on a name that is a stream's."""
        guard(self._session(jsession), command, tuple(name))

    @guarded
    def created(self, jsession: JavaObject, properties: str, provider: str) -> str | None:
        """Returns the properties that a new table gets, in place of those that its statement names; None: those."""
        return created_properties(self._session(jsession), properties, provider)

    @guarded
    def guardVacuum(self, jsession: JavaObject, path: str, hours: float | None) -> None:  # noqa: N802 (the trait's name)
        """Refuses VACUUM of files that a stream needs. `hours`: of RETAIN; None: the table's own retention."""
        check_vacuum(self._session(jsession), path, hours)

    @guarded
    def hint(self, jsession: JavaObject, error: str, name: Sequence[str], known: Sequence[str]) -> str | None:
        """Returns what to type in place of what Spark refuses; None: nothing to say."""
        return hint_for(self._session(jsession), error, list(name), list(known))

    @guarded
    def closed(self, jsession: JavaObject) -> None:
        """Gives up what the session of a server's client, which is closed, has left open."""
        transactions.abandon(self._session(jsession))

    # -- Java's own methods, which Py4J sends here too

    def toString(self) -> str:  # noqa: N802 (Java's name)
        """For Java's logs."""
        return "streamql.bridge.Handler"

    def hashCode(self) -> int:  # noqa: N802 (Java's name)
        """Identity."""
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        """Identity."""
        return other is self

    # -- helpers

    def _session(self, jsession: JavaObject) -> SparkSession:
        """Returns a Python session over the JVM session that the statement runs in."""
        return SparkSession(self._context, jsession)

    def java_exception(self, e: Exception) -> JavaObject:
        """Returns the exception that the JVM shall throw: Spark's own as it came, ours under its code."""
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
        return scala(self._spark).Errors.of(e.code, str(e), e.line, e.column)


_installed: set[str] = set()
"""The applications for which a handler is installed."""
_install_lock = threading.Lock()


def install(spark: SparkSession) -> None:
    """Sees to it that Python answers for the session's JVM: this process, where no other does so already; once is enough.

    Raises EXTENSION_NOT_INSTALLED, with the lines to add, where the session was made without the extension.
    """
    context = spark.sparkContext
    application = str(context.applicationId)
    with _install_lock:
        if application in _installed:
            return
        _check_extension(spark)
        # A sidecar that was there first stays: it may hold open transactions.
        if not scala(spark).Sidecar.isServing():
            scala(spark).Bridge.register(answering(spark))
        _installed.add(application)


def answering(spark: SparkSession) -> Handler:
    """Returns a handler in this process that the session's JVM can call."""
    from pyspark.java_gateway import ensure_callback_server_started

    gateway = spark.sparkContext._gateway
    assert gateway is not None
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs every exception that crosses, with a traceback
    gateway.callback_server_parameters.propagate_java_exceptions = True
    ensure_callback_server_started(gateway)
    # Py4J binds the port here and listens in a thread of its own: on a busy machine the JVM's first call could be refused.
    gateway._callback_server.server_socket.listen()
    scala(spark).Wire.prompt(gateway.java_gateway_server)
    return Handler(spark)


def _check_extension(spark: SparkSession) -> None:
    extensions = spark.sparkContext.getConf().get("spark.sql.extensions", "") or ""
    if EXTENSIONS[-1] not in [e.strip() for e in extensions.split(",")]:
        raise not_installed("this Spark session was made without the streamql extension")
    if not has_classes(jvm(spark), EXTENSIONS):  # Spark logs that it cannot load an extension, and starts without it
        raise not_installed("the JVM of this Spark session has no streamql jars")
