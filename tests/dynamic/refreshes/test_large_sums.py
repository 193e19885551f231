"""Sums near the limits of their types: a refresh fails only where the query does."""

from __future__ import annotations

import pytest

from tests.dynamic.support import DynamicPlace
from tests.histories.recording import conf

pytestmark = pytest.mark.usefixtures("quick")

INCREMENTAL = "REFRESH_MODE = INCREMENTAL"
LEAST = "-9223372036854775808"
SUMS = "SELECT g, sum(v) AS s, count(*) AS n FROM b GROUP BY g"
CASES = {
    "the change is twice the value": ("BIGINT", "5000000000000000000", "UPDATE b SET v = -v"),
    "the least BIGINT": ("BIGINT", f"CAST('{LEAST}' AS BIGINT)", "UPDATE b SET v = 0 WHERE g = 1"),
    "the least BIGINT is deleted": ("BIGINT", f"CAST('{LEAST}' AS BIGINT)", "DELETE FROM b WHERE v < 0"),
    "DECIMAL of 38 digits": ("DECIMAL(38, 0)", "CAST('6e37' AS DECIMAL(38, 0))", "UPDATE b SET v = -v WHERE v > 1"),
    "38 digits that are not zero": ("DECIMAL(38, 0)", f"{'4' * 38}BD", "UPDATE b SET v = v - 1 WHERE v > 1"),
    "DECIMAL of 28 digits": ("DECIMAL(28, 0)", "CAST('6e27' AS DECIMAL(28, 0))", "UPDATE b SET v = -v"),
    "INT": ("INT", "2147483647", "UPDATE b SET v = -v"),
}


@pytest.mark.parametrize(("type_", "value", "write"), CASES.values(), ids=CASES)
def test_a_change_may_be_greater_than_any_sum(place: DynamicPlace, type_: str, value: str, write: str) -> None:
    place.table("b", f"g INT, v {type_}")
    place.run(f"INSERT INTO b VALUES (1, {value}), (1, 0), (1, NULL), (2, 1)")
    place.create(SUMS, clauses=INCREMENTAL)
    for text in (write, "INSERT INTO b VALUES (1, 7)", write):
        place.run(text)
        assert all("stored counts and sums" in way for way in place.operators()[:1])
        place.refresh()
        assert place.bag("SELECT * FROM d") == place.bag(SUMS), text


def test_a_sum_that_overflows_fails_as_the_query_does(place: DynamicPlace) -> None:
    place.table("b", "g INT, v BIGINT")
    place.run("INSERT INTO b VALUES (1, 9223372036854775807), (2, 5)")
    place.create(SUMS, clauses=INCREMENTAL)
    place.run("INSERT INTO b VALUES (1, 1)")
    assert "cannot be computed: [ARITHMETIC_OVERFLOW]" in place.refused("REFRESH DYNAMIC TABLE d").message
    assert place.bag("SELECT g, n FROM d") == place.bag("VALUES (1, 1L), (2, 1L)")
    place.run("DELETE FROM b WHERE v = 1")
    place.refresh()
    assert place.verify()[0] == "EQUAL"


def test_sums_that_wrap_around(place: DynamicPlace) -> None:
    """As of a table that was created without ANSI: a checksum of hashes."""
    query = "SELECT v, sum(xxhash64(id)) AS s FROM t GROUP BY v"
    with conf(place.spark, (("spark.sql.ansi.enabled", "false"),)):
        place.run("INSERT INTO t SELECT id, id % 2 FROM range(40)")
        place.create(query, clauses=INCREMENTAL)
    for write in ("INSERT INTO t SELECT id, id % 2 FROM range(40, 80)", "UPDATE t SET id = -id WHERE id > 20"):
        place.run(write)
        place.refresh()
        with conf(place.spark, (("spark.sql.ansi.enabled", "false"),)):
            assert place.bag("SELECT * FROM d") == place.bag(query)


@pytest.mark.parametrize("setting", ["spark.sql.ansi.enabled", "spark.sql.decimalOperations.allowPrecisionLoss"])
def test_averages_are_known_again_in_other_sessions(place: DynamicPlace, setting: str) -> None:
    place.table("b", "g INT, v DECIMAL(10, 2), i INT")
    place.run("INSERT INTO b VALUES (1, 1.50, 1), (2, 2.50, 2)")
    place.create("SELECT g, avg(v) AS a, avg(i) AS b, variance(i) AS c FROM b GROUP BY g", clauses=INCREMENTAL)
    with conf(place.spark, ((setting, "false"),)):
        place.run("INSERT INTO b VALUES (1, 2.50, 5)")
        assert "stored counts and sums" in place.operators()[0]
        assert place.refresh()["d"][:2] == ("REFRESHED", "its sources changed")
        assert place.verify()[0] == "EQUAL"
