"""Divides the records of a large commit into ranges of keys, so that several tasks can make them.

The ranges come from the statistics of the commit's files. They only balance the tasks: the records and their order stay the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from math import ceil
from typing import Any

from streamql.changes import schema
from streamql.changes.by_commit import changed_files
from streamql.delta.log import Commit, Json
from streamql.delta.table import DeltaTable, Snapshot
from streamql.dialect import quote_string

RANGE_ROWS = 250_000
"""About how many row images a range has, for one commit and one shard."""

DIVIDED_MAX = 20
"""If an interval has more large commits than this, none is divided: they keep all tasks busy as they are."""

_POINTS = 64
"""How many points describe the distribution of the keys."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_INTEGERS = frozenset({"byte", "short", "integer", "long"})

Statistics = tuple[int, Any, Any]
"""The number of rows of a file, and the least and the greatest value of a column in it."""

Point = tuple[Any, float]
"""A value of the key's first column, and about how many rows have a value from this one up to the next point."""


def bounds(
    table: DeltaTable, latest: Snapshot, commits: Sequence[Commit], field: Json, shards: int
) -> dict[int, list[str]]:
    """Returns the bounds between the ranges of each commit that is divided: SQL expressions in ascending order, by version.

    `field`: the first column of the key. `shards`: how many shards there are. A commit is not divided if its files have no statistics of
    the column.
    """
    large = [c for c in commits if _rows(c) > RANGE_ROWS * shards]
    found = {}
    for commit in large if len(large) <= DIVIDED_MAX else ():
        stats = table.statistics(latest, commit.version, schema.identity(field))
        try:
            values = values_between(stats, field["type"], ceil(_rows(commit) / (RANGE_ROWS * shards)))
        except (TypeError, ValueError):  # another writer's statistics, or years that Python does not have
            continue
        if values:
            found[commit.version] = values
    return found


def values_between(stats: Sequence[Statistics], data_type: Any, count: int) -> list[str]:
    """Returns at most `count` - 1 bounds between ranges with about the same number of rows: SQL expressions in ascending order.

    `data_type`: of the column, as Spark's JSON schema has it."""
    total = sum(rows for rows, _, _ in stats)
    points = [point for of_file in stats for point in _points(of_file, data_type, total)]
    return [_literal(value, data_type) for value in quantiles(points, count)]


def _rows(commit: Commit) -> int:
    """Returns an upper bound of the row images of a commit. Files without statistics do not count."""
    states = [s for _, change in changed_files([commit]) for s in (change.before, change.after) if s is not None]
    return sum(state.rows or 0 for state in states)


def _points(stats: Statistics, data_type: Any, total: int) -> list[Point]:
    """Returns the points of a file, assuming that its integers or times are spread evenly."""
    rows, low, high = stats
    if data_type == "string":
        return [(low, rows)]
    if data_type == "date":
        low, high = (date.fromisoformat(value).toordinal() for value in (low, high))
    elif data_type == "timestamp":
        low, high = ((_instant(value) - _EPOCH) // timedelta(microseconds=1) for value in (low, high))
    elif data_type not in _INTEGERS:
        return []
    count = max(1, min(_POINTS * rows // max(1, total), high - low))
    return [(low + (high - low) * i // count, rows / count) for i in range(count)]


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)


def quantiles(points: Collection[Point], count: int) -> list[Any]:
    """Returns at most `count` - 1 different values that divide the points into parts of about the same weight."""
    ordered = sorted(points, key=lambda p: p[0])
    total = sum(weight for _, weight in ordered)
    found: list[Any] = []
    before = 0.0
    for value, weight in ordered:
        if len(found) + 1 < count and before >= total * (len(found) + 1) / count and value != ordered[0][0]:
            found.append(value)
        before += weight
    return list(dict.fromkeys(found))


def _literal(value: Any, data_type: Any) -> str:
    if data_type == "date":
        return f"DATE '{date.fromordinal(value).isoformat()}'"
    if data_type == "timestamp":
        return f"timestamp_micros({value})"
    return quote_string(value) if data_type == "string" else f"{value}L"


def range_sql(column: str, version: str, of_versions: Mapping[int, Sequence[str]]) -> str:
    """Returns the SQL expression for the number of a row's range in its commit, which is 0 if the commit is not divided. `column`: the name
    of the key's first column. `version`: the name of the column that has the commit's version."""
    cases = [
        f"WHEN {version} = {number} AND {column} >= {value} THEN {i}"
        for number, values in of_versions.items()
        for i, value in reversed(list(enumerate(values, 1)))
    ]
    return f"CASE {' '.join(cases)} ELSE 0 END" if cases else "0"
