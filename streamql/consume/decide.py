"""What became of a claimed statement: its target's log says, once and for ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, ClaimedStatement
from streamql.delta.table import DeltaTable
from streamql.delta.txns import fence, find_txn
from streamql.errors import StreamqlError

FENCE_ATTEMPTS_MAX = 100


@dataclass(frozen=True)
class Verdict:
    """done: the statement's commit is in the target. fenced: it is not, and never will be. With what is known of the commit."""

    outcome: Literal["done", "fenced"]
    target_version: int | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)


def decide(spark: SparkSession, claim: Claim, statement: ClaimedStatement) -> Verdict:
    """Reads the target's log at the path; where the statement has not committed, fences it, so that it cannot any more.

    Right for owner and recoverer alike, at any time, any number of times. Raises CONSUMPTION_UNDECIDED where there is no log at the
    path, or another table's without the number: then a person must say.
    """
    for _ in range(FENCE_ATTEMPTS_MAX):
        table = DeltaTable(spark, statement.path)
        latest = table.latest()
        if not latest.exists:
            raise undecided(claim, statement, "there is no table any more where it wrote")
        found = find_txn(spark, table, latest, statement.app_id, claim.data_number, statement.seen)
        if found is not None and found.number >= claim.data_number:
            done = found.number == claim.data_number
            return Verdict("done", found.version, found.metrics) if done else Verdict("fenced")
        if latest.table_id != statement.table_id and not _is_same_log(table, statement):
            raise undecided(claim, statement, "another table stands where it wrote")
        number = fence(spark, statement.path, statement.app_id, claim.fence_number, claim.data_number)
        if number is not None and number != claim.data_number:
            return Verdict("fenced")
    raise StreamqlError(
        "STREAM_BUSY",
        f"the target {statement.target} is written so often that the consumption could not be decided",
        hint="run the statement again",
    )


def _is_same_log(table: DeltaTable, statement: ClaimedStatement) -> bool:
    """Whether the log is the one that the claim saw: CREATE OR REPLACE gives another table id and goes on with the log and its numbers."""
    try:
        return table.at(statement.seen).table_id == statement.table_id
    except StreamqlError:
        return False


def undecided(claim: Claim, statement: ClaimedStatement, why: str) -> StreamqlError:
    """The error for a consumption of which no log can tell."""
    return StreamqlError(
        "CONSUMPTION_UNDECIDED",
        f"whether consumption {claim.consumption_id} into {statement.target} committed cannot be told: {why} ({statement.path})",
        hint="look whether the rows arrived, then ALTER STREAM … SET OFFSET VERSION n, or TO LATEST",
        consumption_id=claim.consumption_id,
        path=statement.path,
    )
