"""What became of claimed statements: their targets' logs say, once and for ever."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, ClaimedStatement
from streamql.catalog.store import catalog_of
from streamql.consume.errors import UNREACHABLE, in_doubt
from streamql.delta.jvm import sentence
from streamql.delta.table import DeltaTable
from streamql.delta.txns import fence, find_txn
from streamql.errors import StreamqlError

FENCE_ATTEMPTS_MAX = 100


class InDoubt(Exception):
    """No log tells what became of a statement; the sentence says why."""


def decide(spark: SparkSession, claim: Claim, statement: ClaimedStatement) -> ClaimedStatement:
    """The statement with its outcome. Done: its commit is in the target. Fenced: it is not, and never will be.

    Reads the target's log at the path; where the statement has not committed, fences it, so that it cannot any more. Right for owner and
    recoverer alike, at any time, any number of times. Raises InDoubt where there is no log at the path, or another table's
    without the number: then a person must say.
    """
    if statement.outcome != "open":
        return statement
    if not statement.path:
        # No log: its process would have known, and others take it for not done, so that nothing is lost.
        return replace(statement, outcome="fenced")
    for _ in range(FENCE_ATTEMPTS_MAX):
        table = DeltaTable(spark, statement.path)
        latest = table.latest()
        if not latest.exists:
            raise InDoubt("there is no table any more where it wrote")
        found = find_txn(spark, table, latest, statement.app_id, claim.data_number, statement.seen)
        if found is not None and found.number >= claim.data_number:
            if found.number == claim.data_number:
                # CREATE OR REPLACE TABLE AS has made it another table; so may somebody else have, later.
                is_known = latest.table_id == statement.table_id or found.version in (None, latest.version)
                written = latest if is_known else table.at(found.version or 0)
                return replace(
                    statement,
                    outcome="done",
                    target_version=found.version,
                    metrics=found.metrics,
                    table_id=written.table_id,
                )
            return replace(statement, outcome="fenced")
        if latest.table_id != statement.table_id and not _is_same_log(table, statement):
            raise InDoubt("another table stands where it wrote")
        number = fence(spark, statement.path, statement.app_id, claim.fence_number, claim.data_number)
        if number is not None and number != claim.data_number:
            return replace(statement, outcome="fenced")
    raise StreamqlError(
        "STREAM_BUSY",
        f"the target {statement.target} is written so often that the consumption could not be decided",
        hint="run the statement again",
    )


def decide_own(
    spark: SparkSession, claim: Claim, statement: ClaimedStatement, failure: BaseException | None
) -> ClaimedStatement:
    """The statement with its outcome, for the process that ran it, which knows whether it succeeded where no log can tell."""
    if not statement.path and failure is None:
        return replace(statement, outcome="done")
    try:
        return decide(spark, claim, statement)
    except InDoubt as e:
        raise in_doubt(claim, statement, str(e), _names(spark, claim)) from None


def judge(spark: SparkSession, claim: Claim) -> Claim:
    """The claim with all its statements decided. Raises CONSUMPTION_IN_DOUBT, and what reading or fencing a target raises."""
    judged, problem = judge_what_can_be(spark, claim)
    if problem is not None:
        raise problem
    return judged


def judge_what_can_be(
    spark: SparkSession, claim: Claim, *, whatever: bool = False
) -> tuple[Claim, StreamqlError | None]:
    """The claim with those of its statements decided that a log can decide, and the CONSUMPTION_IN_DOUBT of the first other one.

    One that nobody can decide does not keep the others from being fenced: whoever gives the claim up must know that none can commit
    later. `whatever`: so it is with one whose target does not let itself be looked at or fenced, for whatever reason.
    """
    statements: list[ClaimedStatement] = []
    problems: list[tuple[ClaimedStatement, str]] = []
    for statement in claim.statements:
        try:
            statements.append(decide(spark, claim, statement))
            continue
        except InDoubt as e:
            problems.append((statement, str(e)))
        except StreamqlError:
            raise
        except Exception as e:
            if not whatever:
                raise
            problems.append((statement, f"{UNREACHABLE}: {sentence(e)}"))
        statements.append(statement)
    judged = replace(claim, statements=tuple(statements))
    return judged, in_doubt(judged, *problems[0], _names(spark, claim)) if problems else None


def _names(spark: SparkSession, claim: Claim) -> dict[str, str]:
    """The names of a claim's streams, by id."""
    states = [catalog_of(spark).by_uuid(spark, uuid) for uuid in claim.intervals]
    return {s.stream.uuid: str(s.name) for s in states if s is not None}


def _is_same_log(table: DeltaTable, statement: ClaimedStatement) -> bool:
    """Whether the log is the one that the claim saw: CREATE OR REPLACE gives another table id and goes on with the log and its numbers."""
    try:
        return table.at(statement.seen).table_id == statement.table_id
    except StreamqlError:
        return False
