"""What is measured of streams: how they stand, by the catalog and the logs of their sources, and what their consumptions have done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.engine.measures import Measure, Metric, Sample, one_of
from streamql.engine.status import Examined, present_facts
from streamql.engine.stream_facts import State, StreamFacts, StreamStatus
from streamql.model import StreamMode
from streamql.shared import change_types
from streamql.sources.registry import type_of
from streamql.times import now_ms

_STREAM = ("stream",)

INFO = Metric(
    "streamql_stream_info",
    "gauge",
    "Always 1. What a stream reads, to join with.",
    (*_STREAM, "source", "type", "mode"),
)
STATE = Metric(
    "streamql_stream_state",
    "gauge",
    "1 for the state of the stream, 0 for the others. States are those of streamql streams.",
    (*_STREAM, "state"),
)
ERROR = Metric(
    "streamql_stream_error", "gauge", "1 if the stream cannot be read; code: why. Absent otherwise.", (*_STREAM, "code")
)
LAG = Metric(
    "streamql_stream_lag_seconds",
    "gauge",
    "Age of the oldest change that was not consumed. Absent if it is not known.",
    _STREAM,
    "seconds",
)
LAG_VERSIONS = Metric(
    "streamql_stream_lag_versions",
    "gauge",
    "Versions of the source, or messages of the topic, after the offset. Absent if they are not known.",
    _STREAM,
    "versions",
)
BACKLOG_ROWS = Metric(
    "streamql_stream_backlog_rows",
    "gauge",
    "Row images that reading the stream would touch, at most. Absent if they are not known, as for initial rows.",
    _STREAM,
    "rows",
)
BACKLOG_BYTES = Metric(
    "streamql_stream_backlog_bytes",
    "gauge",
    "Size of the files that reading the stream would touch, at most. Absent if it is not known, as for initial rows.",
    _STREAM,
    "bytes",
)
UNTIL_STALE = Metric(
    "streamql_stream_until_stale_seconds",
    "gauge",
    "Time until the stream may be stale. 0 or less: it may be stale already. Absent if it has nothing that can be removed.",
    _STREAM,
    "seconds",
)
HAS_DATA = Metric(
    "streamql_stream_has_data", "gauge", "1 if the stream has data, else 0. Absent if it is not known.", _STREAM
)
CLAIM_AGE = Metric(
    "streamql_stream_claim_age_seconds",
    "gauge",
    "How long a consumption has held the stream. Absent if it is free.",
    _STREAM,
    "seconds",
)
ABANDONED = Metric(
    "streamql_stream_claim_abandoned",
    "gauge",
    "1 if the process of the consumption that holds the stream is dead, else 0. Absent if it is free.",
    _STREAM,
)
LAST_CONSUMPTION = Metric(
    "streamql_stream_last_consumption_timestamp_seconds",
    "gauge",
    "When the stream was last consumed, since 1970. Absent if it never was.",
    _STREAM,
    "seconds",
)
LAST_DURATION = Metric(
    "streamql_stream_last_consumption_duration_seconds",
    "gauge",
    "How long the last consumption took, whatever its outcome. Absent if there was none.",
    _STREAM,
    "seconds",
)
FAILURES = Metric(
    "streamql_stream_consecutive_failures", "gauge", "Consumptions that have failed in a row up to now.", _STREAM
)
CONSUMPTIONS = Metric(
    "streamql_stream_consumptions_total",
    "counter",
    "Consumptions that have ended, by outcome as the ledger has it.",
    (*_STREAM, "outcome"),
)
ROWS = Metric(
    "streamql_stream_rows_total",
    "counter",
    "Rows that statements took, by change type: the sum of the ledger's changes. Two statements of a transaction count twice.",
    (*_STREAM, "change_type"),
    "rows",
)
SECONDS = Metric(
    "streamql_stream_consumption_seconds_total",
    "counter",
    "How long consumptions took together, from their claim to their end.",
    _STREAM,
    "seconds",
)

OUTCOMES = ("CONSUMED", "FAILED", "PARTIALLY_COMMITTED", "IN_DOUBT")
CHANGE_TYPES = change_types()
STATES: tuple[str, ...] = get_args(State)

_examined = Examined()
"""What this process knows of streams that lag, so that a scrape examines only those that have changed."""


def _look(spark: SparkSession) -> Iterator[Sample]:
    states = catalog_of(spark).all(spark)
    now = now_ms()
    for state, facts in zip(states, present_facts(spark, states, _examined), strict=True):
        name = facts.name
        yield INFO.sample(1, name, facts.source, type_of(state.stream.source).label, facts.mode)
        yield from one_of(STATE, STATES, facts.state, name)
        yield from _status(name, facts.status, now)
        yield from _claim(name, facts, now)
        yield from _counts(name, state)


def _status(name: str, status: StreamStatus, now: int) -> Iterator[Sample]:
    if status.invalid_reason is not None:
        yield ERROR.sample(1, name, status.invalid_reason.partition(":")[0])
    if status.lag_seconds is not None:
        yield LAG.sample(status.lag_seconds, name)
    if status.lag_versions is not None:
        yield LAG_VERSIONS.sample(status.lag_versions, name)
    backlog = status.backlog
    if backlog is not None:
        yield BACKLOG_BYTES.sample(backlog.bytes, name)
        if backlog.rows_added is not None and backlog.rows_removed is not None:
            yield BACKLOG_ROWS.sample(backlog.rows_added + backlog.rows_removed, name)
    if status.stale:
        yield UNTIL_STALE.sample(0, name)
    elif status.stale_after_ms is not None:
        yield UNTIL_STALE.sample((status.stale_after_ms - now) / 1000, name)
    if status.has_data is not None:
        yield HAS_DATA.sample(status.has_data, name)


def _claim(name: str, facts: StreamFacts, now: int) -> Iterator[Sample]:
    consumer = facts.consumer
    if consumer is not None:
        yield CLAIM_AGE.sample(max(0, now - consumer.since_ms) / 1000, name)
        yield ABANDONED.sample(consumer.abandoned is not None, name)


def _counts(name: str, state: StreamState) -> Iterator[Sample]:
    """Yields the counters. Those of usual outcomes and change types begin at 0, so that their first increase is seen."""
    counts = state.counts
    if state.last_consumed_ms is not None:
        yield LAST_CONSUMPTION.sample(state.last_consumed_ms / 1000, name)
    if counts.last_outcome:
        yield LAST_DURATION.sample(counts.last_took_ms / 1000, name)
    yield FAILURES.sample(counts.failures, name)
    types = CHANGE_TYPES if state.stream.mode is StreamMode.STANDARD else CHANGE_TYPES[:1]
    for outcome, number in {**dict.fromkeys(OUTCOMES, 0), **counts.outcomes}.items():
        yield CONSUMPTIONS.sample(number, name, outcome)
    for change_type, number in {**dict.fromkeys(types, 0), **counts.rows}.items():
        yield ROWS.sample(number, name, change_type)
    yield SECONDS.sample(counts.took_ms / 1000, name)


MEASURE = Measure(
    "streams",
    (
        INFO, STATE, ERROR, LAG, LAG_VERSIONS, BACKLOG_ROWS, BACKLOG_BYTES, UNTIL_STALE, HAS_DATA, CLAIM_AGE, ABANDONED,
        LAST_CONSUMPTION, LAST_DURATION, FAILURES, CONSUMPTIONS, ROWS, SECONDS,
    ),
    _look,
)  # fmt: skip
