"""Sums of DOUBLE and variances, whose last digits depend on the order of the rows: what may be refreshed by changes, and what may not."""

from __future__ import annotations

import pytest

from tests.dynamic.support import DynamicPlace

pytestmark = pytest.mark.usefixtures("quick")

SUMS = "(SELECT v, sum(id * 0.1D) AS s, stddev(id * 0.1D) AS d FROM t GROUP BY v)"
REFUSED = {
    "group": f"SELECT s, count(*) AS n FROM {SUMS} GROUP BY s",
    "group of a variance": f"SELECT d, count(*) AS n FROM {SUMS} GROUP BY d",
    "DISTINCT": f"SELECT DISTINCT round(s, 1) AS s FROM {SUMS}",
    "WHERE below": f"SELECT u.w, count(*) AS n FROM {SUMS} x JOIN u ON x.v = u.id WHERE s > 0.3 GROUP BY u.w",
    "WHERE of a join": f"SELECT u.w, s FROM {SUMS} x JOIN u ON x.v = u.id WHERE s > 0.3",
    "join": f"SELECT u.w, x.v FROM {SUMS} x JOIN u ON CAST(x.s AS INT) = u.id",
    "partition": f"SELECT v, row_number() OVER (PARTITION BY s ORDER BY v) AS n FROM {SUMS}",
    "join that shows them": f"SELECT u.w, x.v, s FROM {SUMS} x JOIN u ON x.v = u.id",
    "regr_avgx": "SELECT k, count(*) AS n FROM (SELECT v, regr_avgx(1.0D, id * 0.1D) AS k FROM t GROUP BY v) GROUP BY k",
    "regr_sxx": "SELECT k, count(*) AS n FROM (SELECT v, regr_sxx(1.0D, id * 0.1D) AS k FROM t GROUP BY v) GROUP BY k",
    "regr_slope": "SELECT k, count(*) AS n FROM (SELECT v, regr_slope(1.0D, id * 0.1D) AS k FROM t GROUP BY v) GROUP BY k",
    "INTERSECT": f"SELECT s FROM {SUMS} INTERSECT SELECT CAST(w AS DOUBLE) FROM u",
    "window average": "SELECT u.w FROM (SELECT id, avg(id) OVER (PARTITION BY v) AS a FROM t) x JOIN u ON x.id = u.id WHERE x.id > x.a",
    "rank": f"SELECT x.v, n FROM (SELECT v, rank() OVER (PARTITION BY v ORDER BY s) AS n FROM {SUMS}) x JOIN u ON x.v = u.id WHERE n < 3",
}
FOLLOWED = {
    "HAVING": "SELECT v, round(sum(id * 0.1D), 9) AS s FROM t GROUP BY v HAVING sum(id * 0.1D) > 0.3",
    "shown": f"SELECT v + 1 AS v, round(s, 9) AS s, round(d, 9) AS d FROM {SUMS}",
    "variance of integers": "SELECT d, count(*) AS n FROM (SELECT v, round(stddev(id), 9) AS d FROM t GROUP BY v) GROUP BY d",
    "regression": "SELECT v, round(regr_slope(id, v), 6) AS a, round(regr_intercept(v, id), 6) AS b FROM t GROUP BY v",
    "average of integers": "SELECT a, count(*) AS n FROM (SELECT v, avg(id) AS a FROM t GROUP BY v) GROUP BY a",
}


def filled(place: DynamicPlace) -> None:
    """Each INSERT makes a file, and 0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1."""
    place.run(
        "INSERT INTO t VALUES (1, 10), (7, 20)",
        "INSERT INTO t VALUES (2, 10), (5, 20)",
        "INSERT INTO t VALUES (3, 10), (4, 20)",
    )
    place.run("INSERT INTO u VALUES (10, 1), (20, 1), (30, 2)")


@pytest.mark.parametrize("query", REFUSED.values(), ids=REFUSED)
def test_values_that_are_compared_need_a_full_refresh(place: DynamicPlace, query: str) -> None:
    filled(place)
    refused = place.refused(f"CREATE DYNAMIC TABLE d REFRESH_MODE = INCREMENTAL AS {query}")
    assert "joins, compares or groups by sums or averages of FLOAT or DOUBLE" in refused.message


@pytest.mark.parametrize("query", FOLLOWED.values(), ids=FOLLOWED)
def test_values_that_are_shown_are_followed(place: DynamicPlace, query: str) -> None:
    filled(place)
    place.create(query, clauses="REFRESH_MODE = INCREMENTAL")
    for write in ("INSERT INTO t VALUES (9, 10), (6, 30)", "DELETE FROM t WHERE id = 1", "DELETE FROM t WHERE v = 20"):
        place.run(write)
        place.refresh()
        assert place.history()[0]["mode"] == "INCREMENTAL"
        assert place.bag("SELECT * FROM d") == place.bag(query)


def test_counts_of_such_values_are_not_stored(place: DynamicPlace) -> None:
    """What is subtracted for an earlier value might not be what was added for it."""
    filled(place)
    place.create(f"SELECT count_if(s > 0.6) AS n, max(s) AS m FROM {SUMS}", clauses="REFRESH_MODE = INCREMENTAL")
    place.run("INSERT INTO t VALUES (9, 10)")
    assert place.operators()[0] == "AGGREGATE: computes all rows again"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM u WHERE w < {}",
        "SELECT w, count(*) AS n FROM u GROUP BY w HAVING count(*) < {}",
        "SELECT w, n, {} AS c FROM (SELECT w, count(*) AS n FROM u GROUP BY w)",
    ],
)
def test_values_that_a_subquery_compares(place: DynamicPlace, query: str) -> None:
    """Its tables have not changed, but each refresh computes it anew, and keeps the rows that were compared with what it was."""
    filled(place)
    place.create(query.format(f"(SELECT count(*) FROM {SUMS} WHERE s > 0.3)"))
    place.run("INSERT INTO u VALUES (40, 3)")
    assert "FLOAT or DOUBLE" in (place.explained()["why_not_incremental"] or "")


@pytest.mark.parametrize("order", ["s", "v"])
def test_a_limit_by_such_values_takes_any_rows(place: DynamicPlace, order: str) -> None:
    """The table of the LIMIT does not change, but each refresh reads it anew."""
    filled(place)
    place.create(f"SELECT u.id, x.v FROM u CROSS JOIN (SELECT v FROM {SUMS} ORDER BY {order} DESC LIMIT 1) AS x")
    place.run("INSERT INTO u VALUES (40, 3)")
    why = place.explained()["why_not_incremental"]
    assert why is not None
    assert ("FLOAT or DOUBLE" in why) == (order == "s"), why
