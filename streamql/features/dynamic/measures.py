"""What is measured of dynamic tables: how far they are behind, and what their refreshes have done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from pyspark.sql import SparkSession

from streamql.catalog.counts import Counts
from streamql.catalog.store import catalog_of
from streamql.engine.measures import Measure, Metric, Sample, one_of
from streamql.features.dynamic.counts import NO_MODE, REFRESHES_BY, ROWS_BY, TOOK_BY, recent_of
from streamql.features.dynamic.refreshes.facts import DynamicFacts, DynamicState, facts_of
from streamql.features.dynamic.refreshes.status import REFRESHED
from streamql.features.dynamic.source.costs import FULL, INCREMENTAL
from streamql.features.dynamic.source.table import all_dynamic

_TABLE = ("table",)

INFO = Metric(
    "streamql_dynamic_table_info",
    "gauge",
    "Always 1. What the table is, to join with.",
    (*_TABLE, "type", "refresh_mode"),
)
STATE = Metric(
    "streamql_dynamic_table_state",
    "gauge",
    "1 for the state of the table, 0 for the others. States are those of streamql streams.",
    (*_TABLE, "state"),
)
LAG = Metric(
    "streamql_dynamic_table_lag_seconds",
    "gauge",
    "Age of the oldest change that the table does not show. 0: it shows all.",
    _TABLE,
    "seconds",
)
TARGET_LAG = Metric(
    "streamql_dynamic_table_target_lag_seconds",
    "gauge",
    "How long the table may be behind: TARGET_LAG, REFRESH INTERVAL, or the least of its readers. Absent without a schedule.",
    _TABLE,
    "seconds",
)
LATE = Metric(
    "streamql_dynamic_table_late", "gauge", "1 if the table is behind for longer than its target, else 0.", _TABLE
)
LAST_REFRESH = Metric(
    "streamql_dynamic_table_last_refresh_timestamp_seconds",
    "gauge",
    "When the last refresh ended that wrote or failed, since 1970. Absent if there was none.",
    _TABLE,
    "seconds",
)
LAST_DURATION = Metric(
    "streamql_dynamic_table_last_refresh_duration_seconds",
    "gauge",
    "How long the last refresh took that wrote or failed. Absent if there was none.",
    _TABLE,
    "seconds",
)
FAILURES = Metric(
    "streamql_dynamic_table_consecutive_failures", "gauge", "Refreshes that have failed in a row up to now.", _TABLE
)
REFRESHES = Metric(
    "streamql_dynamic_table_refreshes_total",
    "counter",
    "Refreshes by mode (FULL, INCREMENTAL, NONE: not chosen) and outcome. One that finds nothing to do counts only after a failed one.",
    (*_TABLE, "mode", "outcome"),
)
SECONDS = Metric(
    "streamql_dynamic_table_refresh_seconds_total",
    "counter",
    "How long refreshes took together, by mode.",
    (*_TABLE, "mode"),
    "seconds",
)
ROWS = Metric(
    "streamql_dynamic_table_rows_total",
    "counter",
    "Rows that refreshes inserted, updated and deleted in the table.",
    (*_TABLE, "change"),
    "rows",
)

CHANGES = ("inserted", "updated", "deleted")
STATES: tuple[str, ...] = get_args(DynamicState)


def _look(spark: SparkSession) -> Iterator[Sample]:
    tables = {t.definition.uuid: t for t in all_dynamic(spark)}
    states = {uid: catalog_of(spark).last_read(spark, t.stream_id) for uid, t in tables.items()}
    kept = {uid: state.counts for uid, state in states.items() if state is not None}
    recent = {uid: found for uid, one in kept.items() if (found := recent_of(tables[uid], one)) is not None}
    for facts in facts_of(spark, recent) if tables else []:
        if facts.uuid in tables:
            yield INFO.sample(1, facts.name, facts.label, tables[facts.uuid].refresh_mode)
            yield from _status(facts)
            yield from _counters(facts.name, kept.get(facts.uuid, Counts()))


def _status(facts: DynamicFacts) -> Iterator[Sample]:
    name = facts.name
    yield from one_of(STATE, STATES, facts.state, name)
    yield LAG.sample(facts.lag_ms / 1000, name)
    yield LATE.sample(facts.is_late, name)
    yield FAILURES.sample(facts.failures, name)
    if facts.target_ms is not None:
        yield TARGET_LAG.sample(facts.target_ms / 1000, name)
    if facts.last is not None:
        yield LAST_REFRESH.sample(facts.last.ended_ms / 1000, name)
        yield LAST_DURATION.sample((facts.last.ended_ms - facts.last.started_ms) / 1000, name)


def _counters(name: str, kept: Counts) -> Iterator[Sample]:
    """Yields the counters. Those of usual modes and outcomes begin at 0, so that their first increase is seen."""
    usual = [f"{mode}.{outcome}" for mode in (INCREMENTAL, FULL) for outcome in (REFRESHED, "FAILED")]
    refreshes = dict.fromkeys((*usual, f"{NO_MODE}.FAILED"), 0) | _named(kept, REFRESHES_BY)
    for key, number in refreshes.items():
        mode, _, outcome = key.partition(".")
        yield REFRESHES.sample(number, name, mode, outcome)
    for mode, took in (dict.fromkeys((INCREMENTAL, FULL), 0) | _named(kept, TOOK_BY)).items():
        yield SECONDS.sample(took / 1000, name, mode)
    for change, number in (dict.fromkeys(CHANGES, 0) | _named(kept, ROWS_BY)).items():
        yield ROWS.sample(number, name, change)


def _named(kept: Counts, group: str) -> dict[str, int]:
    """Returns the counts of a group, by the rest of their names."""
    return {
        name.removeprefix(f"{group}."): number
        for name, number in kept.of_features.items()
        if name.startswith(f"{group}.")
    }


MEASURE = Measure(
    "dynamic tables",
    (INFO, STATE, LAG, TARGET_LAG, LATE, LAST_REFRESH, LAST_DURATION, FAILURES, REFRESHES, SECONDS, ROWS),
    _look,
)
