"""Claims: made, ended, recovered; each step one event commit of the catalog, a compare-and-set on the streams concerned."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pyspark.sql import SparkSession

from streamql.catalog.events import consumption_event
from streamql.catalog.states import Claim, ClaimedStatement, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.decide import judge_what_can_be
from streamql.consume.errors import busy, edited, gone, lost_with_data, partially_committed
from streamql.consume.liveness import POLL_SECONDS_MAX, POLL_SECONDS_MIN, is_abandoned
from streamql.consume.owner import this_owner
from streamql.delta.command import Target
from streamql.delta.jvm import is_cancelled
from streamql.delta.storage import warn_of_unsafe_store
from streamql.delta.table import DeltaTable
from streamql.errors import StreamqlError
from streamql.model import Offset, SourceRef
from streamql.settings import BUSY_TIMEOUT, LEASE, seconds
from streamql.times import iso, now_ms

log = logging.getLogger("streamql")

READING = ClaimedStatement(0, "", "", "", "", "SELECT", "", 0)
"""What the ledger shows as the statement of a query that consumed by reading."""

Conclusion = Literal["CONSUMED", "FAILED", "PARTIALLY_COMMITTED", "LOST"]
"""LOST: others took the claim and ended it, and nothing of its statements is in."""

Sources = Mapping[str, SourceRef]
"""Stream id → where its source is now; a table that was renamed is looked for once, not by every statement."""

NO_SOURCES: Sources = {}


def write(
    spark: SparkSession,
    claim: Claim,
    changed: Claim,
    joining: Sequence[StreamState] = (),
    sources: Sources = NO_SOURCES,
) -> Claim | Literal["lost", "moved"]:
    """Puts `changed` in the place of a claim on all its streams, and on those that join it, by one commit; the claim as written.

    lost: the claim is not there any more, or not as it is known here. moved: a stream that should join changed since it was read.
    `sources`: where the sources of those are now.
    """
    _warn_of_storage(spark, changed, sources)
    while True:
        held = _held(spark, claim)
        if held is None:
            return "lost"
        written = replace(changed, heartbeat=_heartbeat(held) + 1, revision=claim.revision + 1)
        after = [s.next(claim=written) for s in held] + [_claimed(s, written, sources) for s in joining]
        if catalog_of(spark).commit(spark, [*held, *joining], after, []):
            return written
        if any(catalog_of(spark).by_uuid(spark, s.stream.uuid) != s for s in joining):
            return "moved"


def _warn_of_storage(spark: SparkSession, claim: Claim, sources: Sources) -> None:
    """Warns if the log of the catalog, a source or a target is where several drivers can lose commits."""
    tables = [t for u, s in sources.items() if u in claim.intervals for t, _ in s.holds(claim.intervals[u])]
    warn_of_unsafe_store(
        spark, [catalog_of(spark).path, *(t.path for t in tables), *(s.path for s in claim.statements)]
    )


def _heartbeat(held: Sequence[StreamState]) -> int:
    return max((s.claim.heartbeat for s in held if s.claim is not None), default=0)


@dataclass(frozen=True)
class Ending:
    """The last commit of a claim (None: there was none): its streams before it and after it, and what the ledger says of it."""

    before: Sequence[StreamState]
    after: Sequence[StreamState]
    events: Sequence[Mapping[str, Any]]
    claim: Claim | None = None


def ending(spark: SparkSession, claim: Claim, outcome: str, error: str | None) -> Ending | None:
    """The commit that advances (outcome CONSUMED) or releases (any other) all streams of a claim, and notes its statements as they were
    decided. None: the claim is not there any more."""
    held = _held(spark, claim, some=True)
    if held is None:
        return None
    ended = now_ms()
    after = [_ended(s, claim, outcome, ended) for s in held]
    events = [
        consumption_event(s, claim, outcome, ended, statement, error)
        for s in after
        for statement in claim.statements or (READING,)
        if claim.reads(statement, s.stream.uuid)
    ]
    return Ending(held, after, events, claim)


def end(spark: SparkSession, claim: Claim, outcome: str, error: str | None) -> bool:
    """Ends a claim, by one commit (`ending`). False: it is not there any more."""
    while (last := ending(spark, claim, outcome, error)) is not None:
        if catalog_of(spark).commit(spark, last.before, last.after, last.events):
            return True
    return False


def is_consumed(spark: SparkSession, claim: Claim) -> bool:
    """Whether the ledger says that the consumption moved its streams."""
    return catalog_of(spark).outcome_of(spark, claim.consumption_id) == "CONSUMED"


def is_held(spark: SparkSession, claim: Claim) -> bool:
    """Whether the claim is still there, on all of its streams."""
    return _held(spark, claim) is not None


def _held(spark: SparkSession, claim: Claim, *, some: bool = False) -> list[StreamState] | None:
    """The streams of a claim as they are now; None: not all of them are under it any more, or not even `some`."""
    states = [catalog_of(spark).by_uuid(spark, uuid) for uuid in claim.intervals]
    held = [s for s in states if s is not None and _holds(s, claim)]
    return held if len(held) == len(states) or (some and held) else None


def _holds(state: StreamState, claim: Claim) -> bool:
    held = state.claim
    return held is not None and held.identity == claim.identity


def _ended(state: StreamState, claim: Claim, outcome: str, ended_ms: int) -> StreamState:
    if outcome != "CONSUMED" or not moves(claim, state.stream.uuid):
        return state.next(claim=None)
    interval = claim.intervals[state.stream.uuid]
    if state.offset != Offset(interval.after, interval.initial):
        raise edited(state, "its offset moved under a claim")
    return state.next(claim=None, offset=Offset(interval.through), last_consumed_ms=ended_ms)


def moves(claim: Claim, uuid: str) -> bool:
    """Whether a statement that read the stream is done: one that failed does not move it. Pure."""
    return not claim.statements or any(claim.reads(s, uuid) and s.outcome != "fenced" for s in claim.statements)


def left_out(claim: Claim) -> ClaimedStatement | None:
    """Of a block that goes on with earlier runs: a statement that failed in one and reads a stream that the others move, and for which
    nothing was done since, neither itself nor, in a later run (the script was mended), another one into the same target; and that was not
    withdrawn. Pure."""
    done = {s.fingerprint for s in claim.done}
    moves = [uuid for uuid in claim.intervals if any(claim.reads(s, uuid) for s in claim.done)]
    for s in claim.statements:
        if s.outcome != "fenced" or s.withdrawn or s.entered >= claim.number or s.fingerprint in done:
            continue
        is_mended = any(d.writes_where(s.path, s.target) and d.entered > s.entered for d in claim.done)
        if not is_mended and any(claim.reads(s, uuid) for uuid in moves):
            return s
    return None


def conclusion(claim: Claim) -> Conclusion:
    """What a claim comes to whose statements are decided, when nobody goes on with it. Pure."""
    if not claim.done:
        return "FAILED"
    is_whole = not claim.is_block and len(claim.done) == len(claim.statements)
    return "CONSUMED" if is_whole else "PARTIALLY_COMMITTED"


def conclude(spark: SparkSession, judged: Claim, why: str | None) -> Conclusion:
    """Ends a decided claim: consumed where all data is in, released where none is; where some is, it stays, partially committed.

    Where the claim is not there any more: what others made of it, or CLAIM_LOST is raised, though data of its statements is in.
    """
    outcome = conclusion(judged)
    if outcome == "PARTIALLY_COMMITTED":
        is_there = write(spark, judged, replace(judged, is_partially_committed=True)) != "lost"
    else:
        is_there = end(spark, judged, outcome, None if outcome == "CONSUMED" else why)
    if is_there:
        return outcome
    if _goes_on_elsewhere(spark, judged):
        return "PARTIALLY_COMMITTED"
    if is_consumed(spark, judged):  # by others, who took this process for dead, and did the rest
        return "CONSUMED"
    if judged.done:
        raise lost_with_data(judged, "others took it, and released the stream")
    return "LOST"


def _goes_on_elsewhere(spark: SparkSession, claim: Claim) -> bool:
    """Whether others, who took this process for dead, keep the consumption: partially committed, or gone on with."""
    states = [catalog_of(spark).by_uuid(spark, uuid) for uuid in claim.intervals]
    return any(s is not None and s.claim is not None and s.claim.consumption_id == claim.consumption_id for s in states)


def recover(spark: SparkSession, claim: Claim, why: str) -> None:
    """Decides a claim that its owner will not decide, and ends it, unless it is partially committed. Raises CONSUMPTION_IN_DOUBT, also
    where a target can be neither read nor fenced."""
    judged, problem = judge_what_can_be(spark, claim, whatever=True)
    if problem is not None:
        raise problem
    try:
        conclude(spark, judged, why)
    except StreamqlError as e:
        if e.code != "CLAIM_LOST":  # somebody else recovered it at the same time
            raise


def never(_: Claim) -> bool:
    """Whether a claim can be gone on with: by this statement, it cannot."""
    return False


_cancelled = 0
"""How often `cancel_waiting` was called in this process."""


def cancel_waiting() -> None:
    """Ends all waiting of this process for streams: where no server interrupts a statement's thread, as Ctrl-C in a shell does not."""
    global _cancelled
    _cancelled += 1


def wait_until_free(
    spark: SparkSession, state: StreamState, *, give_up: bool = False, resumes: Callable[[Claim], bool] = never
) -> StreamState:
    """The stream once nobody consumes it: waits, and recovers a claim whose owner is gone.

    `resumes`: a partially committed claim of which it says so is answered with the stream: the caller takes it over. `give_up`: so is a
    claim that is partially committed, or that no log can decide: the caller ends it. Raises STREAM_BUSY, STREAM_NOT_FOUND,
    CONSUMPTION_IN_DOUBT,
    CONSUMPTION_PARTIALLY_COMMITTED.
    """
    deadline = time.monotonic() + seconds(spark, BUSY_TIMEOUT)
    pause = POLL_SECONDS_MIN
    catalog = catalog_of(spark)
    cancelled = _cancelled
    while True:
        now = catalog.by_uuid(spark, state.stream.uuid)
        if now is None:
            raise gone(str(state.name))
        if now.claim is None or (now.claim.is_partially_committed and resumes(now.claim)):
            return now
        if now.claim.is_partially_committed:
            if give_up:
                return now
            raise partially_committed(now.claim, f"stream {now.name} waits for it")
        why = is_abandoned(spark, now.claim)
        if why is not None:
            try:
                recover(spark, now.claim, why)
                check_moved_on(spark, now)
            except StreamqlError as e:
                if e.code in ("CONSUMPTION_IN_DOUBT", "CATALOG_UNREADABLE") and give_up:
                    return now
                raise
            continue  # it is free now, or somebody else's: also who would not wait may look again
        if time.monotonic() > deadline or cancelled != _cancelled or is_cancelled(spark):
            raise busy(now)
        time.sleep(pause)
        pause = min(pause * 1.5, POLL_SECONDS_MAX)


def check_moved_on(spark: SparkSession, state: StreamState) -> None:
    """Raises CATALOG_UNREADABLE where a claim was recovered and stands as before: only some of its streams hold it, of which streamql
    makes none."""
    now, claim = catalog_of(spark).by_uuid(spark, state.stream.uuid), state.claim
    if now is not None and claim is not None and _holds(now, claim):
        raise edited(now, "not all of the streams that its claim is on have it")


def check_stands(spark: SparkSession, claim: Claim, done: ClaimedStatement, target: Target) -> None:
    """Raises CONSUMPTION_PARTIALLY_COMMITTED if the table that a done statement wrote was dropped, replaced or restored since, so that the
    statement cannot be skipped. A target that is not a Delta table is not checked."""
    stands = done.writes_where(target.path, target.name)
    if stands and done.path:
        table = DeltaTable(spark, done.path)
        now = table.latest()
        stands = now.exists and now.table_id == done.table_id
        since = done.seen if done.target_version is None else done.target_version
        stands = stands and not table.was_restored_since(now, since)
    if not stands:
        raise partially_committed(claim, f"{done.target} was replaced, restored or dropped since it was written")


def tell_of_resumption(begun: Claim) -> None:
    """Says that a statement or transaction goes on with one that did not end: what came since is left to the next."""
    log.warning(
        "this goes on with what %s began at %s: changes since then stay in the stream",
        begun.owner.who,
        iso(begun.started_at_ms),
    )


class Heartbeat:
    """Says, while a long statement runs or a transaction stands open, that its owner is alive: a commit of the catalog four times a lease.

    `claim`: as it is by then; a block's changes with each statement.
    """

    def __init__(
        self, spark: SparkSession, claim: Callable[[], Claim | None], goes_on: Callable[[], bool] = lambda: True
    ) -> None:
        self._spark = spark
        self._claim = claim
        self._goes_on = goes_on
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
        while not self._stop.wait(self._pause) and self._goes_on():
            try:
                claim = self._claim()
                held = None if claim is None else _held(self._spark, claim)
                if held is not None:  # else it is being written anew, or lost, which its owner finds out
                    catalog.commit(self._spark, held, [_beaten(s) for s in held], [])
            except Exception:  # a missed beat is no harm: the lease decides nothing but who bothers
                continue


def _beaten(state: StreamState) -> StreamState:
    assert state.claim is not None
    return replace(state, claim=replace(state.claim, heartbeat=state.claim.heartbeat + 1))


def _claimed(state: StreamState, claim: Claim, sources: Sources) -> StreamState:
    return state.next(claim=claim, stream=replace(state.stream, source=sources[state.stream.uuid]))


def new_claim(spark: SparkSession, consumption_id: str, text: str, *, is_block: bool = False) -> Claim:
    """A claim of nothing yet."""
    return Claim(
        consumption_id=consumption_id,
        number=0,
        intervals={},
        statements=(),
        owner=this_owner(spark),
        heartbeat=0,
        started_at_ms=now_ms(),
        text=text,
        lease_seconds=seconds(spark, LEASE),
        is_block=is_block,
    )


def owned(spark: SparkSession, begun: Claim, states: Sequence[StreamState], lead: str) -> Claim:
    """A new claim, or a partially committed one, as this process's. Its number is that of the lead stream's next event, so fences of
    earlier owners do not bind it."""
    return replace(
        begun,
        number=next(s for s in states if s.stream.uuid == lead).sequence + 1,
        owner=this_owner(spark),
        heartbeat=begun.heartbeat + 1,
        is_partially_committed=False,
        revision=begun.revision + 1,
    )


def claim_streams(spark: SparkSession, states: Sequence[StreamState], claim: Claim, sources: Sources) -> bool:
    """Claims all streams of a claim by one commit. They are free, or under the partially committed claim that this one resumes. False: one
    of them changed since it was read."""
    _warn_of_storage(spark, claim, sources)
    return catalog_of(spark).commit(spark, states, [_claimed(s, claim, sources) for s in states], [])
