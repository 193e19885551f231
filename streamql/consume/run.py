"""Runs a statement that consumes streams. Outside of a transaction, the streams advance as soon as the statement has committed."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume import effects, session_transactions
from streamql.consume.afterwards import tell_sources
from streamql.consume.binding import bind, changes_of, is_refresh, nothing_bound, reads_of, streams_of
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
    """The statements have entered the claim. A query that consumes by reading has no entries."""

    entries: list[Entry]


@dataclass(frozen=True)
class NothingToConsume:
    """All intervals are empty: the statement runs without a claim."""


@dataclass(frozen=True)
class RunsPlain:
    """Spark will refuse the statement, or will do nothing: it runs without a claim, and its reads return no rows."""


def consume(spark: SparkSession, command: Command) -> JavaObject:
    """Runs the statement and advances the offsets of the streams that it reads: both happen, or neither. Returns the statement's rows.

    The INSERTs of a multi-insert are one consumption. If some commit and others do not, the consumption stays partially committed, and the
    same statement, run again, resumes it. In a transaction the offsets stay until COMMIT. Raises what the statement raises, STREAM_BUSY,
    UNSUPPORTED_TARGET, CLAIM_LOST, CONSUMPTION_IN_DOUBT, CONSUMPTION_PARTIALLY_COMMITTED, and what reading raises.
    """
    if not command.reads:
        raise StreamqlError(
            "UNSUPPORTED_CLAUSE",
            "WITH CONSUME, and no stream is read",
            hint="FROM s WITH CONSUME takes the name of a stream",
        )
    if command.is_query:
        _check_asked(command)
    transaction = session_transactions.current(spark)
    if transaction is not None:
        return transaction.run(command)
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
    """Raises UNSUPPORTED_CLAUSE if a query that consumes also reads a stream without WITH CONSUME: its claim would advance that one,
    too."""
    for read in reads_of(command):
        if read.uuid not in command.asked:
            raise StreamqlError(
                "UNSUPPORTED_CLAUSE",
                f"the query consumes by reading, and reads {read.stream} too, which was not asked to be consumed",
                hint=f"put WITH CONSUME behind {read.stream} as well, or read it in a query of its own",
                stream=read.stream,
            )


def _run_unclaimed(command: Command) -> JavaObject:
    rows: JavaObject = None
    for i in range(command.count):
        rows = command.execute(i)
    return rows


# -- entering


def _enter(spark: SparkSession, command: Command, consumption: Consumption) -> Entered | NothingToConsume | RunsPlain:
    """Binds the reads of a statement, and claims its streams over their intervals. Raises `Changed` if a stream or target changed
    meanwhile: the caller tries again."""

    def resumes(claim: Claim) -> bool:
        if claim.is_transaction or command.is_query:
            return False
        return [s.fingerprint for s in claim.statements] == [command.fingerprint(i) for i in range(command.count)]

    states = [wait_until_free(spark, s, resumes=resumes) for s in streams_of(spark, command)]
    begun = next((s.claim for s in states if s.claim is not None), None)
    # Targets are looked up after the wait: the statement that held the stream may have made, filled or dropped one of them.
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
    """Returns the error for a statement whose streams or targets other statements kept changing."""
    state: StreamState | None = catalog_of(spark).by_uuid(spark, min(read.uuid for read in reads_of(command)))
    return contended() if state is None or state.claim is None else busy(state)


# -- running


def _run(spark: SparkSession, command: Command, consumption: Consumption, entries: list[Entry]) -> JavaObject:
    """Runs the statements, resolves them by the logs of their targets whatever they raised, and advances or releases the streams."""
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
    except BaseException as e:  # reading the target's log failed: `resolve` below reads it once more
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
        tell_sources(spark, claim)
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
    """Runs a query that consumes by reading. The streams advance once its rows are in the driver."""
    claim = consumption.claim
    assert claim is not None
    try:
        rows = command.execute(0)
    except BaseException as e:
        consumption.end_query(READING, e)
        raise
    consumption.note_found(command, 0)
    consumption.end_query(replace(READING, changes=changes_of(command, 0)), None)
    effects.report(spark, claim, ())
    tell_sources(spark, claim)
    return rows
