"""What the statement of a refresh reads."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame

from streamql.catalog.states import StreamState
from streamql.model import Interval, Parts
from streamql.reading import StreamReading, check_history
from streamql.sources.protocol import OpenSource
from streamql.sources.queries.refresh import OpenRefresh


def refresh_reading(
    state: StreamState,
    source: OpenSource,
    through: Parts,
    details: Mapping[str, str | int],
    frame: DataFrame | None = None,
) -> StreamReading:
    """Returns the rows that turn a dynamic table into its query at the versions `through`, as a read of its hidden stream.

    `state`: of that stream, when the refresh began. If another refresh has begun since, the claim of the statement is refused. `details`:
    what the ledger says of the refresh, with its `mode`. `frame`: the rows, if they were planned already. Raises what `check_history`
    raises, and what reading the query raises.
    """
    interval = Interval(state.offset.position, through, state.offset.initial)
    check_history(state, source)
    rows = changes_in_mode(source, interval, str(details["mode"])) if frame is None else frame
    return StreamReading(state, interval, source.seen_at(through), rows, details=json.dumps(dict(details)))


def changes_in_mode(source: OpenSource, interval: Interval, mode: str) -> DataFrame:
    """Returns what a refresh writes that runs in a mode, FULL or INCREMENTAL."""
    assert isinstance(source, OpenRefresh)
    return source.changes_in_mode(interval, mode)
