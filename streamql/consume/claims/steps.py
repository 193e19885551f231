"""Claims in the catalog: made, changed and ended. Each step is one commit, a compare-and-set on the streams concerned."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from streamql.catalog.events import consumption_event
from streamql.catalog.states import Claim, ClaimedStatement, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.claims.errors import edited
from streamql.consume.claims.liveness import POLL_SECONDS_MIN
from streamql.consume.claims.outcomes import moves
from streamql.consume.claims.owner import this_owner
from streamql.delta.storage import are_for_several_drivers
from streamql.errors import StreamqlError
from streamql.model import Offset, SourceRef
from streamql.settings import BUSY_TIMEOUT, LEASE, seconds
from streamql.times import now_ms

T = TypeVar("T")

READING = ClaimedStatement(0, "", "", "", "", "SELECT", "", 0)
"""What the ledger shows as the statement of a query that consumed by reading."""

Sources = Mapping[str, SourceRef]
"""Stream id → where its source is now. A statement finds a renamed table once, and the claim stores the new place."""

NO_SOURCES: Sources = {}


class Changed(Exception):
    """A stream, or a target, is no longer as it was read: the caller reads it again (`retry_changed`)."""


class ClaimGone(Exception):
    """The claim is no longer on its streams as it was read: another process resolved it or took it over."""


@dataclass(frozen=True)
class Change:
    """One commit of the catalog: streams before it and after it, and rows for the ledger. `claim`: the claim that it makes, changes or
    ends; None: it concerns no claim."""

    before: Sequence[StreamState]
    after: Sequence[StreamState]
    events: Sequence[Mapping[str, Any]] = ()
    claim: Claim | None = None


def compare_and_set(spark: SparkSession, read: Callable[[bool], Change]) -> Change:
    """Commits the change that `read` returns, which was made of streams as they are now. After a conflict it is read again.

    `read` receives whether this is a retry. It ends the attempts by an exception of its own (`Changed`, `ClaimGone`)."""
    change = read(False)
    while not catalog_of(spark).commit(spark, change.before, change.after, change.events):
        change = read(True)
    return change


def retry_changed(spark: SparkSession, attempt: Callable[[], T], busy: Callable[[], StreamqlError]) -> T:
    """Returns the result of an attempt that meets no `Changed`. Raises what `busy` returns if others change the streams for
    `spark.streamql.busyTimeout`."""
    deadline = time.monotonic() + seconds(spark, BUSY_TIMEOUT)
    while True:
        try:
            return attempt()
        except Changed:
            time.sleep(POLL_SECONDS_MIN)
            if time.monotonic() > deadline:
                raise busy() from None


# -- made


def new_claim(
    spark: SparkSession, consumption_id: str, text: str, *, is_block: bool = False, details: str | None = None
) -> Claim:
    """Returns a claim of this process, without streams and statements."""
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
        details=details,
    )


def owned(spark: SparkSession, begun: Claim, states: Sequence[StreamState], lead: str) -> Claim:
    """Returns a new claim, or a partially committed one, as this process's. Its number is that of the lead stream's next event, so fences
    of earlier owners do not bind it."""
    return replace(
        begun,
        number=next(s for s in states if s.stream.uuid == lead).sequence + 1,
        owner=this_owner(spark),
        heartbeat=begun.heartbeat + 1,
        is_partially_committed=False,
        revision=begun.revision + 1,
    )


def claim_streams(spark: SparkSession, states: Sequence[StreamState], claim: Claim, sources: Sources) -> None:
    """Claims all streams of a claim by one commit. They are free, or under the partially committed claim that this one resumes. Raises
    `Changed` if one of them changed since it was read."""

    def read(is_retry: bool) -> Change:
        if is_retry:
            raise Changed
        return Change(states, [_claimed(s, claim, sources) for s in states], claim=claim)

    compare_and_set(spark, read)


def _claimed(state: StreamState, claim: Claim, sources: Sources) -> StreamState:
    return state.next(claim=claim, stream=replace(state.stream, source=sources[state.stream.uuid]))


def with_storage(spark: SparkSession, claim: Claim, sources: Sources) -> Claim:
    """Returns the claim, which notes whether the log of the catalog, of a source or of a target is where several drivers can lose commits.
    Warns of the first one."""
    tables = [t for u, s in sources.items() if u in claim.intervals for t, _ in s.holds(claim.intervals[u])]
    paths = [catalog_of(spark).path, *(t.path for t in tables), *(s.path for s in claim.statements)]
    return claim if are_for_several_drivers(spark, paths) else replace(claim, is_for_one_driver=True)


# -- changed


def update_claim(
    spark: SparkSession,
    claim: Claim,
    changed: Claim,
    joining: Sequence[StreamState] = (),
    sources: Sources = NO_SOURCES,
) -> Claim:
    """Replaces a claim by `changed` on all its streams, and on those that join it, by one commit. Returns the claim as written.

    `sources`: where the sources of the joining streams are now. Raises `ClaimGone`, and `Changed` if a stream that should join changed
    since it was read.
    """

    def read(is_retry: bool) -> Change:
        if is_retry and any(catalog_of(spark).by_uuid(spark, s.stream.uuid) != s for s in joining):
            raise Changed
        held = _to_change(spark, claim, is_retry)
        if held is None:
            raise ClaimGone
        written = replace(changed, heartbeat=_heartbeat(held) + 1, revision=claim.revision + 1)
        after = [s.next(claim=written) for s in held] + [_claimed(s, written, sources) for s in joining]
        return Change([*held, *joining], after, claim=written)

    written = compare_and_set(spark, read).claim
    assert written is not None
    return written


def _heartbeat(held: Sequence[StreamState]) -> int:
    return max((s.claim.heartbeat for s in held if s.claim is not None), default=0)


# -- ended


def ending(spark: SparkSession, claim: Claim, outcome: str, error: str | None, is_retry: bool = True) -> Change:
    """Returns the commit that advances (outcome CONSUMED) or releases (any other) all streams of a claim, and records its statements with
    their outcomes. `is_retry`: the streams are read for it. Raises `ClaimGone` if no stream has the claim."""
    held = _to_change(spark, claim, is_retry, some=True)
    if held is None:
        raise ClaimGone
    ended = now_ms()
    after = [_ended(s, claim, outcome, ended) for s in held]
    events = [
        consumption_event(s, claim, outcome, ended, statement, error)
        for s in after
        for statement in claim.statements or (READING,)
        if claim.reads(statement, s.stream.uuid)
    ]
    return Change(held, after, events, claim)


def end_claim(spark: SparkSession, claim: Claim, outcome: str, error: str | None) -> None:
    """Ends a claim by one commit (`ending`). Raises `ClaimGone`."""
    compare_and_set(spark, lambda is_retry: ending(spark, claim, outcome, error, is_retry))


def _ended(state: StreamState, claim: Claim, outcome: str, ended_ms: int) -> StreamState:
    if outcome != "CONSUMED" or not moves(claim, state.stream.uuid):
        return state.next(claim=None)
    interval = claim.intervals[state.stream.uuid]
    if state.offset != Offset(interval.after, interval.initial):
        raise edited(state, "its offset moved under a claim")
    return state.next(claim=None, offset=Offset(interval.through), last_consumed_ms=ended_ms)


# -- looked up


def _to_change(spark: SparkSession, claim: Claim, is_retry: bool, *, some: bool = False) -> list[StreamState] | None:
    """Returns the streams of a claim for a change of them, as `held_states`. The first attempt takes them as this process last read them:
    if they have changed, the commit is refused."""
    known = None if is_retry else held_states(spark, claim, some=some, read=catalog_of(spark).last_read)
    return held_states(spark, claim, some=some) if known is None else known


def held_states(
    spark: SparkSession,
    claim: Claim,
    *,
    some: bool = False,
    read: Callable[[SparkSession, str], StreamState | None] | None = None,
) -> list[StreamState] | None:
    """Returns the streams of a claim, as they are now or as `read` returns them. None: not all of them have it; with `some`, none has."""
    read = read or catalog_of(spark).by_uuid
    states = [read(spark, uuid) for uuid in claim.intervals]
    held = [s for s in states if s is not None and holds(s, claim)]
    return held if len(held) == len(states) or (some and held) else None


def holds(state: StreamState, claim: Claim) -> bool:
    """Returns whether a stream has the claim as it was read, heartbeats aside."""
    held = state.claim
    return held is not None and held.identity == claim.identity


def is_held(spark: SparkSession, claim: Claim) -> bool:
    """Returns whether all streams of the claim have it."""
    return held_states(spark, claim) is not None


def is_consumed(spark: SparkSession, claim: Claim) -> bool:
    """Returns whether the ledger says that the consumption moved its streams."""
    return catalog_of(spark).outcome_of(spark, claim.consumption_id) == "CONSUMED"


def is_under_way_elsewhere(spark: SparkSession, claim: Claim) -> bool:
    """Returns whether a stream has a claim of the same consumption: partially committed, or resumed by another process."""
    states = [catalog_of(spark).by_uuid(spark, uuid) for uuid in claim.intervals]
    return any(s is not None and s.claim is not None and s.claim.consumption_id == claim.consumption_id for s in states)
