"""A consumption: one claim, from the first statement that enters it to its end. It may be of one statement or of a transaction.

```
 NEW ──enter, take over──► CLAIMED ──run──► CLAIMED ──resolve──► all statements done or fenced ──┬─ finish ──► ENDED, or partially committed
                              ▲   └──enter (next statement of a transaction)─┘                   └─ commit ──► ENDED (consumed)
                              └──────────────────────────────────────────────┘
```
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, ClaimedStatement, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.binding import checked_rows, counted_before, reads_of, sources_of
from streamql.consume.claims import errors
from streamql.consume.claims.began import tell_entered
from streamql.consume.claims.complete import complete, joined
from streamql.consume.claims.heartbeat import heartbeat
from streamql.consume.claims.outcomes import ClaimOutcome
from streamql.consume.claims.owner import Work, running, stop_running
from streamql.consume.claims.resolve import finish, resolve_claim, resolve_own
from streamql.consume.claims.steps import (
    Changed,
    ClaimGone,
    Sources,
    claim_streams,
    end_claim,
    is_consumed,
    is_held,
    new_claim,
    owned,
    update_claim,
    with_storage,
)
from streamql.consume.execute import counted, execute
from streamql.consume.targets import TEXT_CHARACTERS_MAX, check_stands, claimed_statement, numbering_stream_of, prepare
from streamql.delta.command import Command, Target
from streamql.delta.jvm import JavaObject, sentence
from streamql.model import Interval
from streamql.times import iso

log = logging.getLogger("streamql")


@dataclass(frozen=True)
class Entry:
    """A statement that has entered the claim. `index`: its number in its command. `statement`: its record in the claim. `target`: its
    target as it was when it entered."""

    index: int
    statement: ClaimedStatement
    target: Target


@dataclass(frozen=True)
class Ran:
    """A statement that ran: its rows, its record with the outcome, and the exception that it raised (None: it raised none).

    The exception does not tell the outcome. A statement that raised may have committed. One that raised nothing may have been fenced by
    another process.
    """

    rows: JavaObject
    statement: ClaimedStatement
    failure: BaseException | None


class Consumption:
    """One claim of this process. It is used by one thread, and by the thread of its heartbeat.

    `is_transaction`: only COMMIT ends the claim as consumed. `is_active`: when it returns False, other processes may resolve the claim.
    """

    def __init__(
        self, spark: SparkSession, *, is_transaction: bool = False, is_active: Callable[[], bool] = lambda: True
    ) -> None:
        self._spark = spark
        self._is_transaction = is_transaction
        self._is_active = is_active
        self._id: str | None = None
        self._claim: Claim | None = None
        self._work: Work | None = None
        self._found: dict[str, str] = {}
        self._resources = ExitStack()

    @property
    def claim(self) -> Claim | None:
        """Returns the claim as it is now; None: no statement has entered it."""
        return self._claim

    def __enter__(self) -> Consumption:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops the heartbeat. If the claim has not ended, other processes may resolve it from now on."""
        self._resources.close()

    def stop_work(self) -> None:
        """Says that this process no longer works on the claim, so that its other statements may resolve the claim."""
        if self._work is not None:
            stop_running(self._work)

    # -- entering

    def enter(
        self,
        command: Command,
        targets: Mapping[int, Target],
        intervals: Mapping[str, Interval],
        joining: Sequence[StreamState],
        resumed: Claim | None = None,
    ) -> list[Entry]:
        """Puts statements of a command into the claim by one commit of the catalog, before they run. The first such commit makes the claim.

        `targets`: the statements' targets, by their index in the command. `intervals`: the intervals of all streams of the claim.
        `joining`: the streams that the claim does not have yet. `resumed`: a partially committed claim of the same command, which this
        process takes over; its done statements stay done. Raises `Changed`, CLAIM_LOST, CONSUMPTION_PARTIALLY_COMMITTED,
        UNSUPPORTED_TARGET.
        """
        base = self._claim or resumed or self._new(command)
        new = [s for s in joining if s.stream.uuid not in base.joined]
        base = replace(base, joined={**base.joined, **joined(self._spark, new)})
        if self._is_transaction or len(targets) > 1:
            base = replace(base, counted={**base.counted, **counted_before(self._spark, command, intervals, base)})
        numbering_stream = numbering_stream_of(base, intervals)
        entries = []
        for i, target in targets.items():
            known = None if resumed is None else resumed.statements[i]
            entries.append(self._prepared(command, i, target, base, numbering_stream, known))
        statements = tuple(e.statement for e in entries)
        if self._claim is None:
            claim = owned(self._spark, base, joining, numbering_stream)
            statements = tuple(replace(s, entered=claim.number) if s.outcome == "open" else s for s in statements)
            self._take(joining, replace(claim, intervals=dict(intervals), statements=statements), sources_of(command))
        else:
            statements = tuple(replace(s, entered=self._claim.number) for s in statements)
            every = (*self._claim.statements, *statements)
            changed = replace(
                self._claim, intervals=dict(intervals), statements=every, counted=base.counted, joined=base.joined
            )
            self._update(changed, joining, sources_of(command))
        begun = {i: s for i, s in zip(targets, statements, strict=True) if s.outcome == "open"}
        if self._claim is not None and (begun or command.is_query):
            tell_entered(self._spark, self._claim, command, begun)
        return [replace(e, statement=s) for e, s in zip(entries, statements, strict=True)]

    def _new(self, command: Command) -> Claim:
        self._id = self._id or str(uuid.uuid4())
        details = next((read.details for read in reads_of(command) if read.details is not None), None)
        text = command.text[:TEXT_CHARACTERS_MAX]
        return new_claim(self._spark, self._id, text, is_transaction=self._is_transaction, details=details)

    def _prepared(
        self,
        command: Command,
        i: int,
        target: Target,
        base: Claim,
        numbering_stream: str,
        known: ClaimedStatement | None,
    ) -> Entry:
        ready = prepare(self._spark, command, i, target, base.consumption_id)
        if known is not None and known.outcome == "done":
            check_stands(self._spark, base, known, target)
            return Entry(i, known, ready)
        ordinal = len(base.statements) if self._is_transaction else i
        return Entry(i, claimed_statement(self._spark, command, i, ready, numbering_stream, ordinal), ready)

    def _take(self, states: Sequence[StreamState], claim: Claim, sources: Sources) -> None:
        """Commits the claim to the catalog, and sends heartbeats for it until `close`."""
        claim = with_storage(self._spark, claim, sources)
        with ExitStack() as unless_claimed:
            # Noted before other threads can see the claim: they take a claim of this process without noted work for abandoned.
            work = unless_claimed.enter_context(running(claim.consumption_id))
            claim_streams(self._spark, states, claim, sources)
            self._resources.enter_context(unless_claimed.pop_all())
        self._claim, self._work = claim, work
        self._resources.enter_context(heartbeat(self._spark, lambda: self._claim, self._is_active))

    def take_over(self, begun: Claim) -> bool:
        """Takes over the partially committed claim of an earlier run of this transaction. Its done statements stay done, and the others
        enter again. Returns False if its streams changed meanwhile."""
        found = [catalog_of(self._spark).by_uuid(self._spark, u) for u in begun.intervals]
        states = [s for s in found if s is not None and s.claim is not None and s.claim.identity == begun.identity]
        if len(states) < len(begun.intervals):
            return False
        try:
            claim = owned(self._spark, begun, states, numbering_stream_of(begun, begun.intervals))
            self._take(states, claim, {s.stream.uuid: s.stream.source for s in states})
        except Changed:
            return False
        warn_of_resumption(begun)
        return True

    def _update(self, changed: Claim, joining: Sequence[StreamState] = (), sources: Sources | None = None) -> None:
        """Replaces the claim in the catalog. Raises CLAIM_LOST if it is gone. Raises `Changed` if an earlier commit of this process, whose
        answer was lost, has replaced it already."""
        assert self._claim is not None
        try:
            changed = with_storage(self._spark, changed, sources or {})
            self._claim = update_claim(self._spark, self._claim, changed, joining, sources or {})
        except ClaimGone:
            if self.adopt_unacknowledged():
                raise Changed from None
            raise errors.lost(self._claim, "another process took this one for dead") from None

    def adopt_unacknowledged(self) -> bool:
        """Looks for a commit of this process that replaced the claim, and whose answer was lost (Ctrl-C). If there is one, takes the claim
        as that commit wrote it, with its statements resolved. Returns whether there is one."""
        if self._claim is None:
            return False
        state = catalog_of(self._spark).by_uuid(self._spark, next(iter(self._claim.intervals)))
        now = None if state is None else state.claim
        mine = (self._claim.consumption_id, self._claim.number, self._claim.revision + 1)
        if now is None or now.identity != mine or now.owner != self._claim.owner or now.is_partially_committed:
            return False
        self._claim = resolve_claim(self._spark, now)
        return True

    def record(self, changed: Claim) -> None:
        """Replaces the claim in the catalog by one whose statements have changed. Raises CLAIM_LOST."""
        try:
            self._update(changed)
        except Changed:
            return

    # -- running

    def run(self, command: Command, entry: Entry) -> Ran:
        """Runs a statement that has entered, and resolves it, whatever it raises. Raises CONSUMPTION_IN_DOUBT, and what reading or fencing
        its target raises; the statement stays open then."""
        claim = self._claim
        assert claim is not None
        failure: BaseException | None = None
        rows: JavaObject = command.no_rows()
        try:
            rows = execute(command, entry.index, claim, entry.statement, entry.target)
        except BaseException as e:  # the exception does not tell whether the statement committed: the target's log does
            failure = e
        try:
            resolved = resolve_own(self._spark, claim, entry.statement, failure)
        except Exception as e:
            raise e from failure
        resolved = counted(command, entry.index, resolved)
        self.note_found(command, entry.index)
        statements = tuple(resolved if s.ordinal == resolved.ordinal else s for s in claim.statements)
        self._claim = replace(claim, statements=statements)
        if failure is not None and resolved.outcome == "done":
            log.warning("the statement committed although it reported an error: %s", sentence(failure))
        return Ran(rows, resolved, failure)

    def note_found(self, command: Command, i: int) -> None:
        """Notes what the checks of rows have found when statement `i` ran."""
        try:
            self._found |= checked_rows(command, i)
        except Exception as e:
            log.debug("the checks of rows are not known: %s", e)

    def resolve(self) -> list[ClaimedStatement]:
        """Resolves the open statements, and returns them: those that did not run, and those that `run` could not resolve. Raises
        CONSUMPTION_IN_DOUBT, and what reading or fencing a target raises."""
        if self._claim is None or all(s.outcome != "open" for s in self._claim.statements):
            return []
        before, self._claim = self._claim, resolve_claim(self._spark, self._claim)
        pairs = zip(before.statements, self._claim.statements, strict=True)
        resolved = [now for was, now in pairs if was.outcome == "open"]
        for s in resolved:
            if s.outcome == "done":
                where = f"into {s.target}, version {s.target_version}"
                log.warning("the statement committed although it reported an error: %s", where)
        return resolved

    # -- its end

    def finish(self, why: str | None) -> ClaimOutcome:
        """Ends the claim without COMMIT, by the outcomes of its statements. All of them must be resolved. `why`: the error that the ledger
        shows if the claim fails. Raises `ClaimTaken` or CLAIM_LOST if another process ended the claim."""
        assert self._claim is not None
        return finish(self._spark, self._claim, why, self._found)

    def commit(self) -> None:
        """Advances the streams that a done statement has read, and releases the others. Raises CLAIM_LOST if another process ended the
        claim."""
        assert self._claim is not None
        try:
            if self._claim.done:
                end_claim(self._spark, complete(self._spark, self._claim, self._found), "CONSUMED", None)
            else:
                end_claim(self._spark, self._claim, "FAILED", None)
        except ClaimGone:
            said = catalog_of(self._spark).outcome_of(self._spark, self._claim.consumption_id)
            if said != "CONSUMED" and self._claim.done:
                raise errors.lost_without_commit(self._claim, said) from None

    def end_query(self, statement: ClaimedStatement, failure: BaseException | None) -> None:
        """Ends the claim of a query that consumed by reading. `failure`: what the query raised; None: it succeeded. Raises CLAIM_LOST if
        the query succeeded, and another process ended the claim."""
        assert self._claim is not None
        claim = replace(self._claim, statements=(statement,))
        try:
            if failure is None:
                end_claim(self._spark, complete(self._spark, claim, self._found), "CONSUMED", None)
            else:
                end_claim(self._spark, claim, "FAILED", sentence(failure))
        except ClaimGone:
            if failure is None and not is_consumed(self._spark, claim):
                raise errors.lost(claim, "another process took the claim over") from None

    def is_held(self) -> bool:
        """Returns whether all streams of the claim still have it."""
        return self._claim is not None and is_held(self._spark, self._claim)


def warn_of_resumption(begun: Claim) -> None:
    """Warns that a statement or transaction resumes an earlier run of it, and so reads the interval of that run."""
    log.warning(
        "this resumes the consumption that %s began at %s: changes since then stay in the stream",
        begun.owner.who,
        iso(begun.started_at_ms),
    )
