"""Aggregates that a refresh computes from stored states: no file of the source but the changed ones is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from streamql.catalog.store import catalog_of
from streamql.features.dynamic.source.queries import NO_STATES
from streamql.features.dynamic.source.table import DynamicTable, find_dynamic
from streamql.names import Name
from tests.consume.support import path_of
from tests.dynamic.support import DynamicPlace
from tests.sample import sample

pytestmark = pytest.mark.usefixtures("quick")

QUERIES = (
    "SELECT v, count(*) AS n, sum(id) AS s, avg(id) AS a, max(id) AS m FROM t GROUP BY v",
    "SELECT count(*) AS n, sum(v) AS s, 100 * sum(if(v > 15, id, 0)) / count(*) AS p, min(v) AS m FROM t",
    "SELECT v % 2 AS odd, stddev(id) AS s, var_pop(v) AS p FROM t GROUP BY v % 2",
    "SELECT DISTINCT v % 2 AS odd FROM t",
    "SELECT upper(k) AS k, n + 1 AS n FROM (SELECT CAST(v % 3 AS STRING) AS k, count_if(id > 2) AS n FROM t GROUP BY v % 3)",
    "SELECT u.w, count(*) AS n, sum(v) AS s FROM t JOIN u ON t.id = u.id GROUP BY u.w ORDER BY n",
)


def filled(place: DynamicPlace) -> None:
    """Each INSERT makes a file."""
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)", "INSERT INTO t VALUES (3, 30), (4, 20), (5, NULL)")
    place.run("INSERT INTO u VALUES (1, 1), (2, 1), (3, 2), (9, 2)")


def table_of(place: DynamicPlace, name: str = "d") -> DynamicTable:
    found = find_dynamic(place.spark, Name("spark_catalog", place.schema, name))
    assert found is not None
    return found


def file_with(place: DynamicPlace, row_id: int) -> Path:
    """The data file of the table t that has a row."""
    (path,) = {row[0] for row in place.run(f"SELECT _metadata.file_path FROM t WHERE id = {row_id}")}
    return path_of(place.spark, f"{place.schema}.t") / str(path).rpartition("/")[2]


@pytest.mark.parametrize("query", sample("aggregates from states", QUERIES, 3), ids=list(QUERIES).index)
def test_only_changes_are_read(place: DynamicPlace, query: str) -> None:
    filled(place)
    place.create(query, clauses="REFRESH_MODE = INCREMENTAL")
    place.run("INSERT INTO t VALUES (2, 41), (7, 20), (8, NULL)")
    untouched = file_with(place, 3)
    kept = untouched.read_bytes()
    untouched.unlink()
    try:
        place.refresh()
    finally:
        untouched.write_bytes(kept)
    assert place.history()[0]["mode"] == "INCREMENTAL"
    assert place.verify()[0] == "EQUAL"


def test_groups_come_and_go(place: DynamicPlace) -> None:
    filled(place)
    place.create(QUERIES[0], clauses="REFRESH_MODE = INCREMENTAL")
    place.run("DELETE FROM t WHERE v IS NULL OR v = 10", "INSERT INTO t VALUES (6, 60), (7, 30)")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 1, 2)}
    assert place.verify()[0] == "EQUAL"
    place.run("UPDATE t SET v = NULL")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 0, 3)}
    assert place.verify() == ("EQUAL", 1, 0, 0)
    place.run("DELETE FROM t")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 0, 0, 1)}


def test_a_group_that_loses_its_greatest_value_is_computed_again(place: DynamicPlace) -> None:
    filled(place)
    place.create("SELECT v, max(id) AS m, min(id) AS l FROM t GROUP BY v", clauses="REFRESH_MODE = INCREMENTAL")
    place.run("INSERT INTO t VALUES (9, 20)")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 0, 1, 0)}
    place.run("DELETE FROM t WHERE id = 9", "UPDATE t SET id = 0 WHERE id = 2")
    assert place.operators() == [
        "GROUP BY v: adds the changed rows to the stored values; computes groups again that lose their MIN or MAX",
        f"+- TABLE spark_catalog.{place.schema}.t: reads the changed rows",
    ]
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 0, 1, 0)}
    assert place.verify() == ("EQUAL", 4, 0, 0)
    assert place.bag("SELECT m, l FROM d WHERE v = 20") == place.bag("SELECT max(id), min(id) FROM t WHERE v = 20")


def test_pairs_are_counted_from_states(place: DynamicPlace) -> None:
    filled(place)
    place.create("SELECT v, regr_count(v, id) AS n FROM t GROUP BY v", clauses="REFRESH_MODE = INCREMENTAL")
    place.run("INSERT INTO t VALUES (9, 20), (NULL, 20)")
    assert "adds the changed rows to the stored counts and sums" in place.operators()[0]
    place.refresh()
    assert place.verify()[0] == "EQUAL"


def test_states_are_neither_shown_nor_named(place: DynamicPlace) -> None:
    filled(place)
    place.create("SELECT v, avg(id) AS a FROM t GROUP BY v")
    assert place.spark.table("d").columns == ["v", "a"]
    assert table_of(place).stored_columns[2:] == [f"__dynamic_state_{i}" for i in (1, 2, 3)]
    refused = place.refused("CREATE DYNAMIC TABLE e AS SELECT v AS __dynamic_state_1 FROM t")
    assert (refused.code, "hidden columns" in refused.message) == ("RESERVED_COLUMN_NAME", True)


def test_a_stream_shows_no_change_of_states(place: DynamicPlace) -> None:
    """The number of rows of a group changes, its maximum does not."""
    filled(place)
    place.create("SELECT v, max(v) AS m FROM t GROUP BY v", clauses="REFRESH_MODE = INCREMENTAL")
    place.run("CREATE STREAM sd ON DYNAMIC TABLE d", "INSERT INTO t VALUES (12, 20), (13, 99)")
    place.refresh()
    assert place.bag("SELECT __change_type, v FROM sd") == {("INSERT", 99): 1}


def test_a_table_without_states_is_refreshed(place: DynamicPlace) -> None:
    """One of an earlier release has none."""
    filled(place)
    place.create(QUERIES[0], clauses="REFRESH_MODE = INCREMENTAL")
    table = table_of(place)
    old = replace(table, states=json.dumps(NO_STATES)).to_definition()
    changed = replace(old, sequence=old.sequence + 1)
    assert catalog_of(place.spark).commit(place.spark, [table.to_definition()], [changed], [])
    place.run("INSERT INTO t VALUES (9, 20)")
    assert "computes all rows of the affected groups again" in str(place.explained()["operator 01, incremental"])
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 0, 1, 0)}
    assert place.history()[0]["mode"] == "INCREMENTAL"
    assert place.verify()[0] == "EQUAL"


def test_another_view_fills_the_states_anew(place: DynamicPlace) -> None:
    filled(place)
    place.run("CREATE VIEW x AS SELECT v, sum(id) AS s FROM t GROUP BY v")
    place.create("SELECT * FROM x", clauses="REFRESH_MODE = INCREMENTAL")
    place.run("CREATE OR REPLACE VIEW x AS SELECT v, max(id) + 0L AS s FROM t GROUP BY v")
    for write in ("INSERT INTO t VALUES (30, 30)", "INSERT INTO t VALUES (1, 30)", "DELETE FROM t WHERE id = 30"):
        place.run(write)
        place.refresh()
        assert place.verify()[0] == "EQUAL", write
    place.run("CREATE OR REPLACE VIEW x AS SELECT v, sum(id) AS s FROM t GROUP BY v", "INSERT INTO t VALUES (31, 30)")
    place.refresh()
    place.run("INSERT INTO t VALUES (32, 30)")
    place.refresh()
    assert place.history()[0]["mode"] == "INCREMENTAL"
    assert place.verify()[0] == "EQUAL"
