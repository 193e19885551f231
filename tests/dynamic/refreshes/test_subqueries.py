"""Subqueries where an incremental refresh must follow more than the rows of FROM, or must leave the query to a full refresh."""

from __future__ import annotations

import pytest

from streamql.features.dynamic.source.costs import Chosen
from tests.dynamic.support import DynamicPlace
from tests.lines import IS_4_0
from tests.sample import sample

pytestmark = pytest.mark.usefixtures("quick")

INCREMENTAL = "REFRESH_MODE = INCREMENTAL"
CHOICE = "streamql.features.dynamic.source.refresh.choose"
"""By which AUTO refreshes small tables fully."""
WRITES = (
    "INSERT INTO t VALUES (3, 10), (4, NULL), (5, 30)",
    "INSERT INTO u VALUES (10, 7), (NULL, 8)",
    "UPDATE t SET v = 20 WHERE id = 3",
    "DELETE FROM u WHERE id IS NULL",
)
SCALAR = "(SELECT max(w) FROM u)"
WITH_SCALARS = {
    "beside an aggregate": f"SELECT v, count(*) + {SCALAR} AS n FROM t GROUP BY v",
    "beside a sum of all": f"SELECT sum(id) + {SCALAR} AS s FROM t",
    "in an outer join": f"SELECT t.id, o.id AS other FROM t LEFT JOIN t o ON t.v = o.v AND o.id < {SCALAR}",
    "in a window": f"SELECT id, sum({SCALAR}) OVER (PARTITION BY v) AS s FROM t",
    "in HAVING": f"SELECT v, count(*) AS n FROM t GROUP BY v HAVING count(*) < {SCALAR}",
}
ANY = "(SELECT w FROM u)"
CONDITIONS = {
    **(
        {} if IS_4_0 else {"NOT twice": f"SELECT id FROM t WHERE NOT (NOT (v IN {ANY}) OR id > 6)"}
    ),  # Spark 4.0 keeps it as a value
    "of a correlated value": "SELECT id FROM t WHERE (SELECT max(w) FROM u WHERE u.id = t.v) IN (SELECT id FROM t)",
    "EXISTS and a correlated value": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.w = t.id) "
    "OR (SELECT max(w) FROM u WHERE u.id = t.v) > 3",
}
ONLY_FULL = {
    "NOT of OR": f"SELECT id FROM t WHERE NOT (v IN {ANY} OR id > 6)",
    "NOT of AND": f"SELECT id FROM t WHERE NOT (v IN {ANY} AND id > 0)",
    "shown": f"SELECT id, NOT (v IN {ANY} OR id > 6) AS f FROM t",
    "NOT IN within OR": f"SELECT id FROM t WHERE v NOT IN {ANY} OR id > 4",
    "LIMIT": "SELECT id, (SELECT w FROM u WHERE u.id = t.v ORDER BY w LIMIT 1) AS w FROM t",
    "NOT of a column": f"SELECT id FROM (SELECT id, v IN {ANY} AS f FROM t) WHERE NOT f",
    "value of IN": f"SELECT id, CASE WHEN v IN {ANY} THEN 1 END AS c FROM t",
    "= TRUE": f"SELECT id FROM t WHERE (v IN {ANY}) = FALSE",
    "IS NULL": f"SELECT id FROM t WHERE (v IN {ANY}) IS NULL",
}


def filled(place: DynamicPlace) -> None:
    place.table("p", "id INT")
    place.run(
        "INSERT INTO p VALUES (1)", "INSERT INTO t VALUES (1, 10), (2, 20)", "INSERT INTO u VALUES (10, 1), (20, 20)"
    )


def check(place: DynamicPlace, query: str, modes: set[str]) -> None:
    """Refreshes by changes, fully where they cannot be followed, and compares with the query."""
    found = set()
    for write in WRITES:
        place.run(write)
        place.refresh()
        found.add(place.history()[0]["mode"])
        assert place.bag("SELECT * FROM d") == place.bag(query), write
    assert found == modes


@pytest.mark.parametrize("query", sample("scalar subqueries", list(WITH_SCALARS.values()), 3))
def test_a_scalar_subquery_that_changes_changes_all_rows(
    place: DynamicPlace, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CHOICE, lambda *_: Chosen("INCREMENTAL", "it is chosen"))
    filled(place)
    refused = place.refused(f"CREATE DYNAMIC TABLE d {INCREMENTAL} AS {query}")
    assert "has a scalar subquery" in refused.message
    place.create(query)
    check(place, query, {"INCREMENTAL", "FULL"})


@pytest.mark.parametrize("query", sample("conditions with IN", list(CONDITIONS.values()), 2))
def test_conditions_with_null(place: DynamicPlace, query: str) -> None:
    filled(place)
    place.create(query, clauses=INCREMENTAL)
    check(place, query, {"INCREMENTAL"})


@pytest.mark.parametrize("query", sample("only full", list(ONLY_FULL.values()), 3))
def test_what_only_a_full_refresh_computes(place: DynamicPlace, query: str) -> None:
    filled(place)
    place.refused(f"CREATE DYNAMIC TABLE d {INCREMENTAL} AS {query}")
    place.create(query)
    check(place, query, {"FULL"})


def test_a_join_by_a_scalar_subquery(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark fails for the same query in this session: it broadcasts a side before the subquery is computed."""
    place.table("p", "shift INT")
    place.run("INSERT INTO p VALUES (1)", "INSERT INTO t VALUES (1, 11)")
    query = "SELECT t.id, u.w FROM t JOIN u ON t.v = u.id + (SELECT max(shift) FROM p)"
    place.create(query)
    monkeypatch.setattr(CHOICE, lambda *_: Chosen("INCREMENTAL", "it is chosen"))
    place.run("INSERT INTO u VALUES (10, 7)")
    place.refresh()
    assert place.history()[0]["mode"] == "INCREMENTAL"
    assert place.run("SELECT * FROM d") == [(1, "7")]


NEVER = {
    "division": "t.v DIV u.w",
    "error": "CASE WHEN u.w = 0 THEN raise_error('zero') ELSE u.w END",
    "no SQLSTATE": "size(sequence(t.v, CAST(u.w AS BIGINT), 1L))",
    "map": "size(map(t.v, 1, u.w + 1, 2))",
}


@pytest.mark.parametrize("expression", sample("pairs that never were", list(NEVER.values()), 2))
@pytest.mark.parametrize("is_empty", [True, False])
def test_rows_that_were_never_in_the_tables_together(place: DynamicPlace, expression: str, is_empty: bool) -> None:
    """A new row of one table meets the old row of another one, for which the query fails: the refresh computes the whole query."""
    query = f"SELECT t.id, {expression} AS q FROM t JOIN u ON t.v = u.id"
    place.run("INSERT INTO u VALUES (1, 0), (2, 2)")
    if not is_empty:
        place.run("INSERT INTO t VALUES (6, 2)")
    place.create(query, clauses=INCREMENTAL)
    place.run("UPDATE u SET w = 5", "INSERT INTO t VALUES (7, 1)")
    place.refresh()
    assert place.bag("SELECT * FROM d") == place.bag(query)
    assert [(row["outcome"], row["mode"]) for row in place.history()[:2]] == [
        ("REFRESHED", "FULL"),
        ("FAILED", "INCREMENTAL"),
    ]
    place.run("INSERT INTO t VALUES (8, 1)")
    place.refresh()
    assert place.history()[0]["mode"] == "INCREMENTAL"
    assert place.bag("SELECT * FROM d") == place.bag(query)


def test_a_query_that_fails_is_told_once(place: DynamicPlace) -> None:
    query = "SELECT t.id, t.v DIV u.w AS q FROM t JOIN u ON t.v = u.id"
    place.create(query, clauses=INCREMENTAL)
    place.run("INSERT INTO u VALUES (1, 0)", "INSERT INTO t VALUES (7, 1)")
    assert place.refused("REFRESH DYNAMIC TABLE d").code == "DYNAMIC_TABLE_REFRESH_FAILED"
    assert [(row["outcome"], row["mode"]) for row in place.history()[:2]] == [
        ("FAILED", "FULL"),
        ("FAILED", "INCREMENTAL"),
    ]
    place.run("UPDATE u SET w = 1")
    place.refresh()
    assert place.verify()[0] == "EQUAL"
