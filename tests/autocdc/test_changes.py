"""Without SEQUENCE BY, the net changes of a stream make a copy that equals the source, and a history of each state in which it was read.

STREAMQL_LONG=10 make test TESTS=tests/autocdc/test_changes.py    # that many times as many rounds
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from pyspark.sql import SparkSession

from tests.consume.support import fresh_schema, run
from tests.sample import SEED, amount

ROUNDS = amount(6, 60)
KEYS = 40
Row = tuple[int, str | None, str | None]
"""A number that only this row has; v, which is tracked; and w, which is not. A row with w = 'gone' counts as deleted in the history."""


@dataclass
class State:
    """A row of a history. `is_open`: it has no end yet."""

    v: str | None
    w: str | None
    is_open: bool = True


@dataclass
class Oracle:
    """The rows of the source by their keys, and the history that was read. `read`: the rows when they were read last."""

    rows: dict[int, Row] = field(default_factory=dict)
    read: dict[int, Row] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)
    history: dict[int, list[State]] = field(default_factory=lambda: defaultdict(list))

    def apply(self) -> None:
        """Adds to the history what differs since the rows were read."""
        for key in self.rows.keys() | self.read.keys():
            now = self.rows.get(key)
            if now == self.read.get(key):
                continue
            states = self.history[key]
            current = states[-1] if states and states[-1].is_open else None
            if now is None or now[2] == "gone":
                if current is not None:
                    current.is_open = False
            elif current is not None and current.v == now[1]:
                current.w = now[2]
            else:
                if current is not None:
                    current.is_open = False
                states.append(State(*now[1:]))
        self.read = dict(self.rows)


PLAIN = ("insert", "v", "v", "w", "delete")
WILD = ("insert", "v", "w", "delete", "move", "swap", "overwrite")


def change(spark: SparkSession, rng: random.Random, oracle: Oracle, kinds: Sequence[str]) -> None:
    """Changes some rows by one statement."""
    value = (rng.choice(("a", "b", None)), rng.choice(("x", "y", None if kinds == PLAIN else "gone")))
    chosen = rng.sample(range(KEYS), 8)
    there = [k for k in chosen if k in oracle.rows]
    kind = rng.choice(kinds)
    names = ", ".join(map(str, there or [-1]))
    literal = [f"'{x}'" if x else "NULL" for x in value]
    if kind == "insert":
        new = [k for k in chosen if k not in oracle.rows] or [KEYS]
        oracle.rows |= {k: (next(oracle.numbers), *value) for k in new}
        run(spark, f"INSERT INTO source SELECT explode(array({', '.join(map(str, new))})), {literal[0]}, {literal[1]}")
    elif kind in ("v", "w"):
        is_v = kind == "v"
        for key in there:
            row, v, w = oracle.rows[key]
            oracle.rows[key] = (row, value[0], w) if is_v else (row, v, value[1])
        run(spark, f"UPDATE source SET {kind} = {literal[0 if is_v else 1]} WHERE k IN ({names})")
    elif kind == "delete":
        oracle.rows = {k: r for k, r in oracle.rows.items() if k not in there}
        run(spark, f"DELETE FROM source WHERE k IN ({names})")
    elif kind == "move":  # all rows get another key, which another row may have had before
        oracle.rows = {(k + 1) % (KEYS + 1): r for k, r in oracle.rows.items()}
        run(spark, f"UPDATE source SET k = (k + 1) % {KEYS + 1}")
    elif kind == "swap" and len(there) > 1:
        a, b = there[:2]
        oracle.rows[a], oracle.rows[b] = oracle.rows[b], oracle.rows[a]
        run(spark, f"UPDATE source SET k = if(k = {a}, {b}, {a}) WHERE k IN ({a}, {b})")
    else:
        oracle.rows = {k: (next(oracle.numbers), v, w) for k, (_, v, w) in oracle.rows.items()}
        run(spark, "INSERT OVERWRITE source SELECT * FROM source")


def tamper(spark: SparkSession, rng: random.Random, oracle: Oracle) -> None:
    """Changes rows of the history by hand, so that they are no longer what the old images of the stream show."""
    kept = [k for k, states in oracle.history.items() if states and states[-1].is_open]
    chosen = rng.sample(kept, min(8, len(kept)))
    for i, key in enumerate(chosen):
        last = oracle.history[key][-1]
        if i % 2:
            last.v = "by hand"
            run(spark, f"UPDATE history SET v = 'by hand' WHERE k = {key} AND __END_AT IS NULL")
        else:
            oracle.history[key].pop()
            run(spark, f"DELETE FROM history WHERE k = {key} AND __END_AT IS NULL")


def test_a_copy_and_a_history_of_random_changes(spark: SparkSession) -> None:
    rng, oracle = random.Random(SEED), Oracle()
    fresh_schema(spark, "cdc_changes")
    run(spark, "CREATE TABLE source (k INT, v STRING, w STRING) TBLPROPERTIES ('change_tracking' = 'true')")
    run(spark, "CREATE STREAM of_copy ON TABLE source")
    run(spark, "CREATE STREAM of_history ON TABLE source")
    for number in range(ROUNDS):
        # The changes of a plain round tell what to do, unless the history is not what they show.
        kinds = PLAIN if number % 3 else WILD
        for _ in range(rng.randint(1, 4)):
            change(spark, rng, oracle, kinds)
        if number and number % 2 == 0:
            tamper(spark, rng, oracle)
        run(spark, "AUTO CDC INTO copy FROM STREAM of_copy KEYS (k) WITH (CREATE_TARGET = TRUE)")
        run(
            spark,
            "AUTO CDC INTO history FROM STREAM of_history KEYS (k) APPLY AS DELETE WHEN w = 'gone' STORED AS SCD TYPE 2 "
            "TRACK HISTORY ON v WITH (CREATE_TARGET = TRUE)",
        )
        oracle.apply()
        assert {r["k"]: (r["v"], r["w"]) for r in run(spark, "SELECT * FROM copy")} == {
            k: r[1:] for k, r in oracle.rows.items()
        }
        assert_history(spark, oracle)


def assert_history(spark: SparkSession, oracle: Oracle) -> None:
    """The states are those of the oracle, and one begins where the one before it ends, or later."""
    found: dict[int, list[State]] = defaultdict(list)
    ends: dict[int, datetime | None] = {}
    for r in run(spark, "SELECT * FROM history ORDER BY k, __START_AT, __END_AT"):
        key, end = r["k"], r["__END_AT"]
        assert end is None or r["__START_AT"] < end
        assert key not in ends or ((before := ends[key]) is not None and before <= r["__START_AT"]), key
        ends[key] = end
        found[key].append(State(r["v"], r["w"], end is None))
    assert found == {key: states for key, states in oracle.history.items() if states}
