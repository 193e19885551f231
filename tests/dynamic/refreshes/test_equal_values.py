"""Values that streams take for equal, and that a query tells apart: the sign of zero, the order of a map, strings of a collation."""

from __future__ import annotations

import pytest
from pyspark.sql import Row

from tests.dynamic.support import DynamicPlace

pytestmark = pytest.mark.usefixtures("quick")

INCREMENTAL = "REFRESH_MODE = INCREMENTAL"
COLUMNS = "id INT, g INT, x DOUBLE, m MAP<STRING, INT>"
ROWS = "(1, 1, 0.0D, map('k', 1, 'l', 2)), (2, 1, 0.0D, map('k', 1, 'l', 2)), (3, 2, 5.0D, map('k', 3))"
MINUS = "CAST('-0.0' AS DOUBLE)"
WRITES = (
    f"UPDATE e SET x = {MINUS} WHERE id = 1",
    "UPDATE e SET m = map('l', 2, 'k', 1) WHERE id = 2",
    f"UPDATE e SET x = {MINUS}, m = map('l', 2, 'k', 1) WHERE g = 1",
    "UPDATE e SET x = 0.0D WHERE id = 1",
    "DELETE FROM e WHERE id = 2",
    "UPDATE e SET m = map('k', 1, 'l', 2)",
    "DELETE FROM e WHERE id = 1",
)
QUERIES = {
    "group by the sign": "SELECT CAST(x AS STRING) AS k, count(*) AS n FROM e GROUP BY CAST(x AS STRING)",
    "group by the first key": "SELECT map_keys(m)[0] AS k, count(*) AS n FROM e GROUP BY map_keys(m)[0]",
    "join": "SELECT e.id, CAST(e.x AS STRING) AS x, to_json(e.m) AS m, o.id AS other FROM e JOIN e o ON e.g = o.g",
    "explode": "SELECT id, k, v FROM e LATERAL VIEW explode(m) AS k, v",
    "window": "SELECT id, to_json(m) AS m, lag(CAST(x AS STRING)) OVER (PARTITION BY g ORDER BY id) AS x FROM e",
    "count of texts": "SELECT g, count(DISTINCT to_json(m)) AS n, count(DISTINCT CAST(x AS STRING)) AS s FROM e GROUP BY g",
    "one row of one": "SELECT id, CAST(x AS STRING) AS x, to_json(m) AS m FROM e",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_updates_that_streams_do_not_show_reach_the_query(place: DynamicPlace, query: str) -> None:
    place.table("e", COLUMNS)
    place.run(f"INSERT INTO e VALUES {ROWS}")
    place.create(query, clauses=INCREMENTAL)
    for write in WRITES:
        place.run(write)
        place.refresh()
        assert place.history()[0]["mode"] == "INCREMENTAL"
        assert place.bag("SELECT * FROM d") == place.bag(query), write


def test_a_stream_on_joined_tables_shows_such_updates_of_what_is_computed(place: DynamicPlace) -> None:
    place.table("e", COLUMNS)
    place.run(f"INSERT INTO e VALUES {ROWS}")
    place.run("CREATE VIEW j AS SELECT e.id, to_json(e.m) AS m FROM e JOIN e o ON e.id = o.id")
    place.run("CREATE TABLE STREAM s ON VIEW j", WRITES[1])
    rows: list[Row] = place.run("SELECT __change_type, id, m FROM s")
    assert sorted(map(tuple, rows)) == [
        ("UPDATE_AFTER", 2, '{"l":2,"k":1}'),
        ("UPDATE_BEFORE", 2, '{"k":1,"l":2}'),
    ]


@pytest.mark.parametrize("query", ["SELECT id, x, m FROM e", "SELECT e.id, e.x FROM e JOIN e o ON e.id = o.id"])
def test_equal_rows_are_not_written(place: DynamicPlace, query: str) -> None:
    place.table("e", COLUMNS)
    place.run(f"INSERT INTO e VALUES {ROWS}")
    place.create(query, clauses=INCREMENTAL)
    place.run(WRITES[0])
    assert place.refresh()["d"][2:] == (0, 0, 0)


def test_a_least_value_has_no_sign_of_zero(place: DynamicPlace) -> None:
    """The order of the rows would tell which of -0.0 and 0.0 is the greatest value, and the stored one may be of a row that is gone."""
    place.table("e", COLUMNS)
    place.run("INSERT INTO e VALUES (1, 1, 0.0D, NULL)")
    shown = "CAST(max(x) AS STRING) AS k"
    place.create(f"SELECT g, {shown}, CAST(min(x) AS STRING) AS l FROM e GROUP BY g", clauses=INCREMENTAL)
    place.create(f"SELECT k, count(*) AS n FROM (SELECT g, {shown} FROM e GROUP BY g) GROUP BY k", "c", INCREMENTAL)
    for write in ("DELETE FROM e", f"INSERT INTO e VALUES (2, 1, {MINUS}, NULL), (3, 1, 0.0D, NULL)", *WRITES[:2]):
        place.run(write)
    for _ in range(2):
        place.refresh()
        place.refresh("c")
        assert place.run("SELECT * FROM d") == [(1, "0.0", "0.0")]
        assert place.run("SELECT * FROM c") == [("0.0", 1)]
        place.run("DELETE FROM e WHERE id = 3")


INNER = "(SELECT v, max(concat('a', w) COLLATE UTF8_LCASE) COLLATE UTF8_BINARY AS k FROM t JOIN u ON t.id = u.id GROUP BY v)"
DISTINCT = "(SELECT DISTINCT CAST(id AS STRING) COLLATE UTF8_LCASE AS c FROM t)"
SIGNS = "(SELECT x, count(*) AS n FROM e GROUP BY x)"
ONE_OF_EQUALS = {
    "function of a key": f"SELECT CAST(x AS STRING) AS k, max(n) AS n FROM {SIGNS} GROUP BY CAST(x AS STRING)",
    "function of a partition": """SELECT k COLLATE UTF8_BINARY AS b, max(n) AS n FROM (SELECT k, count(*) OVER (PARTITION BY k) AS n
        FROM (SELECT CAST(id AS STRING) COLLATE UTF8_LCASE AS k FROM t)) GROUP BY 1""",
    "max": f"SELECT k, count(*) AS n FROM {INNER} GROUP BY k",
    "DISTINCT": f"SELECT c COLLATE UTF8_BINARY AS k, count(*) AS n FROM {DISTINCT} GROUP BY 1",
}


@pytest.mark.parametrize("query", ONE_OF_EQUALS.values(), ids=ONE_OF_EQUALS)
def test_one_of_several_equal_values_is_not_grouped(place: DynamicPlace, query: str) -> None:
    place.table("e", COLUMNS)
    refused = place.refused(f"CREATE DYNAMIC TABLE d {INCREMENTAL} AS {query}")
    assert "strings of a collation" in refused.message


def test_collated_keys_and_extrema_are_not_stored(place: DynamicPlace) -> None:
    """Delta stores no column of a collation."""
    text = "CAST(id AS STRING)"
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)")
    query = f"SELECT v, max({text} COLLATE UNICODE) COLLATE UTF8_BINARY AS m FROM t GROUP BY v"
    place.create(query, clauses=INCREMENTAL)
    place.create(f"SELECT count(*) AS n FROM t GROUP BY {text} COLLATE UTF8_LCASE", "c")
    place.create(f"SELECT v FROM (SELECT DISTINCT v, {text} COLLATE UTF8_LCASE AS c FROM t)", "e", INCREMENTAL)
    place.run(
        "INSERT INTO t VALUES (3, 10)", "REFRESH DYNAMIC TABLE d", "REFRESH DYNAMIC TABLE c", "REFRESH DYNAMIC TABLE e"
    )
    assert place.bag("SELECT * FROM d") == place.bag(query)
    assert place.run("SELECT * FROM c") == [(1,), (1,), (1,)]
    assert place.bag("SELECT * FROM e") == {(10,): 2, (20,): 1}
