"""What rows of a dynamic table are known by: unique, the same in each run, and stored once."""

from __future__ import annotations

import pytest

from streamql.delta.neutral import dynamic_session
from tests.consume.support import path_of
from tests.dynamic.support import DynamicPlace
from tests.sample import sample

CASES = [
    ("SELECT id, v FROM t", ["__dynamic_key_1"]),
    ("SELECT v, count(*) AS n FROM t GROUP BY v", ["v"]),
    ("SELECT count(*) AS n FROM t GROUP BY v", ["__dynamic_key_1"]),
    ("SELECT count(*) AS n FROM t", ["__dynamic_key_1"]),
    ("SELECT (SELECT count(*) FROM t) AS n, (SELECT max(v) FROM t) AS m", ["__dynamic_key_1"]),
    ("SELECT 1 AS x WHERE EXISTS (SELECT 1 FROM t WHERE id = 5)", ["__dynamic_key_1"]),
    ("SELECT count(*) AS n FROM t GROUP BY timestamp_seconds(v) - timestamp_seconds(id)", ["__dynamic_key_1"]),
    ("SELECT DISTINCT v, id FROM t", ["v", "id"]),
    ("SELECT v + 1 AS x FROM (SELECT v FROM t GROUP BY v, v)", ["__dynamic_key_1"]),
    ("SELECT x.id FROM t LATERAL VIEW explode(array(id, v)) x AS id", ["__dynamic_key_1", "__dynamic_key_2"]),
    ("SELECT v, count(*) AS n FROM t GROUP BY v ORDER BY n LIMIT 2", ["v"]),
    ("SELECT /*+ COALESCE(1) */ v, count(*) AS n FROM t GROUP BY v", ["v"]),
]

TIES = [
    "SELECT id, v FROM t ORDER BY v LIMIT 3",
    "SELECT id, v FROM t LIMIT 3",
    "SELECT id, v FROM t ORDER BY v LIMIT 2 OFFSET 2",
    "SELECT id FROM (SELECT *, row_number() OVER (PARTITION BY v ORDER BY v) AS n FROM t) WHERE n = 1",
    "SELECT id, lead(id) OVER (ORDER BY v) AS following, rank() OVER (ORDER BY v) AS r FROM t",
    "SELECT sum(id) AS s FROM (SELECT id FROM t ORDER BY v LIMIT 3)",
    "SELECT id FROM t WHERE id IN (SELECT id FROM t ORDER BY v LIMIT 3)",
    "SELECT id, (SELECT sum(id) FROM (SELECT id FROM t ORDER BY v LIMIT 3)) AS s FROM t",
    "SELECT DISTINCT id % 3 AS k FROM (SELECT id FROM t ORDER BY v LIMIT 3)",
]


@pytest.mark.parametrize("group", sample("keys of queries", [CASES[:6], CASES[6:]], 1))
def test_keys(place: DynamicPlace, group: list[tuple[str, list[str]]]) -> None:
    place.run("INSERT INTO t VALUES (1, 10), (2, 10), (3, NULL), (4, 30)")
    for i, (query, keys) in enumerate(group):
        place.create(query, name=f"d{i}")
        assert (place.facts(f"d{i}")["row_key"] or "").split(", ") == keys, query
    place.run("UPDATE t SET v = 10 WHERE id >= 3", "INSERT INTO t VALUES (5, NULL)")
    for i, (query, _) in enumerate(group):
        place.refresh(f"d{i}")
        assert place.verify(f"d{i}")[0] == "EQUAL", query


@pytest.mark.parametrize("group", sample("ties in queries", [TIES[:5], TIES[5:]], 1))
def test_rows_that_are_equal_in_an_order(place: DynamicPlace, group: list[str]) -> None:
    """Which of them a query takes does not change from run to run, although files and plans do."""
    place.run(*[f"INSERT INTO t VALUES ({i}, 7), ({i + 100}, 7)" for i in (5, 3, 8, 1)])
    for i, query in enumerate(group):
        place.create(query, name=f"d{i}")
    place.run("OPTIMIZE t", "INSERT INTO t VALUES (1000, 9)", "DELETE FROM t WHERE id = 1000")
    place.spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        for i, query in enumerate(group):
            assert place.verify(f"d{i}")[0] == "EQUAL", query
            place.run("INSERT INTO t VALUES (2000, 8)")
            place.refresh(f"d{i}")
            assert place.verify(f"d{i}")[0] == "EQUAL", query
            place.run("DELETE FROM t WHERE id = 2000")
    finally:
        place.spark.conf.set("spark.sql.shuffle.partitions", "1")


def test_a_rank_is_not_changed_by_the_key(place: DynamicPlace) -> None:
    """Nor is what a RANGE frame holds: rows that are equal in the order are peers."""
    place.run("INSERT INTO t VALUES (1, 7), (2, 7), (3, 8)")
    place.create(
        "SELECT id, r, s, n FROM (SELECT id, rank() OVER (ORDER BY v) AS r, sum(id) OVER (ORDER BY v) AS s, "
        "row_number() OVER (ORDER BY v) AS n FROM t) WHERE r <= 1"
    )
    assert place.bag("SELECT * FROM d") == {(1, 1, 3, 1): 1, (2, 1, 3, 2): 1}


def test_rows_live_on(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10), (2, 20), (3, 20)")
    place.create("SELECT v, count(*) AS n FROM t GROUP BY v")
    place.run("CREATE STREAM s ON DYNAMIC TABLE d SHOW_INITIAL_ROWS = TRUE")
    ids = {r["v"]: r[1] for r in place.run("SELECT v, METADATA$ROW_ID FROM s")}
    place.run("CREATE TABLE done (v BIGINT, n BIGINT)", "INSERT INTO done SELECT v, n FROM s")
    place.run("INSERT INTO t VALUES (4, 20), (5, 50)", "DELETE FROM t WHERE id = 1", "REFRESH DYNAMIC TABLE d")
    shown = {
        (r[0], r[1], r[2], r[3] == ids.get(r[1]))
        for r in place.run("SELECT __change_type, v, n, METADATA$ROW_ID FROM s")
    }
    assert shown == {
        ("DELETE", 10, 1, True),
        ("UPDATE_BEFORE", 20, 2, True),
        ("UPDATE_AFTER", 20, 3, True),
        ("INSERT", 50, 1, False),
    }


def test_what_varies_cannot_be_verified(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10)")
    for i, (query, why) in enumerate(
        [
            ("SELECT rand() AS r FROM t", "differs from call to call"),
            ("SELECT id, current_date() AS d FROM t", "uses the current time"),
            ("SELECT id, current_user() AS u FROM t", "uses the current user"),
            ("SELECT id FROM t TABLESAMPLE (50 PERCENT)", "has TABLESAMPLE"),
        ]
    ):
        place.create(query, name=f"d{i}")
        refused = place.refused(f"VERIFY DYNAMIC TABLE d{i}")
        assert (refused.code, why in refused.message) == ("DYNAMIC_TABLE_NOT_VERIFIABLE", True)


@pytest.mark.parametrize("key", ["m", "struct(m)"])
def test_groups_by_a_map_are_computed_again(place: DynamicPlace, key: str) -> None:
    """Spark groups by maps, and cannot join by them."""
    place.table("e", "id INT, m MAP<STRING, INT>")
    place.run("INSERT INTO e VALUES (1, map('k', 1)), (2, map('k', 2))")
    query = f"SELECT count(*) AS n FROM (SELECT {key} AS k FROM e GROUP BY {key})"
    assert (
        "cannot be compared" in place.refused(f"CREATE DYNAMIC TABLE d REFRESH_MODE = INCREMENTAL AS {query}").message
    )
    place.create(query)
    place.create(f"SELECT count(*) AS n FROM e GROUP BY {key}", "c")
    place.run("INSERT INTO e VALUES (3, map('k', 1))", "REFRESH DYNAMIC TABLE d", "REFRESH DYNAMIC TABLE c")
    assert place.run("SELECT * FROM d") == [(2,)]
    assert place.bag("SELECT * FROM c") == {(2,): 1, (1,): 1}


GROUPED = "(SELECT v, v + count(*) AS x, CASE WHEN count(*) > 1 THEN v END AS dup, max(id) AS y FROM t GROUP BY v)"
BY_AGGREGATES = (
    f"SELECT g.v, u.w FROM {GROUPED} g JOIN u ON g.dup = u.id",
    f"SELECT u.id, g.v FROM u LEFT JOIN {GROUPED} g ON u.id = g.x",
    f"SELECT x, count(DISTINCT y) AS n FROM {GROUPED} GROUP BY x",
    f"SELECT v, row_number() OVER (PARTITION BY x ORDER BY v) AS n FROM {GROUPED}",
)


@pytest.mark.parametrize("query", sample("keys of aggregates", BY_AGGREGATES, 2))
def test_keys_that_are_computed_of_counts(place: DynamicPlace, query: str) -> None:
    """They are not known below the aggregate, although count(*) reads no column."""
    place.run("INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)", "INSERT INTO u VALUES (1, 10), (3, 30)")
    place.create(query, clauses="REFRESH_MODE = INCREMENTAL")
    for write in (
        "INSERT INTO u VALUES (2, 20), (4, 40)",
        "INSERT INTO t VALUES (4, 2), (5, 3)",
        "DELETE FROM t WHERE id = 1",
    ):
        place.run(write)
        place.refresh()
        assert place.bag("SELECT * FROM d") == place.bag(query), write


def test_a_union_is_not_taken_for_partitioned(place: DynamicPlace) -> None:
    """Spark 4.2 may compute groups of EXCEPT ALL in two tasks, if a plan reads a part of it twice. A random query found it."""
    assert dynamic_session(place.spark).conf.get("spark.sql.unionOutputPartitioning") == "false"


def test_rows_that_were_rewritten_by_hand(place: DynamicPlace) -> None:
    """They have new ids, so a change cannot be matched with the row that is stored."""
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)")
    place.create("SELECT id, v FROM t WHERE v > 0", clauses="REFRESH_MODE = INCREMENTAL")
    path = str(path_of(place.spark, "t"))
    rows = place.spark.read.format("delta").load(path).repartition(1)
    rows.write.format("delta").mode("overwrite").option("dataChange", "false").save(path)
    place.run("DELETE FROM t WHERE id = 1", "UPDATE t SET v = 99 WHERE id = 2", "REFRESH DYNAMIC TABLE d")
    assert place.bag("SELECT * FROM d") == {(2, 99): 1}
    assert "rewrote rows with dataChange = false" in place.history()[0]["why_not_incremental"]
    place.run("INSERT INTO t VALUES (3, 30)", "REFRESH DYNAMIC TABLE d")
    assert place.history()[0]["mode"] == "INCREMENTAL"
    assert place.verify() == ("EQUAL", 2, 0, 0)


def test_equal_rows_that_are_not_the_same(place: DynamicPlace) -> None:
    """0.0 and -0.0 are one key, and are numbered. Which one has which number does not depend on the files."""
    place.table("x", "n INT, k INT, d DOUBLE")
    place.run(
        "INSERT INTO t VALUES (1, 1)",
        "INSERT INTO x SELECT /*+ COALESCE(1) */ * FROM VALUES (0, 1, 0.0D), (1, 1, -0.0D), (2, 1, 0.0D), (3, 1, -0.0D)",
    )
    shown = "SELECT t.id, CAST(r.d AS STRING) AS s FROM t, LATERAL (SELECT x.d FROM x WHERE x.k = t.v) AS r"
    place.create(f"{shown} UNION ALL SELECT id, 'none' FROM u", clauses="REFRESH_MODE = INCREMENTAL")
    place.run("DELETE FROM x WHERE n = 2", "REFRESH DYNAMIC TABLE d")
    assert place.bag("SELECT * FROM d") == {(1, "0.0"): 1, (1, "-0.0"): 2}
    assert place.verify() == ("EQUAL", 3, 0, 0)
