"""What sources do once a consumption of their streams has ended: `SourceType.consumed`. The consumption stands, whatever that raises."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim
from streamql.catalog.store import catalog_of
from streamql.delta.jvm import sentence
from streamql.sources.registry import type_of

log = logging.getLogger("streamql")


def tell_sources(spark: SparkSession, claim: Claim) -> None:
    """Calls `SourceType.consumed` for the source of each stream of a claim, if the type has it."""
    for uuid in claim.intervals:
        state = catalog_of(spark).last_read(spark, uuid)
        consumed = None if state is None else type_of(state.stream.source).consumed
        if state is None or consumed is None:
            continue
        try:
            consumed(spark, state.stream.source)
        except Exception as e:
            log.warning("after stream %s was consumed: %s", state.name, sentence(e))
