"""The things streamql speaks of, as plain frozen data: no I/O, no Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from streamql.names import Name

METADATA_COLUMNS = ("__change_type", "__commit_version", "__commit_timestamp")
"""The columns every stream shows before its source's columns (seed grammar: change type, version, time)."""

METADATA_DDL = "__change_type STRING, __commit_version BIGINT, __commit_timestamp TIMESTAMP_LTZ"


class StreamMode(Enum):
    """STANDARD: net row changes. APPEND_ONLY: rows as first inserted, whatever became of them later."""

    STANDARD = "STANDARD"
    APPEND_ONLY = "APPEND_ONLY"


class SourceKind(Enum):
    """The kinds of object a stream can be asked for; only TABLE is built."""

    TABLE = "TABLE"
    VIEW = "VIEW"
    DYNAMIC_TABLE = "DYNAMIC TABLE"
    MATERIALIZED_VIEW = "MATERIALIZED VIEW"
    EXTERNAL_TABLE = "EXTERNAL TABLE"


@dataclass(frozen=True)
class Interval:
    """The commits a reader sees: (after, through]. `initial` adds the rows that were in the table at `after`."""

    after: int
    through: int
    initial: bool = False

    def __post_init__(self) -> None:
        if not -1 <= self.after <= self.through:
            raise ValueError(f"not an interval: ({self.after}, {self.through}]")

    @property
    def is_empty(self) -> bool:
        """No commit and no initial rows: nothing can be in it."""
        return self.after == self.through and not self.initial


@dataclass(frozen=True)
class TableSource:
    """A Delta table as a stream holds on to it: by Delta's table id; path and name are where it was last seen.

    `seen`: its newest version by then, and the in-commit time of that in milliseconds, by which its history is known from that of a copy,
    which has the same id; None where commits do not tell.
    """

    name: Name
    path: str
    table_id: str
    seen: tuple[int, int] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Stream:
    """A bookmark on a source: everything but its offset, which moves."""

    uuid: str
    name: Name
    source: TableSource
    mode: StreamMode
    show_initial_rows: bool
    comment: str | None
    created_at_ms: int
    created_by: str
    definition: str


@dataclass(frozen=True)
class Offset:
    """The last consumed version of the source. `initial`: the rows present at `version` are still to be shown (SHOW_INITIAL_ROWS)."""

    version: int
    initial: bool = False
