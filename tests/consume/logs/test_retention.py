"""How long sources keep what streams have still to read: as Delta counts it, extended for who lags, and taken back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.catalog.store import catalog_of
from streamql.delta.table import duration_ms
from streamql.engine.doctor import Finding
from streamql.engine.status import statuses
from streamql.errors import StreamqlError
from tests.consume.support import checkpoint, findings, fresh_schema, path_of, run, tracked_table

ROWS = 1_000
HOUR_MS = 3_600_000
FILES, LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


def doctor(spark: SparkSession, schema: str, *, fix: bool = False) -> dict[str, Finding]:
    return {f.code: f for f in findings(spark, f"{schema}.", fix=fix)}


def retention(spark: SparkSession, table: str = "t") -> dict[str, str]:
    return {r["key"]: r["value"] for r in run(spark, f"SHOW TBLPROPERTIES {table}") if "etention" in r["key"]}


def lagging(spark: SparkSession, prefix: str) -> str:
    """A stream whose source keeps nothing."""
    schema = fresh_schema(spark, prefix)
    tracked_table(spark, ROWS)
    run(spark, f"ALTER TABLE t SET TBLPROPERTIES ('{FILES}' = '1 millisecond')")
    return schema


def aged(path: Path) -> None:
    """Makes the files of a table as old as VACUUM asks of what it takes."""
    for file in path.rglob("*.parquet"):
        os.utime(file, (1_600_000_000, 1_600_000_000))


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    """Settings by the last part of their names."""
    names = {
        "check": "spark.databricks.delta.retentionDurationCheck.enabled",
        "guard": "spark.streamql.vacuumGuard",
    }
    for key, value in values.items():
        spark.conf.set(names[key], value)
    try:
        yield
    finally:
        for key in values:
            spark.conf.unset(names[key])


@pytest.mark.parametrize(
    ("text", "hours"),
    [("1 day", 24), ("30 days", 720), ("2 weeks", 336), ("interval 1 day 12 hours", 36), ("INTERVAL 3 DAYS", 72)],
)
def test_durations_are_as_delta_reads_them(spark: SparkSession, text: str, hours: int) -> None:
    assert duration_ms(spark, text) == hours * HOUR_MS


def test_an_owner_that_keeps_more_is_left_alone(spark: SparkSession) -> None:
    schema = lagging(spark, "owner")
    run(spark, f"ALTER TABLE t SET TBLPROPERTIES ('{FILES}' = '30 days')")
    before = retention(spark)
    assert doctor(spark, schema, fix=True) == {}
    assert retention(spark) == before


def test_what_the_owner_sets_after_an_extension_stays(spark: SparkSession) -> None:
    schema = lagging(spark, "later")
    assert doctor(spark, schema, fix=True)["STREAM_STALE"].is_fixed
    run(spark, f"ALTER TABLE t SET TBLPROPERTIES ('{FILES}' = '20 days')")
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    assert doctor(spark, schema, fix=True)["RETENTION_EXTENDED"].is_fixed
    assert retention(spark) == {FILES: "20 days"}
    assert doctor(spark, schema) == {}


def test_an_extension_is_taken_back_after_the_stream_is_gone(spark: SparkSession) -> None:
    schema = lagging(spark, "gone")
    before = retention(spark)
    assert doctor(spark, schema, fix=True)["STREAM_STALE"].is_fixed
    run(spark, "DROP STREAM s")
    assert doctor(spark, schema, fix=True)["RETENTION_EXTENDED"].is_fixed
    assert retention(spark) == before


def test_an_extension_is_taken_back_by_the_catalog_that_made_it(spark: SparkSession) -> None:
    """Another one's doctor looks at its own streams, which may all be current."""
    schema = lagging(spark, "ours")
    before = retention(spark)
    assert doctor(spark, schema, fix=True)["STREAM_STALE"].is_fixed
    extended = retention(spark)
    other = spark.newSession()
    other.conf.set("spark.streamql.catalog", f"{schema}_other")
    run(other, f"USE {schema}")
    run(other, "CREATE STREAM current ON TABLE t")
    assert doctor(other, schema, fix=True) == {}
    assert retention(spark) == extended
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    assert doctor(other, schema, fix=True) == {}
    assert doctor(spark, schema, fix=True)["RETENTION_EXTENDED"].is_fixed
    assert retention(spark) == before


def test_the_source_is_extended_and_not_what_has_its_name_by_now(spark: SparkSession, tmp_path: Path) -> None:
    schema = fresh_schema(spark, "renamed")
    run(spark, f"CREATE TABLE t (id BIGINT) LOCATION '{tmp_path / 't'}'")
    run(spark, "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')")
    run(spark, "CREATE STREAM s ON TABLE t")
    run(spark, f"ALTER TABLE t SET TBLPROPERTIES ('{FILES}' = '1 millisecond')")
    run(spark, "INSERT INTO t VALUES (1)")
    run(spark, "ALTER TABLE t RENAME TO renamed")
    run(spark, "CREATE TABLE t (id BIGINT)")
    assert doctor(spark, schema, fix=True)["STREAM_STALE"].is_fixed
    assert retention(spark) == {}
    assert retention(spark, "renamed")[FILES] == "interval 8 days"


def test_an_extension_that_protects_nothing_is_not_made(spark: SparkSession) -> None:
    schema = lagging(spark, "late")
    spark.conf.set("spark.streamql.maxRetentionExtension", "1 second")
    try:
        before = retention(spark)
        assert not doctor(spark, schema, fix=True)["STREAM_STALE"].is_fixed
        assert retention(spark) == before
    finally:
        spark.conf.unset("spark.streamql.maxRetentionExtension")


@pytest.mark.parametrize(("mode", "is_refused"), [("STANDARD", False), ("APPEND_ONLY", True)])
def test_initial_rows_need_the_files_of_where_they_end(spark: SparkSession, mode: str, is_refused: bool) -> None:
    """STANDARD shows the table as it is by now; APPEND_ONLY as it was, and what was appended."""
    schema = fresh_schema(spark, "initial")
    run(spark, "CREATE TABLE t (id BIGINT)")
    run(spark, "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')")
    run(spark, "INSERT INTO t SELECT id FROM range(1000)")
    run(spark, f"CREATE STREAM s ON TABLE t WITH (TABLE_STREAM_MODE = {mode}) SHOW_INITIAL_ROWS = TRUE")
    run(spark, "DELETE FROM t WHERE id % 2 = 0")
    run(spark, "REORG TABLE t APPLY (PURGE)")
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(check, "false")
    try:
        if is_refused:
            with pytest.raises(StreamqlError, match="STREAM_NEEDS_FILES"):
                run(spark, "VACUUM t RETAIN 0.4 HOURS")  # which Delta takes for 0
        else:
            run(spark, "VACUUM t RETAIN 0 HOURS")
        run(spark, "VACUUM t RETAIN 24 HOURS")  # for which Delta takes the table's own retention
    finally:
        spark.conf.unset(check)
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == (1000 if is_refused else 500), schema


def test_a_source_that_cannot_be_read_hides_no_other_stream(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "broken")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE u (id BIGINT)")
    run(spark, "ALTER TABLE u SET PROPERTIES ('change_tracking' = 'true')")
    run(spark, "CREATE STREAM of_u ON TABLE u")
    path = run(spark, "DESCRIBE DETAIL u")[0]["location"].removeprefix("file:")
    newest = max(Path(path, "_delta_log").glob("*.json"))
    broken = newest.with_name(f"{int(newest.stem) + 1:020}.json")
    broken.write_text('{"commitInfo":{"oper')
    states = [s for s in catalog_of(spark).all(spark) if s.name.schema == schema]
    shown = {s.name.object: status for s, status in zip(states, statuses(spark, states), strict=True)}
    assert shown["s"].invalid_reason is None
    assert shown["of_u"].invalid_reason is not None
    assert len(run(spark, f"SHOW STREAMS IN {schema}")) == 2
    broken.unlink()


def test_what_a_checkpoint_forgot_no_retention_protects(spark: SparkSession) -> None:
    """A removal that had expired when a checkpoint was written is not in the log's state again once the table keeps more."""
    schema = lagging(spark, "forgot")
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    run(spark, "DELETE FROM t")
    path = path_of(spark)
    time.sleep(1.1)
    checkpoint(spark, path)
    aged(path)
    found = doctor(spark, schema, fix=True)
    assert found["STREAM_STALE"].is_fixed
    assert retention(spark)[FILES] == "interval 8 days"
    assert not found["STREAM_NEEDS_FILES"].is_fixed
    assert "a checkpoint has dropped their removals" in found["STREAM_NEEDS_FILES"].what
    with pytest.raises(StreamqlError, match="STREAM_NEEDS_FILES") as error:
        run(spark, "VACUUM t")
    assert FILES not in error.value.hint, "it would not help"
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == ROWS
    with settings(spark, guard="false"):
        run(spark, "VACUUM t")
    with pytest.raises(StreamqlError, match="STREAM_STALE"):
        run(spark, "SELECT * FROM s")
    run(spark, "VACUUM t")  # it is stale: nothing is left to be kept for it


def test_an_extension_in_time_keeps_the_files(spark: SparkSession) -> None:
    schema = lagging(spark, "in_time")
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    run(spark, "DELETE FROM t")
    time.sleep(1.1)
    aged(path_of(spark))
    with pytest.raises(StreamqlError, match="STREAM_NEEDS_FILES") as error:
        run(spark, "VACUUM t")
    assert FILES in error.value.hint
    assert set(doctor(spark, schema, fix=True)) == {"STREAM_STALE"}
    run(spark, "VACUUM t")
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == ROWS


def test_vacuum_leaves_what_batches_need(spark: SparkSession) -> None:
    """Rows that came and went are in no change set of the whole, and in those of the commits."""
    fresh_schema(spark, "batches")
    tracked_table(spark, ROWS)
    run(spark, "DELETE FROM t")
    assert run(spark, "SELECT * FROM s") == []
    with settings(spark, check="false"):
        with pytest.raises(StreamqlError, match="STREAM_NEEDS_FILES"):
            run(spark, "VACUUM t RETAIN 0 HOURS")
        shown = run(spark, "SELECT __change_type AS c, count(*) AS n FROM s WITH (MAX_BATCH_SIZE = 1) GROUP BY 1")
        assert [tuple(r) for r in shown] == [("INSERT", ROWS)]
        run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
        run(spark, "VACUUM t RETAIN 0 HOURS")


def test_files_that_came_back_are_not_taken_for_gone(spark: SparkSession) -> None:
    fresh_schema(spark, "came_back")
    tracked_table(spark, ROWS)
    version = run(spark, "DESCRIBE HISTORY t LIMIT 1")[0]["version"]
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    run(spark, "DELETE FROM t")
    run(spark, f"RESTORE TABLE t TO VERSION AS OF {version}")
    with settings(spark, check="false"):
        run(spark, "VACUUM t RETAIN 0 HOURS")
    assert run(spark, "SELECT * FROM s") == []
    assert run(spark, "SELECT count(*) AS n FROM t")[0]["n"] == ROWS


def test_a_compaction_by_hand_leaves_the_way_of_small_batches(spark: SparkSession) -> None:
    """The whole has no identity of rows; its commits have, and are kept until they are taken one by one."""
    schema = lagging(spark, "by_hand")
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    run(spark, "CREATE TABLE target (c STRING, id BIGINT)")
    run(spark, "INSERT INTO t VALUES (-1, -1), (-2, -2)")
    path = path_of(spark)
    rewritten = spark.read.format("delta").load(str(path)).repartition(2).write.format("delta").mode("overwrite")
    rewritten.option("dataChange", "false").save(str(path))
    run(spark, "DELETE FROM t WHERE id = -1")
    time.sleep(1.1)
    with pytest.raises(StreamqlError, match="MAX_BATCH_SIZE = 1"):
        run(spark, "SELECT * FROM s")
    assert run(spark, "SELECT stream_has_data('s') AS yes")[0]["yes"]
    shown = run(spark, "SHOW STREAMS LIKE 's'")[0]
    assert "CHANGE_TRACKING_DISABLED" in shown["invalid_reason"]
    assert shown["stale_after"] is not None
    assert set(doctor(spark, schema)) == {"CHANGE_TRACKING_DISABLED", "STREAM_STALE"}
    with pytest.raises(StreamqlError, match="STREAM_NEEDS_FILES"):
        run(spark, "VACUUM t")
    while run(spark, "SELECT stream_has_data('s') AS yes")[0]["yes"]:
        run(spark, "INSERT INTO target SELECT __change_type, id FROM s WITH (MAX_BATCH_SIZE = 1)")
    assert sorted(map(tuple, run(spark, "SELECT * FROM target"))) == [("DELETE", -1), ("INSERT", -2), ("INSERT", -1)]
    run(spark, "VACUUM t")


def test_commits_without_rows_are_due_before_they_go_stale(spark: SparkSession) -> None:
    """A job that runs when there is data must take them, or its stream goes stale though it never missed a row."""
    lagging(spark, "rowless")
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    run(spark, "OPTIMIZE t")
    time.sleep(1.1)
    assert run(spark, "SELECT * FROM s") == []
    assert run(spark, "SELECT stream_has_data('s') AS yes")[0]["yes"]
    run(spark, f"ALTER TABLE t SET TBLPROPERTIES ('{FILES}' = '7 days')")
    assert not run(spark, "SELECT stream_has_data('s') AS yes")[0]["yes"]


def test_an_extension_that_others_made_is_held_by_all_who_need_it(spark: SparkSession) -> None:
    schema = lagging(spark, "shared")
    before = retention(spark)
    other = spark.newSession()
    other.conf.set("spark.streamql.catalog", f"{schema}_other")
    run(other, f"USE {schema}")
    run(other, "CREATE STREAM late ON TABLE t AT (VERSION => 0)")
    assert doctor(spark, schema, fix=True)["STREAM_STALE"].is_fixed
    assert doctor(other, schema, fix=True)["RETENTION_EXTENDED"].is_fixed
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    assert "no other catalog" in doctor(spark, schema, fix=True)["RETENTION_EXTENDED"].remedy
    assert retention(spark) != before
    run(other, "ALTER STREAM late SET OFFSET TO LATEST")
    assert doctor(other, schema, fix=True)["RETENTION_EXTENDED"].is_fixed
    assert retention(spark) == before


@pytest.mark.parametrize("value", ["off", "fals", "0"])
def test_a_mistyped_guard_neither_removes_files_nor_passes_for_a_value(spark: SparkSession, value: str) -> None:
    lagging(spark, f"typo_{value}")
    refused = f"is '{value}', and must be true or false"
    with pytest.raises(Exception, match=refused), settings(spark, guard=value):
        pass
    with pytest.raises(Exception, match=refused):
        run(spark, f"SET spark.streamql.vacuumGuard = {value}")
    run(spark, "VACUUM t")
    assert run(spark, "SELECT * FROM s")
