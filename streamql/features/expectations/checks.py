"""The check of expectations: rows of the last consumption of a stream that violate them, and tables that are missing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.engine.doctor.check import Check, Finding, Problem
from streamql.errors import counted
from streamql.features.expectations.expectation import tables_of
from streamql.features.expectations.language.clause import QUARANTINE
from streamql.features.expectations.terms import expectations_of


class Violations(Check[None]):
    """Finds streams whose last consumption had rows that violate an expectation. Has no fix: the user corrects or releases the rows."""

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[None]]:
        """See Check."""
        with_expectations = {s.stream.uuid: s for s in states if expectations_of(s.stream)}
        if not with_expectations:
            return
        for uuid, violations in _of_last_consumptions(spark, list(with_expectations)).items():
            yield Problem(_finding(with_expectations[uuid], violations))


def _finding(state: StreamState, violations: Mapping[str, int]) -> Finding:
    what = ", ".join(f"{name}: {counted(rows, 'row')}" for name, rows in violations.items())
    tables = [str(t) for t, names in tables_of(expectations_of(state.stream)).items() if violations.keys() & set(names)]
    remedy = "correct the source of these rows"
    if tables:
        remedy += f"; {' and '.join(tables)} has the rows of {QUARANTINE}"
    return Finding(
        str(state.name),
        "warning",
        "EXPECTATION_VIOLATED",
        f"its last consumption took rows that violate expectations: {what}",
        remedy,
    )


def _of_last_consumptions(spark: SparkSession, uuids: Sequence[str]) -> dict[str, Mapping[str, int]]:
    """Returns, by stream id, how many rows of the last consumption violated each expectation. One job."""
    ledger = catalog_of(spark).ledger(spark)
    if ledger is None or "details" not in ledger.columns:
        return {}
    rows = ledger.where(F.col("stream_id").isin(list(uuids)) & (F.col("outcome") == "CONSUMED"))
    last = rows.groupBy("stream_id").agg(F.max_by("details", "sequence").alias("details"))
    found = {r["stream_id"]: json.loads(r["details"] or "{}").get("violations") for r in last.collect()}
    return {uuid: violations for uuid, violations in found.items() if violations}
