"""Intervals that have no right answer: an error with a code before any job runs, never wrong rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.delta.jvm import jvm
from streamql.errors import StreamqlError
from streamql.model import StreamMode, Versions

from . import subject
from .tables import TRACKED, Table

NO_RETENTION = (("spark.databricks.delta.retentionDurationCheck.enabled", "false"),)


@pytest.fixture
def table(spark: SparkSession, table_path: str) -> Table:
    made = Table(spark, table_path)
    made.create("k BIGINT, v STRING")
    made.fill("SELECT id, concat('v', id) FROM range(0, 10, 1, 2)")
    return made


def refused(
    table: Table, after: int, mode: StreamMode = StreamMode.STANDARD, through: int | None = None
) -> StreamqlError:
    """The error that reading raises; at the latest when the DataFrame is made, before rows are asked for."""
    with pytest.raises(StreamqlError) as raised:
        subject.change_set(
            table.spark, table.path, Versions(after, table.version if through is None else through), mode
        )
    return raised.value


def commit_file(table: Table, version: int) -> Path:
    return Path(table.path, "_delta_log", f"{version:020d}.json")


@pytest.mark.parametrize("mode", list(StreamMode))
def test_row_tracking_switched_off_and_on_in_the_interval(table: Table, mode: StreamMode) -> None:
    table.run("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')", "DELETE FROM {t} WHERE k = 1")
    off = table.version
    assert refused(table, table.start, mode).code == "CHANGE_TRACKING_DISABLED"
    table.run("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    table.run("UPDATE {t} SET v = 'x' WHERE k = 2")
    error = refused(table, table.start, mode)
    assert error.code == "CHANGE_TRACKING_DISABLED"
    assert error.facts["version"] == table.start + 1
    assert refused(table, off, mode).code == "CHANGE_TRACKING_DISABLED"


def test_after_row_tracking_is_on_again_there_are_changes_again(table: Table) -> None:
    for on in ("false", "true"):
        table.run(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.enableRowTracking' = '{on}')")
    again = table.version
    table.run("UPDATE {t} SET v = 'x' WHERE k = 2", "DELETE FROM {t} WHERE k = 3")
    assert [(row[0], row[2]) for row in table.net(again)] == [("DELETE", 3), ("UPDATE_AFTER", 2), ("UPDATE_BEFORE", 2)]


def test_row_tracking_switched_on_in_the_interval(spark: SparkSession, table_path: str) -> None:
    table = Table(spark, table_path)
    table.run("CREATE TABLE {t} (k BIGINT, v STRING) USING DELTA TBLPROPERTIES ('delta.enableRowTracking' = 'false')")
    table.run("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')", "UPDATE {t} SET v = 'c' WHERE k = 1")
    before = table.version
    on = "'delta.enableRowTracking' = 'true', 'delta.enableInCommitTimestamps' = 'true'"
    table.run(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({on})")
    enabled = table.version
    assert enabled > before
    table.run("DELETE FROM {t} WHERE k = 2")
    for after in range(before):
        assert refused(table, after).code == "CHANGE_TRACKING_DISABLED"
    rows = subject.shown(spark, table.path, Versions(enabled, table.version), StreamMode.STANDARD, ["k", "v"])
    assert rows is not None
    assert [(row[0], *row[3:]) for row in rows.collect()] == [("DELETE", 2, "b")]


def test_a_writer_that_did_not_keep_identity(table: Table) -> None:
    """A writer that supports row tracking without keeping it says so in the commit: `delta.rowTracking.preserved`."""
    table.run("UPDATE {t} SET v = 'x' WHERE k = 2")
    file = commit_file(table, table.version)
    text = file.read_text(encoding="utf-8")
    assert '"delta.rowTracking.preserved":"true"' in text
    file.write_text(text.replace('"delta.rowTracking.preserved":"true"', '"delta.rowTracking.preserved":"false"'))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    error = refused(table, table.start)
    assert error.code == "CHANGE_TRACKING_DISABLED"
    assert error.facts["version"] == table.version


def test_a_compaction_by_hand_gives_rows_new_identities(spark: SparkSession, table: Table) -> None:
    """As Delta's pages show it. What changed before it and again after it would come as two rows, of which a replica keeps one."""

    def shown(after: int, mode: StreamMode) -> list[tuple[object, object]]:
        rows = subject.shown(spark, table.path, Versions(after, table.version), mode, ["k"]).collect()
        return sorted((row[0], row[-1]) for row in rows)

    table.run("INSERT INTO {t} VALUES (100, 'new'), (101, 'new')")
    files = spark.read.format("delta").load(table.path).repartition(2).write.format("delta").mode("overwrite")
    files.option("dataChange", "false").save(table.path)
    by_hand = table.version
    inserted = [("INSERT", 100), ("INSERT", 101)]
    assert shown(table.start, StreamMode.STANDARD) == inserted
    table.run("DELETE FROM {t} WHERE k = 100")
    assert shown(table.start, StreamMode.APPEND_ONLY) == inserted
    error = refused(table, table.start)
    assert error.code == "CHANGE_TRACKING_DISABLED"
    assert error.facts["version"] == by_hand
    assert "MAX_BATCH_SIZE = 1" in error.hint
    assert shown(by_hand - 1, StreamMode.STANDARD) == [("DELETE", 100)]


@pytest.mark.parametrize("mode", list(StreamMode))
@pytest.mark.parametrize("which", ["first", "middle"])
def test_a_commit_file_is_gone(table: Table, mode: StreamMode, which: str) -> None:
    """Log cleanup takes commits behind a checkpoint; one lost from the middle is no different for a reader."""
    for key in range(4):
        table.run(f"DELETE FROM {{t}} WHERE k = {key}")
    end = table.version
    jvm(table.spark).org.apache.spark.sql.delta.DeltaLog.forTable(table.spark._jsparkSession, table.path).checkpoint()
    gone = table.start + (1 if which == "first" else 2)
    commit_file(table, gone).unlink()
    jvm(table.spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
    error = refused(table, table.start, mode, end)
    assert error.code == "STREAM_STALE"
    kept = subject.shown(table.spark, table.path, Versions(gone, end), StreamMode.STANDARD, ["k"])
    assert kept is not None
    assert sorted(row[-1] for row in kept.collect()) == list(range(gone - table.start, 4))


def test_a_version_that_is_not_there_yet(table: Table) -> None:
    """The interval was fixed; a change set of fewer commits must not pass for it."""
    error = refused(table, table.start, through=table.version + 1)
    assert error.code in ("STREAM_STALE", "INVALID_POINT_IN_TIME", "CHANGES_UNREADABLE")


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_removed_file_was_vacuumed(spark: SparkSession, table_path: str, vectors: str) -> None:
    table = Table(spark, table_path)
    table.create("k BIGINT, v STRING", properties=f"'delta.enableDeletionVectors' = '{vectors}'")
    table.fill("SELECT id, 'v' FROM range(0, 10, 1, 2)")
    table.run("UPDATE {t} SET v = 'x' WHERE k = 1", "DELETE FROM {t} WHERE k >= 5", "OPTIMIZE {t}")
    deleted = table.version - 1
    table.run("VACUUM {t} RETAIN 0 HOURS", settings=NO_RETENTION)
    error = refused(table, table.start)
    assert error.code == "STREAM_STALE"
    assert refused(table, deleted - 1).code == "STREAM_STALE"
    after_vacuum = table.run("INSERT INTO {t} VALUES (100, 'new')")
    rows = subject.shown(spark, table.path, Versions(after_vacuum - 1, after_vacuum), StreamMode.STANDARD, ["k"])
    assert rows is not None
    assert [row[-1] for row in rows.collect()] == [100]


@pytest.mark.parametrize(("mode", "later"), [("APPEND_ONLY", False), ("APPEND_ONLY", True), ("STANDARD", True)])
def test_files_of_initial_rows_were_vacuumed(spark: SparkSession, table_path: str, mode: str, later: bool) -> None:
    """Said before a job runs: where missing files are ignored, their rows would be missing without a word."""
    table = Table(spark, table_path)
    table.create("k BIGINT, v STRING", properties="'delta.enableDeletionVectors' = 'false'")
    table.fill("SELECT id, 'v' FROM range(0, 10, 1, 2)")
    through = table.run("INSERT INTO {t} VALUES (100, 'new')")
    table.run("UPDATE {t} SET v = 'x' WHERE k = 1")
    interval = Versions(table.start, through if later else table.version, True)
    assert subject.change_set(spark, table.path, interval, StreamMode(mode)).count() == 11
    table.run("VACUUM {t} RETAIN 0 HOURS", settings=NO_RETENTION)
    with pytest.raises(StreamqlError) as raised:
        subject.change_set(spark, table.path, interval, StreamMode(mode))
    assert raised.value.code == "STREAM_STALE"


def test_a_checkpoint_that_cannot_be_read_is_not_history_that_is_gone(table: Table) -> None:
    """Nobody is told to give up changes that are all there."""
    for key in range(3):
        table.run(f"DELETE FROM {{t}} WHERE k = {key}")
    log = jvm(table.spark).org.apache.spark.sql.delta.DeltaLog
    log.forTable(table.spark._jsparkSession, table.path).checkpoint()
    middle = table.version
    table.run("ALTER TABLE {t} ADD COLUMN w INT", "DELETE FROM {t} WHERE k = 4")
    for version in range(middle):
        commit_file(table, version).unlink()
    checkpoint = commit_file(table, middle).with_suffix(".checkpoint.parquet")
    good = checkpoint.read_bytes()
    log.forTable(table.spark._jsparkSession, table.path).checkpoint()
    log.clearCache()
    checkpoint.write_bytes(good[:100])
    for checksum in checkpoint.parent.glob("*.crc"):  # they have the metadata as well
        checksum.unlink()
    checkpoint.with_name(f".{checkpoint.name}.crc").unlink(missing_ok=True)
    with pytest.raises(Exception, match=r"(?i)parquet") as raised:
        subject.change_set(table.spark, table.path, Versions(middle, table.version), StreamMode.STANDARD).collect()
    assert not isinstance(raised.value, StreamqlError), raised.value
    checkpoint.write_bytes(good)
    log.clearCache()
    shown = subject.shown(table.spark, table.path, Versions(middle, table.version), StreamMode.STANDARD, ["k"])
    assert [row[-1] for row in shown.collect()] == [4]


def test_files_of_an_earlier_window_were_vacuumed(table: Table) -> None:
    """A file that came in the window and was compacted after it is gone, too."""
    inserted = table.run("INSERT INTO {t} VALUES (100, 'new')")
    table.run("OPTIMIZE {t}")
    table.run("VACUUM {t} RETAIN 0 HOURS", settings=NO_RETENTION)
    with pytest.raises(StreamqlError) as raised:
        subject.shown(table.spark, table.path, Versions(inserted - 1, inserted), StreamMode.STANDARD, ["k"])
    assert raised.value.code == "STREAM_STALE"


def test_vacuum_that_takes_nothing_needed_harms_nothing(table: Table) -> None:
    table.run("OPTIMIZE {t}")
    start = table.version
    table.run("INSERT INTO {t} VALUES (100, 'new')")
    table.run("VACUUM {t} RETAIN 0 HOURS", settings=NO_RETENTION)
    rows = subject.shown(table.spark, table.path, Versions(start, table.version), StreamMode.STANDARD, ["k"])
    assert rows is not None
    assert [row[-1] for row in rows.collect()] == [100]


def test_an_incompatible_type_change(table: Table) -> None:
    frame = table.spark.sql("SELECT id AS k, CAST(id AS INT) AS v FROM range(3)")
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(table.path)
    changed = table.version
    table.run("DELETE FROM {t} WHERE k = 1")
    error = refused(table, table.start)
    assert error.code == "INCOMPATIBLE_SCHEMA_CHANGE"
    assert "column v " in error.message
    assert error.facts["version"] == changed
    assert error.column is None, "`column` counts characters of a statement's text; a column's name is a fact"
    assert [row[:3] for row in table.net(changed)] == [("DELETE", changed - table.start, 1)]


def test_overwrite_with_another_column_order_is_no_type_change(table: Table) -> None:
    frame = table.spark.sql("SELECT 'w' AS v, id AS k FROM range(3)")
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(table.path)
    counts = table.counts()
    assert counts == {"DELETE": 10, "INSERT": 3}


def test_a_replaced_table_is_not_read_as_one(spark: SparkSession) -> None:
    """CREATE OR REPLACE makes another table at the place: either all rows go and come, or a refusal that says so."""
    replace = f"CREATE OR REPLACE TABLE replaced (k BIGINT, v STRING) USING delta TBLPROPERTIES ({TRACKED})"
    spark.sql(replace)
    table = Table(spark, spark.sql("DESCRIBE DETAIL replaced").select("location").collect()[0][0].removeprefix("file:"))
    table.fill("SELECT id, 'v' FROM range(10)")
    spark.sql(replace)
    table.run("INSERT INTO {t} VALUES (1, 'v1')")
    assert len({metadata["id"] for metadata in metadata_actions(table)}) == 2
    try:
        counts = table.counts()
    except StreamqlError as error:
        code = error.code
    else:
        assert counts == {"DELETE": 10, "INSERT": 1}
        return
    assert code in ("STREAM_SOURCE_REPLACED", "CHANGE_TRACKING_DISABLED", "INCOMPATIBLE_SCHEMA_CHANGE")


def metadata_actions(table: Table) -> list[dict[str, object]]:
    """All metadata that the log has, in order."""
    lines = [
        x for v in range(table.version + 1) for x in commit_file(table, v).read_text(encoding="utf-8").splitlines()
    ]
    return [action["metaData"] for action in map(json.loads, lines) if "metaData" in action]
