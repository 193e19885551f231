"""Transaction blocks: BEGIN TRANSACTION, statements that consume, COMMIT or ROLLBACK. One claim, one interval a stream, moved at COMMIT.

Delta commits to one table at a time, so a block is exactly once over its targets, not atomic. Each statement enters the claim before it
runs, and its target's log resolves it. The next run of a partially committed block skips the statements that are done.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, ClaimedStatement, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume import effects
from streamql.consume.binding import bind, nothing_bound, streams_of
from streamql.consume.claims import errors
from streamql.consume.claims.outcomes import left_out
from streamql.consume.claims.resolve import ClaimTaken
from streamql.consume.claims.steps import Changed, retry_changed
from streamql.consume.claims.waiting import wait_until_free
from streamql.consume.consumption import Consumption, Entry
from streamql.consume.execute import warn_of_reservation
from streamql.consume.matching import DoneStatements
from streamql.consume.pending import Pending, left_out_of, without
from streamql.consume.pins import Pin, PinnedIntervals
from streamql.consume.targets import find_target, runs_plain
from streamql.delta.command import Command
from streamql.delta.jvm import JavaObject
from streamql.errors import StreamqlError
from streamql.model import Interval
from streamql.settings import TRANSACTION_TIMEOUT, seconds

log = logging.getLogger("streamql")

TRANSACTION = ""
"""The scope of a transaction's pinned intervals, of which each transaction has its own."""


@dataclass(frozen=True)
class Skipped:
    """The statement is done already, by this record."""

    record: ClaimedStatement


@dataclass(frozen=True)
class RunsPlain:
    """Spark raises its error, or does nothing: the statement runs outside of the claim, over reads without rows."""


class Block:
    """The open transaction of one session. Its statements come one after another; the heartbeat alone has a thread of its own."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._pinned = PinnedIntervals()
        self._consumption = Consumption(spark, is_block=True, goes_on=self._goes_on)
        self._done = DoneStatements()
        self._pending = Pending(self._done)
        self._used = time.monotonic()
        self._timeout = seconds(spark, TRANSACTION_TIMEOUT)
        self._is_busy = False
        self._is_closed = False
        self._lock = threading.RLock()

    # -- what statements see

    @property
    def claim(self) -> Claim | None:
        """Returns the transaction's claim, as it is now; None: no statement has entered."""
        return self._consumption.claim

    def interval(self, state: StreamState, batch_of: str | None = None) -> Interval | None:
        """Returns the interval that reads of a stream show; None: no statement of the transaction has read it. `batch_of`: as
        `PinnedIntervals.get` takes it."""
        self._used = time.monotonic()
        uuid = state.stream.uuid
        if self.claim is not None and uuid in self.claim.intervals:
            return self.claim.intervals[uuid]
        if (pin := self._pinned.get(TRANSACTION, uuid, batch_of)) is not None:
            return pin.interval
        if state.claim is not None and state.claim.is_partially_committed and state.claim.is_block:
            return state.claim.intervals[uuid]
        return None

    def pin(self, uuid: str, interval: Interval, statement: str, follows: bool = False) -> None:
        """Pins the interval that a statement has read. `follows`: it has read tables AT the stream or at its END only."""
        self._pinned.put(TRANSACTION, uuid, Pin(interval, statement, follows))

    def _pinned_before(self, uuid: str, statement: str) -> Interval | None:
        """Returns the interval that another statement than the given one has pinned; None: there is none."""
        pin = self._pinned.get(TRANSACTION, uuid)
        return None if pin is None or pin.statement == statement else pin.interval

    def holds(self, uuid: str) -> bool:
        """Returns whether the transaction has claimed a stream."""
        return self.claim is not None and uuid in self.claim.intervals

    # -- statements

    def run(self, command: Command) -> JavaObject:
        """Runs a statement that consumes, or skips it if an earlier run of the block has done it."""
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
                # Of several INSERTs in one statement, those that are done are skipped when it is run again.
                self._done.earlier = done + self._done.earlier
                if self._pending.last is not before:
                    self._pending.belongs(done)
                raise
            finally:
                self._used = time.monotonic()
                self._is_busy = False

    def _run_one(self, command: Command, i: int) -> tuple[JavaObject, ClaimedStatement | None]:
        """Runs or skips statement `i`: its rows, and its record in the claim. None: it ran outside of the claim."""
        with self._pending.on_failure(command.key, command.text):
            fingerprint = command.fingerprint(i)
        with self._pending.on_failure(fingerprint, command.text):
            entering = retry_changed(self._spark, lambda: self._enter(command, i, fingerprint), errors.contended)
        if isinstance(entering, Skipped):
            log.info("this statement was done by an earlier run of the transaction, and is skipped")
            effects.report_skipped()
            self._pending.discard(fingerprint, command.key)
            return command.no_rows(), entering.record
        if isinstance(entering, RunsPlain):
            with nothing_bound(self._spark, command):
                self._pending.discard(fingerprint, command.key)
                return command.execute(i), None
        ran = self._consumption.run(command, entering)
        claim = self.claim
        assert claim is not None
        if ran.statement.outcome == "fenced":
            warn_of_reservation(claim, entering.target)
            self._pending.add_claimed(ran.statement)
            if ran.failure is None or (isinstance(ran.failure, Exception) and not self._consumption.is_held()):
                raise errors.fenced(claim, ran.failure) from ran.failure
            raise ran.failure
        self._pending.discard(fingerprint, command.key)
        effects.report(self._spark, claim, [ran.statement], is_open=True)
        return ran.rows, ran.statement

    def pending_on_failure(self, key: str, text: str) -> AbstractContextManager[None]:
        """Makes a statement pending if the body fails. Its fingerprint is not known yet: it is noted by its key."""
        return self._pending.on_failure(key, text)

    def _resolve(self) -> None:
        """Resolves statements that `run` could not resolve (Ctrl-C, storage that failed twice). A fenced one is pending; a done one is not
        written again. Raises CONSUMPTION_IN_DOUBT, and what reading or fencing a target raises."""
        self._pending.add_resolved(self._consumption.resolve())

    # -- entering

    def _enter(self, command: Command, i: int, fingerprint: str) -> Skipped | RunsPlain | Entry:
        """Puts a statement into the claim, with its target and its streams, before it runs. Raises `Changed`."""
        self._resolve()
        if (record := self._matched(command, i, fingerprint)) is not None:
            return Skipped(record)
        if self.claim is None and self._takes_over(command, fingerprint):
            return self._enter(command, i, fingerprint)
        if runs_plain(find_target(self._spark, command, i)):
            return RunsPlain()
        claimed = {} if self.claim is None else self.claim.intervals
        states = streams_of(self._spark, command)
        waits_with = None if any(self.holds(s.stream.uuid) for s in states) else self.claim
        with errors.with_recovery_hint(waits_with):
            joining = [wait_until_free(self._spark, s) for s in states if s.stream.uuid not in claimed]
        target = find_target(self._spark, command, i)
        intervals = {**claimed, **self._bound(command, states, joining)}
        (entry,) = self._consumption.enter(command, {i: target}, intervals, joining)
        return entry

    def _matched(self, command: Command, i: int, fingerprint: str) -> ClaimedStatement | None:
        """Returns the record of the statement, if it is done; None: it must run."""
        if self.claim is None or self._done.cannot_match(self.claim, fingerprint):
            return None
        try:
            return self._done.match(self._spark, self.claim, find_target(self._spark, command, i), fingerprint)
        except StreamqlError as e:
            if e.code == "STATEMENT_COMMITTED":  # the user knows, and says whether it runs all the same
                self._pending.discard(fingerprint)
            raise

    def _takes_over(self, command: Command, fingerprint: str) -> bool:
        """Returns whether this block has taken over an earlier run of it, which has this statement among its own."""

        def resumes(claim: Claim) -> bool:
            return claim.is_block and fingerprint in [s.fingerprint for s in claim.statements]

        states = [wait_until_free(self._spark, s, resumes=resumes) for s in streams_of(self._spark, command)]
        begun = next((s.claim for s in states if s.claim is not None), None)
        if begun is None:
            return False
        for state in states:
            pinned = self._pinned_before(state.stream.uuid, command.pin)
            if pinned not in (None, begun.intervals.get(state.stream.uuid)):
                raise errors.moved(state)
        if not self._consumption.take_over(begun):
            raise Changed
        self._done.earlier = list(begun.done)
        return True

    def _bound(
        self, command: Command, states: Sequence[StreamState], joining: Sequence[StreamState]
    ) -> dict[str, Interval]:
        """Returns the intervals of the statement's streams: those of the block. A stream that no statement of it has read starts at its
        offset."""
        fixed = {} if self.claim is None else {**self.claim.intervals}
        for state in joining:
            pinned = self._pinned_before(state.stream.uuid, command.pin)
            if pinned is None:
                continue
            if (pinned.after, pinned.initial) != (state.offset.position, state.offset.initial):
                raise errors.moved(state)
            fixed[state.stream.uuid] = pinned
        current = {s.stream.uuid: s for s in joining}
        return bind(self._spark, command, [current.get(s.stream.uuid, s) for s in states], fixed)

    # -- idle

    def _goes_on(self) -> bool:
        if self._is_busy or time.monotonic() - self._used < self._timeout:
            return True
        self._consumption.stop_work()
        return False

    @property
    def has_expired(self) -> bool:
        """Returns whether the transaction was idle for so long that others may resolve its claim."""
        return self.claim is not None and not self._goes_on()

    # -- its end

    def commit(self) -> None:
        """Moves the offsets of all streams that statements have consumed. Raises INVALID_TRANSACTION_STATE if a statement failed and was
        not run again, CLAIM_LOST, CONSUMPTION_PARTIALLY_COMMITTED; then nothing moved."""
        with self._lock:
            self._refuse_if_closed()
            self._resolve()
            if (last := self._pending.last) is not None:
                raise errors.not_whole(len(self._pending), last.shown)
            if self.claim is None:
                return
            if self._done.earlier:
                target = self._done.earlier[0].target
                raise errors.partially_committed(
                    self.claim, f"this run has not come to the statement that wrote {target}"
                )
            if left := left_out(self.claim):
                raise errors.not_run_again(left)
            self._consumption.commit()
            effects.report(self._spark, self.claim, ())

    def withdraw(self) -> None:
        """Has COMMIT no longer wait for the statement that failed last, in this run or an earlier one; the claim records it. Raises
        INVALID_TRANSACTION_STATE if there is none, STATEMENT_COMMITTED if a statement that reported an error is in, CLAIM_LOST."""
        with self._lock:
            self._refuse_if_closed()
            unreported = len(self._done.unreported)
            # The statement may have entered without an answer: the claim must record it as withdrawn.
            self._consumption.adopt_unacknowledged()
            self._resolve()
            if len(self._done.unreported) > unreported:
                raise errors.not_withdrawn(self._done.unreported[-1])
            last = self._pending.last or left_out_of(self.claim)
            if last is None:
                raise errors.nothing_failed()
            changed = without(self.claim, last.fingerprint)
            if changed is not None:
                self._consumption.record(changed)
            self._pending.discard(last.fingerprint)
            self._done.earlier = [s for s in self._done.earlier if s not in last.done]
            self._used = time.monotonic()
            log.warning("withdrawn: %s. COMMIT moves its streams without it", last.shown)

    def rollback(self) -> None:
        """Gives the streams back. Raises CONSUMPTION_PARTIALLY_COMMITTED if statements have committed, which Delta cannot undo."""
        with self._lock:
            if self.claim is None:
                return
            self._consumption.resolve()
            if not self._consumption.is_held():
                self._refuse_rollback_if_done(self.claim)
                return
            try:
                outcome = self._consumption.finish("rolled back")
            except ClaimTaken:
                return
            if outcome == "PARTIALLY_COMMITTED":
                raise errors.rolled_back(self.claim, self._stream_names(self.claim))

    def _stream_names(self, claim: Claim) -> list[str]:
        """Returns the names of a claim's streams, in order."""
        states = [catalog_of(self._spark).last_read(self._spark, uuid) for uuid in claim.intervals]
        return sorted(str(s.name) for s in states if s is not None)

    def _refuse_rollback_if_done(self, claim: Claim) -> None:
        """Raises what the user must know of a claim that others ended or took over, if statements of it are done."""
        if not claim.done:
            return
        said = catalog_of(self._spark).outcome_of(self._spark, claim.consumption_id)
        if said == "CONSUMED":  # by a COMMIT whose answer was lost
            raise errors.committed(claim)
        if said is None:
            raise errors.partially_committed(claim, "another process took this one for dead")
        raise errors.lost_without_commit(claim, said)

    def close(self) -> None:
        """Stops the heartbeat; from now on no statement runs in the transaction."""
        with self._lock:
            self._is_closed = True
            self._consumption.close()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise errors.ended()
