"""Dynamic tables over a table that is changed, overwritten, replaced and restored at random. After each refresh, they have the rows of
their queries, and streams on them show the difference.

STREAMQL_LONG=20 make test TESTS=tests/keys/test_dynamic.py    # so many histories
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import pytest
from pyspark.sql import SparkSession

from streamql.errors import StreamqlError
from tests.consume.support import fresh_schema, run
from tests.histories.columns import canonical
from tests.keys.rebuilt import CHANGES, OTHERS, REBUILDS, filled
from tests.sample import SEED, amount

STEPS = 6
QUERIES = {
    "filtered": ("SELECT k, part, v FROM t WHERE part < 2", "k, part"),
    "hidden": ("SELECT v, w FROM t", "__dynamic_key_1, __dynamic_key_2"),
    "summed": ("SELECT part, count(*) AS n, sum(k) AS s FROM t GROUP BY part", "part"),
    "first": (
        "SELECT part, k FROM (SELECT *, row_number() OVER (PARTITION BY part ORDER BY k DESC) AS n FROM t) WHERE n = 1",
        "part",
    ),
    "joined": (
        "SELECT a.k, a.part, b.k AS other FROM t a JOIN t b ON a.part = b.part AND a.k = b.k + 3",
        "k, part, other, __dynamic_key_1",
    ),
}
Row = tuple[Hashable, ...]


@pytest.mark.every_case
@pytest.mark.parametrize("number", range(amount(1, 5)))
def test_refreshed_tables_have_the_rows_of_their_queries(spark: SparkSession, number: int) -> None:
    table = filled(spark, "rebuilt_queries", SEED * 2000 + number)
    for name, (query, key) in QUERIES.items():
        run(spark, f"CREATE DYNAMIC TABLE {name} REFRESH_MODE = INCREMENTAL AS {query}")
        facts = {r["info_name"]: r["info_value"] for r in run(spark, f"DESCRIBE DYNAMIC TABLE {name}")}
        assert facts["row_key"] == key
        run(spark, f"CREATE STREAM of_{name} ON DYNAMIC TABLE {name}")
    before = {name: _rows(spark, name) for name in QUERIES}
    try:
        for step in range(STEPS):
            table.change((CHANGES, REBUILDS, (*REBUILDS, *OTHERS))[step % 3])
            if table.rng.random() < 0.3:
                continue
            for name, (query, _) in QUERIES.items():
                (done,) = run(spark, f"REFRESH DYNAMIC TABLE {name}")
                assert done["mode"] in (None, "INCREMENTAL"), name
                assert _rows(spark, name) == _counted(spark, query), name
        for name in QUERIES:
            _check_stream(spark, name, before[name])
    except Exception:
        print(f"seed {SEED * 2000 + number}", *table.log, sep="\n")
        raise


def _rows(spark: SparkSession, name: str) -> Counter[Row]:
    return _counted(spark, f"SELECT * FROM {name}")


def _counted(spark: SparkSession, query: str) -> Counter[Row]:
    return Counter(tuple(map(canonical, row)) for row in spark.sql(query).collect())


def _check_stream(spark: SparkSession, name: str, before: Counter[Row]) -> None:
    """The rows before, with the changes, are the rows now. No row is removed and added again."""
    changed: Counter[Row] = Counter()
    rows = run(spark, f"SELECT * FROM of_{name}")
    for row in rows:
        changed[tuple(map(canonical, row[3:]))] += 1 if row[0] in ("INSERT", "UPDATE_AFTER") else -1
    now = _rows(spark, name)
    assert {row: n for row, n in changed.items() if n} == {
        row: n for row in before | now if (n := now[row] - before[row])
    }, name


def test_a_key_that_lies_fails_the_refresh_and_moves_nothing(spark: SparkSession) -> None:
    fresh_schema(spark, "rebuilt_lies")
    run(spark, "CREATE TABLE t (k INT PRIMARY KEY RELY, v INT) TBLPROPERTIES ('change_tracking' = 'true')")
    run(spark, "INSERT INTO t VALUES (1, 1), (2, 2)")
    run(spark, "CREATE DYNAMIC TABLE d AS SELECT k, v FROM t")
    run(spark, "CREATE DYNAMIC TABLE s REFRESH_MODE = FULL AS SELECT sum(v) AS s FROM t")
    run(spark, "INSERT OVERWRITE t VALUES (1, 5), (1, 6), (2, 2)")
    for name, rows in (("d", 2), ("s", 1)):
        with pytest.raises(
            StreamqlError, match=r"KEY_NOT_UNIQUE.* 2 rows of version 2 of rebuilt_lies_\d+\.t have the key \(k = 1\)"
        ):
            run(spark, f"REFRESH DYNAMIC TABLE {name}")
        assert spark.table(name).count() == rows
    with pytest.raises(StreamqlError, match="KEY_NOT_UNIQUE"):
        run(spark, "CREATE DYNAMIC TABLE new AS SELECT k, v FROM t")
    run(spark, "INSERT OVERWRITE t VALUES (1, 5), (2, 2)")
    for name in ("d", "s"):
        (done,) = run(spark, f"REFRESH DYNAMIC TABLE {name}")
        assert done["outcome"] == "REFRESHED"
    assert spark.table("s").first() == (7,)
    run(spark, "ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')")
    run(spark, "UPDATE t SET v = 6 WHERE k = 1")
    (done,) = run(spark, "REFRESH DYNAMIC TABLE d")
    assert (done["mode"], done["rows_updated"]) == ("INCREMENTAL", 1)  # a key needs no change tracking
    run(spark, "REFRESH DYNAMIC TABLE s")
    run(spark, "CREATE OR REPLACE TABLE t AS SELECT k AS id, v FROM t")
    with pytest.raises(StreamqlError, match="lacks a column of the key"):
        run(spark, "REFRESH DYNAMIC TABLE s")
    run(spark, "DROP TABLE t")
    run(spark, "CREATE TABLE t (k INT PRIMARY KEY RELY, v INT) TBLPROPERTIES ('change_tracking' = 'true')")
    run(spark, "INSERT INTO t VALUES (1, 5), (3, 3)")
    (done,) = run(spark, "REFRESH DYNAMIC TABLE d")
    assert (done["mode"], done["reason"]) == ("FULL", "a table that it reads was replaced")  # another log
    assert {tuple(r) for r in spark.table("d").collect()} == {(1, 5), (3, 3)}
