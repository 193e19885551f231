"""The state of a stream as the catalog keeps it, and its JSON form. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from streamql.errors import StreamqlError
from streamql.model import Interval, Offset, Parts, Position, Stream, StreamMode, TableSource
from streamql.names import Name
from streamql.sources.registry import read_source, source_json

FORMAT = 2
"""Version of the JSON form; a newer one is refused, not guessed at. Streams on tables are written as format 1, which all releases read."""

StatementOutcome = Literal["open", "done", "fenced"]


@dataclass(frozen=True)
class Owner:
    """Who made a claim. `started` tells two processes of one id apart; `token` two processes of one host and id."""

    token: str
    host: str
    pid: int
    started: str
    user: str

    @property
    def who(self) -> str:
        """user@host, for display: without what tells one start of the host from another."""
        return f"{self.user}@{self.host.split('/')[0]}"


@dataclass(frozen=True)
class ClaimedStatement:
    """One statement of a claim and where it writes: the target's log at `path` resolves it, by the number under `app_id`.

    `seen`: the target's version when the claim was made. `fingerprint`: equal for equal statements. Of one that is done:
    `target_version`, the version that its commit made, and the commit's metrics, where they are known; `changes`: the rows it took of
    each stream (by id), by change type, known where its own process lived to say so. `streams`: ids of those that it reads; none: all
    of its claim. `entered`: in a block, the number of the claim by then, which is another one in each run of the block. `withdrawn`:
    it failed, and ROLLBACK STATEMENT said that COMMIT need not wait for it.
    """

    ordinal: int
    app_id: str
    path: str
    table_id: str
    target: str
    operation: str
    fingerprint: str
    seen: int
    outcome: StatementOutcome = "open"
    target_version: int | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    streams: tuple[str, ...] = ()
    changes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    entered: int = 0
    withdrawn: bool = False

    def writes_where(self, path: str, target: str) -> bool:
        """Returns whether it writes into the target at a path, which has many names. A target that is not a Delta table has only a name."""
        return self.path == path and (bool(path) or self.target == target)


@dataclass(frozen=True)
class Claim:
    """A consumption under way: which streams over which intervals, into what, by whom.

    `number` is n: the event number that the claim's own commit gave the lowest stream. Statements commit with 2n, a fence with 2n + 1.
    `is_block`: the statements come one by one (BEGIN TRANSACTION), so that only COMMIT says there are no more. `is_partially_committed`:
    some statements are done, the others fenced, and no process is at work: the same statements, run again, take the claim over. `revision`
    counts how often the claim was written anew: a process that resolves it for its owner must have read all statements that entered it.
    `details`: what the ledger shall say besides, JSON; None: nothing. `is_for_one_driver`: it touches a table where a commit can be lost if
    several drivers write. `counted`: the rows of intervals of which a second read may find less, by stream, before its first statement.
    """

    consumption_id: str
    number: int
    intervals: Mapping[str, Interval]
    statements: tuple[ClaimedStatement, ...]
    owner: Owner
    heartbeat: int
    started_at_ms: int
    text: str
    lease_seconds: float
    is_block: bool = False
    is_partially_committed: bool = False
    revision: int = 0
    details: str | None = None
    is_for_one_driver: bool = False
    counted: Mapping[str, int] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, int, int]:
        """Returns what must be the same for a step on a claim to be a step on this claim, as it was read: heartbeats aside, all of it."""
        return (self.consumption_id, self.number, self.revision)

    @property
    def done(self) -> tuple[ClaimedStatement, ...]:
        """Returns the statements whose commits are in their targets, by the record."""
        return tuple(s for s in self.statements if s.outcome == "done")

    def reads(self, statement: ClaimedStatement, uuid: str) -> bool:
        """Returns whether a statement of the claim reads a stream."""
        return not statement.streams or uuid in statement.streams

    def guarantee(self, statement: ClaimedStatement) -> str:
        """Returns how often a change arrives where a statement of the claim writes. Without a log at the target, its process alone knows
        what it did; a query that consumed is not shown again."""
        if not statement.path:
            return "at_least_once" if statement.target else "at_most_once"
        return "exactly_once_by_one_driver" if self.is_for_one_driver else "exactly_once"

    @property
    def where_done(self) -> str:
        """For display: the targets of the statements that are done, with the versions these made."""
        return ", ".join(f"{s.target} (version {s.target_version})" for s in self.done)

    @property
    def commit_number(self) -> int:
        """Returns what the statement's own commit carries."""
        return 2 * self.number

    @property
    def fence_number(self) -> int:
        """Returns what a fence carries: higher, so that the statement can no longer commit."""
        return 2 * self.number + 1


@dataclass(frozen=True)
class StreamState:
    """A stream with what moves: offset, event number, live claim."""

    stream: Stream
    offset: Offset
    sequence: int
    claim: Claim | None = None
    last_consumed_ms: int | None = None

    @property
    def name(self) -> Name:
        """Returns the stream's name."""
        return self.stream.name

    def next(self, **changes: Any) -> StreamState:
        """Returns the state after one more event."""
        return replace(self, sequence=self.sequence + 1, **changes)


def lowest(uuids: Mapping[str, Any]) -> str:
    """Of several streams, the one whose number and id a claim is known by."""
    return min(uuids)


def encode(state: StreamState) -> str:
    """Returns the JSON form."""
    s = state.stream
    return json.dumps(
        {
            "format": 1 if isinstance(s.source, TableSource) else FORMAT,
            "uuid": s.uuid,
            "name": list(s.name.parts),
            "source": source_json(s.source),
            "mode": s.mode.value,
            "show_initial_rows": s.show_initial_rows,
            "comment": s.comment,
            "created_at_ms": s.created_at_ms,
            "created_by": s.created_by,
            "definition": s.definition,
            "offset": {"version": position_json(state.offset.position), "initial": state.offset.initial},
            "sequence": state.sequence,
            "last_consumed_ms": state.last_consumed_ms,
            "claim": None if state.claim is None else _claim(state.claim),
        },
        sort_keys=True,
    )


T = TypeVar("T")


def decode(text: str) -> StreamState:
    """Returns the state that a JSON form holds. Raises CATALOG_UNREADABLE if it is not a form of ours."""
    return decoded(text, lambda _: None)


def decoded(text: str, other: Callable[[Mapping[str, Any]], T | None]) -> StreamState | T:
    """Returns what a JSON form holds: what `other` reads from it, else (it returns None) the state of a stream. Raises
    CATALOG_UNREADABLE."""
    try:
        data = json.loads(text)
        if data["format"] > FORMAT:
            raise StreamqlError(
                "CATALOG_UNREADABLE",
                f"the catalog was written by a newer streamql (format {data['format']}, this one reads {FORMAT})",
                hint="upgrade streamql here",
            )
        found = other(data)
        if found is not None:
            return found
        stream = Stream(
            uuid=data["uuid"],
            name=Name.of(data["name"]),
            source=read_source(data["source"]),
            mode=StreamMode(data["mode"]),
            show_initial_rows=data["show_initial_rows"],
            comment=data["comment"],
            created_at_ms=data["created_at_ms"],
            created_by=data["created_by"],
            definition=data["definition"],
        )
        claim = data["claim"]
        return StreamState(
            stream,
            Offset(read_position(data["offset"]["version"]), data["offset"]["initial"]),
            read_count(data["sequence"]),
            None if claim is None else _read_claim(claim),
            data["last_consumed_ms"],
        )
    except (LookupError, TypeError, ValueError, AttributeError) as e:
        raise StreamqlError(
            "CATALOG_UNREADABLE",
            f"it is damaged, or was written by another program: {e!r}",
        ) from e


def position_json(position: Position) -> int | dict[str, int]:
    """Returns a position as JSON has it: a table's version as a number, parts as an object."""
    return position if isinstance(position, int) else dict(position.numbers)


def read_position(data: object) -> Position:
    """Returns the position that `position_json` wrote. Raises ValueError."""
    if isinstance(data, dict):
        return Parts.of({str(part): read_count(number) for part, number in data.items()})
    return read_count(data, -1)


def interval_json(interval: Interval) -> list[Any]:
    """Returns an interval as JSON has it: where it begins, where it ends, whether it has initial rows."""
    return [position_json(interval.after), position_json(interval.through), interval.initial]


def read_interval(data: Sequence[Any]) -> Interval:
    """Returns the interval that `interval_json` wrote. Raises LookupError or ValueError."""
    return Interval(read_position(data[0]), read_position(data[1]), data[2])


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "consumption_id": claim.consumption_id,
        "number": claim.number,
        "intervals": {u: interval_json(i) for u, i in claim.intervals.items()},
        "statements": [_statement(s) for s in claim.statements],
        "owner": vars(claim.owner),
        "heartbeat": claim.heartbeat,
        "started_at_ms": claim.started_at_ms,
        "text": claim.text,
        "lease_seconds": claim.lease_seconds,
        "is_block": claim.is_block,
        "is_unfinished": claim.is_partially_committed,
        "revision": claim.revision,
        **({} if claim.details is None else {"details": claim.details}),
        **({"is_for_one_driver": True} if claim.is_for_one_driver else {}),
        **({"counted": dict(claim.counted)} if claim.counted else {}),
    }


def _statement(statement: ClaimedStatement) -> dict[str, Any]:
    data = {**vars(statement), "metrics": dict(statement.metrics)}
    if not statement.withdrawn:  # versions of streamql that do not know the field can read all other claims
        del data["withdrawn"]
    return data


def _read_claim(data: Mapping[str, Any]) -> Claim:
    return Claim(
        data["consumption_id"],
        read_count(data["number"]),
        {u: read_interval(i) for u, i in data["intervals"].items()},
        tuple(ClaimedStatement(**{**s, "streams": tuple(s.get("streams", ()))}) for s in data["statements"]),
        Owner(**data["owner"] | {"pid": read_count(data["owner"]["pid"])}),
        read_count(data["heartbeat"]),
        read_count(data["started_at_ms"]),
        data["text"],
        float(data["lease_seconds"]),
        data.get("is_block", False),
        data.get("is_unfinished", False),
        read_count(data.get("revision", 0)),
        data.get("details"),
        data.get("is_for_one_driver", False),
        {uuid: read_count(n) for uuid, n in data.get("counted", {}).items()},
    )


def read_count(value: object, least: int = 0) -> int:
    """Returns a whole number, at least `least`. Raises ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{value!r} is not a count")
    return value
