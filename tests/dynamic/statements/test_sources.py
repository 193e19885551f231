"""What becomes of a dynamic table when the tables that it reads are renamed, replaced, dropped, or get other columns; and its settings."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamql.delta.jvm import jvm
from streamql.features.dynamic.refreshes import run as runs
from streamql.features.dynamic.refreshes.refresh import REASONS, Result, refresh_table
from streamql.features.dynamic.source.table import DynamicTable
from tests.consume.support import TRACKED, path_of
from tests.dynamic.support import DynamicPlace
from tests.histories.recording import conf

REPLACED = "a table that it reads was replaced"


def joined(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)", "INSERT INTO u VALUES (1, 'a')")
    place.create("SELECT t.id, v, w FROM t LEFT JOIN u ON t.id = u.id")


def test_an_unchanged_source_makes_no_job_and_no_commit(place: DynamicPlace) -> None:
    joined(place)
    place.create("SELECT id FROM d", name="d2")
    place.refresh("d2")
    backing = place.backing()
    before = [place.latest(backing), len(place.history())]
    assert place.jobs(lambda: place.refresh("d2")) == 0
    place.run("OPTIMIZE t", "UPDATE t SET v = v WHERE id = -1")
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
    assert [place.latest(backing), len(place.history())] == before


def test_a_renamed_table(place: DynamicPlace) -> None:
    joined(place)
    place.run("ALTER TABLE t RENAME TO t2", "INSERT INTO t2 VALUES (3, 30)")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 0, 0)}
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
    assert place.verify() == ("EQUAL", 3, 0, 0)
    place.table("t", "id BIGINT, v BIGINT")  # another one of the old name is not the one that is read
    place.run("INSERT INTO t VALUES (99, 99)", "DELETE FROM t2 WHERE id = 1")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 0, 0, 1)}
    assert place.verify() == ("EQUAL", 2, 0, 0)


@pytest.mark.parametrize("how", ["replace", "recreate"])
def test_a_replaced_table(place: DynamicPlace, how: str) -> None:
    joined(place)
    made = f"TABLE t (id BIGINT, v BIGINT) USING DELTA {TRACKED}"
    if how == "replace":
        place.run(f"CREATE OR REPLACE {made}")
    else:
        place.run("DROP TABLE t")
        assert place.refused("REFRESH DYNAMIC TABLE d").code == "STREAM_SOURCE_MISSING"
        failed = place.history()[0]
        assert (failed["outcome"], "cannot be analysed" in failed["error"]) == ("FAILED", True)
        place.run(f"CREATE {made}")
    place.run("INSERT INTO t VALUES (1, 10), (7, 70)")
    if how == "recreate":
        assert place.refused("VERIFY DYNAMIC TABLE d").code == "DYNAMIC_TABLE_NOT_VERIFIABLE"
    assert place.refresh()["d"][:2] == ("REFRESHED", REPLACED)
    assert place.verify() == ("EQUAL", 2, 0, 0)
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
    assert place.history()[0]["reason"] == REPLACED


def test_columns_of_a_table(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10)")
    place.create("SELECT * FROM t")
    place.run("ALTER TABLE t ADD COLUMN c INT", "INSERT INTO t VALUES (2, 20, 7)")
    place.refresh()
    assert place.bag("SELECT * FROM d") == {(1, 10): 1, (2, 20): 1}
    place.run(
        "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE t DROP COLUMN v",
    )
    refused = place.refused("REFRESH DYNAMIC TABLE d")
    assert (refused.code, "`v`" in refused.message or "v" in refused.message) == ("STREAM_SOURCE_MISSING", True)
    assert place.history()[0]["outcome"] == "FAILED"
    place.run("ALTER TABLE t ADD COLUMN v BIGINT", "UPDATE t SET v = 5")
    place.refresh()
    assert place.bag("SELECT * FROM d") == {(1, 5): 1, (2, 5): 1}
    assert place.verify() == ("EQUAL", 2, 0, 0)


def test_a_widened_column(place: DynamicPlace) -> None:
    place.table("n", "k INT, v INT")
    place.run("INSERT INTO n VALUES (1, 10), (2, 20)")
    place.create("SELECT k, sum(v) AS s, max(v) AS m FROM n GROUP BY k")
    place.run(
        "ALTER TABLE n SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "ALTER TABLE n ALTER COLUMN k TYPE BIGINT",
        "ALTER TABLE n ALTER COLUMN v TYPE BIGINT",
        "INSERT INTO n VALUES (2, 30)",
    )
    # The sum is a BIGINT as before: only the row that changed is written.
    assert place.refresh() == {"d": ("REFRESHED", REASONS["MEANING_CHANGED"], 0, 1, 0)}
    assert place.bag("SELECT * FROM d") == {(1, 10, 10): 1, (2, 50, 30): 1}
    assert place.verify() == ("EQUAL", 2, 0, 0)
    place.run("INSERT INTO n VALUES (5000000000, 1)")
    place.refresh()
    assert place.bag("SELECT * FROM d") == {(1, 10, 10): 1, (2, 50, 30): 1, (5000000000, 1, 1): 1}
    assert place.verify() == ("EQUAL", 3, 0, 0)


def test_a_table_that_is_put_back_from_a_copy(place: DynamicPlace) -> None:
    """Its versions are lower than those that the rows were computed at, and then as high again, with other rows."""
    place.run("INSERT INTO t VALUES (1, 10)", "INSERT INTO u VALUES (1, 'a')")
    path = path_of(place.spark, "t")
    copy = path.with_name("kept")
    shutil.copytree(path, copy)
    place.create("SELECT t.id, v, w FROM t JOIN u ON t.id = u.id")
    place.run("INSERT INTO t VALUES (2, 20)", "INSERT INTO u VALUES (2, 'b')")
    for more in (None, "INSERT INTO t VALUES (1, 11)"):
        place.refresh()
        shutil.rmtree(path)
        shutil.copytree(copy, path)
        jvm(place.spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
        if more:
            place.run(more)
        assert place.refresh()["d"][:2] == ("REFRESHED", REPLACED), more
        assert place.verify()[0] == "EQUAL"
        assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
        place.run("INSERT INTO t VALUES (2, 20)")
    assert place.verify()[0] == "EQUAL"


def test_texts_that_a_query_reads(place: DynamicPlace) -> None:
    """A view or a function that gets another text is noticed, though no table has changed."""
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)")
    place.run("CREATE VIEW x AS SELECT id, v FROM t", "CREATE FUNCTION twice(n BIGINT) RETURNS BIGINT RETURN n * 2")
    place.create("SELECT id, twice(v) AS v FROM x WHERE id IN (SELECT id FROM x)")
    assert place.bag("SELECT * FROM d") == {(1, 20): 1, (2, 40): 1}
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
    for text, rows in (
        ("CREATE OR REPLACE VIEW x AS SELECT id, v FROM t WHERE id = 1", {(1, 20): 1}),
        ("CREATE OR REPLACE FUNCTION twice(n BIGINT) RETURNS BIGINT RETURN n + n + 1", {(1, 21): 1}),
    ):
        place.run(text)
        assert place.refused("VERIFY DYNAMIC TABLE d").code == "DYNAMIC_TABLE_NOT_VERIFIABLE"
        assert place.refresh()["d"][:2] == ("REFRESHED", "a view or a function that it reads was replaced")
        assert place.bag("SELECT * FROM d") == rows
        assert place.verify() == ("EQUAL", 1, 0, 0)
        assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}


def test_a_table_and_a_copy_of_it(place: DynamicPlace) -> None:
    """Both have one id, so that positions cannot tell them apart."""
    place.run("INSERT INTO t VALUES (1, 10)")
    path = path_of(place.spark, "t")
    shutil.copytree(path, path.with_name("copied"))
    refused = place.refused(
        f"CREATE DYNAMIC TABLE d AS SELECT t.id FROM t JOIN delta.`{path.with_name('copied')}` c ON t.id = c.id"
    )
    assert (refused.code, "a copy of its files" in refused.message) == ("UNSUPPORTED_SOURCE", True)


def test_a_view_that_says_something_else(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)", "INSERT INTO u VALUES (1, 'a')")
    place.run("CREATE VIEW x AS SELECT id, v FROM t")
    place.create("SELECT * FROM x")
    place.run("CREATE OR REPLACE VIEW x AS SELECT id, v + 1 AS v FROM t WHERE id = 1", "INSERT INTO t VALUES (3, 30)")
    place.refresh()
    assert place.bag("SELECT * FROM d") == {(1, 11): 1}
    place.run("CREATE OR REPLACE VIEW x AS SELECT t.id, v FROM t JOIN u ON t.id = u.id", "INSERT INTO t VALUES (4, 1)")
    refused = place.refused("REFRESH DYNAMIC TABLE d")
    assert (refused.code, "other key columns" in refused.message) == ("UNSUPPORTED_SOURCE", True)
    assert refused.hint.startswith(
        f"CREATE OR REPLACE DYNAMIC TABLE {place.schema}.d AS …, which computes all rows again"
    )
    place.run("CREATE OR REPLACE DYNAMIC TABLE d AS SELECT * FROM x")
    assert place.verify() == ("EQUAL", 1, 0, 0)


def test_a_table_that_no_longer_tracks(place: DynamicPlace) -> None:
    joined(place)
    place.run("ALTER TABLE u SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')", "INSERT INTO u VALUES (2, 'b')")
    assert place.refused("REFRESH DYNAMIC TABLE d").code in ("CHANGE_TRACKING_DISABLED", "STREAM_SOURCE_MISSING")
    assert place.history()[0]["outcome"] == "FAILED"


def test_settings_stay_as_they_were(spark: SparkSession, place: DynamicPlace) -> None:
    """The text of a query means what it meant when it was written, wherever it is refreshed."""
    place.table("texts", "id INT, s STRING")
    place.run("INSERT INTO texts VALUES (1, '2026-01-01 00:30:00'), (2, 'none')")
    with conf(spark, (("spark.sql.ansi.enabled", "false"), ("spark.sql.session.timeZone", "Asia/Tokyo"))):
        place.create("SELECT id, CAST(s AS TIMESTAMP) AS t, hour(TIMESTAMP '2026-01-01 00:00:00Z') AS h FROM texts")
    place.run("INSERT INTO texts VALUES (3, '2026-01-01 00:30:00')")
    with conf(spark, (("spark.sql.ansi.enabled", "true"), ("spark.sql.session.timeZone", "America/New_York"))):
        place.run("USE default")
        place.run(f"REFRESH DYNAMIC TABLE {place.schema}.d")
        assert place.run(f"VERIFY DYNAMIC TABLE {place.schema}.d")[0]["verdict"] == "EQUAL"
        place.run(f"USE {place.schema}")
    assert place.bag("SELECT id, unix_seconds(t), h FROM d") == {
        (1, 1767195000, 9): 1,
        (2, None, 9): 1,
        (3, 1767195000, 9): 1,
    }


def test_one_run_takes_one_set_of_versions(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """t changes between the refresh of d and that of d2, which reads both: d2 speaks of the version of t that d speaks of."""
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)")
    place.create("SELECT sum(v) AS s FROM t")
    place.create("SELECT d.s, sum(t.v) AS again FROM d CROSS JOIN t GROUP BY d.s", name="d2")
    place.run("INSERT INTO t VALUES (3, 30)")
    at = place.latest("t")

    def reported(table: DynamicTable, outcome: runs.Outcome | None) -> None:
        if outcome is not None and table.name.object == "d":
            place.run("INSERT INTO t VALUES (4, 40)")

    outcomes = runs.run_all(place.spark, [place.found("d2")], report=reported)
    assert [o.word for o in outcomes] == ["REFRESHED", "REFRESHED"]
    assert place.bag("SELECT * FROM d2") == {(60, 60): 1}
    assert place.versions("d2")["t"] == place.versions("d")["t"] == at
    assert place.verify("d2") == ("EQUAL", 1, 0, 0)
    place.refresh("d2")
    assert place.bag("SELECT * FROM d2") == {(100, 100): 1}

    def overtaking(spark: SparkSession, table: DynamicTable, *known: Any) -> Result:
        if table.name.object == "d2" and overtakers:
            overtakers.pop()()
        return refresh_table(spark, table, *known)

    place.run("INSERT INTO t VALUES (5, 50)")
    overtakers = [lambda: (place.run("INSERT INTO t VALUES (6, 60)"), place.refresh("d2"))]
    monkeypatch.setattr(runs, "refresh_table", overtaking)
    place.refresh("d2")
    assert place.bag("SELECT * FROM d2") == {(210, 210): 1}
    assert place.versions("d2")["t"] == place.versions("d")["t"] == place.latest("t")


@pytest.mark.parametrize(
    "writes",
    [
        ("ALTER TABLE m DROP COLUMN a", "ALTER TABLE m ADD COLUMN a STRING"),
        (
            "ALTER TABLE m RENAME COLUMN a TO x",
            "ALTER TABLE m RENAME COLUMN b TO a",
            "ALTER TABLE m RENAME COLUMN x TO b",
        ),
    ],
)
def test_columns_are_replaced_and_no_row_is_written(place: DynamicPlace, writes: tuple[str, ...]) -> None:
    place.table("m", "id INT, a STRING, b STRING")
    place.run(
        "ALTER TABLE m SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "INSERT INTO m VALUES (1, 'x', 'y')"
    )
    place.create("SELECT id, a FROM m")
    place.run(*writes)
    assert place.facts()["has_changes"] == "true"
    assert place.refresh()["d"] == ("REFRESHED", "its sources changed", 0, 1, 0)
    assert "columns" in place.history()[0]["why_not_incremental"]
    assert (place.verify()[0], place.refresh()["d"][0], place.facts()["has_changes"]) == ("EQUAL", "UNCHANGED", "false")


def test_the_columns_of_a_view_are_named_anew(place: DynamicPlace) -> None:
    """The text of the view is the same, but for the list of columns after its name."""
    place.table("p", "id INT, net INT, gross INT")
    place.run("INSERT INTO p VALUES (1, 10, 12)", "CREATE VIEW prices (id, gross, net) AS SELECT * FROM p")
    place.view("SELECT id, net FROM prices")
    place.create("SELECT id, net FROM prices")
    place.run("CREATE OR REPLACE VIEW prices (id, net, gross) AS SELECT * FROM p")
    assert place.refused("SELECT * FROM s").code == "STREAM_SOURCE_REPLACED"
    assert place.refresh()["d"] == ("REFRESHED", "a view or a function that it reads was replaced", 0, 1, 0)
    assert place.bag("SELECT * FROM d") == {(1, 10): 1}


@pytest.mark.parametrize("clauses", ["", "INITIALIZE = ON_SCHEDULE"])
def test_a_dynamic_table_that_it_reads_is_replaced(place: DynamicPlace, clauses: str) -> None:
    place.run("INSERT INTO t VALUES (1, 10)")
    place.create("SELECT id, v FROM t")
    place.create("SELECT id FROM d", "d2")
    place.run(f"CREATE OR REPLACE DYNAMIC TABLE d {clauses} AS SELECT id, v FROM t", "INSERT INTO t VALUES (2, 20)")
    assert place.refresh("d2").keys() == {"d", "d2"}
    assert place.bag("SELECT * FROM d2") == {(1,): 1, (2,): 1}
    place.run("INSERT INTO t VALUES (3, 30)")
    assert place.refresh("d2").keys() == {"d", "d2"}
    assert place.verify("d2")[:2] == ("EQUAL", 3)


def test_a_dynamic_table_that_would_read_itself_through_a_view(place: DynamicPlace) -> None:
    place.run("CREATE VIEW x AS SELECT id, v FROM t")
    place.create("SELECT id, count(*) AS n FROM x GROUP BY id")
    place.create("SELECT id, n FROM d", "d2")
    place.run("INSERT INTO t VALUES (1, 10)")
    for name in ("d", "d2"):
        place.run(f"CREATE OR REPLACE VIEW x AS SELECT id, v FROM t UNION ALL SELECT id, n FROM {name}")
        error = place.refused("REFRESH DYNAMIC TABLE d")
        assert (error.code, "itself" in error.message) == ("UNSUPPORTED_SOURCE", True)
        assert len(place.run("SHOW DYNAMIC TABLES")) == 2
    place.run("CREATE OR REPLACE VIEW x AS SELECT id, v FROM t")
    assert place.refresh("d2").keys() == {"d", "d2"}
    assert place.verify("d2")[:2] == ("EQUAL", 1)
