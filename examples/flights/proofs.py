"""Is what the streams keep right? Each proof is a script of this directory; here its answer is judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Row, SparkSession

from examples.flights.scripts import rows_of, run

INSERTED = {"WRITE": "numOutputRows", "MERGE": "numTargetRowsInserted"}
"""Which of Delta's operation metrics counts inserted rows."""

TOUCHED = {
    "WRITE": ("numOutputRows",),
    "UPDATE": ("numUpdatedRows",),
    "DELETE": ("numDeletedRows",),
    "MERGE": ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"),
}
"""Which of them count the rows that a statement wrote, changed or removed."""


class Proof(NamedTuple):
    """A claim, whether it holds, and what it was judged by."""

    claim: str
    holds: bool
    evidence: str


def replica(spark: SparkSession) -> Proof:
    """flights_replica = flights, by a fingerprint over all columns of all rows."""
    source, copy = rows_of(spark, "prove_replica")
    evidence = f"{source.rows:,} rows, fingerprint {source.fingerprint}"
    same = (source.rows, source.fingerprint) == (copy.rows, copy.fingerprint)
    if not same:
        evidence += f"; the replica: {copy.rows:,} rows, {copy.fingerprint}"
    return Proof("replica = source", same, evidence)


def row_by_row(spark: SparkSession) -> Proof:
    """flights_replica = flights, by comparing them in both directions."""
    (row,) = rows_of(spark, "prove_row_by_row")
    evidence = f"EXCEPT ALL: {row.missing:,} rows missing, {row.wrong:,} wrong"
    return Proof("replica = source, row by row", (row.missing, row.wrong) == (0, 0), evidence)


def daily_delays(spark: SparkSession) -> Proof:
    """daily_delays = the same sums computed anew."""
    (row,) = rows_of(spark, "prove_daily_delays")
    evidence = f"{row.groups:,} carrier-days, {row.missing:,} missing, {row.wrong:,} wrong"
    return Proof("summary = computed anew", row.groups > 0 and (row.missing, row.wrong) == (0, 0), evidence)


def carrier_days(spark: SparkSession) -> Proof:
    """The dynamic table carrier_days = its query, computed anew."""
    (row,) = rows_of(spark, "prove_carrier_days")
    evidence = f"{row.row_count:,} rows, {row.rows_missing:,} missing, {row.rows_unexpected:,} unexpected"
    return Proof("dynamic table = its query", row.verdict == "EQUAL" and row.row_count > 0, evidence)


def audit(spark: SparkSession) -> tuple[Proof, list[Row]]:
    """flight_audit = every row ever inserted; and the history of `flights`, which says how many those were."""
    (count,), history = run(spark, "prove_audit")
    inserted = sum(metric(row, INSERTED.get(row.operation, "")) for row in history)
    held = inserted == count.rows == count.flights
    return Proof("audit = rows inserted", held, f"{count.rows:,} audited, {inserted:,} inserted, none twice"), history


def metric(commit: Row, name: str) -> int:
    """One of a commit's operation metrics, 0 where it has none of the name."""
    return int((commit.operationMetrics or {}).get(name, 0))


def rows_touched(history: Sequence[Row], after: int, through: int) -> int:
    """How many rows the statements of the versions (after, through] wrote, changed or removed."""
    commits = [row for row in history if after < row.version <= through]
    return sum(metric(commit, name) for commit in commits for name in TOUCHED.get(commit.operation, ()))
