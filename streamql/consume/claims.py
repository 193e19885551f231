"""Claims: made, ended, recovered; each step one event commit of the catalog, a compare-and-set on the streams concerned."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.catalog.events import consumption_event
from streamql.catalog.states import Claim, ClaimedStatement, StreamState
from streamql.catalog.store import catalog_of, now_ms
from streamql.consume.decide import Verdict, decide
from streamql.consume.owner import is_dead, is_running_here
from streamql.consume.settings import BUSY_TIMEOUT, LEASE, seconds
from streamql.errors import StreamqlError
from streamql.model import Offset, TableSource

POLL_SECONDS_MIN = 0.05
POLL_SECONDS_MAX = 1.0

READING = ClaimedStatement(0, "", "", "", "", "SELECT", 0, 0)
"""What the ledger shows as the statement of a query that consumed by reading."""

_watched: dict[str, tuple[int, float]] = {}
"""consumption id → (heartbeat, when this process first saw it, on its monotonic clock)."""
_watched_lock = threading.Lock()


def end(spark: SparkSession, claim: Claim, outcome: str, verdicts: Mapping[int, Verdict], error: str | None) -> bool:
    """Advances (outcome CONSUMED) or releases (FAILED) all streams of a claim by one commit. False: the claim is not there any more."""
    catalog = catalog_of(spark)
    while True:
        held = _held(spark, claim)
        if held is None:
            return False
        ended = now_ms()
        after = [_ended(s, claim, outcome, ended) for s in held]
        events = [
            consumption_event(s, claim, outcome, ended, statement, verdict.target_version, verdict.metrics, error)
            for s in after
            for statement in claim.statements or (READING,)
            for verdict in (verdicts.get(statement.ordinal, Verdict("fenced")),)
        ]
        if catalog.commit(spark, held, after, events):
            return True


def is_held(spark: SparkSession, claim: Claim) -> bool:
    """Whether the claim is still there, on all of its streams."""
    return _held(spark, claim) is not None


def _held(spark: SparkSession, claim: Claim) -> list[StreamState] | None:
    """The streams of a claim as they are now; None: not all of them are under it any more."""
    states = [catalog_of(spark).by_uuid(spark, uuid) for uuid in claim.intervals]
    held = [s for s in states if s is not None and _holds(s, claim)]
    return held if len(held) == len(states) else None


def _holds(state: StreamState, claim: Claim) -> bool:
    held = state.claim
    return held is not None and (held.consumption_id, held.number) == (claim.consumption_id, claim.number)


def _ended(state: StreamState, claim: Claim, outcome: str, ended_ms: int) -> StreamState:
    if outcome != "CONSUMED":
        return state.next(claim=None)
    interval = claim.intervals[state.stream.uuid]
    if state.offset != Offset(interval.after, interval.initial):
        raise StreamqlError("INTERNAL_ERROR", f"the offset of {state.name} moved under a claim")
    return state.next(claim=None, offset=Offset(interval.through), last_consumed_ms=ended_ms)


def recover(spark: SparkSession, claim: Claim, why: str) -> None:
    """Decides a claim that its owner will not decide, and ends it: consumed where the data is in, released where it is not.

    Raises CONSUMPTION_UNDECIDED, and what reading or fencing the target raises.
    """
    verdicts = {s.ordinal: decide(spark, claim, s) for s in claim.statements}
    done = [v.outcome == "done" for v in verdicts.values()]
    if done and all(done):
        end(spark, claim, "CONSUMED", verdicts, None)
    elif any(done):
        raise StreamqlError(
            "CONSUMPTION_UNDECIDED",
            f"consumption {claim.consumption_id} wrote {sum(done)} of {len(done)} targets before it ended ({why})",
            hint="write the missing targets by hand from the interval in the claim, then ALTER STREAM … SET OFFSET VERSION n",
            consumption_id=claim.consumption_id,
        )
    else:
        end(spark, claim, "FAILED", verdicts, why)


def is_abandoned(spark: SparkSession, claim: Claim) -> str | None:
    """Why others may decide the claim: its process is dead, or its heartbeat stood still for the lease; None: they may not (yet)."""
    here = is_running_here(claim.owner, claim.consumption_id)
    if here is not None:
        return None if here else "its statement ended without being decided"
    if is_dead(claim.owner):
        return f"process {claim.owner.pid} ended before its statement did"
    lease = max(seconds(spark, LEASE), claim.lease_seconds)
    with _watched_lock:
        beat, since = _watched.get(claim.consumption_id, (-1, 0.0))
        if beat != claim.heartbeat:
            _watched[claim.consumption_id] = (claim.heartbeat, time.monotonic())
            return None
        still = time.monotonic() - since
    return f"no sign of life from {claim.owner.host}:{claim.owner.pid} for {still:.0f} s" if still > lease else None


def wait_until_free(spark: SparkSession, state: StreamState, *, give_up: bool = False) -> StreamState:
    """The stream once nobody consumes it: waits, and recovers a claim whose owner is gone.

    `give_up`: a claim that no log can decide is ended as UNDECIDED, because a person says where the stream shall be (SET OFFSET) or that
    it shall go. Raises STREAM_BUSY, STREAM_NOT_FOUND, CONSUMPTION_UNDECIDED.
    """
    deadline = time.monotonic() + seconds(spark, BUSY_TIMEOUT)
    pause = POLL_SECONDS_MIN
    catalog = catalog_of(spark)
    while True:
        now = catalog.by_uuid(spark, state.stream.uuid)
        if now is None:
            raise StreamqlError(
                "STREAM_NOT_FOUND",
                f"stream {state.name} was dropped or replaced meanwhile",
                hint="run the statement again",
            )
        if now.claim is None:
            return now
        why = is_abandoned(spark, now.claim)
        if why is not None:
            try:
                recover(spark, now.claim, why)
            except StreamqlError as e:
                if e.code != "CONSUMPTION_UNDECIDED" or not give_up:
                    raise
                end(spark, now.claim, "UNDECIDED", {}, e.message)
        if time.monotonic() > deadline:
            raise busy(now)
        if why is not None:
            continue
        time.sleep(pause)
        pause = min(pause * 1.5, POLL_SECONDS_MAX)


def busy(state: StreamState) -> StreamqlError:
    """The error for a stream that somebody else consumes."""
    assert state.claim is not None
    owner = state.claim.owner
    age = max(0, now_ms() - state.claim.started_at_ms) // 1000
    return StreamqlError(
        "STREAM_BUSY",
        f"stream {state.name} is being consumed by {owner.user}@{owner.host.split('/')[0]}, process {owner.pid}, since {age} s",
        hint=f"run the statement again later, or SET {BUSY_TIMEOUT[0]} = 10min to wait longer",
        stream=str(state.name),
        consumption_id=state.claim.consumption_id,
    )


class Heartbeat:
    """Says, while a long statement runs, that its owner is alive: a commit of the catalog four times a lease."""

    def __init__(self, spark: SparkSession, claim: Claim) -> None:
        self._spark = spark
        self._claim = claim
        self._stop = threading.Event()
        self._pause = max(0.2, seconds(spark, LEASE) / 4)
        self._thread = threading.Thread(target=self._beat, name="streamql-heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        catalog = catalog_of(self._spark)
        while not self._stop.wait(self._pause):
            try:
                held = _held(self._spark, self._claim)
                if held is None:
                    return
                catalog.commit(self._spark, held, [_beaten(s) for s in held], [])
            except Exception:  # a missed beat is no harm: the lease decides nothing but who bothers
                continue


def _beaten(state: StreamState) -> StreamState:
    assert state.claim is not None
    return replace(state, claim=replace(state.claim, heartbeat=state.claim.heartbeat + 1))


def claim_streams(
    spark: SparkSession, states: Sequence[StreamState], claim: Claim, sources: Mapping[str, TableSource]
) -> bool:
    """Makes a claim on all its streams by one commit. False: one of them changed since it was read.

    `sources`: where the source of each stream was found now; a table that was renamed is looked for once, not by every statement.
    """
    claimed = [s.next(claim=claim, stream=replace(s.stream, source=sources[s.stream.uuid])) for s in states]
    return catalog_of(spark).commit(spark, states, claimed, [])
