"""What `streamql streams`, `watch` and `report` show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from streamql.cli.status import lines
from streamql.features.dynamic import lines as dynamic_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.catalog.states import StreamState
    from streamql.console.status import Line, Listing
    from streamql.engine.stream_facts import StreamFacts
    from streamql.features.dynamic.refreshes.facts import DynamicFacts
    from streamql.features.dynamic.source.table import DynamicTable


@dataclass(frozen=True)
class Overview:
    """All streams and dynamic tables, by name, as they stood at a time (milliseconds since 1970): as facts, and in words."""

    at_ms: int
    streams: tuple[StreamFacts, ...]
    dynamic: tuple[DynamicFacts, ...] = ()

    @cached_property
    def stream_listing(self) -> Listing:
        """Returns the streams in words."""
        return lines.listing(self.streams, self.at_ms)

    @cached_property
    def dynamic_listing(self) -> Listing:
        """Returns the dynamic tables in words."""
        return dynamic_lines.listing(self.dynamic, self.at_ms)

    @property
    def listings(self) -> list[Listing]:
        """Returns the two listings, without empty ones."""
        return [listing for listing in (self.stream_listing, self.dynamic_listing) if listing.lines]

    @property
    def summary(self) -> str:
        """Returns both in one line; what there is none of is left out, unless there is neither."""
        return "; ".join(listing.summary() for listing in self.listings or [self.stream_listing])

    @property
    def troubled(self) -> list[Line]:
        """Returns what needs attention, of each listing the worst first."""
        return [line for listing in self.listings for line in listing.worst_first() if line.trouble]


def overview(
    spark: SparkSession,
    chosen: Sequence[StreamState] | None = None,
    tables: Sequence[DynamicTable] | None = None,
) -> Overview:
    """Returns how streams and dynamic tables stand now: those chosen, or all. From the logs, and a job each over the ledger. Raises
    CATALOG_UNREADABLE."""
    from streamql.catalog.store import catalog_of
    from streamql.engine.status import stream_facts
    from streamql.features.dynamic.refreshes.facts import dynamic_facts
    from streamql.times import now_ms

    states = catalog_of(spark).all(spark) if chosen is None else chosen
    dynamic = () if tables is not None and not tables else tuple(dynamic_facts(spark, tables))
    streams = stream_facts(spark, states)
    return Overview(now_ms(), streams, dynamic)
