"""Histories of the tables that dynamic tables read: those of the tests of views, tables that are renamed or replaced, and columns that get
other types."""

from __future__ import annotations

import random
from collections.abc import Iterator

from pyspark.sql import SparkSession

from tests.views.bases import ROWS_MAX, Base, Writer

RENAMED, REPLACED, WIDENED, ADDED_AGAIN = "RENAME", "REPLACE", "WIDEN", "DROP and ADD COLUMN"


class DynamicWriter(Writer):
    """Changes tables at random, also their names and what is behind them. No table has both done to it: a query finds a table that was
    renamed by its id, and one that was replaced by its name."""

    def __init__(self, spark: SparkSession, rng: random.Random, schema: str) -> None:
        super().__init__(spark, rng, schema)
        self._settled: set[str] = set()
        self.is_reshaped = False
        """Whether columns got other types since this was last set."""

    def change(self, base: Base) -> Base:
        """One operation; the table as it is named and versioned afterwards."""
        draw = self.rng.random()
        if draw >= 0.9:
            self.reshape(base)
            return base
        if base.name in self._settled:
            draw = 1.0
        if draw < 0.06:
            return self.rename(base)
        if draw < 0.12:
            return self.replace(base)
        self.step(base)
        return base

    def rename(self, base: Base) -> Base:
        """Another name for the same table."""
        name = f"{base.name}x"
        self._run(f"ALTER TABLE {base.name} RENAME TO {name}")
        self.operations[RENAMED] += 1
        self._settled.add(name)
        location = self.spark.sql(f"DESCRIBE DETAIL {name}").first()
        assert location is not None
        return Base(name, location["location"].removeprefix("file:"), base.ids, base.counts)

    def replace(self, base: Base) -> Base:
        """Another table of the same name, with other rows."""
        self._run(f"DROP TABLE {base.name}")
        self.operations[REPLACED] += 1
        self._settled.add(base.name)
        made = self.create(base.name)
        assert made.counts[-1] <= ROWS_MAX
        return made

    def reshape(self, base: Base) -> None:
        """Gives a column another type: a wider one, or any for a column of its name."""
        self.is_reshaped = True
        properties = "'delta.enableTypeWidening' = 'true', 'delta.columnMapping.mode' = 'name'"
        self._run(f"ALTER TABLE {base.name} SET TBLPROPERTIES ({properties})")
        detail = self.spark.sql(f"DESCRIBE DETAIL {base.name}").first()
        assert detail is not None
        if detail["clusteringColumns"] or self.rng.random() < 0.6:  # Delta does not drop such a column
            column = self.rng.choice(("a", "b", "m.value"))
            self._change(base, WIDENED, f"ALTER TABLE {base.name} ALTER COLUMN {column} TYPE BIGINT")
        else:
            self._run(f"ALTER TABLE {base.name} DROP COLUMN b")
            added = f"ADD COLUMN b {self.rng.choice(('SMALLINT', 'INT', 'BIGINT'))} AFTER a"
            self._change(base, ADDED_AGAIN, f"ALTER TABLE {base.name} {added}")
            self._change(base, "UPDATE", f"UPDATE {base.name} SET b = CAST(id % 10 AS INT) WHERE {self._some()}")

    def life_of_a_row(self, base: Base) -> Iterator[None]:
        """Inserts a row, updates it, and deletes it, and yields after each."""
        name = base.name
        row = self._row(base, "0, 1, 'x', NULL")
        (key, *_) = row.split(", ", 1)
        self._change(base, "INSERT", f"INSERT INTO {name} {self._into} VALUES ({row})", 1)
        yield
        self._change(base, "UPDATE", f"UPDATE {name} SET b = b + 1 WHERE id = {key}")
        yield
        self._change(base, "DELETE", f"DELETE FROM {name} WHERE id = {key}")
        yield
