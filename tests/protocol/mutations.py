"""The protocol broken on purpose, one step each: what the checker must find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

import streamql.consume.binding as binding
import streamql.consume.claims.resolve as resolving
import streamql.consume.claims.steps as claims
import streamql.consume.claims.waiting as waiting
import streamql.consume.consumption as consumption
import streamql.consume.matching as matching
import streamql.consume.pending as pending
import streamql.consume.run as run
import streamql.consume.targets as targets
import streamql.consume.transaction as transaction
import streamql.engine.ddl as ddl
from streamql.catalog.contents import STREAM_DOMAIN
from streamql.catalog.states import Claim, ClaimedStatement, StatementOutcome, StreamState, encode
from streamql.catalog.store import Catalog, catalog_of
from streamql.consume import execute as executing
from streamql.delta.command import ClaimedWrite, Command
from streamql.delta.table import DeltaTable
from streamql.model import TableSource
from tests.protocol.logs import Commit, Snapshot
from tests.protocol.scheduler import ORPHAN
from tests.protocol.stage import Stage
from tests.protocol.statements import ConsumeCommand

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutation:
    """A broken step; `scenario`: where the checker meets it, with other `faults` than usual where it says so."""

    name: str
    scenario: str
    breaks: Callable[[Stage, Patch], None]
    faults: frozenset[str] | None = None


def all_are(outcome: StatementOutcome, claim: Claim) -> Claim:
    """The claim with its statements resolved so, whatever the logs say."""
    return replace(claim, statements=tuple(replace(s, outcome=outcome) for s in claim.statements))


def no_fence(on: Stage, patch: Patch) -> None:
    """resolve says fenced, and has not fenced."""
    patch.setattr(resolving, "fence", lambda spark, path, app_id, number, at_least: number)


def fence_over_anything(on: Stage, patch: Patch) -> None:
    """The fence is committed whatever the log holds: no compare-and-set."""

    def fence(spark: SparkSession, path: str, app_id: str, number: int, at_least: int) -> int:
        storage = on.world.storage
        commit = Commit("fence", transactions={app_id: number})
        on.world.look(f"fences {path} blindly", lambda: storage.commit(storage.newest(path), commit))
        return number

    patch.setattr(resolving, "fence", fence)


def fence_with_commit_number(on: Stage, patch: Patch) -> None:
    """The fence carries the statement's own number, so that whoever reads it takes it for the data."""
    patch.setattr(Claim, "fence_number", Claim.commit_number)


def recover_without_resolving(on: Stage, patch: Patch) -> None:
    """Whoever finds a claim abandoned releases it, as a lease would have it."""
    patch.setattr(waiting, "resolve_reachable", lambda spark, claim, any_failure: (all_are("fenced", claim), None))


def owner_trusts_its_statement(on: Stage, patch: Patch) -> None:
    """The owner takes a statement that came back for one that committed, without looking into the log."""

    def resolve_own(
        spark: SparkSession, claim: Claim, statement: ClaimedStatement, failure: BaseException | None
    ) -> ClaimedStatement:
        if failure is not None:
            return resolving.resolve_own(spark, claim, statement, failure)
        version = DeltaTable(spark, statement.path).latest().version
        return replace(statement, outcome="done", target_version=version)

    patch.setattr(consumption, "resolve_own", resolve_own)


def owner_releases_what_raised(on: Stage, patch: Patch) -> None:
    """The owner takes a statement that raised for one that did not commit."""

    def resolve_own(
        spark: SparkSession, claim: Claim, statement: ClaimedStatement, failure: BaseException | None
    ) -> ClaimedStatement:
        if failure is not None:
            return replace(statement, outcome="fenced")
        return resolving.resolve_own(spark, claim, statement, None)

    patch.setattr(consumption, "resolve_own", resolve_own)


def statement_with_fence_number(on: Stage, patch: Patch) -> None:
    """The statement's commit carries the fence's number."""
    patch.setattr(executing, "ClaimedWrite", lambda app_id, number, *target: ClaimedWrite(app_id, number + 1, *target))


def statement_without_number(on: Stage, patch: Patch) -> None:
    """The statement's commit carries no number."""
    real = Command.execute
    patch.setattr(Command, "execute", lambda self, i, claimed=None: real(self, i))


def numbers_looked_for_late(on: Stage, patch: Patch) -> None:
    """The statement's transaction looks for its number in commits since it began, not since the claim."""
    real = ConsumeCommand._is_done_before

    def late(command: ConsumeCommand, base: Snapshot, claimed: ClaimedWrite | None) -> bool:
        return real(command, base, None if claimed is None else replace(claimed, seen=base.number))

    patch.setattr(ConsumeCommand, "_is_done_before", late)


def claim_without_comparing(on: Stage, patch: Patch) -> None:
    """A claim is made of streams as they are now, not as they were read."""

    def claim_streams(
        spark: SparkSession, states: Sequence[StreamState], claim: Claim, sources: Mapping[str, TableSource]
    ) -> None:
        now = [catalog_of(spark).by_uuid(spark, s.stream.uuid) for s in states]
        there = [s for s in now if s is not None]
        if not catalog_of(spark).commit(spark, there, [s.next(claim=claim) for s in there], []):
            raise claims.Changed

    patch.setattr(consumption, "claim_streams", claim_streams)


def claim_over_a_claim(on: Stage, patch: Patch) -> None:
    """A consumer does not wait for another one's claim."""

    def wait_until_free(spark: SparkSession, state: StreamState, **_: Any) -> StreamState:
        return catalog_of(spark).by_uuid(spark, state.stream.uuid) or state

    patch.setattr(run, "wait_until_free", wait_until_free)


def end_without_checking(on: Stage, patch: Patch) -> None:
    """A claim is ended without looking whether it is still there."""

    def ended(state: StreamState, claim: Claim, outcome: str, ended_ms: int) -> StreamState:
        interval = claim.intervals[state.stream.uuid]
        offset = replace(state.offset, position=interval.through) if outcome == "CONSUMED" else state.offset
        return state.next(claim=None, offset=offset)

    patch.setattr(claims, "holds", lambda state, claim: True)
    patch.setattr(claims, "_ended", ended)


def old_interval(on: Stage, patch: Patch) -> None:
    """A consumer that had to wait runs the interval that it was analysed with."""
    patch.setattr(binding, "_fits", lambda token, wanted, offset: True)


def one_app_id(on: Stage, patch: Patch) -> None:
    """All streams share one application id, though each counts by itself."""
    real = targets.claimed_statement

    def claimed_statement(*args: Any) -> ClaimedStatement:
        return replace(real(*args), app_id="streamql")

    patch.setattr(consumption, "claimed_statement", claimed_statement)


def numbers_that_repeat(on: Stage, patch: Patch) -> None:
    """The number is the offset that the claim begins at: the same for each attempt."""
    patch.setattr(
        Claim, "commit_number", property(lambda claim: 2 * (min(i.after for i in claim.intervals.values()) + 1))
    )


def enters_after_it_ran(on: Stage, patch: Patch) -> None:
    """A statement of a block runs, and enters the claim with the next one."""
    real = consumption.update_claim

    def update_claim(spark: SparkSession, claim: Claim, changed: Claim, *rest: Any) -> Claim:
        written = real(spark, claim, replace(changed, statements=changed.statements[:-1]), *rest)
        return replace(written, statements=changed.statements)

    patch.setattr(consumption, "update_claim", update_claim)


def block_trusts_an_error(on: Stage, patch: Patch) -> None:
    """A block takes a statement that raised for one that did not commit, so that it may be withdrawn."""

    def resolve_own(
        spark: SparkSession, claim: Claim, statement: ClaimedStatement, failure: BaseException | None
    ) -> ClaimedStatement:
        if isinstance(failure, Exception):
            return replace(statement, outcome="fenced")
        return resolving.resolve_own(spark, claim, statement, failure)

    patch.setattr(consumption, "resolve_own", resolve_own)


def commit_waits_for_no_statement(on: Stage, patch: Patch) -> None:
    """COMMIT moves the streams though a statement failed."""
    patch.setattr(pending.Pending, "last", None)


def withdrawn_statements_are_forgotten(on: Stage, patch: Patch) -> None:
    """A statement that was withdrawn and runs again is not told of the one that was done in its place."""
    patch.setattr(matching, "_is_withdrawn", lambda claim, fingerprint: False)


def done_statements_run_again(on: Stage, patch: Patch) -> None:
    """A process that resumes a partially committed block does all of it."""
    patch.setattr(transaction.Transaction, "_matched", lambda _, command, i, fingerprint: None)


def gives_up_by_a_commit_of_its_own(on: Stage, patch: Patch) -> None:
    """A person's statement gives a consumption up, then does what it says."""
    real = ddl.force_release

    def force_release(spark: SparkSession, state: StreamState) -> claims.Change:
        while (last := real(spark, state)).events:
            catalog_of(spark).commit(spark, last.before, last.after, last.events)
        return last

    patch.setattr(ddl, "force_release", force_release)


def looks_at_the_state_alone(on: Stage, patch: Patch) -> None:
    """A commit that was answered as a conflict counts as written only while its streams are still as it left them."""

    def is_written(self: Catalog, spark: SparkSession, base: int, domains: Mapping[str, str | None]) -> bool:
        now = {STREAM_DOMAIN + uuid: encode(state) for uuid, state in self._contents.streams.items()}
        return all(now.get(d) == text for d, text in domains.items() if d.startswith(STREAM_DOMAIN))

    patch.setattr(Catalog, "_is_written", is_written)


MUTATIONS = (
    Mutation("a refused commit is looked for in the state", "an offset set back", looks_at_the_state_alone),
    Mutation(
        "given up by a commit of its own", "a block and a person who gives it up", gives_up_by_a_commit_of_its_own
    ),
    Mutation("a statement enters after it ran", "a block and an insert", enters_after_it_ran),
    Mutation("done statements run again", "one block", done_statements_run_again),
    Mutation("a block trusts an error", "a block that is corrected", block_trusts_an_error),
    Mutation("a COMMIT without a failed statement", "a block that continues on errors", commit_waits_for_no_statement),
    Mutation("withdrawn statements are forgotten", "a block that is corrected", withdrawn_statements_are_forgotten),
    Mutation("resolve says fenced without fencing", "one insert", no_fence, frozenset({ORPHAN})),
    Mutation("a fence over whatever is there", "one insert", fence_over_anything, frozenset({ORPHAN})),
    Mutation("a fence with the statement's number", "two inserts", fence_with_commit_number),
    Mutation("recovery releases without resolving", "one insert", recover_without_resolving),
    Mutation("the owner trusts its statement", "two inserts", owner_trusts_its_statement),
    Mutation("the owner releases what raised", "one insert", owner_releases_what_raised),
    Mutation("a statement with the fence's number", "one insert", statement_with_fence_number),
    Mutation("a statement without a number", "one insert", statement_without_number),
    Mutation("numbers looked for too late", "two inserts", numbers_looked_for_late, frozenset()),
    Mutation("a claim without compare-and-set", "two targets", claim_without_comparing),
    Mutation("a claim over a claim", "two targets", claim_over_a_claim),
    Mutation("an end without a look at the claim", "heartbeats", end_without_checking, frozenset()),
    Mutation("an interval from before the wait", "two inserts", old_interval),
    Mutation("one application id for all streams", "two streams in a statement", one_app_id),
    Mutation("a number that each attempt has", "one insert", numbers_that_repeat),
    Mutation("a refresh without a number", "two refreshes", statement_without_number),
)
