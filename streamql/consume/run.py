"""Runs a statement that consumes streams, or several that are one: steps 1 to 5 of the protocol, as its owner."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, ClaimedStatement, StreamState, lowest
from streamql.catalog.store import catalog_of
from streamql.consume import effects, transactions
from streamql.consume.binding import bind, changes_of, nothing_bound, sources_of, streams_of, tokens_of
from streamql.consume.claims import (
    READING,
    Heartbeat,
    check_stands,
    claim_streams,
    conclude,
    end,
    is_consumed,
    new_claim,
    owned,
    tell_of_resumption,
    wait_until_free,
)
from streamql.consume.decide import decide_own, judge
from streamql.consume.errors import busy, fenced, lost, partially_committed
from streamql.consume.execute import counted, execute, tell_of_reservation
from streamql.consume.liveness import POLL_SECONDS_MIN
from streamql.consume.owner import running
from streamql.consume.targets import TEXT_CHARACTERS_MAX, claimed_statement, find_target, lead_of, prepare, runs_plain
from streamql.delta.command import Command, Target
from streamql.delta.jvm import JavaObject, sentence
from streamql.errors import StreamqlError
from streamql.model import Interval
from streamql.settings import BUSY_TIMEOUT, seconds

log = logging.getLogger("streamql")


@dataclass(frozen=True)
class Claimed:
    """A claim made, and the targets it was made for, one a statement."""

    claim: Claim
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class Plain:
    """Nothing is claimed: Spark shall say its error, or do nothing."""


def consume(spark: SparkSession, command: Command) -> JavaObject:
    """Runs the statement and moves the offsets of the streams it reads, both or neither. Answers its rows.

    Several INSERTs in one statement are one consumption: where some commit and others do not, it stays partially committed, and the same
    statement goes on with it. In a transaction block the offsets stay until COMMIT. Raises what the statement raises, STREAM_BUSY,
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
    consumption_id = str(uuid.uuid4())
    with ExitStack() as at_work:
        at_work.enter_context(running(consumption_id))
        claimed = _claim(spark, command, consumption_id, at_work)
        if isinstance(claimed, Plain):
            with nothing_bound(spark, command):
                return _run_unclaimed(command)
        if claimed is None:
            rows = _run_unclaimed(command)
            effects.tell_of_nothing(command)
            return rows
        return _run(spark, command, claimed)


def _check_asked(command: Command) -> None:
    """A query that consumes may not take along a stream that it only reads."""
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


# -- claim


def _claim(spark: SparkSession, command: Command, consumption_id: str, at_work: ExitStack) -> Claimed | Plain | None:
    """Steps 1 and 2: streams and intervals of the analysed statement, claimed. None: there is nothing in any interval to be claimed.
    `at_work`: while it is open, this process is at work on what is claimed, also where that is a partially committed consumption's."""
    deadline = time.monotonic() + seconds(spark, BUSY_TIMEOUT)

    def resumes(claim: Claim) -> bool:
        if claim.is_block or command.is_query:
            return False
        return [s.fingerprint for s in claim.statements] == [command.fingerprint(i) for i in range(command.count)]

    while True:
        states = [wait_until_free(spark, s, resumes=resumes) for s in streams_of(spark, command)]
        begun = next((s.claim for s in states if s.claim is not None), None)
        # Looked up after every wait: whoever was waited for may have made, filled or dropped the table.
        targets = [] if command.is_query else [find_target(spark, command, i) for i in range(command.count)]
        intervals = bind(spark, command, states, {} if begun is None else begun.intervals)
        if any(runs_plain(t) for t in targets):
            return Plain()
        is_empty = all(i.is_empty for i in intervals.values())
        if begun is None and is_empty and not any(t.is_reserved for t in targets):
            return None
        with ExitStack() as unless_claimed:
            if begun is not None:
                unless_claimed.enter_context(running(begun.consumption_id))  # before others can see the claim
            claim = begun or new_claim(spark, consumption_id, command.text[:TEXT_CHARACTERS_MAX])
            claimed = _attempt(spark, command, states, intervals, targets, claim)
            if claimed is not None:
                at_work.enter_context(unless_claimed.pop_all())
        if claimed is not None:
            if begun is not None:
                tell_of_resumption(begun)
            return claimed
        time.sleep(POLL_SECONDS_MIN)
        if time.monotonic() > deadline:
            current = catalog_of(spark).by_uuid(spark, states[0].stream.uuid)
            raise (
                busy(current)
                if current is not None and current.claim is not None
                else StreamqlError("STREAM_BUSY", "others keep taking the stream", hint="run the statement again")
            )


def _attempt(
    spark: SparkSession,
    command: Command,
    states: Sequence[StreamState],
    intervals: dict[str, Interval],
    targets: Sequence[Target],
    begun: Claim,
) -> Claimed | None:
    """A claim on all streams, new or the partially committed one gone on with; None: a stream or a target is not any more what it was a
    moment ago."""
    if begun.statements and set(begun.intervals) != set(intervals):
        raise partially_committed(begun, "it has other streams besides")
    lead = lead_of(begun) if begun.statements else lowest(intervals)
    prepared: list[Target] = []
    statements: list[ClaimedStatement] = []
    for i, target in enumerate(targets):
        ready = prepare(spark, command, i, target, begun.consumption_id)
        is_done = i < len(begun.statements) and begun.statements[i].outcome == "done"
        if is_done:
            statement: ClaimedStatement | None = begun.statements[i]
            check_stands(spark, begun, begun.statements[i], target)
        else:
            statement = None if ready is None else claimed_statement(spark, command, i, ready, lead, i)
        if ready is None or statement is None:
            return None
        prepared.append(ready)
        statements.append(statement)
    claim = replace(owned(spark, begun, states, lead), intervals=intervals, statements=tuple(statements))
    return Claimed(claim, tuple(prepared)) if claim_streams(spark, states, claim, sources_of(command)) else None


# -- run


def _run(spark: SparkSession, command: Command, claimed: Claimed) -> JavaObject:
    """Steps 3 to 5: run, decide by the targets' logs whatever happened, advance or release."""
    rows = command.no_rows()
    failure: BaseException | None = None
    claim = claimed.claim
    ran: dict[int, ClaimedStatement] = {}
    try:
        with Heartbeat(spark, lambda: claim):
            if not claim.statements:
                rows = command.execute(0)
            for i, statement in enumerate(claim.statements):
                if statement.outcome == "open":
                    rows, ran[i] = _run_one(spark, command, claimed, i)
    except BaseException as e:  # whatever it was, the logs decide
        failure = e
    if not claim.statements:
        return _end_query(spark, command, claim, rows, failure)
    try:
        judged = judge(spark, replace(claim, statements=tuple(ran.get(i, s) for i, s in enumerate(claim.statements))))
        outcome = conclude(spark, judged, None if failure is None else sentence(failure))
    except Exception as e:
        raise e from failure
    if outcome == "CONSUMED":
        if failure is not None:
            _tell_of_success(failure)
        effects.tell(spark, judged, judged.statements)
        return rows
    for target in claimed.targets:
        tell_of_reservation(claim, target)
    if outcome == "PARTIALLY_COMMITTED":
        raise partially_committed(
            judged, "fenced by another process" if failure is None else sentence(failure)
        ) from failure
    if failure is None or (outcome == "LOST" and isinstance(failure, Exception)):
        raise fenced(claim, failure) from failure
    raise failure


def _run_one(spark: SparkSession, command: Command, claimed: Claimed, i: int) -> tuple[JavaObject, ClaimedStatement]:
    """Runs a statement: its rows, and what became of it; one that reports an error though it committed has done its work."""
    statement = claimed.claim.statements[i]
    try:
        rows = execute(spark, command, i, claimed.claim, statement, claimed.targets[i])
    except BaseException as e:
        decided = decide_own(spark, claimed.claim, statement, e)
        if decided.outcome != "done":
            raise
        _tell_of_success(e)
        return command.no_rows(), counted(command, i, decided)
    return rows, counted(command, i, decide_own(spark, claimed.claim, statement, None))


def _tell_of_success(failure: BaseException) -> None:
    """Says of a statement that its work is done, whatever it reported."""
    log.warning("the statement committed although it reported an error, and the stream moves: %s", sentence(failure))


def _end_query(
    spark: SparkSession, command: Command, claim: Claim, rows: JavaObject, failure: BaseException | None
) -> JavaObject:
    outcome, error = ("CONSUMED", None) if failure is None else ("FAILED", sentence(failure))
    reading = replace(READING, changes={} if failure is not None else changes_of(command, 0))
    held = end(spark, replace(claim, statements=(reading,)), outcome, error)
    if failure is not None:
        raise failure
    if not held and not is_consumed(spark, claim):
        raise lost(claim, "another process took the claim over")
    effects.tell(spark, claim, ())
    return rows
