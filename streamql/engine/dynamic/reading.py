"""What a refresh writes, when Spark asks for it: the statement of a refresh reads `streamql_refresh(…)`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.errors import StreamqlError
from streamql.model import Interval, Parts, is_ordered
from streamql.reading import StreamReading, check_history
from streamql.sources.protocol import HIDDEN_TYPE, OpenSource
from streamql.sources.queries.refresh import OpenRefresh
from streamql.sources.registry import open_source


@dataclass(frozen=True)
class Prepared:
    """What a refresh found before its statement, which need not look for it again. `frame`: the rows that it writes; None: they were not
    planned yet."""

    source: OpenRefresh
    frame: DataFrame | None


_prepared: dict[tuple[str, int], Prepared] = {}
"""By the id of the hidden stream and its sequence. Spark asks from another thread, and perhaps from another process, which has none."""


@contextlib.contextmanager
def prepared(state: StreamState, what: Prepared) -> Iterator[None]:
    """Hands over what a refresh has found to the statement that runs in the block, for the first time that Spark asks."""
    key = (state.stream.uuid, state.sequence)
    _prepared[key] = what
    try:
        yield
    finally:
        _prepared.pop(key, None)


def refresh_reading(spark: SparkSession, arguments: Sequence[object]) -> StreamReading:
    """streamql_refresh('stream id', '{"table": version, …}', 'details', 'sequence'): what a refresh writes, if the hidden stream has the
    sequence. Only refreshes write such a call. Raises STREAM_NOT_FOUND, STREAM_MOVED, and what reading the query raises."""
    stream_id, through, details, sequence = (str(a) for a in arguments)
    state = catalog_of(spark).by_uuid(spark, stream_id)
    if state is None or state.stream.source.type_name != HIDDEN_TYPE:
        raise StreamqlError(
            "STREAM_NOT_FOUND", f"no dynamic table is refreshed by {stream_id}", hint="REFRESH DYNAMIC TABLE d"
        )
    end = Parts.of({str(part): int(version) for part, version in json.loads(through).items()})
    if str(state.sequence) != sequence or not is_ordered(state.offset.position, end):
        raise StreamqlError("STREAM_MOVED", "another refresh was first", hint="run the refresh again")
    interval = Interval(state.offset.position, end, state.offset.initial)
    found = _prepared.pop((stream_id, state.sequence), None)
    source: OpenSource = open_source(spark, state.stream.source) if found is None else found.source
    check_history(state, source)
    frame = None if found is None else found.frame
    if frame is None:
        frame = changes_in_mode(source, interval, str(json.loads(details)["mode"]))
    return StreamReading(state, interval, source.seen_at(interval.through), frame, details=details)


def changes_in_mode(source: OpenSource, interval: Interval, mode: str) -> DataFrame:
    """Returns what a refresh writes that runs in a mode, FULL or INCREMENTAL."""
    assert isinstance(source, OpenRefresh)
    return source.changes_in_mode(interval, mode)
