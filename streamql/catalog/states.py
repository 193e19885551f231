"""The state of a stream as the catalog stores it, and its JSON form. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from streamql.catalog.counts import Counts, counted, counts_json, ended_by, read_counts
from streamql.errors import StreamqlError
from streamql.model import Interval, Offset, Parts, Position, Stream, StreamMode, TableSource
from streamql.names import Name
from streamql.sources.registry import read_source, source_json

FORMAT = 3
"""The newest version of the JSON form. A higher version is refused. Streams on tables are written in format 1, which all releases read, and
other streams in format 2. Streams with terms are written in format 3: a release that did not know the terms would not keep them."""
FORMAT_OF_SOURCES = 2

StatementOutcome = Literal["open", "done", "fenced"]

NO_COUNTS = Counts()
"""The counts of a stream that was never consumed, or whose counts an earlier release has dropped."""


@dataclass(frozen=True)
class Owner:
    """The process that made a claim.

    `token`: a UUID of the process (it is also stored under this name). `started`: when the process started, as its kernel says it, which
    tells apart two processes that had the same `pid` one after the other. `host`: as `claims.owner` makes it. `user`: as Spark names it.
    """

    token: str
    host: str
    pid: int
    started: str
    user: str

    @property
    def who(self) -> str:
        """Returns user@host for display, without the parts of `host` that identify a start of the host or a container."""
        return f"{self.user}@{self.host.split('/')[0]}"


@dataclass(frozen=True)
class ClaimedStatement:
    """One statement of a claim, and where it writes. The log of the target at `path` resolves it, by the number that it has for `app_id`.

    `seen`: the target's version when the statement entered the claim. `fingerprint`: equal for equal statements. `streams`: the ids of the
    streams that it reads; empty: all streams of its claim. `entered`: in a transaction, the number that the claim had when the statement
    entered; each run of the transaction has another number. `withdrawn`: the statement failed, and ROLLBACK STATEMENT withdrew it.

    Of a done statement: `target_version` is the version that its commit made, and `metrics` are those of the commit; None and empty if they
    are not known. `changes`: how many rows of each change type it took, by stream id. Only the process that ran the statement knows them,
    so they are empty if another process resolved it.
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
        """Returns whether it writes into the given target. A Delta table is compared by its path, because it may have several names.
        Another target has an empty path, and is compared by its name."""
        return self.path == path and (bool(path) or self.target == target)


class Numbered:
    """What commits into tables under a number."""

    number: int

    @property
    def commit_number(self) -> int:
        """Returns the number that each commit carries."""
        return 2 * self.number

    @property
    def fence_number(self) -> int:
        """Returns the number that a fence carries. It is higher than `commit_number`, so what is fenced can no longer commit."""
        return 2 * self.number + 1


@dataclass(frozen=True)
class Joined(Numbered):
    """What was noted of a stream with terms before it entered a claim. `number`: of the event by which it entered. `prepared`: what its
    terms returned, by the name of their type; JSON.

    Numbers of later claims of the stream are higher. So the terms may commit with `commit_number`, and be fenced, as statements are.
    """

    number: int
    prepared: Mapping[str, Any]


@dataclass(frozen=True)
class Claim(Numbered):
    """A consumption that has not ended: its owner, the intervals of its streams (by stream id), and its statements with their targets.

    `number`: n. It is the event number that the commit of the claim gave to the claim's numbering stream (`numbering_stream_of`). Its
    statements commit with the number 2n, and a fence of one of them has 2n + 1.

    `is_transaction`: it is of a transaction (BEGIN TRANSACTION), whose statements enter one by one: only COMMIT says that there are no
    more. `is_partially_committed`: some statements are done, the others are fenced, and no process works on it. The same statements, run
    again, take the claim over. `revision`: how often the claim was replaced in the catalog. A process that resolves the claim for its owner
    compares it, so that it misses no statement that has entered since.

    `details`: JSON that the ledger shows besides; None: nothing. `is_for_one_driver`: it touches a table whose log can lose commits if
    several drivers write. `counted`: the number of rows of an interval before the first statement ran, by stream id; only of sources where
    a later read may find fewer rows. `joined`: what was noted of a stream with terms before it entered the claim, by stream id. It stays
    the same when another process takes the claim over.

    `noted`: what the terms of streams add to `details` in the ledger, by stream id. It is known when the claim ends, and is not stored.
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
    is_transaction: bool = False
    is_partially_committed: bool = False
    revision: int = 0
    details: str | None = None
    is_for_one_driver: bool = False
    counted: Mapping[str, int] = field(default_factory=dict)
    joined: Mapping[str, Joined] = field(default_factory=dict)
    noted: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False)

    @property
    def identity(self) -> tuple[str, int, int]:
        """Returns what every compare-and-set on the claim compares. It changes with each change of the claim but its heartbeats."""
        return (self.consumption_id, self.number, self.revision)

    @property
    def done(self) -> tuple[ClaimedStatement, ...]:
        """Returns the statements that are recorded as done: their commits are in their targets."""
        return tuple(s for s in self.statements if s.outcome == "done")

    def reads(self, statement: ClaimedStatement, uuid: str) -> bool:
        """Returns whether a statement of the claim reads a stream."""
        return not statement.streams or uuid in statement.streams

    def guarantee(self, statement: ClaimedStatement) -> str:
        """Returns the delivery guarantee of a statement of the claim, as the ledger shows it. At a target that is not a Delta table it is
        at_least_once, and at_most_once for a query, whose rows are not shown again."""
        if not statement.path:
            return "at_least_once" if statement.target else "at_most_once"
        return "exactly_once_by_one_driver" if self.is_for_one_driver else "exactly_once"

    @property
    def where_done(self) -> str:
        """Returns the targets of the done statements, with the versions that these made, for display."""
        return ", ".join(f"{s.target} (version {s.target_version})" for s in self.done)


@dataclass(frozen=True)
class StreamState:
    """A stream with what changes about it. `sequence`: the number of its last event. `claim`: None if no statement holds the stream.
    `last_consumed_ms`: when it was last consumed, in milliseconds since 1970; None: never. `counts`: what its consumptions have done in
    sum."""

    stream: Stream
    offset: Offset
    sequence: int
    claim: Claim | None = None
    last_consumed_ms: int | None = None
    counts: Counts = NO_COUNTS

    @property
    def name(self) -> Name:
        """Returns the stream's name."""
        return self.stream.name

    def next(self, **changes: Any) -> StreamState:
        """Returns the state after one more event. `changes`: fields with their new values."""
        return replace(self, sequence=self.sequence + 1, **changes)

    def counting(self, events: Sequence[Mapping[str, Any]]) -> StreamState:
        """Returns the state with a consumption counted. `events`: its rows of the ledger, which the same commit adds; of other streams,
        too."""
        own = [e for e in events if e["stream_id"] == self.stream.uuid]
        ended = ended_by(self.stream.source.type_name, own)
        return self if ended is None else replace(self, counts=counted(self.counts, ended))


def encode(state: StreamState) -> str:
    """Returns the JSON form."""
    s = state.stream
    return json.dumps(
        {
            "format": FORMAT if s.terms else 1 if isinstance(s.source, TableSource) else FORMAT_OF_SOURCES,
            "uuid": s.uuid,
            "name": list(s.name.parts),
            "source": source_json(s.source),
            "mode": s.mode.value,
            "show_initial_rows": s.show_initial_rows,
            "comment": s.comment,
            "created_at_ms": s.created_at_ms,
            "created_by": s.created_by,
            "definition": s.definition,
            **({"terms": dict(s.terms)} if s.terms else {}),
            "offset": {"version": position_json(state.offset.position), "initial": state.offset.initial},
            "sequence": state.sequence,
            "last_consumed_ms": state.last_consumed_ms,
            "claim": None if state.claim is None else _claim(state.claim),
            **({} if state.counts == NO_COUNTS else {"counts": counts_json(state.counts)}),
        },
        sort_keys=True,
    )


T = TypeVar("T")


def decode(text: str) -> StreamState:
    """Returns the state that a JSON form holds. Raises CATALOG_UNREADABLE if streamql did not write it, or a newer streamql wrote it."""
    return decoded(text, lambda _: None)


def decoded(text: str, other: Callable[[Mapping[str, Any]], T | None]) -> StreamState | T:
    """Returns what a JSON form holds: the object that `other` reads from it, or, if `other` returns None, the state of a stream. Raises
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
            terms={str(name): str(text) for name, text in data.get("terms", {}).items()},
        )
        claim = data["claim"]
        return StreamState(
            stream,
            Offset(read_position(data["offset"]["version"]), data["offset"]["initial"]),
            read_count(data["sequence"]),
            None if claim is None else _read_claim(claim),
            data["last_consumed_ms"],
            read_counts(data.get("counts")),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as e:
        raise StreamqlError(
            "CATALOG_UNREADABLE",
            f"it is damaged, or was written by another program: {e!r}",
        ) from e


def position_json(position: Position) -> int | dict[str, int]:
    """Returns the JSON form of a position: a number for a version of a table, an object for a position of several parts."""
    return position if isinstance(position, int) else dict(position.numbers)


def read_position(data: object) -> Position:
    """Returns the position that `position_json` wrote. Raises ValueError."""
    if isinstance(data, dict):
        return Parts.of({str(part): read_count(number) for part, number in data.items()})
    return read_count(data, -1)


def interval_json(interval: Interval) -> list[Any]:
    """Returns the JSON form of an interval: its begin, its end, and whether it has initial rows."""
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
        "is_block": claim.is_transaction,
        "is_unfinished": claim.is_partially_committed,
        "revision": claim.revision,
        **({} if claim.details is None else {"details": claim.details}),
        **({"is_for_one_driver": True} if claim.is_for_one_driver else {}),
        **({"counted": dict(claim.counted)} if claim.counted else {}),
        **({"joined": {u: vars(j) for u, j in claim.joined.items()}} if claim.joined else {}),
    }


def _statement(statement: ClaimedStatement) -> dict[str, Any]:
    data = {**vars(statement), "metrics": dict(statement.metrics)}
    if not statement.withdrawn:  # without the field, an earlier streamql can read the claim
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
        {u: Joined(read_count(j["number"]), j["prepared"]) for u, j in data.get("joined", {}).items()},
    )


def read_count(value: object, least: int = 0) -> int:
    """Returns the value if it is a whole number of at least `least`. Raises ValueError if it is not."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{value!r} is not a count")
    return value
