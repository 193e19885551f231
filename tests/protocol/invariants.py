"""What must hold when a run is over, read from the logs alone: the catalog's commits, the targets' commits, and what statements said."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from py4j.protocol import Py4JError

from streamql.catalog.contents import STREAM_DOMAIN
from streamql.catalog.states import Claim, StreamState, decode, read_position
from streamql.errors import StreamqlError
from streamql.model import Position
from tests.protocol.logs import Commit, Conflict, DeltaError, Json
from tests.protocol.scheduler import LostAnswer, StatementFailed
from tests.protocol.world import EVENTS, World

LOUD = frozenset({"CLAIM_LOST", "CONSUMPTION_IN_DOUBT"})
"""Codes that tell a person to look."""

EXPECTED = LOUD | {
    "CONSUMPTION_PARTIALLY_COMMITTED",
    "STREAM_MOVED",
    "STREAM_BUSY",
    "STREAM_NOT_FOUND",
    "STREAM_ALREADY_EXISTS",
    "CONSUMPTION_FAILED",
}
"""Codes with which a statement may end when others are at work, or something breaks."""

SAID = frozenset({"set_offset", "altered", "renamed", "given_up", "created", "replaced"})
"""Events that a person's statement brings, one each."""

OUTSIDE = (Conflict, DeltaError, LostAnswer, StatementFailed, Py4JError)


Attempt = tuple[str, int]
"""A claim: the id of the consumption, and the claim's number. A statement whose claim was taken away may claim again under its id."""


@dataclass
class History:
    """What the catalog's commits say. `claims` that were made, and how they `ended`; the `ledger` of each. `states`: the last state of each
    stream that still stands. `sources`: where each stream's source lies."""

    claims: dict[Attempt, Claim] = field(default_factory=dict)
    ended: dict[Attempt, str] = field(default_factory=dict)
    ledger: dict[Attempt, list[Json]] = field(default_factory=dict)
    states: dict[str, StreamState] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def history(world: World) -> History:
    """Follows the catalog's commits, and complains of steps that no event accounts for."""
    seen = History()
    for commit in world.storage.logs[EVENTS].commits:
        for domain, text in commit.domains.items():
            if domain.startswith(STREAM_DOMAIN):
                uuid = domain.removeprefix(STREAM_DOMAIN)
                was, now = seen.states.pop(uuid, None), None if text is None else decode(text)
                events = [e for e in commit.events if e["stream_id"] == uuid]
                _end(seen, was, now, events)
                if now is not None:
                    _follow(seen, was, now, events, commit.transactions.get(uuid))
    return seen


def _attempt(state: StreamState | None) -> Attempt | None:
    claim = None if state is None else state.claim
    return None if claim is None else (claim.consumption_id, claim.number)


def _end(seen: History, was: StreamState | None, now: StreamState | None, events: list[Json]) -> None:
    """Notes down how a claim ended, which only an event of its own may tell."""
    attempt = _attempt(was)
    told = [e for e in events if e.get("consumption_id") is not None]
    if attempt is not None and attempt != _attempt(now) and not _is_taken_over(was, now):
        if not told or any(e["consumption_id"] != attempt[0] for e in told):
            seen.wrong.append(f"the claim {attempt} went away by {events}")
        else:
            said = [e["outcome"] for e in told]  # a block that committed may have statements that failed before
            seen.ended[attempt] = "CONSUMED" if "CONSUMED" in said else said[0]
            seen.ledger.setdefault(attempt, []).extend(told)
    elif told:
        seen.wrong.append(f"{told} ended a claim that was not there")


def _is_taken_over(was: StreamState | None, now: StreamState | None) -> bool:
    """Whether a partially committed claim is resumed, under a new number."""
    old, new = (None if s is None else s.claim for s in (was, now))
    return (
        old is not None and new is not None and old.is_partially_committed and old.consumption_id == new.consumption_id
    )


def _follow(seen: History, was: StreamState | None, now: StreamState, events: list[Json], number: int | None) -> None:
    uuid = now.stream.uuid
    seen.states[uuid] = now
    seen.sources[uuid] = now.stream.source.path
    if was is not None:
        told = sorted({e["sequence"] for e in events})  # several: a consumption was released by the user
        counted = was.sequence + (0 if number is None else max(1, len(told)))
        is_next = told in ([], list(range(was.sequence + 1, counted + 1)))
        if now.sequence != counted or not is_next or number not in (None, now.sequence):
            seen.wrong.append(f"{uuid} went from event {was.sequence} to {now.sequence}, numbered {number}")
        if now.offset != was.offset and not any(_explains(e, was, now) for e in events):
            seen.wrong.append(f"the offset of {uuid} went from {was.offset} to {now.offset} by {events}")
        for consumed in [e for e in events if e["event"] == "consumed"]:
            if _ends_of(consumed) != (was.offset.position, now.offset.position):
                seen.wrong.append(f"{uuid} went from {was.offset} to {now.offset}, the ledger says {consumed}")
    claim, attempt = now.claim, _attempt(now)
    if claim is not None and attempt is not None:
        is_new = attempt not in seen.claims
        seen.claims[attempt] = claim  # a block's grows
        lead = seen.states.get(min(claim.intervals))
        if is_new and min(claim.intervals) == uuid and (lead is None or claim.number != lead.sequence):
            seen.wrong.append(f"{attempt} has another number than its event, {lead and lead.sequence}")


def _explains(event: Json, was: StreamState, now: StreamState) -> bool:
    if event["event"] == "set_offset":
        return True
    moved = _ends_of(event) == (was.offset.position, now.offset.position)
    return bool(event["event"] == "consumed" and moved and not now.offset.initial)


def _ends_of(event: Json) -> tuple[Position | None, Position | None]:
    """Where the interval of a consumption begins and ends, by its row of the ledger."""
    if event.get("positions") is None:
        return event.get("from_version"), event.get("through_version")
    after, through = json.loads(event["positions"])
    return read_position(after), read_position(through)


def complaints(world: World) -> list[str]:
    """Everything that is wrong; empty: the run kept the promise."""
    if world.scheduler.problem is not None:
        return [world.scheduler.problem]
    seen = history(world)
    found = [*world.accusations, *seen.wrong, *_crashes_of_ours(world)]
    found += _rows_against_ledger(world, seen)
    found += _statements(world, seen)
    found += _persons(world)
    found += _ends(world, seen)
    return found


def _crashes_of_ours(world: World) -> Iterator[str]:
    """Errors that nobody meant to raise."""
    for outcome in world.outcomes:
        error = outcome.error
        if error is not None and outcome.code not in EXPECTED and not isinstance(error, OUTSIDE):
            yield f"{outcome.actor}: {outcome.text} raised {type(error).__name__}: {error}"
    for actor in world.scheduler.actors:
        if actor.failure is not None and not isinstance(actor.failure, OUTSIDE):
            yield f"{actor.name} raised {type(actor.failure).__name__}: {actor.failure}"


def _rows_against_ledger(world: World, seen: History) -> Iterator[str]:
    """Every commit with rows of streams belongs to one consumption in the ledger, and every entry to such a commit."""
    left = {
        (log.path, i, n): c for n, log in enumerate(world.logs()) for i, c in enumerate(log.commits) if _streamed(c)
    }
    names = {(s.app_id, claim.commit_number): a for a, claim in seen.claims.items() for s in claim.statements}
    for attempt, claim in seen.claims.items():
        rows = _rows_of(world, seen, claim)
        for statement in claim.statements if seen.ended.get(attempt) == "CONSUMED" else ():
            if statement.outcome == "fenced":
                continue
            entries = [
                e for e in seen.ledger[attempt] if e["target_path"] == statement.path and e["outcome"] == "CONSUMED"
            ]
            if not entries and claim.is_transaction:  # it failed, and the rest was committed
                continue
            where = {(e["target_path"], e["target_version"]) for e in entries}
            where |= {
                (path, k[1]) for path, version in where if version is None for k in left
            }  # where it was not looked for
            numbered = (statement.app_id, claim.commit_number)
            alike = [k for k, c in left.items() if k[:2] in where and sorted(c.rows) == rows]
            own = [k for k in alike if numbered in left[k].transactions.items()]
            found = own or alike
            if found:  # of a table and the one that stood at its path before, the one with the claim's number
                del left[found[0]]
            elif rows:
                yield f"LOST: {attempt} is CONSUMED, and {rows} are not in the version that the ledger names: {where}"
    for (path, version, _), commit in left.items():
        owners = [names.get(txn) for txn in commit.transactions.items()]
        said = {seen.ended.get(o) for o in owners if o is not None}
        if said not in ({"IN_DOUBT"}, {"PARTIALLY_COMMITTED"}) and not (world.residual and _was_told(world, commit)):
            yield f"DOUBLED: {list(commit.rows)} are in {path} version {version} by {commit.by}; the ledger says {said or 'nothing'}"


def _was_told(world: World, commit: Commit) -> bool:
    """Whether the statement that made a commit ended with an error that tells a person to look; where it died, whether another one did."""
    own = [o for o in world.outcomes if commit.by in (o.actor, f"{o.actor}-jvm")]
    ended = [o for o in own if o.ended]
    return any(o.code in LOUD for o in ended or world.outcomes)


def _streamed(commit: Commit) -> bool:
    return any(row.startswith("stream-") for row in commit.rows)


def _rows_of(world: World, seen: History, claim: Claim) -> list[str]:
    """The rows that the streams had to give to a consumption."""
    rows = [r for u, i in claim.intervals.items() for r in world.changes(u, seen.sources[u], i)]
    return sorted(rows)


def _statements(world: World, seen: History) -> Iterator[str]:
    """A statement that returned has its rows in the ledger; one that says its claim was lost has none there. Nothing comes twice."""
    for outcome in [o for o in world.outcomes if o.is_one]:
        consumed = [a for a, how in seen.ended.items() if a[0] in outcome.ids and how == "CONSUMED"]
        took = sorted(r for a in consumed for r in _rows_of(world, seen, seen.claims[a]))
        if outcome.ended and outcome.error is None and sorted(outcome.took) != took:
            yield f"{outcome.actor}: {outcome.text} returned after {outcome.took}, the ledger says {took}"
        facts = outcome.error.facts if isinstance(outcome.error, StreamqlError) else {}
        if outcome.code == "STREAM_BUSY" and facts.get("consumption_id") in outcome.ids:
            yield f"{outcome.actor}: {outcome.text} waited for itself"
        if outcome.code == "CLAIM_LOST" and consumed:
            yield f"{outcome.actor}: {outcome.text} says its claim was lost, the ledger says {took}"
    delivered = Counter(row for outcome in world.outcomes for row in outcome.rows)
    delivered.update(row for log in world.logs() for commit in log.commits for row in commit.rows if _streamed(commit))
    if not world.residual and not world.repeats:
        copies = max(1, len(world.together))
        yield from (f"DOUBLED: {row} was delivered {n} times" for row, n in delivered.items() if n > copies)
    for attempt, claim in seen.claims.items():
        if world.together and seen.ended.get(attempt) == "CONSUMED" and len(claim.statements) > 1:
            into = {e["target_path"] for e in seen.ledger[attempt] if e["outcome"] == "CONSUMED"}
            if into != set(world.together):
                yield f"LOST: {attempt} is CONSUMED into {sorted(into)} only"
    for log in world.logs():
        rows = Counter(row for commit in log.commits for row in commit.rows if _streamed(commit))
        if not world.residual and not world.repeats:
            yield from (f"DOUBLED: {row} is in {log.path} {n} times" for row, n in rows.items() if n > 1)


def _persons(world: World) -> Iterator[str]:
    """What a person says about a stream is done once, though it may have been answered as a conflict and tried again."""
    rows = [e for commit in world.storage.logs[EVENTS].commits for e in commit.events if e["event"] in SAID]
    said = Counter(outcome.text for outcome in world.outcomes)
    for (text, stream), n in Counter((row["statement"], row["stream_id"]) for row in rows).items():
        if n > max(1, said[text]):
            yield f"DOUBLED: {text} was done {n} times to {stream}"


def _ends(world: World, seen: History) -> Iterator[str]:
    """No claim is left, and the streams that stand have been drained; unless the user has to choose, and was told."""
    if any(o.code == "CONSUMPTION_IN_DOUBT" for o in world.outcomes[-world.drains :]):
        if not world.residual:
            yield "a consumption could not be resolved"
        return
    named = Counter(state.name.key for state in seen.states.values())
    yield from (f"{n} streams have the name {name}" for name, n in named.items() if n > 1)
    for uuid, state in seen.states.items():
        last = world.latest(seen.sources[uuid])
        if state.claim is not None:
            yield f"the claim {state.claim.consumption_id} was left on {uuid}"
        if state.offset.position != last or state.offset.initial:
            yield f"STUCK: {uuid} is at {state.offset}, its source at {last}"
