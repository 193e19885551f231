"""A catalog that is missing, foreign, newer, edited or half written: a clear error, no guess, and other tables go on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql import StreamqlError
from streamql.catalog.store import catalog_of
from streamql.engine.doctor import examine
from streamql.names import Name
from streamql.reading import read_stream
from tests.consume.support import data_of, fresh_schema, run, tracked_table

Damage = Callable[[SparkSession, str, Path], object]


@pytest.fixture
def own(spark: SparkSession) -> SparkSession:
    """A session with a catalog of its own, which may be damaged: a stream s on table t that has one row to show, and a target."""
    session = spark.newSession()
    schema = fresh_schema(session, "hostile")
    session.conf.set("spark.streamql.catalog", f"catalog_of_{schema}")
    run(session, "CREATE TABLE t (id BIGINT)")
    run(session, "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')")
    run(session, "CREATE STREAM s ON TABLE t")
    run(session, "CREATE TABLE target (id BIGINT)")
    run(session, "INSERT INTO t VALUES (1)")
    return session


def catalog(own: SparkSession) -> tuple[str, Path]:
    """The schema of the session's catalog, and the directory of its table of events."""
    schema = own.conf.get("spark.streamql.catalog")
    assert schema is not None
    return schema, Path(data_of(own)) / "warehouse" / f"{schema}.db" / "events"


def newest_commit(events: Path) -> Path:
    return max((events / "_delta_log").glob("*.json"))


def foreign(own: SparkSession, schema: str, events: Path) -> None:
    own.sql(f"DROP TABLE {schema}.events")
    own.sql(f"CREATE TABLE {schema}.events (id INT) USING delta")


def half_a_commit(own: SparkSession, schema: str, events: Path) -> None:
    newest = newest_commit(events)
    (newest.parent / f"{int(newest.stem) + 1:020}.json").write_text('{"commitInfo":{"oper')


DAMAGES: dict[str, Damage] = {
    "the table dropped": lambda own, schema, events: own.sql(f"DROP TABLE {schema}.events"),
    "another table in its place": foreign,
    "of a newer version": lambda own, schema, events: own.sql(
        f"ALTER TABLE {schema}.events SET TBLPROPERTIES ('streamql.catalogVersion' = '99')"
    ),
    "no version": lambda own, schema, events: own.sql(
        f"ALTER TABLE {schema}.events UNSET TBLPROPERTIES ('streamql.catalogVersion')"
    ),
    "half a commit": half_a_commit,
    "the log gone": lambda own, schema, events: shutil.rmtree(events / "_delta_log"),
    "the directory gone": lambda own, schema, events: shutil.rmtree(events),
}


def test_a_stream_that_moved_since_it_was_read_was_not_restored(own: SparkSession) -> None:
    """As where two sessions of a server look at one stream, and one of them consumes."""
    schema = own.catalog.currentDatabase()
    before = catalog_of(own).find(own, Name("spark_catalog", schema, "s"))
    assert before is not None
    run(own, "INSERT INTO target SELECT id FROM s")
    assert read_stream(own, before).interval.is_empty is False
    assert not catalog_of(own).was_restored(before)


def test_a_catalog_that_was_put_back_from_a_copy_is_not_followed(own: SparkSession, tmp_path: Path) -> None:
    _, events = catalog(own)
    shutil.copytree(events, tmp_path / "copy")
    run(own, "INSERT INTO target SELECT id FROM s")
    shutil.rmtree(events)
    shutil.copytree(tmp_path / "copy", events)
    with pytest.raises(StreamqlError, match=r"CATALOG_UNREADABLE.*put back from a copy"):
        run(own, "SELECT * FROM s")


@pytest.mark.parametrize("mode", ["name", "id"])
def test_what_a_session_gives_new_tables_is_not_for_the_catalog(spark: SparkSession, mode: str) -> None:
    """Events are written by plain names of columns: with mapped ones, the ledger would show rows of NULL."""
    session = spark.newSession()
    schema = fresh_schema(session, "defaults")
    session.conf.set("spark.streamql.catalog", f"catalog_of_{schema}")
    session.conf.set("spark.databricks.delta.properties.defaults.columnMapping.mode", mode)
    session.conf.set("spark.databricks.delta.properties.defaults.appendOnly", "true")
    tracked_table(session, 1000)
    run(session, "CREATE TABLE target (id BIGINT, v BIGINT)")
    run(session, "INSERT INTO target SELECT id, v FROM s")
    (row,) = run(session, f"SELECT stream, outcome, rows_written FROM catalog_of_{schema}.consumptions")
    assert row.asDict() == {"stream": f"{schema}.s", "outcome": "CONSUMED", "rows_written": 1000}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_catalog_is_an_error_and_never_an_empty_one(own: SparkSession, damage: str) -> None:
    schema, events = catalog(own)
    DAMAGES[damage](own, schema, events)
    for text in (
        "SELECT * FROM s",
        "SHOW STREAMS",
        "INSERT INTO target SELECT id FROM s",
        "CREATE STREAM s2 ON TABLE t",
        "DROP STREAM s",
    ):
        with pytest.raises(StreamqlError) as error:
            run(own, text)
        assert error.value.code == "CATALOG_UNREADABLE", text
        assert error.value.hint
    assert run(own, "SELECT id FROM t") == [(1,)]
    assert run(own, "SELECT * FROM target") == []
    run(own, "CREATE TABLE unrelated (id INT)")
    run(own, "DROP TABLE unrelated")
    (finding,) = examine(own)
    assert (finding.subject, finding.code, finding.severity) == ("(catalog)", "CATALOG_UNREADABLE", "error")


def test_what_is_left_of_a_catalog_can_be_dropped(own: SparkSession) -> None:
    """The way out that the error names."""
    schema, _ = catalog(own)
    own.sql(f"DROP TABLE {schema}.events")
    run(own, f"DROP SCHEMA {schema} CASCADE")
    assert run(own, "SHOW STREAMS") == []
    run(own, "CREATE STREAM s ON TABLE t")
    run(own, "INSERT INTO t VALUES (2)")
    assert run(own, "SELECT id FROM s") == [(2,)]


def test_a_table_that_is_put_back_is_used_again(own: SparkSession) -> None:
    _, events = catalog(own)
    away = events.with_name("away")
    events.rename(away)
    with pytest.raises(StreamqlError, match="not there any more"):
        run(own, "SELECT id FROM s")
    away.rename(events)
    assert run(own, "SELECT id FROM s") == [(1,)]
    run(own, "INSERT INTO target SELECT id FROM s")
    assert run(own, "SELECT id FROM target") == [(1,)]


def test_rows_of_the_ledger_that_somebody_edits_move_no_stream(own: SparkSession) -> None:
    schema, _ = catalog(own)
    run(own, "INSERT INTO target SELECT id FROM s")
    own.sql(f"UPDATE {schema}.events SET offset_version = 0, outcome = 'FAILED', sequence = 1000")
    own.sql(f"DELETE FROM {schema}.events WHERE event = 'created'")
    assert run(own, "SELECT id FROM s") == []
    run(own, "INSERT INTO t VALUES (2)")
    run(own, "INSERT INTO target SELECT id FROM s")
    assert sorted(r["id"] for r in run(own, "SELECT id FROM target")) == [1, 2]


def test_views_that_are_missing_are_made_again(own: SparkSession) -> None:
    schema, _ = catalog(own)
    own.sql(f"DROP VIEW {schema}.consumptions")
    run(own, "INSERT INTO target SELECT id FROM s")
    (finding,) = examine(own)
    assert (finding.severity, finding.is_fixed) == ("warning", False)
    assert [f.is_fixed for f in examine(own, fix=True)] == [True]
    assert [r["rows_written"] for r in run(own, f"SELECT rows_written FROM {schema}.consumptions")] == [1]
    assert examine(own) == []
