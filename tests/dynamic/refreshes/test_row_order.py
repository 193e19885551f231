"""Functions of the order of rows: incremental where the query names the order, or another function hides it."""

from __future__ import annotations

import pytest

from tests.dynamic.histories.functions import IN_ANY_ORDER
from tests.dynamic.support import DynamicPlace
from tests.lines import HAS_WINDOW_FILTER

LAZY = "REFRESH_MODE = INCREMENTAL INITIALIZE = ON_SCHEDULE"
MAPS = "LATERAL VIEW stack(1, map('k', b)) x AS m"
BY_ROWS = "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
WHOLE = "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"

FOLLOWED = (
    *(f"SELECT q.a, {f} AS x FROM q GROUP BY q.a" for f in IN_ANY_ORDER),
    "SELECT a, max_by(s, b) AS x, min_by(b, d) AS y FROM q GROUP BY a",
    "SELECT concat_ws(',', array_sort(array_agg(s))) AS x FROM q",
    "SELECT a, first_value(b) OVER (PARTITION BY a ORDER BY s) AS x FROM q",
    "SELECT a, last_value(b) OVER (PARTITION BY a ORDER BY s RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS x FROM q",
    f"SELECT a, first_value(b) IGNORE NULLS OVER (PARTITION BY a ORDER BY s {BY_ROWS}) AS x FROM q",
    f"SELECT a, collect_list(d) OVER (PARTITION BY a ORDER BY s {BY_ROWS}) AS x FROM q",
    f"SELECT a, nth_value(b, 2) OVER (PARTITION BY a ORDER BY s {WHOLE}) AS x FROM q",
    "SELECT * FROM (SELECT a, b, s FROM q) PIVOT (sum(b) FOR s IN ('x' AS x, 'y' AS y))",
    "SELECT x, count(*) AS n FROM (SELECT first_value(b) OVER (PARTITION BY a ORDER BY s) AS x FROM q) GROUP BY x",
    "SELECT x, count(*) AS n FROM (SELECT a, listagg(b, ',') WITHIN GROUP (ORDER BY b) AS x FROM q GROUP BY a) GROUP BY x",
)
REFUSED = (
    "SELECT a, sort_array(collect_list(d)) AS x FROM q GROUP BY a",  # 0.0 and -0.0 are equal, and remain two
    "SELECT a, array_sort(collect_list(s), (l, r) -> length(l) - length(r)) AS x FROM q GROUP BY a",
    "SELECT a, sort_array(array(first(s))) AS x FROM q GROUP BY a",
    "SELECT a, sort_array(collect_list(x)) AS x FROM (SELECT a, b, first(s) AS x FROM q GROUP BY a, b) GROUP BY a",
    "SELECT a, listagg(s, ',') AS x FROM q GROUP BY a",
    "SELECT a, listagg(s, ',') WITHIN GROUP (ORDER BY b) AS x FROM q GROUP BY a",
    "SELECT a, mode(b) AS x FROM q GROUP BY a",
    "SELECT a, max_by(d, b) AS x FROM q GROUP BY a",
    "SELECT a, last_value(b) OVER (PARTITION BY a ORDER BY s) AS x FROM q",
    "SELECT a, first_value(b) IGNORE NULLS OVER (PARTITION BY a ORDER BY s) AS x FROM q",
    "SELECT a, nth_value(b, 2) OVER (PARTITION BY a ORDER BY s) AS x FROM q",
    f"SELECT a, collect_set(b) OVER (PARTITION BY a ORDER BY s {BY_ROWS}) AS x FROM q",
    "SELECT a, listagg(s, ',') WITHIN GROUP (ORDER BY try_cast(s AS INT)) AS x FROM q GROUP BY a",  # '1' and '01'
    "SELECT a, first_value(b) FILTER (WHERE b > 1) OVER (PARTITION BY a ORDER BY s) AS x FROM q",  # of an equal row behind it
    "SELECT a, try_sum(b) AS x FROM q GROUP BY a",  # overflows in one order, and not in another
    # The first row of equal ones that have no key: a MAP cannot be compared.
    f"SELECT a, sum(b) AS x FROM (SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY s) AS n FROM q {MAPS}) WHERE n = 1 GROUP BY a",
)


@pytest.fixture
def table(place: DynamicPlace) -> DynamicPlace:
    """Give a table q (a, b, s, d)."""
    place.table("q", "a BIGINT, b BIGINT, s STRING, d DOUBLE")
    return place


def test_followed(table: DynamicPlace) -> None:
    for number, query in enumerate(FOLLOWED):
        table.create(query, f"d{number}", LAZY)


def test_refused(table: DynamicPlace) -> None:
    for query in (q for q in REFUSED if HAS_WINDOW_FILTER or ") FILTER (" not in q):
        error = table.refused(f"CREATE DYNAMIC TABLE d {LAZY} AS {query}")
        assert "depend on the order of rows" in error.message, query


def test_ties_of_max_by(table: DynamicPlace) -> None:
    """The greatest of the values that are tied, without the rows whose order is NULL; as a full refresh."""
    table.run(
        "INSERT INTO q VALUES (1, 5, 'a', 0), (1, 5, 'c', -0.0), (1, NULL, 'z', 1), (2, NULL, 'y', 2), (3, 1, NULL, 3)"
    )
    for name, mode in (("d", "INCREMENTAL"), ("e", "FULL")):
        query = "SELECT a, max_by(s, b) AS x, min_by(s, d) AS y, max_by(struct(s), d) FILTER (WHERE b > 1) AS z FROM q GROUP BY a"
        table.create(query, name, f"REFRESH_MODE = {mode}")
    for statement, first in (
        ("INSERT INTO q VALUES (1, 5, 'b', 9)", (1, "c", "a", ("b",))),
        ("DELETE FROM q WHERE s = 'c'", (1, "b", "a", ("b",))),
        ("UPDATE q SET b = 4 WHERE s = 'b'", (1, "a", "a", ("b",))),
    ):
        table.run(statement, "REFRESH DYNAMIC TABLE d", "REFRESH DYNAMIC TABLE e")
        want = [first, (2, None, "y", None), (3, None, None, None)]
        assert [sorted(table.run(f"SELECT * FROM {name}")) for name in ("d", "e")] == [want, want]
    assert {row["mode"] for row in table.history()[:3]} == {"INCREMENTAL"}


def test_equal_rows_have_one_order_in_both_modes(table: DynamicPlace) -> None:
    """Rows that are equal in the order of a window: a full and an incremental refresh take the same one first."""
    over, rest = "PARTITION BY a ORDER BY s", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"
    query = f"SELECT a, b, first_value(b) OVER ({over}) AS f, last_value(b) OVER ({over} {rest}) AS l FROM q"
    table.run("INSERT INTO q SELECT id % 3, id, 'x', 0 FROM range(30)")
    table.create(query, "d", "REFRESH_MODE = INCREMENTAL")
    table.create(query, "e", "REFRESH_MODE = FULL")
    for statement in (
        "DELETE FROM q WHERE b IN (0, 1, 27)",
        "INSERT INTO q VALUES (0, -5, 'x', 0), (2, 99, 'x', 0)",
        "OPTIMIZE q",
    ):
        table.run(statement, "REFRESH DYNAMIC TABLE d", "REFRESH DYNAMIC TABLE e")
        assert sorted(table.run("SELECT * FROM d")) == sorted(table.run("SELECT * FROM e"))
    assert {row["mode"] for row in table.history()[:2]} == {"INCREMENTAL"}
    assert table.verify() == ("EQUAL", 29, 0, 0)
