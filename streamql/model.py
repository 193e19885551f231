"""The objects of streamql as frozen dataclasses: streams, offsets, positions, intervals, sources. No I/O, no Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from streamql.names import Name
from streamql.shared import change_types, constants

CHANGE_TYPE = constants("columns")["changeType"]
CHANGE_TYPES = change_types()

METADATA_COLUMNS = (CHANGE_TYPE, "__commit_version", "__commit_timestamp")
"""The columns that every stream shows before its source's columns: change type, version and time of the commit."""

METADATA_DDL = f"{CHANGE_TYPE} STRING, __commit_version BIGINT, __commit_timestamp TIMESTAMP_LTZ"


class StreamMode(Enum):
    """What a stream shows. STANDARD: net row changes. APPEND_ONLY: inserted rows as they were first inserted, even if they changed
    later."""

    STANDARD = "STANDARD"
    APPEND_ONLY = "APPEND_ONLY"


@dataclass(frozen=True)
class Parts:
    """A position in a source of several parts: pairs (part, number), sorted by part. A part that is missing is at its begin."""

    numbers: tuple[tuple[str, int], ...]

    @staticmethod
    def of(numbers: Mapping[str, int]) -> Parts:
        """Returns the position that has these numbers by part."""
        return Parts(tuple(sorted(numbers.items())))

    def __post_init__(self) -> None:
        names = [part for part, _ in self.numbers]
        if names != sorted(set(names)) or any(number < 0 for _, number in self.numbers):
            raise ValueError(f"not a position: {self.numbers}")

    def __str__(self) -> str:
        by_part = sorted(self.numbers, key=lambda n: (len(n[0]), n[0]))  # shorter names first: partition 9 before 10
        return json.dumps(dict(by_part))


Position = int | Parts
"""How far a stream has read its source: the version of a Delta table, or a number for each part of another source."""


def is_ordered(after: Position, through: Position) -> bool:
    """Returns whether `after` is not later than `through`, a position in the same source. No part of `after` may be later, and `through`
    must have every part of `after`."""
    if isinstance(after, int) and isinstance(through, int):
        return -1 <= after <= through
    if isinstance(after, Parts) and isinstance(through, Parts):
        later = dict(through.numbers)
        return all(part in later and number <= later[part] for part, number in after.numbers)
    return False


def version_or_none(position: Position) -> int | None:
    """Returns the position as a version of a Delta table; None if it has parts."""
    return position if isinstance(position, int) else None


def parts_or_none(position: Position) -> str | None:
    """Returns a position of several parts as JSON text; None if it is a version."""
    return None if isinstance(position, int) else str(position)


def offset_clause(position: Position) -> str:
    """Returns a position as ALTER STREAM … SET OFFSET takes it."""
    return f"VERSION {position}" if isinstance(position, int) else f"'{position}'"


def shown_position(position: Position) -> str:
    """Returns a position as messages name it."""
    return f"version {position}" if isinstance(position, int) else f"offsets {position}"


def offset_form(position: Position) -> str:
    """Returns the form in which ALTER STREAM … SET OFFSET takes positions of this source, for hints."""
    return "VERSION n" if isinstance(position, int) else "'{\"partition\": offset}'"


@dataclass(frozen=True)
class Versions:
    """The commits of a Delta table that a reader sees: (after, through]. `initial` adds the rows that the table had at `after`."""

    after: int
    through: int
    initial: bool = False

    def __post_init__(self) -> None:
        if not -1 <= self.after <= self.through:
            raise ValueError(f"not an interval: ({self.after}, {self.through}]")

    @property
    def is_empty(self) -> bool:
        """Returns whether it has no commit and no initial rows, so that it has no changes."""
        return self.after == self.through and not self.initial


@dataclass(frozen=True)
class Interval:
    """What a statement reads of a stream's source: (after, through]. `initial` adds the rows that the source had at `after`."""

    after: Position
    through: Position
    initial: bool = False

    def __post_init__(self) -> None:
        if not is_ordered(self.after, self.through):
            raise ValueError(f"not an interval: ({self.after}, {self.through}]")

    @property
    def is_empty(self) -> bool:
        """Returns whether it has no commit and no initial rows, so that it has no changes. A part that `after` lacks counts from 0."""
        if self.initial:
            return False
        if isinstance(self.after, Parts) and isinstance(self.through, Parts):
            begins = dict(self.after.numbers)
            return all(number == begins.get(part, 0) for part, number in self.through.numbers)
        return self.after == self.through

    @property
    def versions(self) -> Versions:
        """Returns the interval of a source that is one Delta table. Raises TypeError for another source's."""
        return Versions(version_of(self.after), version_of(self.through), self.initial)


def version_of(position: Position) -> int:
    """Returns the position as a version of a Delta table. Raises TypeError if it has parts."""
    if not isinstance(position, int):
        raise TypeError(f"not a version of a table: {position}")
    return position


class SourceRef(Protocol):
    """A reference to a source, by which a stream finds it again. Frozen, comparable and hashable data, without I/O."""

    @property
    def type_name(self) -> str:
        """Returns the name of its type in `sources.registry`."""

    @property
    def name(self) -> Name:
        """Returns the name that the source had when it was last seen."""

    @property
    def identity(self) -> str:
        """Returns the identity of the source, which stays the same if the source is renamed."""

    @property
    def path(self) -> str:
        """Returns the path of the source's files; empty: it has no files of its own."""

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form, which `SourceType.read` of its type reads."""

    def holds(self, interval: Interval) -> list[tuple[TableSource, Versions]]:
        """Returns the Delta tables whose history an interval needs, each with its versions in the interval. The guard of VACUUM and the
        retention use it."""


@dataclass(frozen=True)
class TableSource:
    """A reference to a Delta table by Delta's table id. `name` and `path`: as they were when the table was last seen.

    `seen`: the table's newest version at that time, and the in-commit timestamp of that version, in milliseconds. By these, the history is
    recognised: a copy of the table that was written since has the same id, but another timestamp for the version. None: the table's commits
    have no in-commit timestamps.
    """

    name: Name
    path: str
    table_id: str
    seen: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def type_name(self) -> str:
        """Returns the name of its type in `sources.registry`."""
        return "table"

    @property
    def identity(self) -> str:
        """Returns Delta's table id."""
        return self.table_id

    @property
    def key(self) -> tuple[str, ...]:
        """Returns the columns by which rows are recognized. Empty: rows are recognized by their row ids."""
        return ()

    def is_table(self, table_id: str, path: str, id_at: Callable[[int], str | None] | None = None) -> bool:  # noqa: ARG002 - see KeyedTable
        """Returns whether this refers to a table. `table_id`, `path`: the table's id and path now. `id_at`: returns the id that the table
        had in a version, or None if its log does not say it; None: the log is not asked."""
        return self.table_id == table_id

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form, which `from_json` reads."""
        return {"name": list(self.name.parts), "path": self.path, "table_id": self.table_id, "seen": self.seen}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TableSource:
        """Returns the source that `to_json` wrote. Raises LookupError, TypeError or ValueError for anything else."""
        seen = data.get("seen")
        name = Name.of(data["name"])
        return cls(name, data["path"], data["table_id"], None if seen is None else (seen[0], seen[1]))

    def holds(self, interval: Interval) -> list[tuple[TableSource, Versions]]:
        """Returns the table with the interval."""
        return [(self, interval.versions)]


@dataclass(frozen=True)
class Stream:
    """A stream on a source. Its offset is not in it, because that moves (`StreamState`). `terms`: what features keep with it, as text by
    the name of the type of terms (`streamql.terms`)."""

    uuid: str
    name: Name
    source: SourceRef
    mode: StreamMode
    show_initial_rows: bool
    comment: str | None
    created_at_ms: int
    created_by: str
    definition: str
    terms: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Offset:
    """The position up to which a stream was consumed. `initial`: the stream still has to show the rows that the source had at the position
    (SHOW_INITIAL_ROWS)."""

    position: Position
    initial: bool = False
