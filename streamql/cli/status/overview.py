"""What `streamql streams`, `watch` and `report` show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from streamql.cli.status import lines
from streamql.features.dynamic import lines as dynamic_lines
from streamql.features.tasks import lines as task_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.catalog.states import StreamState
    from streamql.console.status import Line, Listing
    from streamql.engine.stream_facts import StreamFacts
    from streamql.features.dynamic.refreshes.facts import DynamicFacts
    from streamql.features.dynamic.source.table import DynamicTable
    from streamql.features.tasks.model.task import Task


@dataclass(frozen=True)
class Overview:
    """All streams, dynamic tables and tasks, by name, as they stood at a time (milliseconds since 1970): as facts, and in words. `tasks`:
    each with the root of its graph."""

    at_ms: int
    streams: tuple[StreamFacts, ...]
    dynamic: tuple[DynamicFacts, ...] = ()
    tasks: tuple[tuple[Task, Task | None], ...] = ()

    @cached_property
    def stream_listing(self) -> Listing:
        """Returns the streams in words."""
        return lines.listing(self.streams, self.at_ms)

    @cached_property
    def dynamic_listing(self) -> Listing:
        """Returns the dynamic tables in words."""
        return dynamic_lines.listing(self.dynamic, self.at_ms)

    @cached_property
    def task_listing(self) -> Listing:
        """Returns the tasks in words."""
        return task_lines.listing(self.tasks, self.at_ms)

    @property
    def listings(self) -> list[Listing]:
        """Returns the listings, without empty ones."""
        return [found for found in (self.stream_listing, self.dynamic_listing, self.task_listing) if found.lines]

    @property
    def summary(self) -> str:
        """Returns all in one line; what there is none of is left out, unless there is nothing."""
        return "; ".join(listing.summary() for listing in self.listings or [self.stream_listing])

    @property
    def troubled(self) -> list[Line]:
        """Returns what needs attention, of each listing the worst first."""
        return [line for listing in self.listings for line in listing.worst_first() if line.trouble]


def overview(
    spark: SparkSession,
    chosen: Sequence[StreamState] | None = None,
    tables: Sequence[DynamicTable] | None = None,
    tasks: Sequence[Task] | None = None,
) -> Overview:
    """Returns how streams, dynamic tables and tasks stand now: those chosen, or all. From the logs and the catalog, and a job each over the
    ledger. Raises CATALOG_UNREADABLE."""
    from streamql.catalog.store import catalog_of
    from streamql.engine.status import stream_facts
    from streamql.features.dynamic.refreshes.facts import dynamic_facts
    from streamql.features.tasks.runs.store import all_tasks
    from streamql.times import now_ms

    states = catalog_of(spark).all(spark) if chosen is None else chosen
    dynamic = () if tables is not None and not tables else tuple(dynamic_facts(spark, tables))
    streams = stream_facts(spark, states)
    every = () if tasks is not None and not tasks else all_tasks(spark)
    return Overview(now_ms(), streams, dynamic, task_lines.with_roots(every if tasks is None else tasks, every))
