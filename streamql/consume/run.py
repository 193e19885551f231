"""Runs a statement that consumes streams: steps 1 to 5 of the protocol, as its owner."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, StreamState, lowest
from streamql.catalog.store import catalog_of, now_ms
from streamql.consume.claims import Heartbeat, busy, claim_streams, end, is_held, wait_until_free
from streamql.consume.decide import Verdict, decide
from streamql.consume.owner import running, this_owner
from streamql.consume.settings import BUSY_TIMEOUT, LEASE, seconds
from streamql.consume.targets import claimed_statement, find_target, prepare, runs_plain
from streamql.delta.command import Command, Numbered, Target
from streamql.delta.jvm import JavaObject
from streamql.delta.table import DeltaTable
from streamql.errors import StreamqlError
from streamql.model import Interval, Offset
from streamql.reading import Token, read_stream, read_token

log = logging.getLogger("streamql")

TEXT_CHARACTERS_MAX = 4000
"""How much of a statement's text the ledger keeps."""

ERROR_CHARACTERS_MAX = 1000
"""How much of an error."""


@dataclass(frozen=True)
class Claimed:
    """A claim made, and the targets it was made for."""

    claim: Claim
    targets: tuple[Target, ...]


def consume(spark: SparkSession, command: Command) -> JavaObject:
    """Runs the statement and moves the offsets of the streams it reads, both or neither. Answers its rows.

    Raises what the statement raises, STREAM_BUSY, UNSUPPORTED_TARGET, CLAIM_LOST, CONSUMPTION_UNDECIDED, and what reading raises.
    """
    if not command.tokens:
        raise StreamqlError(
            "UNSUPPORTED_CLAUSE",
            "WITH CONSUME, and no stream is read",
            hint="FROM s WITH CONSUME takes the name of a stream",
        )
    if command.count > 1:
        raise StreamqlError(
            "UNSUPPORTED_STATEMENT",
            "one statement with several INSERTs cannot consume a stream",
            hint="two streams on the table, one for each INSERT, consume independently",
        )
    if command.is_query:
        _check_asked(command)
    consumption_id = str(uuid.uuid4())
    with running(consumption_id):
        claimed = _claim(spark, command, consumption_id)
        if claimed is None:
            return command.execute(0)
        return _run(spark, command, claimed)


def _check_asked(command: Command) -> None:
    """A query that consumes may not take along a stream that it only reads."""
    for token in map(read_token, command.tokens):
        if token.uuid not in command.asked:
            raise StreamqlError(
                "UNSUPPORTED_CLAUSE",
                f"the query consumes by reading, and reads {token.stream} too, which was not asked to be consumed",
                hint=f"put WITH CONSUME behind {token.stream} as well, or read it in a query of its own",
                stream=token.stream,
            )


# -- claim


def _claim(spark: SparkSession, command: Command, consumption_id: str) -> Claimed | None:
    """Steps 1 and 2: streams and intervals of the analysed statement, claimed. None: there is nothing in any interval to be claimed."""
    deadline = time.monotonic() + seconds(spark, BUSY_TIMEOUT)
    while True:
        states = [wait_until_free(spark, s) for s in _states(spark, command)]
        # Looked up after every wait: whoever was waited for may have made, filled or dropped the table.
        target = None if command.is_query else find_target(command)
        intervals = _bind(spark, command, states)
        if runs_plain(target):
            _bind_nothing(spark, command, states)
            return None
        if all(i.is_empty for i in intervals.values()) and not (target is not None and target.is_reserved):
            return None
        claimed = _attempt(spark, command, states, intervals, target, consumption_id)
        if claimed is not None:
            return claimed
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
    target: Target | None,
    consumption_id: str,
) -> Claimed | None:
    """A claim on all streams; None: a stream or the target is not any more what it was a moment ago."""
    prepared = None if target is None else prepare(spark, command, target, consumption_id)
    if target is not None and prepared is None:
        return None
    lead = lowest(intervals)
    statement = None if prepared is None else claimed_statement(spark, command, prepared, lead)
    if target is not None and statement is None:
        return None
    claim = Claim(
        consumption_id=consumption_id,
        number=next(s for s in states if s.stream.uuid == lead).sequence + 1,
        intervals=intervals,
        statements=() if statement is None else (statement,),
        owner=this_owner(spark),
        heartbeat=0,
        started_at_ms=now_ms(),
        text=command.text[:TEXT_CHARACTERS_MAX],
        lease_seconds=seconds(spark, LEASE),
    )
    sources = {t.uuid: t.source for t in map(read_token, command.tokens)}
    if not claim_streams(spark, states, claim, sources):
        return None
    return Claimed(claim, () if prepared is None else (prepared,))


def _states(spark: SparkSession, command: Command) -> list[StreamState]:
    """The streams read, as the catalog has them now, by id."""
    states = {}
    for token in map(read_token, command.tokens):
        state = catalog_of(spark).by_uuid(spark, token.uuid)
        if state is None:
            raise StreamqlError(
                "STREAM_NOT_FOUND",
                f"stream {token.stream} was dropped or replaced meanwhile",
                hint="run the statement again",
            )
        states[token.uuid] = state
    return [states[u] for u in sorted(states)]


def _bind(spark: SparkSession, command: Command, states: Sequence[StreamState]) -> dict[str, Interval]:
    """One interval a stream, starting at its offset: reads that were made for another one (another consumer was first, or parts of the
    statement were made at different times) are given what is left now."""
    intervals: dict[str, Interval] = {}
    for state in states:
        tokens = [t for t in map(read_token, command.tokens) if t.uuid == state.stream.uuid]
        fits = len(tokens) == 1 and _starts_at(tokens[0], state.offset)
        if fits:
            intervals[state.stream.uuid] = tokens[0].interval
            continue
        rows_max = min((t.rows_max for t in tokens if t.rows_max is not None), default=None)
        now: Interval | None = None
        for old in tokens:
            reading = read_stream(spark, state, now, rows_max)
            now = reading.interval
            command.rebind(old.text, reading.frame, reading.token)
        assert now is not None
        intervals[state.stream.uuid] = now
    return intervals


def _bind_nothing(spark: SparkSession, command: Command, states: Sequence[StreamState]) -> None:
    """All reads show nothing: the statement runs unclaimed, and must not carry rows over even if it unexpectedly succeeds."""
    for state in states:
        for old in [t for t in map(read_token, command.tokens) if t.uuid == state.stream.uuid]:
            reading = read_stream(spark, state, Interval(state.offset.version, state.offset.version))
            command.rebind(old.text, reading.frame, reading.token)


def _starts_at(token: Token, offset: Offset) -> bool:
    return (token.interval.after, token.interval.initial) == (offset.version, offset.initial)


# -- run


def _run(spark: SparkSession, command: Command, claimed: Claimed) -> JavaObject:
    """Steps 3 to 5: run, decide by the target's log whatever happened, advance or release."""
    claim = claimed.claim
    rows: JavaObject = None
    failure: BaseException | None = None
    try:
        with Heartbeat(spark, claim):
            rows = _execute(spark, command, claimed)
    except BaseException as e:  # whatever it was, the log decides
        failure = e
    if not claim.statements:
        return _end_query(spark, claim, rows, failure)
    try:
        verdict = decide(spark, claim, claim.statements[0])
    except Exception as e:
        raise e from failure
    if verdict.outcome == "done":
        return _advance(spark, command, claim, verdict, rows, failure)
    _release(spark, command, claimed, verdict, failure)
    raise failure if failure is not None else _lost(claim, "another process fenced it while it ran")


def _execute(spark: SparkSession, command: Command, claimed: Claimed) -> JavaObject:
    claim = claimed.claim
    if not claim.statements:
        return command.execute(0)
    statement = claim.statements[0]
    now = DeltaTable(spark, statement.path).latest()
    reserved = claimed.targets[0]
    creates = statement.operation in ("CTAS", "RTAS")
    is_same = now.exists and now.table_id == statement.table_id
    if is_same and reserved.is_reserved:  # nobody may have written into the empty table that will be replaced
        is_same = command.target(0) == reserved
    if not is_same:
        raise StreamqlError(
            "CONSUMPTION_FAILED",
            f"{statement.target} was replaced, dropped or written meanwhile",
            hint="run the statement again",
        )
    number = Numbered(statement.app_id, claim.data_number, statement.path, statement.seen)
    return command.execute(0, number, creates)


def _end_query(spark: SparkSession, claim: Claim, rows: JavaObject, failure: BaseException | None) -> JavaObject:
    outcome, error = ("CONSUMED", None) if failure is None else ("FAILED", _sentence(failure))
    held = end(spark, claim, outcome, {}, error)
    if failure is not None:
        raise failure
    if not held:
        raise _lost(claim, "another process took the claim over")
    return rows


def _advance(
    spark: SparkSession,
    command: Command,
    claim: Claim,
    verdict: Verdict,
    rows: JavaObject,
    failure: BaseException | None,
) -> JavaObject:
    if (
        not end(spark, claim, "CONSUMED", {0: verdict}, None)
        and catalog_of(spark).outcome_of(spark, claim.consumption_id) != "CONSUMED"
    ):
        raise _lost(
            claim,
            f"its data IS in {claim.statements[0].target}, version {verdict.target_version}: the stream may deliver these changes again",
        )
    if failure is not None:
        log.warning(
            "the statement committed although it reported an error, and the stream moved: %s", _sentence(failure)
        )
        return command.no_rows()
    return rows


def _release(
    spark: SparkSession, command: Command, claimed: Claimed, verdict: Verdict, failure: BaseException | None
) -> None:
    """Gives the name of a reservation back while the claim still keeps others from it, then the streams."""
    for target in claimed.targets:
        if target.mark == claimed.claim.consumption_id and target.managed and is_held(spark, claimed.claim):
            try:
                # Still ours, still without a row, and our statement has ended: nobody is about to write it.
                if command.target(0) == target:
                    spark.sql(f"DROP TABLE IF EXISTS {target.name}")
            except Exception as e:  # an empty table that stays is taken over by the next attempt
                log.warning("the empty table %s could not be dropped: %s", target.name, _sentence(e))
    end(spark, claimed.claim, "FAILED", {0: verdict}, None if failure is None else _sentence(failure))


def _lost(claim: Claim, why: str) -> StreamqlError:
    return StreamqlError(
        "CLAIM_LOST",
        f"consumption {claim.consumption_id} lost its claim: {why}",
        hint="run the statement again; SELECT * FROM streamql.consumptions tells who took the changes",
        consumption_id=claim.consumption_id,
    )


def _sentence(e: BaseException) -> str:
    """What the ledger keeps of an error: its first line, the JVM's own where it came from there."""
    text = str(e.java_exception.getMessage()) if isinstance(e, Py4JJavaError) else str(e)
    return (text.strip().split("\n")[0] or type(e).__name__)[:ERROR_CHARACTERS_MAX]
