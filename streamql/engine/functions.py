"""The SQL functions about streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from streamql import dialect
from streamql.catalog.states import StreamState
from streamql.consume.statement import Reads
from streamql.delta.jvm import analyzed
from streamql.engine.reads import backlog_frame, changes_of, need_stream, table_time_micros
from streamql.engine.relations import NO_STREAM, node
from streamql.errors import StreamqlError
from streamql.reading import has_data, visible_columns
from streamql.registered import registered

SqlFunction = Callable[[SparkSession, list[Any], Reads], Any]
"""A function in SQL: takes the session, its arguments and what its statement reads; returns a value, or a node of Spark's plan."""


def _changes(spark: SparkSession, arguments: list[Any], _: Reads) -> Any:
    changes = changes_of(spark, arguments)
    return node(spark, changes, NO_STREAM, visible_columns(changes))


def _of_stream(name: str, ask: Callable[[SparkSession, StreamState], Any]) -> SqlFunction:
    """Returns a SQL function that takes the name of a stream. `ask`: computes its result."""

    def function(spark: SparkSession, arguments: list[Any], _: Reads) -> Any:
        if len(arguments) != 1 or not isinstance(arguments[0], str):
            raise StreamqlError(
                "INVALID_ARGUMENT", f"{name} takes one name of a stream", hint=f"{name}('db.s')", function=name
            )
        return ask(spark, need_stream(spark, dialect.parse_name(arguments[0])))

    return function


_OF_STREAMS: Mapping[str, Callable[[SparkSession, StreamState], Any]] = {
    "stream_has_data": has_data,
    "stream_table_timestamp": table_time_micros,
    "stream_backlog": lambda spark, state: analyzed(backlog_frame(spark, state)),
    "stream_status": lambda spark, state: analyzed(backlog_frame(spark, state).select("has_data")),
}
FUNCTIONS: Mapping[str, SqlFunction] = {
    "streamql_changes": _changes,
    **{name: _of_stream(name, ask) for name, ask in _OF_STREAMS.items()},
}
"""The functions by name. `streamql/shared/functions.json` has the types of their results."""


def sql_functions() -> dict[str, SqlFunction]:
    """Return the functions in SQL of all features, by name."""
    return {name: function for functions in registered("functions") for name, function in functions().items()}
