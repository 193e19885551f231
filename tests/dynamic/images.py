"""What must hold of a dynamic table, from public SQL: its rows against its query's, its images, and what a stream on it shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

import streamql
from tests.histories.columns import canonical

Values = tuple[Hashable, ...]

NEW, OLD = ("INSERT", "UPDATE_AFTER"), ("DELETE", "UPDATE_BEFORE")


def bag(spark: SparkSession, text: str) -> Counter[Values]:
    """The rows of a query, in no order."""
    return Counter(tuple(map(canonical, row)) for row in streamql.sql(text, spark).collect())


def described(spark: SparkSession, name: str) -> dict[str, str]:
    """What DESCRIBE says of a dynamic table."""
    return {row[0]: row[1] for row in streamql.sql(f"DESC DYNAMIC TABLE {name}", spark).collect()}


def versions(facts: Mapping[str, str]) -> dict[str, int]:
    """The versions that a dynamic table was computed at, as DESCRIBE has them, by the names that its positions have for tables, without
    the catalog."""
    said = json.loads(facts["source_versions"])
    return {part.removeprefix("spark_catalog."): version for part, version in said.items()}


@dataclass(frozen=True)
class Image:
    """A backing table: of each key the row id and the shown values. `facts`: what DESCRIBE said then."""

    facts: Mapping[str, str]
    rows: Mapping[Values, tuple[int, Values]]

    @property
    def by_id(self) -> Image:
        """The rows by their ids. Over several refreshes a key may go and come back, which makes another row of it."""
        return Image(self.facts, {(row_id,): (row_id, values) for row_id, values in self.rows.values()})

    @property
    def bag(self) -> Counter[Values]:
        """The shown rows."""
        return Counter(values for _, values in self.rows.values())


def image(spark: SparkSession, name: str) -> Image:
    """How a dynamic table is stored now. Its keys must be unique."""
    facts = described(spark, name)
    backing = facts["stored_in"]
    shown = [f.name for f in spark.table(name).schema.fields]
    stored = [f.name for f in spark.table(backing).schema.fields]
    keys = facts["row_key"].split(", ")
    assert stored[: len(shown)] == shown
    places = [stored.index(k) for k in keys]
    columns = ", ".join(f"`{c}`" for c in stored)
    rows: dict[Values, tuple[int, Values]] = {}
    for row in spark.sql(f"SELECT {columns}, _metadata.row_id FROM {backing}").collect():
        values = tuple(map(canonical, row[:-1]))
        key = tuple(values[i] for i in places)
        assert key not in rows, f"{name}: key {key} twice"
        rows[key] = row[-1], values[: len(shown)]
    return Image(facts, rows)


@dataclass(frozen=True)
class Changes:
    """Counts of changes by type, and the rows that they add and remove."""

    types: Counter[str]
    added: Counter[Values]
    removed: Counter[Values]


def between(before: Image, after: Image) -> Changes:
    """The least changes that make one image of another. A row that lives on has its row id."""
    types, added, removed = Counter[str](), Counter[Values](), Counter[Values]()
    for key in before.rows.keys() | after.rows.keys():
        was, now = before.rows.get(key), after.rows.get(key)
        if was is not None and now is not None:
            assert was[0] == now[0], f"the row of key {key} has another row id: {was} {now}"
            if was[1] == now[1]:
                continue
            types["UPDATE_BEFORE"] += 1
            types["UPDATE_AFTER"] += 1
        if was is not None:
            types["DELETE"] += now is None
            removed[was[1]] += 1
        if now is not None:
            types["INSERT"] += was is None
            added[now[1]] += 1
    return Changes(+types, added, removed)


def shown(spark: SparkSession, stream: str) -> Changes:
    """What a stream on a dynamic table shows, once it has shown that updates are pairs of one row id."""
    types, added, removed = Counter[str](), Counter[Values](), Counter[Values]()
    ids: dict[str, list[str]] = {}
    for row in streamql.sql(f"SELECT *, METADATA$ROW_ID AS row_id FROM {stream}", spark).collect():
        change_type, values = row[0], tuple(map(canonical, row[3:-1]))
        types[change_type] += 1
        ids.setdefault(row[-1], []).append(change_type)
        (added if change_type in NEW else removed)[values] += 1
    for found in ids.values():
        assert sorted(found) in (["INSERT"], ["DELETE"], ["UPDATE_AFTER", "UPDATE_BEFORE"]), found
    return Changes(types, added, removed)
