"""`FROM t, LATERAL explode(…)` and its other forms: refreshes follow the changed rows, as with LATERAL VIEW."""

from __future__ import annotations

import pytest

from tests.consume.support import TRACKED
from tests.dynamic.support import DynamicPlace
from tests.sample import sample

pytestmark = pytest.mark.usefixtures("quick")

FOLLOWED = {
    "SELECT n.id, e.c FROM n, LATERAL explode(n.a) AS e(c)": "POSEXPLODE",
    "SELECT n.id, e.c FROM n, LATERAL explode_outer(n.a) AS e(c)": "POSEXPLODE",
    "SELECT n.id, e.* FROM n, LATERAL posexplode(n.a) AS e(p, c) WHERE e.c > 1": "POSEXPLODE",
    "SELECT n.id, e.c FROM n JOIN LATERAL explode(n.a) AS e(c) ON e.c > n.id": "POSEXPLODE",
    "SELECT n.id, coalesce(e.c, -1) AS c FROM n LEFT JOIN LATERAL (SELECT c FROM explode(n.a) AS x(c)) AS e": "POSEXPLODE",
    "SELECT n.id, e.c FROM n LEFT JOIN LATERAL explode(n.a) AS e(c) ON e.c > n.id": "LEFT OUTER JOIN",
    "SELECT n.id, e.c FROM n LEFT JOIN LATERAL (SELECT coalesce(c, 0) AS c FROM explode(n.a) AS x(c)) AS e": "LEFT OUTER JOIN",
    "SELECT n.id, e.c FROM n, LATERAL (SELECT c + n.id AS c FROM explode(n.a) AS x(c) WHERE c > n.id) AS e": "POSEXPLODE",
    "SELECT n.id, e.c, f.g FROM n, LATERAL explode(n.a) AS e(c), LATERAL explode(sequence(1, e.c)) AS f(g)": "POSEXPLODE",
    "SELECT e.c, count(*) AS n FROM n LEFT JOIN LATERAL explode(n.a) AS e(c) GROUP BY e.c": "EXPLODE",
    "SELECT n.id, e.pos, e.value AS x FROM n, LATERAL variant_explode(variant_get(n.v, '$.x', 'variant')) AS e": "VARIANT_EXPLODE",
    "SELECT n.id, e.pos FROM n, LATERAL variant_explode_outer(n.v) AS e": "VARIANT_EXPLODE",
    "SELECT n.id, e.* FROM n, LATERAL inline(transform(n.a, x -> named_struct('x', x, 'y', n.id))) AS e": "POSEXPLODE",
    "SELECT n.id, e.* FROM n LATERAL VIEW OUTER inline(transform(n.a, x -> if(x = 2, NULL, named_struct('x', x)))) e": "POSEXPLODE",
}
"""Queries, and the operator of EXPLAIN REFRESH that makes their rows."""


@pytest.mark.parametrize("queries", sample("generators", [list(FOLLOWED)[i::7] for i in range(7)], 1))
def test_changed_rows_are_enough(place: DynamicPlace, queries: list[str]) -> None:
    place.run(
        f"CREATE TABLE n (id INT, a ARRAY<INT>, v VARIANT) USING DELTA {TRACKED}",
        """INSERT INTO n SELECT 1, array(1, 2), parse_json('{"x": [1, "b"]}')""",
    )
    for i, query in enumerate(queries):
        place.create(query, f"d{i}", "REFRESH_MODE = INCREMENTAL")
        assert any(FOLLOWED[query] in way for way in place.operators(f"d{i}")), (query, place.operators(f"d{i}"))
    for statement in (
        """INSERT INTO n SELECT 2, array(2, 2, 3), parse_json('{"x": [3, 3]}')""",
        "INSERT INTO n SELECT 3, array(), parse_json('{}')",
        "INSERT INTO n SELECT 4, NULL, NULL",
        """UPDATE n SET a = array(5, NULL), v = parse_json('{"x": [3]}') WHERE id = 2""",
        "UPDATE n SET id = 9 WHERE id = 3",
        "UPDATE n SET a = NULL, v = NULL WHERE id <> 1",
        "DELETE FROM n WHERE id = 1",
    ):
        place.run(statement)
        for i, query in enumerate(queries):
            place.refresh(f"d{i}")
            assert place.history(f"d{i}")[0]["mode"] == "INCREMENTAL"
            assert place.verify(f"d{i}")[0] == "EQUAL", (query, statement)


@pytest.mark.parametrize("column", ["c", "coalesce(c, 0) AS c"])
def test_left_joins_keep_rows_without_elements(place: DynamicPlace, column: str) -> None:
    """Spark 4.2 drops them in a query without ON."""
    place.run(
        f"CREATE TABLE n (id INT, a ARRAY<INT>) USING DELTA {TRACKED}",
        "INSERT INTO n VALUES (1, array(7)), (2, array())",
    )
    place.create(f"SELECT n.id, e.c FROM n LEFT JOIN LATERAL (SELECT {column} FROM explode(n.a) AS x(c)) AS e")
    assert place.bag("SELECT * FROM d") == {(1, 7): 1, (2, None): 1}
    place.run("ALTER DYNAMIC TABLE d SET REFRESH_MODE = INCREMENTAL", "UPDATE n SET a = array() WHERE id = 1")
    place.refresh()
    assert place.bag("SELECT * FROM d") == {(1, None): 1, (2, None): 1}


def test_a_field_that_elements_get(place: DynamicPlace) -> None:
    """Rows of inline are known by their place, and not by their fields, of which one cannot be compared."""
    place.run(
        f"CREATE TABLE n (id INT, a ARRAY<STRUCT<x: INT, m: MAP<STRING, INT>>>) USING DELTA {TRACKED}",
        "INSERT INTO n VALUES (1, array(named_struct('x', 5, 'm', map('k', 1))))",
    )
    place.create("SELECT n.id, e.x FROM n, LATERAL inline(n.a) AS e", clauses="REFRESH_MODE = INCREMENTAL")
    place.run(
        "ALTER TABLE n ADD COLUMNS (a.element.z INT)",
        "INSERT INTO n VALUES (2, array(named_struct('x', 6, 'm', NULL, 'z', 1), named_struct('x', 6, 'm', NULL, 'z', 2)))",
    )
    place.refresh()
    assert place.verify() == ("EQUAL", 3, 0, 0)
    place.run("UPDATE n SET a = array(a[1]) WHERE id = 2")
    place.refresh()
    assert place.history()[0]["mode"] == "INCREMENTAL"
    assert place.verify() == ("EQUAL", 2, 0, 0)


def test_fields_of_one_name(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10)")
    query = "SELECT id, x FROM t LATERAL VIEW inline(array(named_struct('v', id, 'V', v))) e AS x, y"
    place.create(query, clauses="REFRESH_MODE = INCREMENTAL")
    place.run("INSERT INTO t VALUES (2, 20)", "DELETE FROM t WHERE id = 1")
    place.refresh()
    assert place.bag("SELECT * FROM d") == {(2, 2): 1}
