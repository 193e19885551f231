"""How long the last refreshes of dynamic tables took. A process reads the ledger once, and then remembers its own refreshes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.features.dynamic.refreshes.status import ledger_rows
from streamql.features.dynamic.source.costs import TIMINGS_MAX, Timing
from streamql.features.dynamic.source.table import DynamicTable, all_dynamic

_known: dict[str, tuple[int, list[Timing]]] = {}
"""Id of a hidden stream → (number of the stream's last event, the last refreshes up to that event)."""


def timings_of(spark: SparkSession, table: DynamicTable, state: StreamState) -> list[Timing]:
    """Returns the last refreshes of a table that wrote or failed, the newest first, at most TIMINGS_MAX.

    `state`: the table's present hidden stream. Runs a job over the ledger, unless this process has made all refreshes since the last job.
    The first job reads the refreshes of all dynamic tables, because that takes about as long as for one of them.
    """
    catalog = catalog_of(spark)
    number = catalog.number_of(state)
    known = _known.get(table.stream_id)
    if known is not None and known[0] == number:
        return known[1]
    others = [] if known is not None else [t for t in all_dynamic(spark) if t.stream_id not in _known]
    states = {t.stream_id: catalog.by_uuid(spark, t.stream_id) for t in others}
    numbers = {uid: catalog.number_of(found) for uid, found in states.items() if found is not None} | {
        table.stream_id: number
    }
    read = _read(spark, list(numbers))
    _known.update({uid: (n, read.get(uid, [])) for uid, n in numbers.items()})
    return _known[table.stream_id][1]


def remember(spark: SparkSession, table: DynamicTable, before: StreamState, timing: Timing) -> None:
    """Remembers a refresh that this process has made. `before`: the hidden stream before it."""
    known = _known.get(table.stream_id)
    if known is not None and known[0] == before.sequence:
        _known[table.stream_id] = (catalog_of(spark).number_of(before), [timing, *known[1]][:TIMINGS_MAX])


def _read(spark: SparkSession, streams: Sequence[str]) -> dict[str, list[Timing]]:
    """Returns the last refreshes in the ledger, by the ids of hidden streams. One job."""
    rows = ledger_rows(spark, streams)
    if rows is None:
        return {}
    duration = F.col("ended") - F.col("started")
    one = F.struct("sequence", "details", duration.alias("duration"), (F.col("outcome") != "CONSUMED").alias("failed"))
    last = F.slice(F.sort_array(F.collect_list(one), asc=False), 1, TIMINGS_MAX)
    # A failed refresh without details failed before its mode was chosen, and is left out.
    is_known = F.get_json_object("details", "$.mode").isNotNull() | (
        (F.col("outcome") == "CONSUMED") & F.col("details").isNull()
    )
    found = rows.where(is_known).groupBy("stream_id").agg(last.alias("last")).collect()
    return {row["stream_id"]: [_timing(one) for one in row["last"]] for row in found}


def _timing(one: Row) -> Timing:
    said = json.loads(one["details"] or "{}")
    size = said.get("bytes")
    return Timing(
        str(said.get("mode")),
        int(one["duration"]),
        None if size is None else int(size),
        said.get("reason") == "FIRST",
        one["failed"],
    )
