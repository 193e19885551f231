"""How long the last refreshes of dynamic tables took. The ledger has it. A process reads it once, and then remembers its own refreshes."""

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
"""By the id of a hidden stream: the number that its entry had in the catalog behind the last refresh, and what was known then."""


def timings_of(spark: SparkSession, table: DynamicTable, state: StreamState) -> list[Timing]:
    """Returns how long the last refreshes of a table took that wrote or failed, the newest first: at most TIMINGS_MAX.

    `state`: its hidden stream now. Runs a job, unless this process has made all refreshes since it last asked. The first one is for all
    dynamic tables: a job over the ledger takes about as long for one of them.
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
    """Adds a refresh that this process has made. `before`: the hidden stream before it."""
    known = _known.get(table.stream_id)
    if known is not None and known[0] == before.sequence:
        _known[table.stream_id] = (catalog_of(spark).number_of(before), [timing, *known[1]][:TIMINGS_MAX])


def _read(spark: SparkSession, streams: Sequence[str]) -> dict[str, list[Timing]]:
    """Returns what the ledger has, by the ids of hidden streams. One job."""
    rows = ledger_rows(spark, streams)
    if rows is None:
        return {}
    duration = F.col("ended") - F.col("started")
    one = F.struct("sequence", "details", duration.alias("duration"), (F.col("outcome") != "CONSUMED").alias("failed"))
    last = F.slice(F.sort_array(F.collect_list(one), asc=False), 1, TIMINGS_MAX)
    # Those without details failed before their mode was known.
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
