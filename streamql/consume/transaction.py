"""A transaction: BEGIN TRANSACTION, statements that consume, then COMMIT or ROLLBACK. `session_transactions` says which session has one.

All statements of a transaction share one claim. They read the same interval of each stream, and COMMIT advances the streams. Delta commits
to one table at a time, so a transaction is exactly once over its targets, but not atomic. Each statement enters the claim before it runs,
and the log of its target resolves it. If a transaction stays partially committed, its next run skips the statements that are done.
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
from streamql.consume.afterwards import tell_sources
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
"""The scope of pinned intervals in a transaction. Each transaction has `PinnedIntervals` of its own, so one constant is enough."""


@dataclass(frozen=True)
class Skipped:
    """An earlier run of the transaction has done the statement. `record`: the statement in the claim."""

    record: ClaimedStatement


@dataclass(frozen=True)
class RunsPlain:
    """Spark will refuse the statement, or will do nothing: it runs outside of the claim, and its reads return no rows."""


class Transaction:
    """The open transaction of one session. Its statements run one after another. Only the heartbeat has a thread of its own."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._pinned = PinnedIntervals()
        self._consumption = Consumption(spark, is_transaction=True, is_active=self._is_active)
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
        """Returns the transaction's claim as it is now; None: no statement has entered it."""
        return self._consumption.claim

    def interval(self, state: StreamState, batch_of: str | None = None) -> Interval | None:
        """Returns the interval that reads of a stream show. None: no statement of the transaction has read the stream. `batch_of`: as
        `PinnedIntervals.get` takes it."""
        self._used = time.monotonic()
        uuid = state.stream.uuid
        if self.claim is not None and uuid in self.claim.intervals:
            return self.claim.intervals[uuid]
        if (pin := self._pinned.get(TRANSACTION, uuid, batch_of)) is not None:
            return pin.interval
        if state.claim is not None and state.claim.is_partially_committed and state.claim.is_transaction:
            return state.claim.intervals[uuid]
        return None

    def pin(self, uuid: str, interval: Interval, statement: str, for_table: bool = False) -> None:
        """Pins the interval that a statement has read. `for_table`: as `Pin` has it."""
        self._pinned.put(TRANSACTION, uuid, Pin(interval, statement, for_table))

    def _pinned_before(self, uuid: str, statement: str) -> Interval | None:
        """Returns the interval of a stream that a statement other than the given one has pinned; None: no other one has."""
        pin = self._pinned.get(TRANSACTION, uuid)
        return None if pin is None or pin.statement == statement else pin.interval

    def holds(self, uuid: str) -> bool:
        """Returns whether the transaction has claimed a stream."""
        return self.claim is not None and uuid in self.claim.intervals

    # -- statements

    def run(self, command: Command) -> JavaObject:
        """Runs a statement that consumes, or skips it if an earlier run of the transaction has done it. Returns its rows."""
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
                # If some INSERTs of a multi-insert are done, they are skipped when the statement is run again.
                self._done.earlier = done + self._done.earlier
                if self._pending.last is not before:
                    self._pending.belongs(done)
                raise
            finally:
                self._used = time.monotonic()
                self._is_busy = False

    def _run_one(self, command: Command, i: int) -> tuple[JavaObject, ClaimedStatement | None]:
        """Runs or skips statement `i`. Returns its rows and its record in the claim; None in place of the record: it ran outside of the
        claim."""
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
        """Makes a statement pending if the body raises an error. The statement is noted by its key, because its fingerprint is not known
        yet."""
        return self._pending.on_failure(key, text)

    def _resolve(self) -> None:
        """Resolves the statements that `run` could not resolve (Ctrl-C, or storage that failed twice). A fenced statement becomes pending.
        A done one is skipped when it is run again. Raises CONSUMPTION_IN_DOUBT, and what reading or fencing a target raises."""
        self._pending.add_resolved(self._consumption.resolve())

    # -- entering

    def _enter(self, command: Command, i: int, fingerprint: str) -> Skipped | RunsPlain | Entry:
        """Puts a statement into the claim before it runs, with its target and its streams. Raises `Changed` if one of them changed
        meanwhile: the caller tries again."""
        self._resolve()
        if (record := self._matched(command, i, fingerprint)) is not None:
            return Skipped(record)
        if self.claim is None and self._take_over(command, fingerprint):
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
        """Returns the record of the statement if it is done; None: it must run."""
        if self.claim is None or self._done.cannot_match(self.claim, fingerprint):
            return None
        try:
            return self._done.match(self._spark, self.claim, find_target(self._spark, command, i), fingerprint)
        except StreamqlError as e:
            if e.code == "STATEMENT_COMMITTED":  # the user may leave the statement out, so COMMIT does not wait for it
                self._pending.discard(fingerprint)
            raise

    def _take_over(self, command: Command, fingerprint: str) -> bool:
        """Takes over the claim of an earlier run of this transaction, if such a claim is on the statement's streams. Returns whether it
        did.

        A claim is that of an earlier run if it has a statement with the same fingerprint. Raises `Changed` if the claim changed meanwhile,
        and STREAM_MOVED if this transaction has read another interval.
        """

        def resumes(claim: Claim) -> bool:
            return claim.is_transaction and fingerprint in [s.fingerprint for s in claim.statements]

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
        """Returns the intervals of the statement's streams. They are those of the transaction. The interval of a stream that the
        transaction has not read starts at the stream's offset. `joining`: the streams that are not in the claim yet."""
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

    def _is_active(self) -> bool:
        """Returns whether the transaction keeps its claim: a statement runs, or the last one ended less than the timeout ago."""
        if self._is_busy or time.monotonic() - self._used < self._timeout:
            return True
        self._consumption.stop_work()
        return False

    @property
    def has_expired(self) -> bool:
        """Returns whether the transaction has been idle for so long that other processes may resolve its claim."""
        return self.claim is not None and not self._is_active()

    # -- its end

    def commit(self) -> None:
        """Advances the offsets of all streams that the statements have consumed. Raises INVALID_TRANSACTION_STATE if a statement failed and
        was not run again, CLAIM_LOST, and CONSUMPTION_PARTIALLY_COMMITTED. After an error no offset has moved."""
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
            tell_sources(self._spark, self.claim)

    def withdraw(self) -> None:
        """Withdraws the statement that failed last, in this run or an earlier one, so that COMMIT no longer waits for it. The claim records
        that.

        Raises INVALID_TRANSACTION_STATE if no statement failed, STATEMENT_COMMITTED if the statement has committed although it reported an
        error, and CLAIM_LOST.
        """
        with self._lock:
            self._refuse_if_closed()
            unreported = len(self._done.unreported)
            # The commit by which the statement entered may have had no answer (Ctrl-C). The claim must still record the withdrawal.
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
        """Releases the streams. Raises CONSUMPTION_PARTIALLY_COMMITTED if statements have committed, because Delta cannot undo these."""
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
        """Returns the names of a claim's streams, sorted."""
        states = [catalog_of(self._spark).last_read(self._spark, uuid) for uuid in claim.intervals]
        return sorted(str(s.name) for s in states if s is not None)

    def _refuse_rollback_if_done(self, claim: Claim) -> None:
        """Raises an error if statements of the claim are done, and other processes ended the claim or took it over. The error says what
        became of the claim."""
        if not claim.done:
            return
        said = catalog_of(self._spark).outcome_of(self._spark, claim.consumption_id)
        if said == "CONSUMED":  # an earlier COMMIT came through, and its answer was lost
            raise errors.committed(claim)
        if said is None:
            raise errors.partially_committed(claim, "another process took this one for dead")
        raise errors.lost_without_commit(claim, said)

    def close(self) -> None:
        """Stops the heartbeat, and refuses further statements."""
        with self._lock:
            self._is_closed = True
            self._consumption.close()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise errors.ended()
