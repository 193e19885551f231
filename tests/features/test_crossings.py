"""How often a statement crosses from the JVM to Python: each call takes its time, and holds the interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from streamql.bridge.handler import Handler
from tests.consume.support import TRACKED, fresh_schema, run

CALLS = (
    "plan", "bind", "rejected", "resolve", "asOf", "reboundTable", "function", "run", "consume", "guard", "created", "guardVacuum", "hint",
)  # fmt: skip
MERGE = "MERGE INTO copy USING {source} s ON copy.id = s.id"
STATEMENTS = {
    f"{MERGE.format(source='t')} WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)": [],
    "SELECT id FROM s": ["resolve"],
    f"{MERGE.format(source='s')} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)": [
        "consume",
        "resolve",
    ],
    # Spark refuses columns of the target there, so that Python is asked.
    f"{MERGE.format(source='s')} WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, copy.v)": [
        "consume",
        "plan",
        "resolve",
    ],
    f"{MERGE.format(source='s')} WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, transform(array(1), x -> x + copy.v)[0])": [
        "consume",
        "plan",
        "resolve",
    ],
    "INSERT INTO copy SELECT id, v FROM s": ["consume", "resolve"],
    "REFRESH DYNAMIC TABLE d": ["consume", "plan", "run"],
}


def counted(name: str, calls: Counter[str]) -> Callable[..., object]:
    method = getattr(Handler, name)

    def counting(self: Handler, *arguments: object) -> object:
        calls[name] += 1
        return method(self, *arguments)

    return counting


def test_what_crosses(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh_schema(spark, "crossings")
    run(spark, f"CREATE TABLE t (id INT, v INT) USING DELTA {TRACKED}")
    run(spark, "CREATE TABLE copy (id INT, v INT) USING DELTA")
    run(spark, "CREATE STREAM s ON TABLE t")
    run(spark, "CREATE DYNAMIC TABLE d AS SELECT id, v FROM t")
    calls: Counter[str] = Counter()
    for name in CALLS:
        monkeypatch.setattr(Handler, name, counted(name, calls))
    for number, (statement, expected) in enumerate(STATEMENTS.items()):
        run(spark, f"INSERT INTO t VALUES ({number}, 1)")
        calls.clear()
        run(spark, statement)
        assert sorted(calls.elements()) == expected, statement
