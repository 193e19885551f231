"""How streams stand: lag, backlog, staleness and what is wrong, each read once, for SHOW STREAMS and the commands."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.claims.errors import half_way
from streamql.delta.jvm import activate, sentence
from streamql.errors import StreamqlError
from streamql.model import parts_or_none
from streamql.reading import interval_now, is_due
from streamql.sources.protocol import NO_BACKLOG, Backlog, Opened, Peek
from streamql.sources.registry import open_many, open_source, peek
from streamql.times import now_ms

log = logging.getLogger("streamql")

LOOKS_AT_ONCE = 8


@dataclass(frozen=True)
class StreamStatus:
    """How a stream stands, looked at now. Times in milliseconds since 1970; None: not known, or nothing to say.

    `is_blocked`: `invalid_reason` says that a transaction stopped half way, so that no other statement may consume the stream.
    `backlog` is not known of a broken stream, nor of one that has still to show its table's initial rows. `stale_soon`: what it has
    still to read may be gone in a day, or a quarter of the source's retention. `latest_position`: the end of a source of several parts,
    as JSON.
    """

    offset_time_ms: int | None = None
    lag_versions: int | None = None
    lag_seconds: int | None = None
    has_data: bool | None = None
    stale: bool = False
    stale_after_ms: int | None = None
    invalid_reason: str | None = None
    source_name: str | None = None
    backlog: Backlog | None = None
    stale_soon: bool = False
    latest_position: str | None = None
    is_blocked: bool = False


def statuses(spark: SparkSession, states: Sequence[StreamState]) -> list[StreamStatus]:
    """`status_of` many streams. Their tables are looked at together, and so are topics of one storage connection. Only streams on tables
    that lag, or are broken, are looked at one by one."""

    def status(state: StreamState, peeked: Peek | None, opened: Opened | None) -> StreamStatus:
        is_current = peeked is not None and peeked.is_same and peeked.position == state.offset.position
        if is_current and peeked is not None and not catalog_of(spark).was_restored(state):
            return _with_blocked(_current(peeked.time_ms, str(state.stream.source.name), state), state)
        return status_of(spark, state, opened)

    peeks = peek(spark, [s.stream.source for s in states])
    opened = open_many(spark, [(s.stream.source, s.offset) for s in states])
    with ThreadPoolExecutor(LOOKS_AT_ONCE, initializer=activate, initargs=(spark,)) as pool:
        return list(pool.map(status, states, peeks, opened))


def status_of(spark: SparkSession, state: StreamState, opened: Opened | None = None) -> StreamStatus:
    """Lag, backlog, staleness and what is wrong: from the log alone, or as brokers say. Never raises for a broken stream: it says why.
    `opened`: its source, if it was opened already."""
    return _with_blocked(_status_of(spark, state, opened), state)


def _with_blocked(status: StreamStatus, state: StreamState) -> StreamStatus:
    """Returns the status with the reason why only one transaction may consume the stream: it stopped half way. A stream that cannot be read
    keeps that reason."""
    if status.invalid_reason is not None or state.claim is None or not state.claim.is_partially_committed:
        return status
    e = half_way(state.name, state.claim)
    return replace(status, invalid_reason=f"{_reason(e)}. To continue, {e.hint}", is_blocked=True)


def _status_of(spark: SparkSession, state: StreamState, opened: Opened | None) -> StreamStatus:
    try:
        source = open_source(spark, state.stream.source, opened)
        offset_time = source.time_ms(state.offset.position)
    except Exception as e:  # storage's own among them: the other streams are shown all the same
        return StreamStatus(invalid_reason=_reason(e))
    name, end = str(source.ref.name), parts_or_none(source.latest)
    lag, seconds, stale_after, soon = source.lag(state.offset), None, None, False
    try:
        interval = interval_now(spark, state, source)
        if not lag:
            return replace(_current(offset_time, name, state), latest_position=end)
        expiry = source.expiry(interval, state.stream.mode)
        if expiry is not None:
            seconds, stale_after, soon = max(0, (now_ms() - expiry.first_ms) // 1000), expiry.at_ms, expiry.is_soon
        waiting = None if interval.initial else source.backlog(interval, state.stream.mode)
        has_data = soon or is_due(state, source, interval, waiting)
        return StreamStatus(
            offset_time,
            lag,
            seconds,
            has_data,
            False,
            stale_after,
            source_name=name,
            backlog=waiting,
            stale_soon=soon,
            latest_position=end,
        )
    except Exception as e:
        is_stale = isinstance(e, StreamqlError) and e.code == "STREAM_STALE"
        if is_stale:
            stale_after, soon = None, False
        return StreamStatus(
            offset_time,
            lag,
            seconds,
            None,
            is_stale,
            stale_after,
            _reason(e),
            name,
            stale_soon=soon,
            latest_position=end,
        )


def _current(time_ms: int | None, source: str, state: StreamState) -> StreamStatus:
    """Of a stream at the newest version: nothing waits but, perhaps, the rows that the table had at its creation, or a consumption that
    has not ended."""
    initial = state.offset.initial
    has_data = initial or state.claim is not None
    return StreamStatus(time_ms, 0, 0, has_data, source_name=source, backlog=None if initial else NO_BACKLOG)


def warn_of_unreadable(spark: SparkSession) -> None:
    """Warns of streams that cannot be listed, since their entries in the catalog cannot be read."""
    catalog = catalog_of(spark)
    catalog.refresh(spark)
    for e in catalog.unreadable():
        log.warning("%s", e)


def _reason(e: Exception) -> str:
    return f"{e.code}: {e.message}" if isinstance(e, StreamqlError) else f"STREAM_INVALID: {sentence(e)}"
