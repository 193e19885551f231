"""Makes, changes and ends claims in the catalog. Each step is one commit, which is a compare-and-set on the streams concerned."""

from __future__ import annotations

import json
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
from streamql.settings import BUSY_TIMEOUT, LEASE, RUN, seconds
from streamql.times import now_ms

T = TypeVar("T")

READING = ClaimedStatement(0, "", "", "", "", "SELECT", "", 0)
"""The statement that the ledger shows for a query that consumed by reading. Such a claim has no statements of its own."""

Sources = Mapping[str, SourceRef]
"""Stream id → the stream's source where it is now. If a statement finds that a table was renamed, its claim stores the new name and
path."""

NO_SOURCES: Sources = {}


class Changed(Exception):
    """Raised if a stream or a target has changed since it was read. The caller reads it again (`retry_changed`)."""


class ClaimGone(Exception):
    """Raised if the claim is no longer on its streams as it was read: another process resolved it or took it over."""


@dataclass(frozen=True)
class Change:
    """One commit of the catalog: its streams before and after it, and its rows of the ledger. `claim`: the claim that it makes, changes or
    ends; None: it concerns no claim."""

    before: Sequence[StreamState]
    after: Sequence[StreamState]
    events: Sequence[Mapping[str, Any]] = ()
    claim: Claim | None = None


def compare_and_set(spark: SparkSession, read: Callable[[bool], Change]) -> Change:
    """Commits the change that `read` returns, and returns that change. After a conflict, calls `read` again and retries.

    `read` reads the streams and makes the change of them. Its argument says whether this is a retry. It ends the retries by raising an
    exception (`Changed`, `ClaimGone`).
    """
    change = read(False)
    while not catalog_of(spark).commit(spark, change.before, change.after, change.events):
        change = read(True)
    return change


def retry_changed(spark: SparkSession, attempt: Callable[[], T], busy: Callable[[], StreamqlError]) -> T:
    """Calls `attempt` until it does not raise `Changed`, and returns its result. Raises the error that `busy` returns once
    `spark.streamql.busyTimeout` has passed."""
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
    spark: SparkSession, consumption_id: str, text: str, *, is_transaction: bool = False, details: str | None = None
) -> Claim:
    """Returns a claim of this process that has no streams and no statements yet."""
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
        is_transaction=is_transaction,
        details=details,
    )


def owned(spark: SparkSession, begun: Claim, states: Sequence[StreamState], numbering_stream: str) -> Claim:
    """Returns a new or a partially committed claim as the claim of this process. Its number is that of the numbering stream's next event,
    so fences of earlier owners do not apply to it. `numbering_stream`: the stream's id."""
    return replace(
        begun,
        details=_details_of_run(begun.details, spark.conf.get(RUN, "") or ""),
        number=next(s for s in states if s.stream.uuid == numbering_stream).sequence + 1,
        owner=this_owner(spark),
        heartbeat=begun.heartbeat + 1,
        is_partially_committed=False,
        revision=begun.revision + 1,
    )


def _details_of_run(details: str | None, run: str) -> str | None:
    """Returns the details of a claim with the name of the run that owns it. A claim that another run began is this one's once it is
    resumed."""
    if not run:
        return details
    return json.dumps({**json.loads(details or "{}"), "run": run})


def claim_streams(spark: SparkSession, states: Sequence[StreamState], claim: Claim, sources: Sources) -> None:
    """Puts a claim on all its streams by one commit. The streams must be free, or have the partially committed claim that this one resumes.
    Raises `Changed` if one of them changed since it was read."""

    def read(is_retry: bool) -> Change:
        if is_retry:
            raise Changed
        return Change(states, [_claimed(s, claim, sources) for s in states], claim=claim)

    compare_and_set(spark, read)


def _claimed(state: StreamState, claim: Claim, sources: Sources) -> StreamState:
    return state.next(claim=claim, stream=replace(state.stream, source=sources[state.stream.uuid]))


def with_storage(spark: SparkSession, claim: Claim, sources: Sources) -> Claim:
    """Returns the claim with `is_for_one_driver` set if several drivers could lose commits in one of its logs: of the catalog, the sources
    or the targets. Warns of the first such log."""
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
    """Replaces a claim by `changed`, by one commit, on all its streams and on the `joining` ones. Returns the claim as it was written.

    `sources`: the sources of the joining streams where they are now. Raises `ClaimGone`, and `Changed` if a joining stream changed since it
    was read.
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
    """Returns the change that ends a claim, and records its statements with their outcomes in the ledger. The outcome CONSUMED advances the
    streams, and any other one releases them. `is_retry`: the streams are read again; False: as this process last read them. Raises
    `ClaimGone` if no stream has the claim."""
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
    return Change(held, [s.counting(events) for s in after], events, claim)


def end_claim(spark: SparkSession, claim: Claim, outcome: str, error: str | None) -> None:
    """Ends a claim by one commit, which `ending` makes. Raises `ClaimGone`."""
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
    """Returns the streams of a claim, as `held_states` does, so that a change can be made of them. The first attempt takes them as this
    process last read them, without reading the catalog: if they have changed since, the commit is refused."""
    known = None if is_retry else held_states(spark, claim, some=some, read=catalog_of(spark).last_read)
    return held_states(spark, claim, some=some) if known is None else known


def held_states(
    spark: SparkSession,
    claim: Claim,
    *,
    some: bool = False,
    read: Callable[[SparkSession, str], StreamState | None] | None = None,
) -> list[StreamState] | None:
    """Returns the streams of a claim, as they are now or as `read` returns them. None if one of them does not have the claim. With `some`,
    returns those that have the claim, and None if no stream has it."""
    read = read or catalog_of(spark).by_uuid
    states = [read(spark, uuid) for uuid in claim.intervals]
    held = [s for s in states if s is not None and holds(s, claim)]
    return held if len(held) == len(states) or (some and held) else None


def holds(state: StreamState, claim: Claim) -> bool:
    """Returns whether a stream has the claim as it was read; later heartbeats do not count."""
    held = state.claim
    return held is not None and held.identity == claim.identity


def is_held(spark: SparkSession, claim: Claim) -> bool:
    """Returns whether all streams of the claim have it."""
    return held_states(spark, claim) is not None


def is_consumed(spark: SparkSession, claim: Claim) -> bool:
    """Returns whether the ledger says that the consumption moved its streams."""
    return catalog_of(spark).outcome_of(spark, claim.consumption_id) == "CONSUMED"


def is_under_way_elsewhere(spark: SparkSession, claim: Claim) -> bool:
    """Returns whether a stream has a claim of the same consumption, which is partially committed or was resumed by another process."""
    states = [catalog_of(spark).by_uuid(spark, uuid) for uuid in claim.intervals]
    return any(s is not None and s.claim is not None and s.claim.consumption_id == claim.consumption_id for s in states)
