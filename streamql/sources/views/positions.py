"""Positions in the tables that a query reads. A position has one part for each table, whose number is the table's version."""

from __future__ import annotations

from streamql.model import Interval, Parts, Position, TableSource, Versions
from streamql.names import Name


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
