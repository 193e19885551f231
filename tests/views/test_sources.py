"""What becomes of a stream when its view, or a table below it, becomes something else; and how long its history is kept."""

from __future__ import annotations

import os
from collections import Counter

from streamql.engine.doctor import Finding
from tests.consume.logs.test_log_cleanup import cleaned, keep, rows_of
from tests.consume.logs.test_retention import settings
from tests.consume.support import TRACKED, findings, path_of
from tests.views.support import FILTERED, JOINED, Place

FILES = "delta.deletedFileRetentionDuration"
MAPPED = TRACKED.replace("TBLPROPERTIES (", "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', ")


def doctor(place: Place) -> dict[str, Finding]:
    """What the doctor finds in the schema, by code."""
    return {f.code: f for f in findings(place.spark, f"{place.schema}.")}


def aged(place: Place, table: str) -> None:
    """Makes the files of a table as old as VACUUM asks of what it takes."""
    for file in path_of(place.spark, table).rglob("*.parquet"):
        os.utime(file, (1_600_000_000, 1_600_000_000))


def test_a_view_with_another_query_is_another_source(place: Place) -> None:
    place.view(FILTERED)
    place.run("INSERT INTO t VALUES (1, 50)")
    before = place.shown()["offset_position"]
    for text in (FILTERED.replace("> 10", "> 20"), FILTERED.replace("v1", "other"), FILTERED + " OR v < 0"):
        place.run(f"CREATE OR REPLACE VIEW v AS {text}")
        found = place.refused("SELECT * FROM s")
        assert found.code == "STREAM_SOURCE_REPLACED"
        assert "another query" in found.message
        assert place.refused("CREATE TABLE made AS SELECT * FROM s").code == "STREAM_SOURCE_REPLACED"
        assert "another query" in place.shown()["invalid_reason"]
        assert "STREAM_SOURCE_REPLACED" in doctor(place)
    place.run(f"CREATE OR REPLACE VIEW v AS {FILTERED}")
    assert place.changes() == Counter({("INSERT", 1, 51): 1}), "as it was, it is the same source"
    assert place.shown()["offset_position"] == before


def test_an_inner_view_counts_as_well(place: Place) -> None:
    place.run("CREATE VIEW inner_view AS SELECT * FROM t WHERE v > 1")
    place.view("SELECT id FROM inner_view")
    place.run("INSERT INTO t VALUES (1, 2)", "CREATE OR REPLACE VIEW inner_view AS SELECT * FROM t WHERE v > 2")
    assert place.refused("SELECT * FROM s").code == "STREAM_SOURCE_REPLACED"
    place.run("DROP VIEW inner_view")
    found = place.refused("SELECT * FROM s")
    assert found.code == "STREAM_SOURCE_MISSING"
    assert "inner_view" in found.message


def test_a_view_that_is_gone(place: Place) -> None:
    place.view(FILTERED)
    place.run("INSERT INTO t VALUES (1, 50)", "DROP VIEW v")
    found = place.refused("SELECT * FROM s")
    assert (found.code, found.hint is not None) == ("STREAM_SOURCE_MISSING", True)
    assert place.shown()["invalid_reason"]
    assert "STREAM_SOURCE_MISSING" in doctor(place)
    place.run(f"CREATE VIEW v AS {FILTERED}")
    assert place.changes() == Counter({("INSERT", 1, 51): 1})
    place.run("DROP VIEW v", "CREATE TABLE v (id BIGINT)")
    assert place.refused("SELECT * FROM s").code in ("STREAM_SOURCE_MISSING", "STREAM_SOURCE_REPLACED")
    place.run("DROP STREAM s")


def test_a_table_dropped_and_created_again(place: Place) -> None:
    place.view(JOINED)
    place.run("DROP TABLE u")
    assert place.refused("SELECT * FROM s").code == "STREAM_SOURCE_MISSING"
    place.table("u", "id BIGINT, w STRING")
    found = place.refused("SELECT * FROM s")
    assert found.code == "STREAM_SOURCE_REPLACED"
    assert "dropped and created again" in found.message
    place.run("CREATE OR REPLACE STREAM s ON VIEW v", "INSERT INTO t VALUES (1, 1)", "INSERT INTO u VALUES (1, 'x')")
    assert place.changes() == Counter({("INSERT", 1, 1, "x"): 1})


def test_tables_that_change_places(place: Place) -> None:
    """The text of the view and the tables are the same, and yet it is another query."""
    place.table("x", "id BIGINT, v BIGINT")
    place.view("SELECT a.id, a.v FROM t a JOIN x b ON a.id = b.id WHERE b.v > 5")
    place.run("ALTER TABLE t RENAME TO y", "ALTER TABLE x RENAME TO t", "ALTER TABLE y RENAME TO x")
    assert place.refused("SELECT * FROM s").code == "STREAM_SOURCE_REPLACED"


def test_a_table_with_another_name_is_the_same(place: Place) -> None:
    place.view(FILTERED)
    place.run("INSERT INTO t VALUES (1, 50)", "ALTER TABLE t RENAME TO renamed")
    assert place.refused("SELECT * FROM s").code == "STREAM_SOURCE_MISSING"
    place.run("ALTER TABLE renamed RENAME TO t")
    assert place.changes() == Counter({("INSERT", 1, 51): 1})


def test_columns_that_come_and_go(place: Place) -> None:
    place.view("SELECT * FROM t")
    place.run("INSERT INTO t VALUES (1, 50)", "ALTER TABLE t ADD COLUMN extra INT", "UPDATE t SET extra = 1")
    assert place.changes() == Counter({("INSERT", 1, 50): 1}), "the view has the columns that it was made with"
    place.run("ALTER STREAM s SET OFFSET TO LATEST", "UPDATE t SET extra = 2")
    assert place.changes() == Counter(), "no column of the view has changed"


def test_columns_are_followed_by_identity_not_by_name(place: Place) -> None:
    place.table("m", "id BIGINT, a STRING, b STRING", MAPPED)
    place.run("INSERT INTO m VALUES (1, 'a1', 'b1')", "INSERT INTO m VALUES (2, 'a2', 'b2')")
    middle = place.latest("m")
    place.run("ALTER TABLE m RENAME COLUMN a TO c", "ALTER TABLE m RENAME COLUMN b TO a")
    place.run(
        "ALTER TABLE m DROP COLUMN c", "ALTER TABLE m ADD COLUMN b STRING", "INSERT INTO m VALUES (3, 'a3', 'b3')"
    )
    for n, text in enumerate(("SELECT id, a, b FROM m", "SELECT x.id, x.a, y.b FROM m x JOIN m y ON x.id = y.id")):
        place.view(text, f"v{n}", f"s{n}", "AT (VERSION => 0)")
        expected = Counter({("INSERT", 1, "b1", None): 1, ("INSERT", 2, "b2", None): 1, ("INSERT", 3, "a3", "b3"): 1})
        assert place.changes(f"s{n}") == expected
        upto = (
            "SELECT __change_type, id, a, b FROM v{} CHANGES (INFORMATION => {}) AT (VERSION => 0) END (VERSION => {})"
        )
        expected.pop(("INSERT", 3, "a3", "b3"))
        for mode in ("DEFAULT", "APPEND_ONLY"):
            assert place.bag(upto.format(n, mode, middle)) == expected, (text, mode)


def test_history_that_cleanup_took(place: Place) -> None:
    place.view(JOINED)
    place.run("INSERT INTO u VALUES (1, 'x')")
    keep(place.spark, "t", "1 day")
    assert cleaned(place.spark, "t", *rows_of("t", 1))[0] > 1
    for text in ("SELECT * FROM s", "CREATE TABLE made AS SELECT * FROM s"):
        assert place.refused(text).code == "STREAM_STALE"
    assert place.shown()["stale"] is True
    assert "STREAM_STALE" in doctor(place)
    place.run("ALTER STREAM s SET OFFSET TO LATEST")
    assert place.changes() == Counter()


def test_vacuum_of_a_table_waits_for_streams_on_its_views(place: Place) -> None:
    place.view(JOINED)
    place.run("INSERT INTO u VALUES (1, 'x')", "INSERT INTO t VALUES (1, 10), (2, 20)")
    place.run("ALTER STREAM s SET OFFSET TO LATEST", "UPDATE u SET w = 'y'", "UPDATE t SET v = v + 1", "OPTIMIZE u")
    place.run(f"ALTER TABLE u SET TBLPROPERTIES ('{FILES}' = '1 second')")
    aged(place, "u")
    with settings(place.spark, check="false"):
        found = place.refused("VACUUM u RETAIN 0 HOURS")
        assert found.code == "STREAM_NEEDS_FILES"
        assert f"{place.schema}.s" in found.message
        assert "STREAM_STALE_SOON" in doctor(place) or doctor(place), "its history is about to end"
        with settings(place.spark, guard="false"):
            place.run("VACUUM u RETAIN 0 HOURS")
    assert place.refused("SELECT * FROM s").code == "STREAM_STALE"


def test_a_view_is_not_where_a_table_is_asked_for(place: Place) -> None:
    place.view(FILTERED)
    assert place.refused("ALTER TABLE v SET PROPERTIES ('change_tracking' = 'true')").code == "NOT_A_DELTA_TABLE"


def test_a_view_cannot_take_a_streams_name_nor_a_stream_a_views(place: Place) -> None:
    place.view(FILTERED)
    assert place.refused("CREATE STREAM v ON VIEW v").code == "NAME_ALREADY_IN_USE"
    assert place.refused(f"CREATE VIEW s AS {FILTERED}").code == "NAME_ALREADY_IN_USE"
