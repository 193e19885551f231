"""`stream_violations('stream')`: the changes that violate expectations and were not consumed yet, as a relation. It moves nothing."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from streamql.consume.statement import Reads
from streamql.delta.jvm import frame
from streamql.dialect import parse_name
from streamql.engine.reads import need_stream
from streamql.engine.relations import NO_STREAM, node
from streamql.errors import StreamqlError
from streamql.features.expectations import quarantine
from streamql.features.expectations.language.clause import PRECEDENCE
from streamql.features.expectations.terms import expectations_of
from streamql.reading import open_interval, visible_columns

NAME = "stream_violations"


def stream_violations(spark: SparkSession, arguments: list[Any], reads: Reads) -> Any:
    """Returns the node for the rows that a statement would find to violate an expectation of a stream. Each row names the one that
    comes first. Raises INVALID_ARGUMENT, STREAM_NOT_FOUND, EXPECTATION_NOT_FOUND."""
    name = arguments[0] if len(arguments) == 1 else None
    if not isinstance(name, str):
        raise StreamqlError(
            "INVALID_ARGUMENT", f"{NAME} takes the name of a stream", hint=f"{NAME}('db.s')", function=NAME
        )
    state = need_stream(spark, parse_name(name))
    expectations = expectations_of(state.stream)
    if not expectations:
        raise StreamqlError(
            "EXPECTATION_NOT_FOUND",
            f"stream {state.name} has no expectation",
            hint=f"ALTER STREAM {state.name} ADD EXPECTATION name CHECK (condition) ON VIOLATION QUARANTINE",
        )
    source, interval = open_interval(spark, state, reads.seen(state))
    changes = source.changes(interval, state.stream.mode)
    ordered = [e.name for action in PRECEDENCE for e in expectations if e.action == action]
    rows = frame(spark, quarantine.violations(changes, expectations, ordered, ordered).rows())
    return node(spark, rows, NO_STREAM, visible_columns(rows))
