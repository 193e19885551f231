"""Random histories of base tables. Same random numbers, same history.

Every table has the columns `id` (of one row only, never updated), `a` (few values, to join by), `b`, `s` and `m` (a map); some get a column
`c` later. Which versions a table has, and which ids were given out by then, is read from its log and noted here, in plain Python.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from tests.histories.recording import TableLog, latest_version, read_log

COLUMNS = ("id", "a", "b", "s", "m")
LATER = "c"
ROWS_MAX = 16
_LAYOUTS = ("", "", "PARTITIONED BY (a)", "CLUSTER BY (b)")
_TEXTS = ("'x'", "'y'", "'Y'", "NULL")
_MAPS = ("map('k', 1)", "map('k', 1, 'l', 2)", "map('l', 2, 'k', 1)", "NULL")


@dataclass
class Base:
    """A table: `ids[v]` is the number of ids that were given out when version `v` was there; `counts[v]` is a bound for its rows."""

    name: str
    path: str
    ids: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    @property
    def latest(self) -> int:
        return len(self.ids) - 1

    def log(self) -> TableLog:
        return read_log(self.path)


class Writer:
    """Makes tables, and changes them at random."""

    def __init__(self, spark: SparkSession, rng: random.Random, schema: str) -> None:
        self.spark, self.rng, self.schema = spark, rng, schema
        self.done: list[str] = []
        self.operations = Counter[str]()
        self._given = Counter[str]()

    def create(self, name: str) -> Base:
        """A tracked table with some rows."""
        properties = ["'delta.enableRowTracking' = 'true'", "'delta.enableInCommitTimestamps' = 'true'"]
        properties.append(f"'delta.enableDeletionVectors' = '{str(self.rng.random() < 0.6).lower()}'")
        mapped = self.rng.random() < 0.3
        properties += ["'delta.columnMapping.mode' = 'name'"] * mapped
        columns = "id BIGINT, a INT, b INT, s STRING, m MAP<STRING, INT>"
        layout = self.rng.choice(_LAYOUTS)
        self._run(f"CREATE TABLE {name} ({columns}) USING DELTA {layout} TBLPROPERTIES ({', '.join(properties)})")
        location = self.spark.sql(f"DESCRIBE DETAIL {name}").first()
        assert location is not None
        base = Base(name, location["location"].removeprefix("file:"))
        self._note(base, 0)
        for _ in range(3):
            self.insert(base)
        return base

    def step(self, base: Base) -> None:
        """One operation."""
        inserts = [self.insert] * 4 if base.counts[-1] < ROWS_MAX else [self.delete] * 4
        others = [self.update, self.update, self.rejoin, self.delete, self.merge, self.restore, self.overwrite]
        rare = [self.optimize, self.add_column, self.there_and_back, self.in_vain, self.empty]
        self.rng.choice([*inserts, *others * 2, *rare])(base)

    # -- operations

    def insert(self, base: Base) -> None:
        count = self.rng.randint(1, 4)
        rows = [self._row(base) for _ in range(count)]
        if self.rng.random() < 0.3:  # duplicates but for the id
            rows += [self._row(base, rows[0].split(", ", 1)[1])]
        self._change(base, "INSERT", f"INSERT INTO {base.name} {self._into} VALUES {self._listed(rows)}", len(rows))

    def update(self, base: Base) -> None:
        change = self.rng.choice(("b = b + 1", "b = 10 - b", "s = upper(s)", "s = NULL", f"m = {self._map()}"))
        self._change(base, "UPDATE", f"UPDATE {base.name} SET {change} WHERE {self._some()}")

    def rejoin(self, base: Base) -> None:
        self._change(base, "UPDATE key", f"UPDATE {base.name} SET a = {self._key()} WHERE {self._some()}")

    def in_vain(self, base: Base) -> None:
        self._change(base, "UPDATE in vain", f"UPDATE {base.name} SET b = b WHERE {self._some()}")

    def there_and_back(self, base: Base) -> None:
        where = self._some()
        for sign in "+-":
            self._change(base, "UPDATE there and back", f"UPDATE {base.name} SET b = b {sign} 5 WHERE {where}")

    def delete(self, base: Base) -> None:
        self._change(base, "DELETE", f"DELETE FROM {base.name} WHERE {self._some()}")

    def empty(self, base: Base) -> None:
        self._change(base, "DELETE all", f"DELETE FROM {base.name}")

    def merge(self, base: Base) -> None:
        old = self.rng.sample(range(self._given[base.name]), min(3, self._given[base.name]))
        rows = [f"{i}, {self._values()}" for i in old] + [self._row(base)]
        text = (
            f"MERGE INTO {base.name} t USING (SELECT * FROM VALUES {self._listed(rows)} AS v(id, a, b, s, m)) n ON t.id = n.id "
            "WHEN MATCHED AND n.b > 7 THEN DELETE WHEN MATCHED THEN UPDATE SET b = n.b, s = n.s "
            f"WHEN NOT MATCHED AND n.id = {self._given[base.name] - 1} THEN INSERT {self._into} VALUES (n.id, n.a, n.b, n.s, n.m)"
        )
        self._change(base, "MERGE", text, 1)

    def overwrite(self, base: Base) -> None:
        rows = [self._row(base) for _ in range(self.rng.randint(1, 4))]
        listed = self._listed(rows)
        names = ", ".join(COLUMNS)
        self._change(base, "INSERT OVERWRITE", f"INSERT OVERWRITE {base.name} ({names}) VALUES {listed}", len(rows))

    def restore(self, base: Base) -> None:
        if base.latest < 2:
            return
        version = self.rng.randint(1, base.latest - 1)
        rows = base.counts[version] - base.counts[-1]
        self._change(base, "RESTORE", f"RESTORE TABLE {base.name} TO VERSION AS OF {version}", rows)

    def optimize(self, base: Base) -> None:
        self._change(base, "OPTIMIZE", f"OPTIMIZE {base.name}")

    def add_column(self, base: Base) -> None:
        if all(c.name != LATER for columns in base.log().columns for c in columns):
            self._change(base, "ADD COLUMN", f"ALTER TABLE {base.name} ADD COLUMN {LATER} INT")
            self._change(base, "UPDATE", f"UPDATE {base.name} SET {LATER} = b WHERE {self._some()}")

    # -- their parts

    _into = f"({', '.join(COLUMNS)})"

    def _row(self, base: Base, values: str = "") -> str:
        self._given[base.name] += 1
        return f"{self._given[base.name] - 1}, {values or self._values()}"

    def _values(self) -> str:
        b = self.rng.choice([*map(str, range(10)), "NULL"])
        return f"{self._key()}, {b}, {self.rng.choice(_TEXTS)}, {self._map()}"

    def _key(self) -> str:
        return self.rng.choice(("0", "1", "2", "3", "NULL"))

    def _map(self) -> str:
        return self.rng.choice(_MAPS)

    def _listed(self, rows: list[str]) -> str:
        return ", ".join(f"({row})" for row in rows)

    def _some(self) -> str:
        modulus = self.rng.choice((2, 3, 4))
        others = ("b > 5", "a IS NULL", "a = 1", "s = 'x'")
        by_id = f"id % {modulus} = {self.rng.randrange(modulus)}"
        return self.rng.choice((by_id, by_id, *others))

    def _change(self, base: Base, label: str, text: str, more: int = 0) -> None:
        self._run(text)
        self._note(base, (base.counts[-1] if base.counts else 0) + more)
        self.operations[label] += 1

    def _note(self, base: Base, rows: int) -> None:
        while base.latest < latest_version(base.path):
            base.ids.append(self._given[base.name])
            base.counts.append(rows)

    def _run(self, text: str) -> None:
        self.done.append(text)
        try:
            self.spark.sql(text)
        except Exception as error:
            raise AssertionError(f"cannot run: {text}\n{str(error)[:1500]}") from error


Step = Callable[[Base], None]


def history(spark: SparkSession, rng: random.Random, schema: str, steps: int) -> tuple[list[Base], Writer]:
    """Two to four tables, changed in turn."""
    writer = Writer(spark, rng, schema)
    tables = [writer.create(f"{schema}.t{i}") for i in range(rng.randint(2, 4))]
    for _ in range(steps):
        writer.step(rng.choice(tables))
    return tables, writer
