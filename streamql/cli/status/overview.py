"""What `streamql streams`, `watch` and `report` show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.catalog.states import StreamState
    from streamql.engine.stream_facts import StreamFacts
    from streamql.features.dynamic.refreshes.facts import DynamicFacts
    from streamql.features.dynamic.source.table import DynamicTable


@dataclass(frozen=True)
class Overview:
    """All streams and dynamic tables, by name, as they stood at a time (milliseconds since 1970)."""

    at_ms: int
    streams: tuple[StreamFacts, ...]
    dynamic: tuple[DynamicFacts, ...] = ()


def overview(
    spark: SparkSession,
    chosen: Sequence[StreamState] | None = None,
    tables: Sequence[DynamicTable] | None = None,
) -> Overview:
    """Returns how streams and dynamic tables stand now: those chosen, or all. From the logs, and a job each over the ledger. Raises
    CATALOG_UNREADABLE."""
    from streamql.catalog.store import catalog_of
    from streamql.engine.stream_facts import stream_facts
    from streamql.features.dynamic.refreshes.facts import dynamic_facts
    from streamql.times import now_ms

    states = catalog_of(spark).all(spark) if chosen is None else chosen
    dynamic = () if tables is not None and not tables else tuple(dynamic_facts(spark, tables))
    streams = stream_facts(spark, states)
    return Overview(now_ms(), streams, dynamic)
