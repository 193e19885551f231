"""A catalog that is missing, foreign, newer, edited or half written: a clear error, no guess, and other tables go on."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamql import StreamqlError
from streamql.catalog import store
from streamql.catalog.contents import NAME_DOMAIN, STREAM_DOMAIN
from streamql.catalog.store import catalog_of
from streamql.cli.status.overview import overview
from streamql.delta.jvm import jvm
from streamql.delta.txns import EventLog
from streamql.engine.doctor import examine
from streamql.names import Name
from streamql.reading import read_stream
from tests.consume.support import data_of, fresh_schema, run, start_child, tracked_table
from tests.sample import sample

Damage = Callable[[SparkSession, str, Path], object]


@pytest.fixture
def own(spark: SparkSession) -> SparkSession:
    """A session with a catalog of its own, which may be damaged: a stream s on table t that has one row to show, and a target."""
    session = spark.newSession()
    schema = fresh_schema(session, "hostile")
    session.conf.set("spark.streamql.catalog", f"catalog_of_{schema}")
    session.conf.set("spark.streamql.catalogGuard", "false")  # these tests damage it
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


def as_a_new_process(own: SparkSession) -> None:
    """Nothing is known of what was there."""
    store._catalogs.clear()
    jvm(own).org.apache.spark.sql.delta.DeltaLog.clearCache()


@pytest.mark.parametrize(
    ("damage", "is_new"),
    sample("damages of a catalog", [(damage, is_new) for damage in DAMAGES for is_new in (False, True)], 5),
    ids=lambda given: {False: "known", True: "new process"}.get(given, given),
)
def test_a_damaged_catalog_is_an_error_and_never_an_empty_one(own: SparkSession, damage: str, is_new: bool) -> None:
    schema, events = catalog(own)
    DAMAGES[damage](own, schema, events)
    if is_new:
        as_a_new_process(own)
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
    run(own, "VACUUM unrelated")
    run(own, "DROP TABLE unrelated")
    (finding,) = examine(own)
    assert (finding.subject, finding.code, finding.severity) == ("(catalog)", "CATALOG_UNREADABLE", "error")


def test_what_is_left_of_a_catalog_can_be_dropped(own: SparkSession) -> None:
    """The recovery that the error names."""
    schema, _ = catalog(own)
    own.conf.set("spark.streamql.catalogGuard", "true")
    with pytest.raises(StreamqlError, match="UNSUPPORTED_TARGET"):
        run(own, f"DROP TABLE {schema}.events")
    own.conf.set("spark.streamql.catalogGuard", "false")
    own.sql(f"DROP TABLE {schema}.events")
    own.conf.set("spark.streamql.catalogGuard", "true")  # guards no catalog that cannot be read
    run(own, f"DROP SCHEMA {schema} CASCADE")
    assert run(own, "SHOW STREAMS") == []
    run(own, "CREATE STREAM s ON TABLE t")
    run(own, "INSERT INTO t VALUES (2)")
    assert run(own, "SELECT id FROM s") == [(2,)]


def test_a_table_that_is_put_back_is_used_again(own: SparkSession) -> None:
    _, events = catalog(own)
    away = events.with_name("away")
    events.rename(away)
    with pytest.raises(StreamqlError, match="does not exist any longer"):
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


def test_views_of_an_earlier_streamql_are_replaced_by_the_first_write(own: SparkSession) -> None:
    schema, _ = catalog(own)
    own.sql(f"ALTER VIEW {schema}.streams AS SELECT stream_id, stream FROM `spark_catalog`.`{schema}`.events")
    own.sql(f"ALTER VIEW {schema}.consumptions AS SELECT 1 AS of_another_catalog")
    as_a_new_process(own)
    run(own, "INSERT INTO target SELECT id FROM s")
    names = [r["name"] for r in run(own, f"SELECT name FROM {schema}.streams")]
    assert names == [f"{own.catalog.currentDatabase()}.s"]
    assert own.table(f"{schema}.consumptions").columns == ["of_another_catalog"]


def test_a_catalog_by_path_that_is_gone_is_not_made_again(spark: SparkSession, tmp_path: Path) -> None:
    """As where its storage is not mounted: a stream that a script makes where there is none would skip what it had still to read."""
    session = spark.newSession()
    schema = fresh_schema(session, "unmounted")
    session.conf.set("spark.streamql.catalog", f"catalog_of_{schema}")
    session.conf.set("spark.streamql.catalogLocation", str(tmp_path / "shared"))
    tracked_table(session, 1000)
    (tmp_path / "shared").rename(tmp_path / "away")
    as_a_new_process(session)
    for _ in range(2):
        for text in ("CREATE STREAM IF NOT EXISTS s ON TABLE t", "SELECT * FROM s", "SHOW STREAMS"):
            with pytest.raises(StreamqlError, match=r"CATALOG_UNREADABLE.*does not exist any longer"):
                run(session, text)
    (tmp_path / "away").rename(tmp_path / "shared")
    assert run(session, "SELECT count(*) AS n FROM s")[0]["n"] == 1000
    session.conf.set("spark.streamql.catalogLocation", str(tmp_path / "another"))
    assert run(session, "SHOW STREAMS") == []


@pytest.mark.timeout(300)
def test_the_main_thread_makes_the_catalog(spark: SparkSession) -> None:
    """Its statements ask for streams of their names. Of the main thread's, Spark asks that in another thread."""
    session = spark.newSession()
    session.conf.set("spark.streamql.catalog", f"catalog_of_{fresh_schema(session, 'threads')}")
    assert catalog_of(session).commit(session, [], [], [])


def entries(own: SparkSession) -> tuple[EventLog, dict[str, dict[str, object]]]:
    """The table of events, and the streams in it by name, as somebody sees them who edits the log."""
    _, events = catalog(own)
    log = EventLog(own, str(events))
    domains = log.state(log.update()).domains
    states = [json.loads(text) for domain, text in domains.items() if domain.startswith(STREAM_DOMAIN)]
    return log, {state["name"][2]: state for state in states}


def edit(own: SparkSession, *states: dict[str, object] | str, **names: str) -> None:
    """Writes entries of streams, and of names, past streamql."""
    log, known = entries(own)
    texts = [s if isinstance(s, str) else json.dumps(s) for s in states]
    domains: dict[str, str | None] = {
        STREAM_DOMAIN + str(known["s"]["uuid"] if isinstance(s, str) else s["uuid"]): text
        for s, text in zip(states, texts, strict=True)
    }
    schema = own.catalog.currentDatabase()
    domains |= {f"{NAME_DOMAIN}{Name('spark_catalog', schema, n).key}": uuid for n, uuid in names.items()}
    assert log.commit(log.update(), domains, {}, []) is not None


@pytest.mark.parametrize("text", ['{"format": 1, "uui', '{"format": 4}', "[]"])
def test_a_damaged_entry_is_no_harm_to_other_streams(
    own: SparkSession, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    run(own, "CREATE STREAM other ON TABLE t AT (STREAM => 's')")
    edit(own, text)
    assert [r["name"] for r in run(own, "SHOW STREAMS")] == ["other"]
    assert "cannot be read" in caplog.text
    run(own, "INSERT INTO target SELECT id FROM other")
    assert run(own, "SELECT id FROM target") == [(1,)]
    for statement in ("SELECT * FROM s", "ALTER STREAM s RELEASE", "CREATE OR REPLACE STREAM s ON TABLE t"):
        with pytest.raises(StreamqlError, match=r"CATALOG_UNREADABLE.*\.s .*cannot be read"):
            run(own, statement)
    (finding,) = examine(own)
    assert (finding.code, finding.severity) == ("CATALOG_UNREADABLE", "error")
    if "4" in text:
        assert "upgrade streamql" in finding.remedy
        return
    assert "DROP STREAM" in finding.remedy
    run(own, "DROP STREAM s")
    run(own, "CREATE STREAM s ON TABLE t")
    assert examine(own) == []


@pytest.mark.parametrize(
    "edited",
    [{"sequence": "5"}, {"offset": {"version": None, "initial": False}}, {"offset": {"version": -5, "initial": False}}],
    ids=str,
)
def test_values_that_make_no_sense_are_damage(own: SparkSession, edited: dict[str, object]) -> None:
    _, known = entries(own)
    edit(own, known["s"] | edited)
    assert run(own, "SHOW STREAMS") == []
    with pytest.raises(StreamqlError, match="CATALOG_UNREADABLE"):
        run(own, "SELECT * FROM s")


def test_a_name_that_stands_for_another_stream_consumes_nothing(own: SparkSession) -> None:
    run(own, "CREATE STREAM b ON TABLE t")
    _, known = entries(own)
    edit(own, b=str(known["s"]["uuid"]))
    with pytest.raises(StreamqlError, match=r"CATALOG_UNREADABLE.*stands for stream"):
        run(own, "INSERT INTO target SELECT id FROM b")
    assert any("stands for stream" in f.what for f in examine(own))
    run(own, "DROP STREAM b")
    assert run(own, "SELECT id FROM s") == [(1,)]


def claimed(own: SparkSession) -> None:
    """A claim on streams s and s2 whose process is dead before its statement did anything."""
    run(own, "CREATE STREAM s2 ON TABLE t AT (STREAM => 's')")
    schema, _ = catalog(own)
    place = own.catalog.currentDatabase()
    statement = f"INSERT INTO {place}.target SELECT id FROM {place}.s UNION ALL SELECT id FROM {place}.s2"
    child = start_child(own, "after:claim", statement, conf={"spark.streamql.catalog": schema})
    _, errors = child.communicate(timeout=120)
    assert child.returncode == -9, errors
    assert all(entries(own)[1][name]["claim"] for name in ("s", "s2"))


ENDINGS = ["ALTER STREAM s2 RELEASE", "DROP STREAM s2", "INSERT INTO target SELECT id FROM s2"]


@pytest.mark.parametrize("text", sample("ends of half a claim", ENDINGS, 1))
def test_a_claim_that_only_some_of_its_streams_have_ends(own: SparkSession, text: str) -> None:
    claimed(own)
    edit(own, entries(own)[1]["s"] | {"claim": None})
    run(own, text)
    assert entries(own)[1].get("s2", {"claim": None})["claim"] is None
    run(own, "INSERT INTO target SELECT id FROM s")


def test_an_offset_that_was_moved_under_a_claim_can_be_recovered(own: SparkSession) -> None:
    claimed(own)
    edit(own, entries(own)[1]["s2"] | {"offset": {"version": 0, "initial": False}})
    run(own, "ALTER STREAM s2 SET OFFSET TO LATEST")
    run(own, "INSERT INTO target SELECT id FROM s")
    assert run(own, "SELECT id FROM target") == [(1,)]


def test_rows_of_null_in_the_ledger_are_no_harm(own: SparkSession) -> None:
    schema, _ = catalog(own)
    run(own, "INSERT INTO target SELECT id FROM s")
    for name in ("x", "y"):
        run(own, f"CREATE STREAM {name} ON TABLE t")
        run(own, f"DROP STREAM {name}")
    own.sql(f"UPDATE {schema}.events SET source = NULL WHERE stream LIKE '%.x'")
    own.sql(f"UPDATE {schema}.events SET sequence = NULL, ended_at = NULL WHERE stream LIKE '%.s'")
    own.sql(f"INSERT INTO {schema}.events (event, ended_at) VALUES ('consumed', TIMESTAMP '2001-01-01')")
    assert [f.is_fixed for f in examine(own)] == [False]
    assert [f.is_fixed for f in examine(own, fix=True)] == [True]
    assert [s.name for s in overview(own).streams] == [f"{own.catalog.currentDatabase()}.s"]


def test_columns_of_others_in_the_ledger_are_no_harm(own: SparkSession) -> None:
    schema, _ = catalog(own)
    own.sql(f"ALTER TABLE {schema}.events ADD COLUMNS (reviewed BOOLEAN, note STRING)")
    run(own, "INSERT INTO target SELECT id FROM s")
    assert run(own, "SELECT id FROM target") == [(1,)]
    assert run(own, f"SELECT outcome FROM {schema}.consumptions") == [("CONSUMED",)]


def test_a_ledger_that_cannot_take_an_event_is_told_before_anything_is_written(own: SparkSession) -> None:
    schema, _ = catalog(own)
    events = own.table(f"{schema}.events").withColumn("pid", F.col("pid").cast("double"))
    events.write.mode("overwrite").option("overwriteSchema", "true").saveAsTable(f"{schema}.events")
    for _ in range(2):
        with pytest.raises(StreamqlError, match=r"CATALOG_UNREADABLE.*column pid is no BIGINT"):
            run(own, "INSERT INTO target SELECT id FROM s")
    assert run(own, "SELECT * FROM target") == []
    (finding,) = examine(own)
    assert finding.code == "CATALOG_UNREADABLE"
    good = own.table(f"{schema}.events").withColumn("pid", F.col("pid").cast("bigint"))
    good.write.mode("overwrite").option("overwriteSchema", "true").saveAsTable(f"{schema}.events")
    run(own, "INSERT INTO target SELECT id FROM s")
    assert run(own, "SELECT id FROM target") == [(1,)]


def test_a_thread_without_a_session_commits_on_a_checkpoint(own: SparkSession) -> None:
    """The threads of heartbeats and of the scheduler have no active session, which Delta asks for where it reads a checkpoint."""
    _, events = catalog(own)
    delta = jvm(own).org.apache.spark.sql.delta.DeltaLog
    delta.forTable(own._jsparkSession, str(events)).checkpoint()
    for file in (events / "_delta_log").glob("*.crc"):  # a commit that met others may leave none
        file.unlink()
    delta.clearCache()
    store._catalogs.clear()
    state = catalog_of(own).find(own, Name("spark_catalog", own.catalog.currentDatabase(), "s"))
    assert state is not None
    delta.clearCache()
    store._catalogs.clear()
    committed: list[bool] = []
    thread = threading.Thread(target=lambda: committed.append(catalog_of(own).commit(own, [state], [state.next()], [])))
    thread.start()
    thread.join()
    assert committed == [True]
