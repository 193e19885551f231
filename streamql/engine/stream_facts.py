"""The status of streams: how each stands, which process consumes it now, and its last entry in the ledger."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, StreamState
from streamql.consume.claims.liveness import is_abandoned
from streamql.delta.jvm import sentence
from streamql.engine.ledger import Consumption, Newest, newest
from streamql.engine.status import StreamStatus, statuses
from streamql.errors import StreamqlError
from streamql.model import parts_or_none, version_or_none
from streamql.sources.registry import type_of

log = logging.getLogger("streamql")

State = Literal["stale", "invalid", "partial", "busy", "data", "empty"]


@dataclass(frozen=True)
class Consumer:
    """Who holds a claim on a stream: since when (milliseconds since 1970), and why others may resolve it; None: they may not."""

    who: str
    pid: int
    since_ms: int
    is_partially_committed: bool
    abandoned: str | None


@dataclass(frozen=True)
class StreamFacts:
    """A stream as an operator sees it. `last` and `failure`: its newest consumption, and the newest that failed. `offset_position`: the
    offset in a source of several parts, as JSON. `unit`: what its lag counts, in the singular."""

    uuid: str
    name: str
    source: str
    mode: str
    offset_version: int | None
    status: StreamStatus
    consumer: Consumer | None = None
    last: Consumption | None = None
    failure: Consumption | None = None
    offset_position: str | None = None
    unit: str = "version"

    @property
    def state(self) -> State:
        """Returns the one word for it: what needs attention comes before what passes."""
        if self.status.stale:
            return "stale"
        if self.status.is_blocked:
            return "partial"
        if self.status.invalid_reason is not None:
            return "invalid"
        if self.consumer is not None:
            return "busy"
        return "data" if self.status.has_data else "empty"

    @property
    def error(self) -> str | None:
        """Returns what is wrong with it now: why it cannot be read, or why the newest consumption failed."""
        if self.status.invalid_reason is not None:
            return self.status.invalid_reason
        return None if self.last is None or self.last.is_consumed else (self.last.error or self.last.outcome)


def stream_facts(spark: SparkSession, states: Sequence[StreamState]) -> tuple[StreamFacts, ...]:
    """Returns how streams stand now, in their order. From the logs, and one job over the ledger; a broken stream has its reason. Raises
    CATALOG_UNREADABLE."""
    if not states:
        return ()
    ledger = _newest(spark)
    found = statuses(spark, states)
    return tuple(_facts(spark, s, status, ledger.get(s.stream.uuid)) for s, status in zip(states, found, strict=True))


def _newest(spark: SparkSession) -> dict[str, Newest]:
    try:
        return newest(spark)
    except StreamqlError:
        raise
    except Exception as e:  # a file of it is gone: streams do not need it
        log.warning("the ledger cannot be read, so that no last consumption is shown: %s", sentence(e))
        return {}


def _facts(spark: SparkSession, state: StreamState, status: StreamStatus, said: Newest | None) -> StreamFacts:
    stream = state.stream
    return StreamFacts(
        uuid=stream.uuid,
        name=str(stream.name),
        source=status.source_name or str(stream.source.name),
        mode=stream.mode.value,
        offset_version=version_or_none(state.offset.position),
        status=status,
        consumer=None if state.claim is None else _consumer(spark, state.claim),
        last=None if said is None else said.consumption,
        failure=None if said is None else said.failure,
        offset_position=parts_or_none(state.offset.position),
        unit=type_of(stream.source).unit,
    )


def _consumer(spark: SparkSession, claim: Claim) -> Consumer:
    abandoned = None if claim.is_partially_committed else is_abandoned(spark, claim)
    return Consumer(claim.owner.who, claim.owner.pid, claim.started_at_ms, claim.is_partially_committed, abandoned)
