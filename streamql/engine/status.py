"""Reads the status of streams: lag, backlog, staleness, errors, and consumers. SHOW STREAMS and the commands use it."""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.claims.errors import half_way
from streamql.consume.claims.liveness import is_abandoned
from streamql.delta.jvm import activate, sentence
from streamql.engine.ledger import Newest, newest, or_nothing
from streamql.engine.stream_facts import Consumer, StreamFacts, StreamStatus
from streamql.errors import StreamqlError
from streamql.model import parts_or_none, version_or_none
from streamql.reading import interval_now, is_due
from streamql.sources.protocol import NO_BACKLOG, Opened, Peek
from streamql.sources.registry import open_many, open_source, peek, type_of
from streamql.times import now_ms

log = logging.getLogger("streamql")

LOOKS_AT_ONCE = 8
EXAMINED_SECONDS = 300.0
"""How long the status of a stream that lags is kept at least; at most twice as long. See `Examined`."""


class Examined:
    """The status of streams that lag, for a process that looks again and again. It is examined again if the stream or its source has
    changed, or after some minutes: history can be removed without a new version.

    `lag_seconds` grows by the time that has passed. What else depends on the time (`stale_soon`, and `has_data` by it) is as it was.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[StreamState, Peek, StreamStatus, float]] = {}

    def find(self, state: StreamState, peeked: Peek | None) -> StreamStatus | None:
        """Returns the status of a stream. `peeked`: its source now; None: that is not known. None: it must be examined."""
        kept = self._kept.get(state.stream.uuid)
        if kept is None or peeked is None or kept[:2] != (state, peeked):
            return None
        status, passed = kept[2], time.monotonic() - kept[3]
        # Not all at once: each stream has its own time.
        if passed > EXAMINED_SECONDS * (1 + zlib.crc32(state.stream.uuid.encode()) % 100 / 100):
            return None
        lag = status.lag_seconds
        return status if lag is None else replace(status, lag_seconds=lag + int(passed))

    def keep(self, state: StreamState, peeked: Peek | None, status: StreamStatus) -> None:
        """Keeps a status that was found now, if the stream can be read, and its source is certain."""
        self._kept.pop(state.stream.uuid, None)
        if peeked is not None and peeked.is_same and status.invalid_reason is None:
            self._kept[state.stream.uuid] = (state, peeked, status, time.monotonic())

    def forget_others(self, states: Sequence[StreamState]) -> None:
        """Forgets streams that are not among these."""
        uuids = {s.stream.uuid for s in states}
        for uuid in self._kept.keys() - uuids:
            del self._kept[uuid]


def statuses(
    spark: SparkSession, states: Sequence[StreamState], examined: Examined | None = None
) -> list[StreamStatus]:
    """Returns the status of several streams. The newest versions of all tables are read at once, and so are the topics of one storage
    connection. Only streams on tables that lag or are broken are examined one by one. `examined`: what is known of them; None: nothing."""
    catalog = catalog_of(spark)
    kept = Examined() if examined is None else examined

    def known(state: StreamState, peeked: Peek | None) -> StreamStatus | None:
        if peeked is None or not peeked.is_same or catalog.was_restored(state):
            return None
        if peeked.position != state.offset.position:
            return kept.find(state, peeked)
        return _with_blocked(_current(peeked.time_ms, str(state.stream.source.name), state), state)

    peeks = peek(spark, [s.stream.source for s in states])
    found = [known(state, peeked) for state, peeked in zip(states, peeks, strict=True)]
    opened = open_many(spark, [(s.stream.source, s.offset) for s in states])
    left = [i for i, status in enumerate(found) if status is None]
    with ThreadPoolExecutor(LOOKS_AT_ONCE, initializer=activate, initargs=(spark,)) as pool:
        for i, status in zip(left, pool.map(lambda i: status_of(spark, states[i], opened[i]), left), strict=True):
            found[i] = status
            kept.keep(states[i], peeks[i], status)
    kept.forget_others(states)
    return [status for status in found if status is not None]


def status_of(spark: SparkSession, state: StreamState, opened: Opened | None = None) -> StreamStatus:
    """Returns the status of a stream, from the log alone or from Kafka's brokers. If the stream is broken, the status has the reason, and
    no error is raised. `opened`: its source, if it was opened already; None: it is opened here."""
    return _with_blocked(_status_of(spark, state, opened), state)


def _with_blocked(status: StreamStatus, state: StreamState) -> StreamStatus:
    """Returns the status with the reason why other statements may not consume the stream, if a transaction over it stopped half way. If the
    status has a reason already, it stays."""
    if status.invalid_reason is not None or state.claim is None or not state.claim.is_partially_committed:
        return status
    e = half_way(state.name, state.claim)
    return replace(status, invalid_reason=f"{_reason(e)}. To continue, {e.hint}", is_blocked=True)


def _status_of(spark: SparkSession, state: StreamState, opened: Opened | None) -> StreamStatus:
    try:
        source = open_source(spark, state.stream.source, opened)
        offset_time = source.time_ms(state.offset.position)
    except Exception as e:  # also errors of the storage, so that the other streams are still shown
        return StreamStatus(invalid_reason=_reason(e))
    known = StreamStatus(
        offset_time,
        source.lag(state.offset),
        source_name=str(source.ref.name),
        latest_position=parts_or_none(source.latest),
    )
    try:
        interval = interval_now(spark, state, source)
        if not known.lag_versions:
            return replace(_current(offset_time, str(source.ref.name), state), latest_position=known.latest_position)
        expiry = source.expiry(interval, state.stream.mode)
        if expiry is not None:
            seconds = max(0, (now_ms() - expiry.first_ms) // 1000)
            known = replace(known, lag_seconds=seconds, stale_after_ms=expiry.at_ms, stale_soon=expiry.is_soon)
        waiting = None if interval.initial else source.backlog(interval, state.stream.mode)
        return replace(known, has_data=known.stale_soon or is_due(state, source, interval, waiting), backlog=waiting)
    except Exception as e:
        if isinstance(e, StreamqlError) and e.code == "STREAM_STALE":
            known = replace(known, stale=True, stale_after_ms=None, stale_soon=False)
        return replace(known, invalid_reason=_reason(e))


def _current(time_ms: int | None, source: str, state: StreamState) -> StreamStatus:
    """Returns the status of a stream whose offset is the newest version. It can only have initial rows to consume, or a consumption that
    has not ended."""
    initial = state.offset.initial
    has_data = initial or state.claim is not None
    return StreamStatus(time_ms, 0, 0, has_data, source_name=source, backlog=None if initial else NO_BACKLOG)


def stream_facts(spark: SparkSession, states: Sequence[StreamState]) -> tuple[StreamFacts, ...]:
    """Returns the present status of streams with their consumers and newest consumptions, in their order. Reads the logs. If an earlier
    release has ended the last consumption of a stream, it also reads the ledger, by one job. A broken stream has the reason. Raises
    CATALOG_UNREADABLE."""
    known = {s.stream.uuid: Newest(s.counts.last, s.counts.last_failure) for s in states if s.counts.last is not None}
    others = [s for s in states if s.counts.last is None]
    if any(s.counts.last_outcome or s.last_consumed_ms is not None for s in others):
        known = or_nothing(lambda: newest(spark), "last consumption") | known
    return _all_facts(spark, states, known)


def present_facts(
    spark: SparkSession, states: Sequence[StreamState], examined: Examined | None = None
) -> tuple[StreamFacts, ...]:
    """Returns what `stream_facts` returns, without the newest consumptions, of which the ledger knows. Runs no job. `examined`: as
    `statuses` takes it."""
    return _all_facts(spark, states, {}, examined)


def _all_facts(
    spark: SparkSession, states: Sequence[StreamState], ledger: Mapping[str, Newest], examined: Examined | None = None
) -> tuple[StreamFacts, ...]:
    found = statuses(spark, states, examined)
    return tuple(_facts(spark, s, status, ledger.get(s.stream.uuid)) for s, status in zip(states, found, strict=True))


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


def warn_of_unreadable(spark: SparkSession) -> None:
    """Warns of streams that are not listed because their entries in the catalog cannot be read."""
    catalog = catalog_of(spark)
    catalog.refresh(spark)
    for e in catalog.unreadable():
        log.warning("%s", e)


def _reason(e: Exception) -> str:
    return f"{e.code}: {e.message}" if isinstance(e, StreamqlError) else f"STREAM_INVALID: {sentence(e)}"
