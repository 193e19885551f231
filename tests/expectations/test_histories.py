"""Random histories of a table with NULLs and values that no cast takes, and random expectations, against a model in plain Python.

pytest tests/expectations/test_histories.py                      # one history
STREAMQL_LONG=1 pytest tests/expectations/test_histories.py      # forty of them, and longer ones
STREAMQL_LONG=500 pytest tests/expectations/test_histories.py    # that many
STREAMQL_SEED=7 pytest tests/expectations/test_histories.py      # other ones
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.consume.support import TRACKED, fresh_schema, offset_of, run
from tests.expectations.model import CONDITIONS, RARE, Expected, Row, Taken, Version, merged, taken
from tests.sample import IS_LONG, SEED, amount

HISTORIES = amount(1, 40)
STEPS = 16 if IS_LONG else 5
AMOUNTS = (None, "1", "25", "-3", "x", "", "99999999999", "0", "12")
KEYS = (None, 0, 1, 2, 3, 4, 5, 6)
STREAMS = {"log": "INSERT", "copy": "MERGE"}
"""Each stream has the target of its name, and a statement that consumes it."""


def literal(value: int | str | None) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def values(rows: Version) -> str:
    return ", ".join(f"({r}, {literal(k)}, {literal(a)})" for r, (k, a) in rows.items())


def numbers(rows: Sequence[int]) -> str:
    return ", ".join(map(str, rows))


class History:
    """A table, its streams, and what they must have. `versions`: the rows of the table where each stream stands."""

    def __init__(self, spark: SparkSession, rng: random.Random) -> None:
        self.spark, self.rng = spark, rng
        self.story: list[str] = []
        self.schema = fresh_schema(spark, "expecthistory")
        self.now: dict[int, Row] = {}
        self.count = 0
        self.log: Counter[tuple[str, int, int | None, str | None]] = Counter()
        self.copy: dict[int, Row] = {}
        self.run(f"CREATE TABLE t (r INT, k INT, amount STRING) {TRACKED}")
        self.run("CREATE TABLE log (type STRING, r INT, k INT, amount STRING)")
        self.run("CREATE TABLE copy (r INT, k INT, amount STRING)")
        self.insert()
        self.versions = {name: dict(self.now) for name in STREAMS}
        self.expected = {name: self.expectations(name) for name in STREAMS}
        self.quarantined: dict[str, Counter[Any]] = {}
        for name, expected in self.expected.items():
            self.run(f"CREATE STREAM s_{name} ON TABLE t {' '.join(e.clause for e in expected)}")
            self.quarantined |= {e.table: Counter() for e in expected if e.table}
        self.copy = merged({}, taken({}, self.now, self.expected["copy"]).shown)
        if self.copy:
            self.run(f"INSERT INTO copy VALUES {values(self.copy)}")

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        self.story.append(statement)
        return [tuple(row) for row in run(self.spark, statement)]

    def expectations(self, stream: str) -> list[Expected]:
        """Some conditions with actions. FAIL has one that few rows violate."""
        chosen = self.rng.sample(list(CONDITIONS), self.rng.randint(2, 4))
        made = []
        for i, condition in enumerate(chosen):
            action = "QUARANTINE" if i == 0 else self.rng.choice(("DROP", "QUARANTINE", "QUARANTINE", "WARN"))
            table = f"{stream}_{self.rng.choice('ab')}" if action == "QUARANTINE" else ""
            made.append(Expected(f"e{i}", condition, action, table))
        if self.rng.random() < 0.6:
            made.insert(self.rng.randint(0, len(made)), Expected("rare", RARE, "FAIL"))
        return made

    # -- changes of the table

    def fresh(self, count: int) -> dict[int, Row]:
        made = {self.count + i: self.row() for i in range(count)}
        self.count += count
        return made

    def row(self) -> Row:
        return self.rng.choice(KEYS), self.rng.choice(AMOUNTS)

    def some(self) -> list[int]:
        return sorted(self.rng.sample(sorted(self.now), self.rng.randint(1, max(1, len(self.now) // 2))))

    def insert(self) -> None:
        made = self.fresh(self.rng.randint(4, 9))
        self.run(f"INSERT INTO t VALUES {values(made)}")
        self.now |= made

    def update(self) -> None:
        changed, amount = self.some(), self.rng.choice(AMOUNTS)
        self.run(f"UPDATE t SET amount = {literal(amount)} WHERE r IN ({numbers(changed)})")
        self.now |= {r: (self.now[r][0], amount) for r in changed}

    def update_key(self) -> None:
        changed = self.some()
        self.run(f"UPDATE t SET k = k + 1 WHERE r IN ({numbers(changed)})")
        for r in changed:
            k, amount = self.now[r]
            self.now[r] = (None if k is None else k + 1, amount)

    def delete(self) -> None:
        gone = self.some()[:3]
        self.run(f"DELETE FROM t WHERE r IN ({numbers(gone)})")
        for r in gone:
            del self.now[r]

    def merge(self) -> None:
        """Deletes rows whose new k is 6, gives the others new values, and inserts some."""
        source = {r: self.row() for r in self.some()} | self.fresh(self.rng.randint(1, 4))
        self.run(
            f"MERGE INTO t USING (SELECT * FROM VALUES {values(source)} AS v (r, k, amount)) AS u ON t.r = u.r "
            "WHEN MATCHED AND u.k = 6 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        for r, row in source.items():
            if r in self.now and row[0] == 6:
                del self.now[r]
            else:
                self.now[r] = row

    def change(self) -> None:
        """Makes one commit."""
        if len(self.now) < 4:
            self.insert()
        else:
            self.rng.choice((self.insert, self.update, self.update, self.update_key, self.delete, self.merge))()

    # -- consumptions

    def consume(self, name: str) -> None:
        """Consumes a stream, and compares all that this has to do. If a row fails it, deletes such rows and consumes again."""
        wanted = taken(self.versions[name], self.now, self.expected[name])
        shown = self.run(f"SELECT __change_type, r, k, amount FROM s_{name}")
        self.same(shown, wanted.shown, f"what s_{name} shows")
        if wanted.failing:
            self.fails(name, wanted)
            wanted = taken(self.versions[name], self.now, self.expected[name])
            assert not wanted.failing
        self.run(self.statement(name))
        self.versions[name] = dict(self.now)
        if name == "log":
            self.log += wanted.shown
        else:
            self.copy = merged(self.copy, wanted.shown)
        for table, rows in wanted.quarantined.items():
            self.quarantined[table] += rows
        self.compare(name)
        if wanted.shown or wanted.counts:
            self.counted(name, wanted)

    def statement(self, name: str) -> str:
        if name == "log":
            return "INSERT INTO log SELECT __change_type, r, k, amount FROM s_log"
        return (
            "MERGE INTO copy USING (SELECT * FROM s_copy WHERE __change_type <> 'UPDATE_BEFORE') AS s ON copy.r = s.r "
            "WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE WHEN MATCHED THEN UPDATE SET k = s.k, amount = s.amount "
            "WHEN NOT MATCHED AND s.__change_type <> 'DELETE' THEN INSERT (r, k, amount) VALUES (s.r, s.k, s.amount)"
        )

    def fails(self, name: str, wanted: Taken) -> None:
        """A statement that fails moves nothing. Deletes the rows that fail it."""
        before = offset_of(self.spark, f"{self.schema}.s_{name}")
        with pytest.raises(Exception, match=r"EXPECTATION_VIOLATED.*expectation rare"):
            self.run(self.statement(name))
        assert offset_of(self.spark, f"{self.schema}.s_{name}") == before, self.told()
        self.compare(name)
        self.run(f"DELETE FROM t WHERE r IN ({numbers(wanted.failing)})")
        for r in wanted.failing:
            del self.now[r]

    def compare(self, name: str) -> None:
        """Compares the target of a stream, and its quarantine tables."""
        if name == "log":
            self.same(self.run("SELECT type, r, k, amount FROM log"), self.log, "log")
        else:
            copied = Counter((r, *row) for r, row in self.copy.items())
            self.same(self.run("SELECT r, k, amount FROM copy"), copied, "copy")
        for table in {e.table for e in self.expected[name] if e.table}:
            found = self.run(f"SELECT __expectation, __violated, __change_type, r, k, amount FROM {table}")
            rows = [(first, tuple(all_), tuple(change)) for first, all_, *change in found]
            self.same(rows, self.quarantined[table], table)

    def counted(self, name: str, wanted: Taken) -> None:
        """Compares what the ledger says of the last consumption of a stream."""
        (row,) = self.run(
            f"SELECT max_by(details, sequence) FROM streamql.consumptions WHERE stream = '{self.schema}.s_{name}' AND outcome = 'CONSUMED'"
        )
        details = json.loads(str(row[0] or "{}"))
        assert details.get("violations", {}) == dict(wanted.counts), self.told()
        written = {t.split(".")[1]: q["rows"] for t, q in details.get("quarantined", {}).items()}
        assert written == {t: rows.total() for t, rows in wanted.quarantined.items()}, self.told()

    def same(self, found: Sequence[tuple[Any, ...]], wanted: Mapping[Any, int], what: str) -> None:
        have, want = Counter[Any](found), Counter[Any](dict(wanted))
        assert have == want, f"{what}\nmissing: {want - have}\nunexpected: {have - want}\n{self.told()}"

    def told(self) -> str:
        return ";\n".join(self.story)


@pytest.mark.every_case
@pytest.mark.parametrize("number", range(HISTORIES))
def test_a_history(spark: SparkSession, number: int) -> None:
    rng = random.Random(f"{SEED} expectations {number}")
    history = History(spark, rng)
    try:
        for step in range(STEPS):
            history.change()
            for name in STREAMS:
                if rng.random() < 0.35 or step == STEPS - 1:
                    history.consume(name)
    finally:
        run(spark, "USE default")
