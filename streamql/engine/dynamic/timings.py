"""How long the last refreshes of dynamic tables took. The ledger has it. A process reads it once, and then remembers its own refreshes."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.engine.dynamic.status import ledger_rows
from streamql.sources.queries.dynamic import DynamicTable
from streamql.sources.queries.refresh_costs import TIMINGS_MAX, Timing

_known: dict[str, tuple[int, list[Timing]]] = {}
"""By the id of a hidden stream: the number that its entry had in the catalog behind the last refresh, and what was known then."""


def timings_of(spark: SparkSession, table: DynamicTable, state: StreamState) -> list[Timing]:
    """Returns how long the last refreshes of a table took that wrote, the newest first: at most TIMINGS_MAX.

    `state`: its hidden stream now. Runs a job, unless this process has made all refreshes since it last asked.
    """
    number = catalog_of(spark).number_of(state)
    known = _known.get(table.stream_id)
    if known is None or known[0] != number:
        known = _known[table.stream_id] = (number, _read(spark, table))
    return known[1]


def remember(spark: SparkSession, table: DynamicTable, before: StreamState, timing: Timing) -> None:
    """Adds a refresh that this process has made. `before`: the hidden stream before it."""
    known = _known.get(table.stream_id)
    if known is not None and known[0] == before.sequence:
        _known[table.stream_id] = (catalog_of(spark).number_of(before), [timing, *known[1]][:TIMINGS_MAX])


def _read(spark: SparkSession, table: DynamicTable) -> list[Timing]:
    rows = ledger_rows(spark, [table])
    if rows is None:
        return []
    last = rows.where("outcome = 'CONSUMED'").orderBy(F.desc("sequence")).limit(TIMINGS_MAX)
    timings = []
    for row in last.select("details", (F.col("ended") - F.col("started")).alias("duration")).collect():
        details = json.loads(row["details"] or "{}")
        size = details.get("bytes")
        timings.append(Timing(str(details.get("mode")), int(row["duration"]), None if size is None else int(size)))
    return timings
