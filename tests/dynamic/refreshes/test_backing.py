"""The tables that the rows of dynamic tables are in: what Delta stores of a value, and what other engines do to them."""

from __future__ import annotations

import pytest

from tests.consume.support import TRACKED
from tests.dynamic.support import DynamicPlace
from tests.histories.recording import conf

pytestmark = pytest.mark.usefixtures("quick")


@pytest.mark.parametrize("query", ["SELECT w, count(*) AS n FROM u GROUP BY w", "SELECT id, w FROM u"])
def test_empty_strings_in_a_partition_column(place: DynamicPlace, query: str) -> None:
    """Delta stores them as NULL. So the refresh fails, and says which column it is."""
    place.run("INSERT INTO u VALUES (1, 'a'), (2, NULL)")
    place.create(query, clauses="REFRESH_MODE = INCREMENTAL PARTITIONED BY (w)")
    before = place.bag("SELECT * FROM d")
    place.run("INSERT INTO u VALUES (3, '')")
    with pytest.raises(
        Exception, match=r"column w of .* has an empty string, which Delta stores as NULL in a partition column"
    ):
        place.refresh()
    assert place.bag("SELECT * FROM d") == before
    place.run("UPDATE u SET w = NULL WHERE id = 3")
    place.refresh()
    assert place.verify()[0] == "EQUAL"
    with pytest.raises(Exception, match="has an empty string"):
        place.create("SELECT '' AS x, id FROM u", "d2", "PARTITIONED BY (x)")


def test_binary_partition_columns_are_refused(place: DynamicPlace) -> None:
    refused = place.refused("CREATE DYNAMIC TABLE d PARTITIONED BY (b) AS SELECT id, CAST(w AS BINARY) AS b FROM u")
    assert (refused.code, "BINARY values of partition columns" in refused.message) == ("UNSUPPORTED_CLAUSE", True)


def test_a_column_that_was_replaced(place: DynamicPlace) -> None:
    """No commit has written the NULLs of the new one."""
    place.run("INSERT INTO t VALUES (1, 10)")
    place.create("SELECT id, v FROM t")
    place.write("ALTER TABLE {d} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
    place.write("ALTER TABLE {d} DROP COLUMN v")
    place.write("ALTER TABLE {d} ADD COLUMN v BIGINT")
    assert place.refresh() == {"d": ("REFRESHED", "another statement wrote into the table", 0, 1, 0)}
    assert place.verify() == ("EQUAL", 1, 0, 0)
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}


def test_stored_timestamps_are_whole(place: DynamicPlace) -> None:
    """A session may write files with milliseconds. Then keys would not be those of the query."""
    time = "TIMESTAMP '2026-01-01 00:00:00.123456'"
    place.run(f"CREATE TABLE x (at TIMESTAMP) USING DELTA {TRACKED}", f"INSERT INTO x VALUES ({time})")
    with conf(place.spark, (("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MILLIS"),)):
        place.create("SELECT at, count(*) AS n FROM x GROUP BY at", clauses="REFRESH_MODE = INCREMENTAL")
    assert place.verify() == ("EQUAL", 1, 0, 0)
    place.run(f"INSERT INTO x VALUES ({time})")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 0, 1, 0)}
    assert place.verify() == ("EQUAL", 1, 0, 0)
