"""`stream_consumption('stream', n)`: the changes that a consumption took, as a relation. It moves nothing."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from streamql.consume.statement import Reads
from streamql.dialect import parse_name
from streamql.engine.reads import need_stream
from streamql.engine.relations import NO_STREAM, node
from streamql.errors import StreamqlError
from streamql.features.replay.entries import changes_again, entries_of
from streamql.reading import visible_columns

NAME = "stream_consumption"


def stream_consumption(spark: SparkSession, arguments: list[Any], _: Reads) -> Any:
    """Returns the node for the changes of a consumption. Without a number, it is the newest one that moved the stream. Raises
    INVALID_ARGUMENT, STREAM_NOT_FOUND, CONSUMPTION_NOT_FOUND, CONSUMPTION_GONE."""
    name, *numbers = arguments or [None]
    is_number = all(isinstance(n, int) and not isinstance(n, bool) for n in numbers)
    if not isinstance(name, str) or len(numbers) > 1 or not is_number:
        raise StreamqlError(
            "INVALID_ARGUMENT",
            f"{NAME} takes the name of a stream, and the number of a consumption",
            hint=f"{NAME}('db.s', 7), with a sequence of streamql.consumptions; {NAME}('db.s') is the newest",
            function=NAME,
        )
    state = need_stream(spark, parse_name(name))
    entry = entries_of(spark, state, numbers[0] if numbers else None)[0]
    changes = changes_again(spark, state, entry)
    return node(spark, changes, NO_STREAM, visible_columns(changes))
