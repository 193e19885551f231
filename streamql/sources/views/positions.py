"""Positions in the tables that a query reads. A position has one part for each table, whose number is the table's version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from streamql.delta.queries import TrackedQuery
from streamql.model import Interval, Parts, Position, SourceRef, TableSource, Versions
from streamql.names import Name
from streamql.sources.tables.table import OpenTable


class TablesOfQuery(Protocol):
    """What of an `OpenTables` is asked for its positions."""

    @property
    def ref(self) -> SourceRef:
        """Returns the query as a stream refers to it."""

    @property
    def tables(self) -> Mapping[str, OpenTable]:
        """Returns the tables, by part."""

    @property
    def label(self) -> str:
        """Returns the word that messages use for the source."""

    @property
    def latest(self) -> Parts:
        """Returns the newest versions of the tables."""

    @property
    def only_table(self) -> OpenTable | None:
        """Returns the table if the query reads only one; None: it reads several."""


class QueryOverTables(TablesOfQuery, Protocol):
    """What of an `OpenQuery` is asked for its rows."""

    @property
    def query(self) -> TrackedQuery:
        """Returns the query."""


def parts_of(position: Position) -> dict[str, int]:
    """Returns the versions of a position, by part. Raises TypeError for a position of another type of source."""
    if not isinstance(position, Parts):
        raise TypeError(f"not a position in a query's tables: {position}")
    return dict(position.numbers)


def part_of(table: TableSource) -> str:
    """Returns the name of a table's part in positions: the table's full name in lower case."""
    return key_of(table.name)


def key_of(name: Name) -> str:
    """Returns a full name in lower case."""
    return ".".join(name.parts).lower()


def versions_of(interval: Interval, part: str) -> Versions:
    """Returns the versions of one table in an interval. `part`: the table's part."""
    return Versions(parts_of(interval.after)[part], parts_of(interval.through)[part], interval.initial)
