"""How streams stand: lag, backlog, staleness and what is wrong, each asked once, for SHOW STREAMS and for all who look."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.jvm import activate, sentence
from streamql.delta.table import look_at
from streamql.errors import StreamqlError
from streamql.reading import interval_now, is_due
from streamql.sources.table import Backlog, backlog, history_ms, is_stale_soon, open_source
from streamql.times import now_ms

log = logging.getLogger("streamql")

LOOKS_AT_ONCE = 8

NO_BACKLOG = Backlog(versions=0, rows_added=0, rows_removed=0, files=0, bytes=0, has_data=False)


@dataclass(frozen=True)
class StreamStatus:
    """How a stream stands, looked at now. Times in milliseconds since 1970; None: not known, or nothing to say.

    `backlog` is not known of a broken stream, nor of one that has still to show its table's initial rows. `stale_soon`: what it has
    still to read may be gone in a day, or a quarter of the source's retention.
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


def statuses(spark: SparkSession, states: Sequence[StreamState]) -> list[StreamStatus]:
    """`status_of` many streams. Their tables are looked at together; only streams that lag, or are broken, are looked at one by one."""
    glances = look_at(spark, sorted({s.stream.source.path for s in states}))

    def status(state: StreamState) -> StreamStatus:
        glance, source = glances[state.stream.source.path], state.stream.source
        is_current = (glance.version, glance.table_id) == (state.offset.version, source.table_id)
        is_known = source.seen in (None, (glance.version, glance.time_ms))
        if is_current and is_known and not catalog_of(spark).was_restored(state):
            return _current(glance.time_ms, str(source.name), state)
        return status_of(spark, state)

    with ThreadPoolExecutor(LOOKS_AT_ONCE, initializer=activate, initargs=(spark,)) as pool:
        return list(pool.map(status, states))


def status_of(spark: SparkSession, state: StreamState) -> StreamStatus:
    """Lag, backlog, staleness and what is wrong: from the log alone. Never raises for a broken stream: it says why."""
    try:
        source = open_source(spark, state.stream.source)
        offset_time = source.time_ms(state.offset.version)
    except Exception as e:  # storage's own among them: the other streams are shown all the same
        return StreamStatus(invalid_reason=_reason(e))
    name = str(source.source.name)
    lag, seconds, stale_after, soon = max(0, source.latest.version - state.offset.version), None, None, False
    try:
        interval = interval_now(spark, state, source)
        if not lag:
            return _current(offset_time, name, state)
        first = source.first_time_ms(interval)
        retention = history_ms(spark, source.latest.configuration, interval, state.stream.mode)
        seconds, stale_after, soon = (
            max(0, (now_ms() - first) // 1000),
            first + retention,
            is_stale_soon(first, retention),
        )
        waiting = None if interval.initial else backlog(source, interval, state.stream.mode)
        has_data = soon or is_due(state, source, interval, waiting)
        return StreamStatus(
            offset_time, lag, seconds, has_data, False, stale_after, source_name=name, backlog=waiting, stale_soon=soon
        )
    except Exception as e:
        is_stale = isinstance(e, StreamqlError) and e.code == "STREAM_STALE"
        if is_stale:
            stale_after, soon = None, False
        return StreamStatus(offset_time, lag, seconds, None, is_stale, stale_after, _reason(e), name, stale_soon=soon)


def _current(time_ms: int | None, source: str, state: StreamState) -> StreamStatus:
    """Of a stream at the newest version: nothing waits but, perhaps, the rows that the table had at its creation, or a consumption that
    has not ended."""
    initial = state.offset.initial
    has_data = initial or state.claim is not None
    return StreamStatus(time_ms, 0, 0, has_data, source_name=source, backlog=None if initial else NO_BACKLOG)


def tell_of_unreadable(spark: SparkSession) -> None:
    """Warns of streams that cannot be listed, since their entries in the catalog cannot be read."""
    catalog = catalog_of(spark)
    catalog.refresh(spark)
    for e in catalog.unreadable():
        log.warning("%s", e)


def _reason(e: Exception) -> str:
    return f"{e.code}: {e.message}" if isinstance(e, StreamqlError) else f"STREAM_INVALID: {sentence(e)}"
