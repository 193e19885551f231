"""What a stream on a view must show, from two images of the view by time travel, compared in plain Python. It uses nothing of streamql."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tests.histories.columns import canonical
from tests.histories.recording import TableLog, conf
from tests.views.bases import COLUMNS, LATER, Base
from tests.views.views import HIDDEN, Select, Text

NO_PRUNING = (("spark.sql.optimizer.dynamicPartitionPruning.enabled", "false"),)
"""Uncompiled plans of Spark's fail with a dynamic partition filter above a UNION ALL of a partitioned and an unpartitioned table."""

Values = tuple[Hashable, ...]
Position = Mapping[str, int]
"""A version of each table, by its name."""


@dataclass(frozen=True)
class Shown:
    """A row of the view: its values, and the (table, version) of each base row in it."""

    values: Values
    versions: tuple[tuple[str, int], ...]


Image = dict[str, Shown]
"""Rows of a view by the base rows that they are made of."""


class Oracle:
    """Reads images of one view."""

    def __init__(
        self, spark: SparkSession, view: Select, bases: Mapping[str, Base], logs: Mapping[str, TableLog]
    ) -> None:
        self.spark, self.view, self.bases, self.logs = spark, view, bases, logs
        self.tables = list(dict.fromkeys(view.leaves()))
        self._images: dict[tuple[int, ...], Image] = {}

    def image(self, at: Position) -> Image:
        """The view at a version of each table."""
        key = tuple(at[t] for t in self.tables)
        if key not in self._images:
            self._images[key] = self._read(lambda t: self._rows(t, at[t], "false"))[0]
        return self._images[key]

    def appended(self, after: Position, through: Position) -> Image:
        """The view over fresh rows as they were inserted and other rows as they are in the end: what has a fresh row in it."""

        def rows(table: str) -> str:
            base, parts = self.bases[table], []
            known = base.ids[after[table]]
            for version in range(after[table] + 1, through[table] + 1):
                first, last = base.ids[version - 1], base.ids[version]
                if last > first:
                    parts.append(f"{self._rows(table, version, 'true')} WHERE id >= {first} AND id < {last}")
            parts.append(f"{self._rows(table, through[table], 'false')} WHERE id < {known}")
            return " UNION ALL ".join(parts)

        image, fresh = self._read(rows)
        return {key: row for key, row in image.items() if key in fresh}

    def _rows(self, table: str, version: int, fresh: str) -> str:
        there = {c.name for c in self.logs[table].columns[version]}
        columns = [c if c in there else f"CAST(NULL AS INT) AS {c}" for c in (*COLUMNS, LATER)]
        hidden = f"concat('{table}#', id) AS k, concat('{table}@', _metadata.row_commit_version) AS v, {fresh} AS f"
        return f"SELECT {', '.join(columns)}, {hidden} FROM {table} VERSION AS OF {version}"

    def _read(self, rows: object) -> tuple[Image, set[str]]:
        assert callable(rows)
        text = Text(lambda table: f"({rows(table)})").query(self.view)
        with conf(self.spark, NO_PRUNING):
            found = self.spark.sql(text).collect()
        image: Image = {}
        fresh = set()
        for row in found:
            *values, k, v, f = row
            assert k not in image, f"{k} twice: {text}"
            versions = tuple((name, int(number)) for name, number in (one.split("@") for one in v.split(":")))
            image[k] = Shown(tuple(map(canonical, values)), versions)
            if f:
                fresh.add(k)
        assert len(HIDDEN) == 3
        return image, fresh

    def time(self, row: Shown) -> dt.datetime:
        """When the newest of its base rows was written."""
        return max(self.logs[table].times[version] for table, version in row.versions)

    def version(self, row: Shown) -> int | None:
        """What __commit_version says: the newest version, if there is one table."""
        return max(version for _, version in row.versions) if len(self.tables) == 1 else None


@dataclass(frozen=True)
class Changes:
    """What is expected of an interval: new images as (type, values, version, time); old ones without what became of their versions, since
    an update of a base row that changes nothing moves its version on; and pairs of values of the updates."""

    new: Counter[tuple[str, Values, int | None, dt.datetime]]
    old: Counter[tuple[str, Values]]
    updates: Counter[tuple[Values, Values]]

    @property
    def is_empty(self) -> bool:
        return not self.new and not self.old


def changes(oracle: Oracle, begin: Image, end: Image) -> Changes:
    """The least changes from one image to another."""
    found = Changes(Counter(), Counter(), Counter())
    for key in begin.keys() | end.keys():
        before, after = begin.get(key), end.get(key)
        if before is not None and after is not None:
            if before.values != after.values:
                found.old["UPDATE_BEFORE", before.values] += 1
                found.new["UPDATE_AFTER", after.values, oracle.version(after), oracle.time(after)] += 1
                found.updates[before.values, after.values] += 1
        elif after is not None:
            found.new["INSERT", after.values, oracle.version(after), oracle.time(after)] += 1
        elif before is not None:
            found.old["DELETE", before.values] += 1
    return found


def inserts(oracle: Oracle, *images: Image) -> Changes:
    """All rows of the images, as new."""
    found = Changes(Counter(), Counter(), Counter())
    for image in images:
        for row in image.values():
            found.new["INSERT", row.values, oracle.version(row), oracle.time(row)] += 1
    return found


def bag(image: Image) -> Counter[Values]:
    """Its rows, without where they come from."""
    return Counter(row.values for row in image.values())
