"""What is measured of expectations: rows that violate them, and rows in quarantine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession

from streamql.catalog.counts import Ended
from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.engine.measures import Measure, Metric, Sample
from streamql.features.expectations.expectation import tables_of
from streamql.features.expectations.terms import expectations_of

_VIOLATIONS, _QUARANTINED = "violations", "quarantined"

VIOLATIONS = Metric(
    "streamql_expectation_violation_rows_total",
    "counter",
    "Rows of consumptions that violate an expectation, by the action that it has now. FAIL counts none: nothing is consumed.",
    ("stream", "expectation", "action"),
    "rows",
)
QUARANTINED = Metric(
    "streamql_expectation_quarantined_rows_total",
    "counter",
    "Rows of a stream that consumptions wrote into a quarantine table.",
    ("stream", "table"),
    "rows",
)


def counts(before: Mapping[str, int], ended: Ended) -> dict[str, int]:
    """Counts the rows that the ledger has for a consumption."""
    quarantined = ended.details.get(_QUARANTINED, {})
    more = {
        **{f"{_VIOLATIONS}.{name}": rows for name, rows in ended.details.get(_VIOLATIONS, {}).items()},
        **{f"{_QUARANTINED}.{table}": written.get("rows") or 0 for table, written in quarantined.items()},
    }
    return {name: before.get(name, 0) + rows for name, rows in more.items()}


def _look(spark: SparkSession) -> Iterator[Sample]:
    for state in catalog_of(spark).all(spark):
        yield from _samples(state)


def _samples(state: StreamState) -> Iterator[Sample]:
    known, name, expectations = state.counts.of_features, str(state.name), expectations_of(state.stream)
    for e in expectations:
        yield VIOLATIONS.sample(known.get(f"{_VIOLATIONS}.{e.name}", 0), name, e.name, e.action)
    for table in tables_of(expectations):
        yield QUARANTINED.sample(known.get(f"{_QUARANTINED}.{table}", 0), name, str(table))


MEASURE = Measure("expectations", (VIOLATIONS, QUARANTINED), _look)
