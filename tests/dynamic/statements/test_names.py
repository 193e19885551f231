"""Dynamic tables, and the tables that they read, under other names and in other places."""

from __future__ import annotations

import shutil
from pathlib import Path

from streamql.features.dynamic.refreshes.refresh import pinned_versions, refresh_table
from tests.consume.support import TRACKED
from tests.dynamic.support import DynamicPlace

REPLACED = "a table that it reads was replaced"


def external(place: DynamicPlace, directory: Path, rows: str) -> None:
    """Makes e, a table whose files stay if it is dropped."""
    place.run(
        f"CREATE TABLE e (id BIGINT, v BIGINT) USING DELTA LOCATION '{directory}' {TRACKED}",
        f"INSERT INTO e VALUES {rows}",
    )


def test_an_external_table_in_another_place(place: DynamicPlace, tmp_path: Path) -> None:
    """The files that DROP leaves are not read."""
    external(place, tmp_path / "a", "(1, 10)")
    place.create("SELECT id, v FROM e")
    place.run("DROP TABLE e")
    assert place.refused("REFRESH DYNAMIC TABLE d").code == "STREAM_SOURCE_MISSING"
    external(place, tmp_path / "b", "(7, 70)")
    (status,) = place.run("SHOW DYNAMIC TABLES")
    assert status["state"] != "CURRENT"
    assert place.refresh()["d"][:2] == ("REFRESHED", REPLACED)
    assert place.verify() == ("EQUAL", 1, 0, 0)
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
    place.run("DROP TABLE e", f"CREATE TABLE e USING DELTA LOCATION '{tmp_path / 'a'}'", "INSERT INTO e VALUES (8, 80)")
    assert place.refresh()["d"][:2] == ("REFRESHED", REPLACED)
    assert place.bag("SELECT * FROM d") == {(1, 10): 1, (8, 80): 1}


def test_a_copy_of_an_external_table_in_another_place(place: DynamicPlace, tmp_path: Path) -> None:
    """It has the id of the first one, whose files are still there."""
    external(place, tmp_path / "a", "(1, 10)")
    place.create("SELECT id, v FROM e")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    place.run("DROP TABLE e", f"CREATE TABLE e USING DELTA LOCATION '{tmp_path / 'b'}'", "INSERT INTO e VALUES (2, 20)")
    assert place.refresh()["d"][0] == "REFRESHED"
    assert place.verify() == ("EQUAL", 2, 0, 0)
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
    place.run("INSERT INTO e VALUES (3, 30)")
    place.refresh()
    place.run(f"ALTER TABLE e SET LOCATION '{tmp_path / 'c'}'")  # an earlier copy
    assert place.refresh()["d"][0] == "REFRESHED"
    assert place.verify() == ("EQUAL", 1, 0, 0)


def test_a_copy_whose_commits_have_no_times(place: DynamicPlace, tmp_path: Path) -> None:
    """Nothing tells it from the first one where it has the same version."""
    tracked = "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableInCommitTimestamps' = 'false')"
    place.run(f"CREATE TABLE e (id BIGINT, v BIGINT) USING DELTA LOCATION '{tmp_path / 'a'}' {tracked}")
    place.run("INSERT INTO e VALUES (1, 10)")
    place.create("SELECT id, v FROM e")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    place.run("INSERT INTO e VALUES (2, 20)", "REFRESH DYNAMIC TABLE d")
    place.run(f"ALTER TABLE e SET LOCATION '{tmp_path / 'b'}'", "INSERT INTO e VALUES (9, 90)")
    assert place.refresh()["d"][:2] == ("REFRESHED", REPLACED)
    assert place.bag("SELECT * FROM d") == {(1, 10): 1, (9, 90): 1}
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}


def test_a_renamed_external_table(place: DynamicPlace, tmp_path: Path) -> None:
    external(place, tmp_path / "a", "(1, 10)")
    place.create("SELECT id, v FROM e")
    place.run("ALTER TABLE e RENAME TO e2", "INSERT INTO e2 VALUES (2, 20)")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 0, 0)}
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
    external(place, tmp_path / "b", "(99, 99)")  # another one of the old name is not the one that is read
    place.run("INSERT INTO e2 VALUES (3, 30)")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 0, 0)}
    assert place.verify() == ("EQUAL", 3, 0, 0)


def test_a_stream_on_a_renamed_dynamic_table(place: DynamicPlace) -> None:
    """Another dynamic table has the name that it was made on."""
    place.create("SELECT id, v FROM t")
    place.run("CREATE TABLE STREAM s ON DYNAMIC TABLE d", "ALTER DYNAMIC TABLE d RENAME TO d2")
    place.create("SELECT id FROM u")
    place.run("INSERT INTO t VALUES (1, 10)")
    place.refresh("d2")
    assert place.bag("SELECT __change_type, id, v FROM s") == {("INSERT", 1, 10): 1}


def test_a_replaced_dynamic_table_keeps_its_former_names(place: DynamicPlace) -> None:
    """A query that was written with one of them reads the new table."""
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)")
    place.create("SELECT id, v FROM t", "c")
    place.create("SELECT id FROM c")
    place.run("ALTER DYNAMIC TABLE c RENAME TO c2")
    place.refresh()
    place.run("CREATE OR REPLACE DYNAMIC TABLE c2 AS SELECT id, v FROM t WHERE v > 10")
    assert place.refresh()["d"] == ("REFRESHED", REPLACED, 0, 0, 1)
    assert place.verify() == ("EQUAL", 1, 0, 0)
    place.run("CREATE TABLE c (id BIGINT)", "CREATE OR REPLACE DYNAMIC TABLE c2 AS SELECT id, v FROM t")
    # The name stands for a table without row ids.
    assert place.refused("REFRESH DYNAMIC TABLE d").code == "CHANGE_TRACKING_DISABLED"


def test_a_column_that_is_replaced_during_a_run(place: DynamicPlace) -> None:
    """The run computes the query at versions before that."""
    place.table("m", "id INT, a STRING")
    place.run("ALTER TABLE m SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "INSERT INTO m VALUES (1, 'x')")
    place.create("SELECT id, a FROM m", clauses="REFRESH_MODE = INCREMENTAL")
    place.run("INSERT INTO m VALUES (2, 'y')")
    pinned = pinned_versions(place.spark, [place.found()], [])
    place.run("ALTER TABLE m DROP COLUMN a", "ALTER TABLE m ADD COLUMN a STRING")
    refresh_table(place.spark, place.found(), pinned)
    assert place.history()[0]["mode"] == "FULL"
    assert place.verify()[0] == "EQUAL"
    place.refresh()
    assert place.bag("SELECT * FROM d") == {(1, None): 1, (2, None): 1}
