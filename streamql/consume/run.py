"""Runs a statement that consumes streams. Outside of a transaction, a statement is a block of one: it commits if it is done."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume import effects, transactions
from streamql.consume.binding import bind, changes_of, is_refresh, nothing_bound, streams_of, tokens_of
from streamql.consume.claims.errors import busy, contended, fenced, partially_committed
from streamql.consume.claims.outcomes import ClaimOutcome
from streamql.consume.claims.resolve import ClaimTaken
from streamql.consume.claims.steps import READING, retry_changed
from streamql.consume.claims.waiting import wait_until_free
from streamql.consume.consumption import Consumption, Entry, warn_of_resumption
from streamql.consume.execute import warn_of_reservation
from streamql.consume.targets import find_target, runs_plain
from streamql.delta.command import Command
from streamql.delta.jvm import JavaObject, sentence
from streamql.errors import StreamqlError

log = logging.getLogger("streamql")


@dataclass(frozen=True)
class Entered:
    """The statements are in the claim; a query that consumes by reading has none."""

    entries: list[Entry]


@dataclass(frozen=True)
class NothingToConsume:
    """All intervals are empty: the statement runs without a claim."""


@dataclass(frozen=True)
class RunsPlain:
    """Spark raises its error, or does nothing: the statement runs without a claim, over reads without rows."""


def consume(spark: SparkSession, command: Command) -> JavaObject:
    """Runs the statement and moves the offsets of the streams it reads, both or neither. Returns its rows.

    Several INSERTs in one statement are one consumption: if some commit and others do not, it stays partially committed, and the same
    statement resumes it. In a transaction block the offsets stay until COMMIT. Raises what the statement raises, STREAM_BUSY,
    UNSUPPORTED_TARGET, CLAIM_LOST, CONSUMPTION_IN_DOUBT, CONSUMPTION_PARTIALLY_COMMITTED, and what reading raises.
    """
    if not command.tokens:
        raise StreamqlError(
            "UNSUPPORTED_CLAUSE",
            "WITH CONSUME, and no stream is read",
            hint="FROM s WITH CONSUME takes the name of a stream",
        )
    if command.is_query:
        _check_asked(command)
    block = transactions.current(spark)
    if block is not None:
        return block.run(command)
    with Consumption(spark) as consumption:
        entering = retry_changed(spark, lambda: _enter(spark, command, consumption), lambda: _busy(spark, command))
        if isinstance(entering, RunsPlain):
            with nothing_bound(spark, command):
                return _run_unclaimed(command)
        if isinstance(entering, NothingToConsume):
            rows = _run_unclaimed(command)
            effects.report_nothing(command)
            return rows
        if command.is_query:
            return _run_query(spark, command, consumption)
        return _run(spark, command, consumption, entering.entries)


def _check_asked(command: Command) -> None:
    """Raises if a query that consumes would take along a stream that it only reads."""
    for token in tokens_of(command):
        if token.uuid not in command.asked:
            raise StreamqlError(
                "UNSUPPORTED_CLAUSE",
                f"the query consumes by reading, and reads {token.stream} too, which was not asked to be consumed",
                hint=f"put WITH CONSUME behind {token.stream} as well, or read it in a query of its own",
                stream=token.stream,
            )


def _run_unclaimed(command: Command) -> JavaObject:
    rows: JavaObject = None
    for i in range(command.count):
        rows = command.execute(i)
    return rows


# -- entering


def _enter(spark: SparkSession, command: Command, consumption: Consumption) -> Entered | NothingToConsume | RunsPlain:
    """Claims the streams of a statement over its intervals. Raises `Changed`."""

    def resumes(claim: Claim) -> bool:
        if claim.is_block or command.is_query:
            return False
        return [s.fingerprint for s in claim.statements] == [command.fingerprint(i) for i in range(command.count)]

    states = [wait_until_free(spark, s, resumes=resumes) for s in streams_of(spark, command)]
    begun = next((s.claim for s in states if s.claim is not None), None)
    # Looked up after every wait: the statement that held the stream may have made, filled or dropped the table.
    targets = {} if command.is_query else {i: find_target(spark, command, i) for i in range(command.count)}
    intervals = bind(spark, command, states, {} if begun is None else begun.intervals)
    if any(runs_plain(t) for t in targets.values()):
        return RunsPlain()
    is_empty = all(i.is_empty for i in intervals.values())
    is_made = any(t.is_reserved for t in targets.values())
    if begun is None and is_empty and not is_made and not is_refresh(command, states):
        return NothingToConsume()
    if begun is not None and set(begun.intervals) != set(intervals):
        raise partially_committed(begun, "it has other streams besides")
    entries = consumption.enter(command, targets, intervals, states, begun)
    if begun is not None:
        warn_of_resumption(begun)
    return Entered(entries)


def _busy(spark: SparkSession, command: Command) -> StreamqlError:
    """Returns the error for a statement whose streams others kept changing."""
    state: StreamState | None = catalog_of(spark).by_uuid(spark, min(t.uuid for t in tokens_of(command)))
    return contended() if state is None or state.claim is None else busy(state)


# -- running


def _run(spark: SparkSession, command: Command, consumption: Consumption, entries: list[Entry]) -> JavaObject:
    """Runs the statements, resolves them by their targets' logs whatever happened, advances or releases the streams."""
    rows = command.no_rows()
    failure: BaseException | None = None
    outcome: ClaimOutcome | None
    try:
        for entry in entries:
            if entry.statement.outcome != "open":
                continue
            ran = consumption.run(command, entry)
            rows = ran.rows
            if ran.statement.outcome != "done":
                failure = ran.failure
                break
    except BaseException as e:  # the target's log did not answer: it is asked once more
        failure = e
    try:
        consumption.resolve()
        outcome = consumption.finish(None if failure is None else sentence(failure))
    except ClaimTaken:
        outcome = None
    except Exception as e:
        raise e from failure
    claim = consumption.claim
    assert claim is not None
    if outcome == "CONSUMED":
        effects.report(spark, claim, claim.statements)
        return rows
    for entry in entries:
        warn_of_reservation(claim, entry.target)
    if outcome == "PARTIALLY_COMMITTED":
        why = "fenced by another process" if failure is None else sentence(failure)
        raise partially_committed(claim, why) from failure
    if failure is None or (outcome is None and isinstance(failure, Exception)):
        raise fenced(claim, failure) from failure
    raise failure


def _run_query(spark: SparkSession, command: Command, consumption: Consumption) -> JavaObject:
    """Runs a query that consumes by reading: the streams advance if its rows arrive in the driver."""
    claim = consumption.claim
    assert claim is not None
    try:
        rows = command.execute(0)
    except BaseException as e:
        consumption.end_query(READING, e)
        raise
    consumption.end_query(replace(READING, changes=changes_of(command, 0)), None)
    effects.report(spark, claim, ())
    return rows
