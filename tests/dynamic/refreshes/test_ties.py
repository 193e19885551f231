"""Rows that are equal in an order, below operators that show no key of them: each refresh takes the same ones."""

from __future__ import annotations

import pytest

from tests.dynamic.support import DynamicPlace
from tests.sample import sample

pytestmark = pytest.mark.usefixtures("quick")

FIRST = "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY a ORDER BY s) AS n FROM q) WHERE n = 1"
QUERIES = (
    f"SELECT a, sum(v) AS v FROM q WHERE id IN ({FIRST}) GROUP BY a",
    f"SELECT DISTINCT a, v FROM q WHERE id IN ({FIRST})",
    f"SELECT id FROM q WHERE a IN (SELECT a FROM q WHERE id IN ({FIRST}) AND v > 2)",
    f"SELECT id FROM q LEFT SEMI JOIN (SELECT a AS c FROM q WHERE id IN ({FIRST}) AND v % 2 = 1) ON a = c",
    f"SELECT a, count(*) AS n FROM q WHERE EXISTS (SELECT 1 FROM q x WHERE x.a = q.a AND x.v > 2 AND x.id IN ({FIRST})) GROUP BY a",
    f"SELECT v FROM q WHERE id IN ({FIRST}) INTERSECT SELECT v FROM q",
    f"SELECT a, v, count(*) AS n FROM q WHERE id IN ({FIRST}) GROUP BY CUBE (a, v)",
    "SELECT f, count(*) AS n FROM (SELECT first_value(v) OVER (PARTITION BY a ORDER BY s) AS f FROM q) GROUP BY f",
)


def test_limits_beside_a_lateral_subquery(place: DynamicPlace) -> None:
    """The order of a LIMIT is a column that the query does not show."""
    place.run(
        "INSERT INTO t VALUES (1, 10), (2, 30), (3, 20), (4, 40)", "INSERT INTO u VALUES (1, 1), (2, 2), (3, 3), (4, 4)"
    )
    first = "(SELECT id, v FROM t ORDER BY v DESC LIMIT 2 OFFSET 1) AS q"
    place.create(f"SELECT q.id, l.w FROM {first}, LATERAL (SELECT * FROM u WHERE u.id = q.id) AS l")
    assert place.bag("SELECT id FROM d") == {(2,): 1, (3,): 1}


@pytest.mark.parametrize("query", sample("ties below other operators", QUERIES, 2))
def test_each_refresh_takes_the_same_rows(place: DynamicPlace, query: str) -> None:
    place.table("q", "id INT, a INT, s STRING, v INT")
    place.run("INSERT INTO q SELECT /*+ COALESCE(1) */ id, id % 4, 'x', id FROM range(24)")
    place.create(query, "d", "REFRESH_MODE = INCREMENTAL")
    place.create(query, "e", "REFRESH_MODE = FULL")
    for change in ("id IN (0, 1)", "id % 5 = 0"):
        place.run(f"UPDATE q SET v = v + 100 WHERE {change}", "DELETE FROM q WHERE v IN (3, 7)")
        place.run("REFRESH DYNAMIC TABLE d", "REFRESH DYNAMIC TABLE e")
        assert place.bag("SELECT * FROM d") == place.bag("SELECT * FROM e")
        assert place.verify()[0] == "EQUAL"
    assert {row["mode"] for row in place.history()[:2]} <= {"INCREMENTAL"}
