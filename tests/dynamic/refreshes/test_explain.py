"""EXPLAIN REFRESH, for a user who wants to know why a refresh is slow."""

from __future__ import annotations

import pytest

from streamql.features.dynamic.source import costs as refresh_costs
from tests.dynamic.support import DynamicPlace

pytestmark = pytest.mark.usefixtures("quick")

JOIN = "SELECT t.id, v, w FROM t JOIN u ON t.id = u.id"
FACTS = ["outcome", "mode", "reason", "why_not_incremental", "why_incremental"]
LAST = ["last outcome", "last mode", "last duration", "last why_not_incremental"]


def filled(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)", "INSERT INTO u VALUES (1, 'a'), (2, 'b')")


def test_facts_have_an_order(place: DynamicPlace) -> None:
    filled(place)
    place.create(JOIN, clauses="REFRESH_MODE = INCREMENTAL")
    place.run("INSERT INTO t VALUES (3, 30)")
    said, t, u = place.explained(), f"spark_catalog.{place.schema}.t", f"spark_catalog.{place.schema}.u"
    assert list(said) == [
        *FACTS,
        *(f"versions of {t}", f"versions of {u}", f"changes of {t}"),
        *(f"estimated read of {t}", f"estimated read of {u}", "estimated read, incremental", "estimated read, full"),
        "can be incremental",
        *LAST,
        *(f"operator 0{n}, incremental" for n in (1, 2, 3)),
    ]
    assert [said[fact] for fact in FACTS] == [
        *("REFRESHED", "INCREMENTAL", "its sources changed", None, "REFRESH_MODE is INCREMENTAL")
    ]
    assert (
        said[f"estimated read of {t}"] == "incremental less than 1 MB (the changes); full less than 1 MB"
    )  # no file of it is read again
    assert said[f"estimated read of {u}"] == "incremental less than 1 MB (all files); full less than 1 MB"
    assert place.operators() == [
        "INNER JOIN: joins the changed rows of the left side with the right side",
        f"+- TABLE {t}: reads the changed rows",
        f"+- TABLE {u}: unchanged; a join above it may read its rows",
    ]


def test_a_refresh_that_has_just_run_is_explained(place: DynamicPlace) -> None:
    """A user asks why after it, when no source has changed since. The operators are those of a change of all sources."""
    filled(place)
    place.create(JOIN)
    place.run("INSERT INTO t VALUES (3, 30)")
    place.refresh()
    said = place.explained()
    assert [said[fact] for fact in FACTS] == ["UNCHANGED", None, None, None, None]
    assert said["can be incremental"] == "yes"
    assert [said[fact] for fact in (*LAST[:2], LAST[3])] == [
        *("REFRESHED", "FULL", "the tables have less than 4 MB, so AUTO refreshes fully")
    ]
    assert place.operators()[0] == "INNER JOIN: joins the changed rows of each side with the other side"


def test_why_a_refresh_is_incremental(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(place)
    place.create("SELECT id FROM t WHERE v > 10")
    place.create("SELECT v, count(*) AS n FROM t GROUP BY v", "counted")
    place.run("INSERT INTO t VALUES (3, 30)")
    assert place.explained()["why_incremental"] == "filters, projections and UNION ALL compute only the changed rows"
    monkeypatch.setattr(refresh_costs, "SMALL_BYTES", 0)
    why = "an incremental refresh would read less than 1 MB, and a full one less than 1 MB"
    assert str(place.explained("counted")["why_incremental"]).startswith(why)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT v, first(id) AS f FROM t GROUP BY v", "value may depend on the order of rows: first()"),
        ("SELECT v, array_agg(id) AS f FROM t GROUP BY v", "value may depend on the order of rows: array_agg()"),
        ("SELECT v, try_sum(id) AS f FROM t GROUP BY v", "value may depend on the order of rows: try_sum()"),
        ("SELECT id, rand() AS r FROM t", "value differs from call to call: rand()"),
        ("SELECT id, uuid() AS r FROM t", "value differs from call to call: uuid()"),
        ("SELECT id, current_user() AS r FROM t", "or a session variable: current_user()"),
        ("SELECT id, now() AS r FROM t", "uses the current time: now()"),
        ("SELECT id FROM t ORDER BY v LIMIT 2", "has LIMIT or OFFSET"),
    ],
)
def test_the_function_is_named_that_needs_full_refreshes(place: DynamicPlace, query: str, why: str) -> None:
    filled(place)
    assert why in place.refused(f"CREATE DYNAMIC TABLE d REFRESH_MODE = INCREMENTAL AS {query}").message
    place.create(query)
    said = str(place.explained()["can be incremental"])
    assert (said.startswith("not if all sources have changed: the query "), why in said) == (True, True)
    place.run("INSERT INTO t VALUES (3, 30)")
    assert why in str(place.explained()["why_not_incremental"])


def test_no_operator_is_shown_if_a_value_needs_full_refreshes(place: DynamicPlace) -> None:
    """Each of them could be incremental."""
    filled(place)
    inner = "SELECT v, avg(CAST(id AS DOUBLE)) AS a FROM t GROUP BY v"
    place.create(f"SELECT a, count(*) AS n FROM ({inner}) GROUP BY a")
    place.run("INSERT INTO t VALUES (3, 30)")
    assert place.operators() == []
    assert "sums or averages" in str(place.explained()["why_not_incremental"])
