"""Transaction blocks: BEGIN TRANSACTION, statements that consume, COMMIT or ROLLBACK. One claim, one interval a stream, moved at COMMIT.

Delta commits to one table at a time, so a block is exactly once over its targets, not atomic. Each statement enters the claim before it
runs, and its target's log resolves it. The next run of a partially committed block skips the statements that are done.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, ClaimedStatement, StreamState, lowest
from streamql.catalog.store import catalog_of
from streamql.consume import effects, errors
from streamql.consume.binding import bind, nothing_bound, sources_of, streams_of
from streamql.consume.claims import (
    Heartbeat,
    Sources,
    claim_streams,
    conclude,
    end,
    is_held,
    left_out,
    new_claim,
    owned,
    tell_of_resumption,
    wait_until_free,
    write,
)
from streamql.consume.decide import decide_own, judge
from streamql.consume.execute import counted, execute, tell_of_reservation
from streamql.consume.liveness import POLL_SECONDS_MIN
from streamql.consume.met import Met
from streamql.consume.owner import Work, running, stop_running
from streamql.consume.pending import Pending, left_out_of, without
from streamql.consume.pins import Pins
from streamql.consume.targets import TEXT_CHARACTERS_MAX, claimed_statement, find_target, lead_of, prepare, runs_plain
from streamql.delta.command import Command, Target
from streamql.delta.jvm import JavaObject, sentence
from streamql.errors import StreamqlError
from streamql.model import Interval
from streamql.settings import TRANSACTION_TIMEOUT, seconds

log = logging.getLogger("streamql")


class Block:
    """The open transaction of one session. Its statements come one after another; the heartbeat alone has a thread of its own."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._pins = Pins()
        self._claim: Claim | None = None
        self._met = Met()
        self._work: Work | None = None
        self._resources = ExitStack()
        self._used = time.monotonic()
        self._timeout = seconds(spark, TRANSACTION_TIMEOUT)
        self._is_busy = False
        self._is_closed = False
        self._pending = Pending(self._met)
        self._lock = threading.RLock()

    # -- what statements see

    def interval(self, state: StreamState) -> Interval | None:
        """The interval that reads of a stream are to show; None: nobody has read it here yet."""
        self._used = time.monotonic()
        uuid_ = state.stream.uuid
        if self._claim is not None and uuid_ in self._claim.intervals:
            return self._claim.intervals[uuid_]
        if (pinned := self._pins.interval(uuid_)) is not None:
            return pinned
        if state.claim is not None and state.claim.is_partially_committed and state.claim.is_block:
            return state.claim.intervals[uuid_]
        return None

    def pin(self, uuid_: str, interval: Interval, statement: str) -> None:
        """Notes what a statement has read."""
        self._pins.note(uuid_, interval, statement)

    @property
    def claim(self) -> Claim | None:
        """The transaction's claim, as it is now."""
        return self._claim

    def holds(self, uuid_: str) -> bool:
        """Whether the transaction has claimed a stream."""
        return self._claim is not None and uuid_ in self._claim.intervals

    # -- statements

    def run(self, command: Command) -> JavaObject:
        """Runs a statement that consumes, or skips it where an earlier run of the block has done it."""
        if command.is_query:
            raise errors.no_query()
        with self._lock:
            self._refuse_if_closed()
            self._is_busy = True
            done: list[ClaimedStatement] = []
            before = self._pending.last
            try:
                rows: JavaObject = command.no_rows()
                for i in range(command.count):
                    rows, statement = self._run_one(command, i)
                    done += [] if statement is None else [statement]
                return rows
            except BaseException:
                # Of several INSERTs in one statement, those that are done are met again when it is run again.
                self._met.ahead = done + self._met.ahead
                if self._pending.last is not before:
                    self._pending.belongs(done)
                raise
            finally:
                self._used = time.monotonic()
                self._is_busy = False

    def _run_one(self, command: Command, i: int) -> tuple[JavaObject, ClaimedStatement | None]:
        """Runs or skips statement `i`: its rows, and what the claim has of it. None: it ran outside of the claim."""
        with self._pending.unless_begun(command.key):
            fingerprint = command.fingerprint(i)
        while True:
            with self._pending.unless_begun(fingerprint, command.text):
                self._settle()
                if (skipped := self._skipped(command, i, fingerprint)) is not None:
                    log.info("this statement was done by an earlier run of the transaction, and is skipped")
                    effects.tell_skipped()
                    self._pending.discard(fingerprint, command.key)
                    return command.no_rows(), skipped
                if self._claim is None and self._takes_over(command, fingerprint):
                    continue
                is_plain = runs_plain(find_target(self._spark, command, i))
                entered = None if is_plain else self._enter(command, i)
                if entered is None and not is_plain:
                    time.sleep(POLL_SECONDS_MIN)
                    continue
            if entered is not None:
                break
            with nothing_bound(self._spark, command):
                self._pending.discard(fingerprint, command.key)
                return command.execute(i), None
        statement, target = entered
        claim = self._claim
        assert claim is not None
        failure: BaseException | None = None
        rows: JavaObject = command.no_rows()
        try:
            rows = execute(self._spark, command, i, claim, statement, target)
        except BaseException as e:  # whatever it was, the log decides
            failure = e
        try:
            decided = decide_own(self._spark, claim, statement, failure)
        except Exception as e:
            raise e from failure
        decided = counted(command, i, decided)
        self._claim = replace(claim, statements=(*claim.statements[:-1], decided))
        if decided.outcome == "fenced":
            tell_of_reservation(claim, target)
            self._pending.add_claimed(decided)
            if failure is None or (isinstance(failure, Exception) and not is_held(self._spark, claim)):
                raise errors.fenced(claim, failure) from failure
            raise failure
        self._pending.discard(fingerprint, command.key)
        if failure is not None:
            log.warning("the statement committed although it reported an error: %s", sentence(failure))
        effects.tell(self._spark, self._claim, [decided], is_open=True)
        return rows, decided

    def owed_unless_begun(self, key: str) -> AbstractContextManager[None]:
        """While a statement is looked at that is known by its key only: if that fails, COMMIT waits for the statement."""
        return self._pending.unless_begun(key)

    def _settle(self) -> None:
        """Decides statements that began and of which nobody has heard (Ctrl-C, a storage that failed twice): one that is not in is owed;
        one that is in is not written a second time where it is run again. Raises what `judge` raises."""
        if self._claim is None or all(s.outcome != "open" for s in self._claim.statements):
            return
        before, self._claim = self._claim, judge(self._spark, self._claim)
        self._pending.note_decided(before, self._claim)

    def _skipped(self, command: Command, i: int, fingerprint: str) -> ClaimedStatement | None:
        if self._claim is None or self._met.knows_nothing_of(self._claim, fingerprint):
            return None
        try:
            return self._met.skipped(self._spark, self._claim, find_target(self._spark, command, i), fingerprint)
        except StreamqlError as e:
            if e.code == "STATEMENT_COMMITTED":  # the caller knows, and says whether it is to run all the same
                self._pending.discard(fingerprint)
            raise

    def _takes_over(self, command: Command, fingerprint: str) -> bool:
        """Whether a stream of the statement waited for a transaction that has this one among its statements: then it is this one's now."""

        def resumes(claim: Claim) -> bool:
            return claim.is_block and fingerprint in [s.fingerprint for s in claim.statements]

        states = [wait_until_free(self._spark, s, resumes=resumes) for s in streams_of(self._spark, command)]
        begun = next((s.claim for s in states if s.claim is not None), None)
        if begun is None:
            return False
        for state in states:
            if self._pins.seen(state.stream.uuid, command.pin) not in (None, begun.intervals.get(state.stream.uuid)):
                raise errors.moved(state)
        self._take_over(begun)
        return True

    def _enter(self, command: Command, i: int) -> tuple[ClaimedStatement, Target] | None:
        """Puts a statement into the claim, with its target and its streams, before it runs. None: look again."""
        claimed = {} if self._claim is None else self._claim.intervals
        states = streams_of(self._spark, command)
        with errors.way_out(None if any(self.holds(s.stream.uuid) for s in states) else self._claim):
            joining = [wait_until_free(self._spark, s) for s in states if s.stream.uuid not in claimed]
        target = find_target(self._spark, command, i)
        intervals = {**claimed, **self._bound(command, states, joining)}
        consumption_id = str(uuid.uuid4()) if self._claim is None else self._claim.consumption_id
        ready = prepare(self._spark, command, i, target, consumption_id)
        if ready is None:
            return None
        lead = lowest(intervals) if self._claim is None else lead_of(self._claim)
        ordinal = 0 if self._claim is None else len(self._claim.statements)
        statement = claimed_statement(self._spark, command, i, ready, lead, ordinal)
        if statement is None:
            return None
        if self._claim is None:
            return self._first(command, consumption_id, intervals, joining, statement, ready)
        statement = replace(statement, entered=self._claim.number)
        changed = replace(self._claim, intervals=intervals, statements=(*self._claim.statements, statement))
        written = write(self._spark, self._claim, changed, joining, sources_of(command))
        if written == "lost":
            if self._is_written_after_all():
                return None
            raise errors.lost(self._claim, "another process took this one for dead")
        if written == "moved":
            return None
        self._claim = written
        return statement, ready

    def _is_written_after_all(self) -> bool:
        """Whether the claim's last writing was ours, though we did not hear of it (Ctrl-C): it is gone on with, its statements decided."""
        assert self._claim is not None
        state = catalog_of(self._spark).by_uuid(self._spark, next(iter(self._claim.intervals)))
        now = None if state is None else state.claim
        mine = (self._claim.consumption_id, self._claim.number, self._claim.revision + 1)
        if now is None or now.identity != mine or now.owner != self._claim.owner or now.is_partially_committed:
            return False
        self._claim = judge(self._spark, now)
        return True

    def _bound(
        self, command: Command, states: Sequence[StreamState], joining: Sequence[StreamState]
    ) -> dict[str, Interval]:
        """The intervals of the statement's streams: those of the block; for a stream that nobody has read here yet, from its offset."""
        fixed = {} if self._claim is None else {**self._claim.intervals}
        for state in joining:
            seen = self._pins.seen(state.stream.uuid, command.pin)
            if seen is None:
                continue
            if (seen.after, seen.initial) != (state.offset.position, state.offset.initial):
                raise errors.moved(state)
            fixed[state.stream.uuid] = seen
        current = {s.stream.uuid: s for s in joining}
        return bind(self._spark, command, [current.get(s.stream.uuid, s) for s in states], fixed)

    def _first(
        self,
        command: Command,
        consumption_id: str,
        intervals: dict[str, Interval],
        states: Sequence[StreamState],
        statement: ClaimedStatement,
        target: Target,
    ) -> tuple[ClaimedStatement, Target] | None:
        begun = new_claim(self._spark, consumption_id, command.text[:TEXT_CHARACTERS_MAX], is_block=True)
        claim = owned(self._spark, begun, states, lowest(intervals))
        statement = replace(statement, entered=claim.number)
        claim = replace(claim, intervals=intervals, statements=(statement,))
        return (statement, target) if self._claims(states, claim, sources_of(command)) else None

    def _take_over(self, begun: Claim) -> None:
        """Goes on with a partially committed block: the done statements stay so, the others get new numbers."""
        found = [catalog_of(self._spark).by_uuid(self._spark, u) for u in begun.intervals]
        states = [s for s in found if s is not None and s.claim is not None and s.claim.identity == begun.identity]
        if len(states) < len(begun.intervals):
            return
        claim = owned(self._spark, begun, states, lead_of(begun))
        if self._claims(states, claim, {s.stream.uuid: s.stream.source for s in states}):
            self._met.ahead = list(claim.done)
            tell_of_resumption(begun)

    def _claims(self, states: Sequence[StreamState], claim: Claim, sources: Sources) -> bool:
        """Makes a claim, and keeps it until the block is closed."""
        with ExitStack() as unless_claimed:
            work = unless_claimed.enter_context(running(claim.consumption_id))  # before others can see the claim
            if not claim_streams(self._spark, states, claim, sources):
                return False
            self._resources.enter_context(unless_claimed.pop_all())
        self._claim, self._work = claim, work
        self._resources.enter_context(Heartbeat(self._spark, lambda: self.claim, self._goes_on))
        return True

    def _goes_on(self) -> bool:
        if self._is_busy or time.monotonic() - self._used < self._timeout:
            return True
        if self._work is not None:
            stop_running(self._work)  # for others of this process to decide it
        return False

    @property
    def has_expired(self) -> bool:
        """Whether nothing was said for so long that others may decide the claim."""
        return self._claim is not None and not self._goes_on()

    # -- its end

    def commit(self) -> None:
        """Moves the offsets of all streams that statements have consumed. Raises INVALID_TRANSACTION_STATE where a statement failed and was
        not run again, CLAIM_LOST, CONSUMPTION_PARTIALLY_COMMITTED; then nothing moved."""
        with self._lock:
            self._refuse_if_closed()
            self._settle()
            if (last := self._pending.last) is not None:
                raise errors.not_whole(len(self._pending), last.shown)
            if self._claim is None:
                return
            if self._met.ahead:
                ahead = self._met.ahead[0].target
                raise errors.partially_committed(
                    self._claim, f"this run has not come to the statement that wrote {ahead}"
                )
            if left := left_out(self._claim):
                raise errors.not_run_again(left)
            outcome = "CONSUMED" if self._claim.done else "FAILED"
            if not end(self._spark, self._claim, outcome, None):
                said = catalog_of(self._spark).outcome_of(self._spark, self._claim.consumption_id)
                if said != "CONSUMED" and self._claim.done:
                    raise errors.lost_without_commit(self._claim, said)
            effects.tell(self._spark, self._claim, ())

    def withdraw(self) -> None:
        """Has COMMIT no longer wait for the statement that failed last, in this run or an earlier one; the claim records it. Raises
        INVALID_TRANSACTION_STATE if there is none, STATEMENT_COMMITTED if a statement that reported an error is in, CLAIM_LOST."""
        with self._lock:
            self._refuse_if_closed()
            unheard = len(self._met.unheard)
            if self._claim is not None:
                self._is_written_after_all()  # the statement may have entered without an answer: the claim must record it as withdrawn
            self._settle()
            if len(self._met.unheard) > unheard:
                raise errors.not_withdrawn(self._met.unheard[-1])
            last = self._pending.last or left_out_of(self._claim)
            if last is None:
                raise errors.nothing_failed()
            self._record(without(self._claim, last.fingerprint))
            self._pending.discard(last.fingerprint)
            self._met.ahead = [s for s in self._met.ahead if s not in last.done]
            self._used = time.monotonic()
            log.warning("withdrawn: %s. COMMIT moves its streams without it", last.shown)

    def _record(self, changed: Claim | None) -> None:
        """Writes the claim anew, for a change of its statements. None: nothing changed."""
        if self._claim is None or changed is None:
            return
        written = write(self._spark, self._claim, changed)
        if isinstance(written, Claim):
            self._claim = written
        elif not self._is_written_after_all():
            raise errors.lost(self._claim, "another process took this one for dead")

    def rollback(self) -> None:
        """Gives the streams back. Raises CONSUMPTION_PARTIALLY_COMMITTED where statements have committed: Delta cannot take that back."""
        with self._lock:
            if self._claim is None:
                return
            judged = judge(self._spark, self._claim)
            if not is_held(self._spark, judged):
                if not judged.done:
                    return
                said = catalog_of(self._spark).outcome_of(self._spark, judged.consumption_id)
                if said == "CONSUMED":  # by a COMMIT of which nobody heard
                    raise errors.committed(judged)
                if said is None:
                    raise errors.partially_committed(judged, "another process took this one for dead")
                raise errors.lost_without_commit(judged, said)
            if conclude(self._spark, judged, "rolled back") == "PARTIALLY_COMMITTED":
                raise errors.partially_committed(judged, "rolled back")

    def close(self) -> None:
        """Stops the heartbeat; from now on no statement runs in it."""
        with self._lock:
            self._is_closed = True
            self._resources.close()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise errors.ended()
