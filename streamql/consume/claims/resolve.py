"""Resolves claimed statements by the logs of their targets, which say which of them committed. Ends claims accordingly."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, ClaimedStatement
from streamql.catalog.store import catalog_of
from streamql.consume.claims.complete import NOTHING_FOUND, Found, complete, has_completed
from streamql.consume.claims.errors import in_doubt, lost_with_data
from streamql.consume.claims.outcomes import ClaimOutcome, outcome_of
from streamql.consume.claims.steps import ClaimGone, end_claim, is_consumed, is_under_way_elsewhere, update_claim
from streamql.delta.jvm import sentence
from streamql.delta.table import DeltaTable, Snapshot
from streamql.delta.txns import fence, find_txn
from streamql.errors import StreamqlError

FENCE_ATTEMPTS_MAX = 100


class InDoubt(Exception):
    """Raised if no log says whether a statement committed. The text says why."""


def resolve_statement(
    spark: SparkSession, claim: Claim, statement: ClaimedStatement, *, has_run: bool = False
) -> ClaimedStatement:
    """Returns the statement with its outcome. Done: its commit is in the target. Fenced: its commit is not in the target, and can no longer
    get there.

    Reads the target's log at the path, and commits a fence if the statement has not committed. The owner and recovering processes may call
    it at any time, any number of times. `has_run`: this process ran the statement. Then the newest version that this process knows usually
    has the commit, and the log is not listed again. Raises `InDoubt` if the path has no log, or has the log of another table without the
    commit number.
    """
    if statement.outcome != "open":
        return statement
    if not statement.path:
        # A target without a log: only the process that ran the statement knows. Others assume that it is not done, so that no change is
        # lost.
        return replace(statement, outcome="fenced")
    table = DeltaTable(spark, statement.path)
    if has_run:
        known = table.known()
        resolved = _by_log(spark, claim, statement, table, known) if known.exists else None
        if resolved is not None:
            return resolved
    for _ in range(FENCE_ATTEMPTS_MAX):
        latest = table.latest()
        if not latest.exists:
            raise InDoubt("the table that it wrote no longer exists")
        resolved = _by_log(spark, claim, statement, table, latest)
        if resolved is not None:
            return resolved
        if latest.table_id != statement.table_id and not _is_same_log(table, statement):
            raise InDoubt("another table stands where it wrote")
        number = fence(spark, statement.path, statement.app_id, claim.fence_number, claim.commit_number)
        if number is not None and number != claim.commit_number:
            return replace(statement, outcome="fenced")
    raise StreamqlError(
        "STREAM_BUSY",
        f"the target {statement.target} is written so often that the consumption could not be resolved",
        hint="run the statement again",
    )


def _by_log(
    spark: SparkSession, claim: Claim, statement: ClaimedStatement, table: DeltaTable, latest: Snapshot
) -> ClaimedStatement | None:
    """Returns the statement with the outcome that the log shows up to the version `latest`. None: the log shows neither its commit nor a
    fence of it."""
    found = find_txn(spark, table, latest, statement.app_id, claim.commit_number, statement.seen)
    if found is None or found.number < claim.commit_number:
        return None
    if found.number > claim.commit_number:
        return replace(statement, outcome="fenced")
    # CREATE OR REPLACE TABLE AS gives the table a new id. If a later statement may have done so again, the id is read as of this commit.
    is_same = latest.table_id == statement.table_id or found.version in (None, latest.version)
    written = latest if is_same else table.at(found.version or 0)
    return replace(
        statement,
        outcome="done",
        target_version=found.version,
        metrics=found.metrics,
        table_id=written.table_id,
    )


def resolve_own(
    spark: SparkSession, claim: Claim, statement: ClaimedStatement, failure: BaseException | None
) -> ClaimedStatement:
    """Returns the statement with its outcome, for the process that ran it. At a target without a log, the statement is done if it did not
    raise (`failure` is None). Raises CONSUMPTION_IN_DOUBT."""
    if not statement.path and failure is None:
        return replace(statement, outcome="done")
    try:
        return resolve_statement(spark, claim, statement, has_run=True)
    except InDoubt as e:
        raise in_doubt(claim, statement, str(e), _names(spark, claim)) from None


def resolve_claim(spark: SparkSession, claim: Claim) -> Claim:
    """Returns the claim with all its statements resolved. Raises CONSUMPTION_IN_DOUBT, and what reading or fencing a target raises."""
    resolved, problem = resolve_reachable(spark, claim)
    if problem is not None:
        raise problem
    return resolved


def resolve_reachable(
    spark: SparkSession, claim: Claim, *, any_failure: bool = False
) -> tuple[Claim, StreamqlError | None]:
    """Resolves the statements of a claim that a log can resolve. Returns the claim with their outcomes, and the error CONSUMPTION_IN_DOUBT
    for the first statement that no log can resolve; None in place of the error: all are resolved.

    All statements are tried, even if one is in doubt, so that none of the others can commit after a user gives the claim up. `any_failure`:
    a statement whose target cannot be read or fenced, for whatever reason, is in doubt as well. Otherwise that error is raised.
    """
    statements: list[ClaimedStatement] = []
    problems: list[tuple[ClaimedStatement, str, bool]] = []
    for statement in claim.statements:
        try:
            statements.append(resolve_statement(spark, claim, statement))
            continue
        except InDoubt as e:
            problems.append((statement, str(e), False))
        except StreamqlError:
            raise
        except Exception as e:
            if not any_failure:
                raise
            problems.append((statement, f"its target cannot be read or written: {sentence(e)}", True))
        statements.append(statement)
    resolved = replace(claim, statements=tuple(statements))
    if not problems:
        return resolved, None
    statement, why, is_unreachable = problems[0]
    return resolved, in_doubt(resolved, statement, why, _names(spark, claim), is_unreachable=is_unreachable)


def _names(spark: SparkSession, claim: Claim) -> dict[str, str]:
    """Returns the names of a claim's streams, by id."""
    states = [catalog_of(spark).by_uuid(spark, uuid) for uuid in claim.intervals]
    return {s.stream.uuid: str(s.name) for s in states if s is not None}


def _is_same_log(table: DeltaTable, statement: ClaimedStatement) -> bool:
    """Returns whether the log is the one that the claim saw, though it has another table id now. CREATE OR REPLACE changes the id, and
    keeps the log with its transaction numbers."""
    try:
        return table.at(statement.seen).table_id == statement.table_id
    except StreamqlError:
        return False


# -- the end of a claim


class ClaimTaken(Exception):
    """Raised if another process took the claim over and ended it, and none of its statements has committed."""


def finish(spark: SparkSession, resolved: Claim, why: str | None, found: Found = NOTHING_FOUND) -> ClaimOutcome:
    """Ends a claim whose statements are resolved, and returns its outcome. If all are done, the streams advance. If none is done, they are
    released. If only some are done, the claim stays on its streams as partially committed.

    If another process has ended the claim, returns the outcome that it recorded. `why`: the error for the ledger. `found`: as `complete`
    takes it. Raises CONSUMPTION_INCOMPLETE, CLAIM_LOST if other processes released the streams although statements are done, and
    `ClaimTaken` if no statement is done.
    """
    outcome = outcome_of(resolved)
    try:
        if not resolved.statements and has_completed(spark, resolved):
            outcome = "CONSUMED"
        if outcome == "PARTIALLY_COMMITTED":
            update_claim(spark, resolved, replace(resolved, is_partially_committed=True))
        elif outcome == "CONSUMED":
            end_claim(spark, complete(spark, resolved, found), outcome, None)
        else:
            end_claim(spark, resolved, outcome, why)
        return outcome
    except ClaimGone:
        pass
    if is_under_way_elsewhere(spark, resolved):
        return "PARTIALLY_COMMITTED"
    # Another process may have taken this one for dead, resolved the claim in the same way, and advanced the streams.
    if is_consumed(spark, resolved):
        return "CONSUMED"
    if resolved.done:
        raise lost_with_data(resolved, "others took it, and released the stream")
    raise ClaimTaken
