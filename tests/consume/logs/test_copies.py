"""Sources of which copies are about: a copied table has Delta's id of the table, and a history of its own from then on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.delta.jvm import jvm
from streamql.errors import StreamqlError
from tests.consume.support import fresh_schema, path_of, run, tracked_table

ROWS = 2000


@pytest.fixture
def path(spark: SparkSession) -> str:
    """Where the source of a stream is that has been consumed once; a table `target` has its rows."""
    fresh_schema(spark, "copies")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    return str(path_of(spark))


def copied(path: str, to: str) -> str:
    """A copy of a table's files."""
    shutil.copytree(path, to)
    return to


def put_back(spark: SparkSession, backup: str, path: str) -> None:
    """The table as it was: of another process's making, for which Delta's memory of the log is emptied here."""
    shutil.rmtree(path)
    shutil.move(backup, path)
    jvm(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()


def test_a_source_put_back_from_a_backup_and_written_on_is_not_the_same(
    spark: SparkSession, path: str, tmp_path: Path
) -> None:
    backup = copied(path, str(tmp_path / "backup"))
    run(spark, "INSERT INTO t VALUES (-1, -10)")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    put_back(spark, backup, path)
    with pytest.raises(StreamqlError, match="STREAM_STALE"):
        run(spark, "SELECT * FROM s")
    run(spark, "INSERT INTO t VALUES (-2, -20)")  # the version that the stream has seen, and another commit
    assert "STREAM_SOURCE_REPLACED" in run(spark, "SHOW STREAMS LIKE 's'")[0]["invalid_reason"]
    run(spark, "INSERT INTO t VALUES (-3, -30)")
    for statement in ("SELECT * FROM s", "INSERT INTO target SELECT id, v FROM s", "SELECT stream_has_data('s')"):
        with pytest.raises(StreamqlError, match="STREAM_SOURCE_REPLACED") as error:
            run(spark, statement)
        assert "SET OFFSET VERSION n" in error.value.hint
    assert "STREAM_SOURCE_REPLACED" in run(spark, "SHOW STREAMS LIKE 's'")[0]["invalid_reason"]
    latest = run(spark, "DESCRIBE HISTORY t LIMIT 1")[0]["version"]
    run(spark, f"ALTER STREAM s SET OFFSET VERSION {latest - 2}")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    assert [r["id"] for r in run(spark, "SELECT id FROM target WHERE id < 0 ORDER BY id")] == [-3, -2, -1]
    assert run(spark, "SELECT * FROM s") == []


def test_a_renamed_source_is_told_from_a_copy_that_stayed_behind(
    spark: SparkSession, path: str, tmp_path: Path
) -> None:
    run(spark, f"CREATE TABLE a_backup USING delta LOCATION '{copied(path, str(tmp_path / 'backup'))}'")
    run(spark, "INSERT INTO t VALUES (-1, -10)")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    run(spark, "ALTER TABLE t RENAME TO t_moved")
    run(spark, "INSERT INTO t_moved VALUES (-2, -20)")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    assert [r["id"] for r in run(spark, "SELECT id FROM target WHERE id < 0 ORDER BY id")] == [-2, -1]
    assert run(spark, "SHOW STREAMS LIKE 's'")[0]["table_name"].endswith("t_moved")


def test_of_two_tables_that_may_be_the_renamed_source_neither_is_taken(
    spark: SparkSession, path: str, tmp_path: Path
) -> None:
    run(spark, f"CREATE TABLE a_copy USING delta LOCATION '{copied(path, str(tmp_path / 'copy'))}'")
    run(spark, "ALTER TABLE t RENAME TO t_moved")
    with pytest.raises(StreamqlError, match=r"STREAM_SOURCE_REPLACED.*several tables.*a_copy.*t_moved"):
        run(spark, "SELECT * FROM s")
    run(spark, "DROP TABLE a_copy")
    run(spark, "INSERT INTO t_moved VALUES (-2, -20)")
    assert [r["id"] for r in run(spark, "SELECT id FROM s")] == [-2]


def test_a_copy_alone_is_not_the_source(spark: SparkSession, path: str, tmp_path: Path) -> None:
    run(spark, f"CREATE TABLE a_backup USING delta LOCATION '{copied(path, str(tmp_path / 'backup'))}'")
    run(spark, "INSERT INTO t VALUES (-1, -10)")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    run(spark, "DROP TABLE t")
    with pytest.raises(StreamqlError, match="STREAM_SOURCE_MISSING"):
        run(spark, "SELECT * FROM s")


def test_a_time_that_only_a_file_has_tells_nothing_of_a_history(spark: SparkSession, tmp_path: Path) -> None:
    """Of commits before in-commit timestamps were switched on: their files have other times where they are moved."""
    fresh_schema(spark, "own_times")
    path = tmp_path / "t"
    run(spark, f"CREATE TABLE t (id BIGINT) LOCATION '{path}' TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    run(spark, "CREATE STREAM s ON TABLE t")
    run(spark, "CREATE TABLE target (id BIGINT)")
    run(spark, "INSERT INTO t VALUES (1)")
    run(spark, "ALTER TABLE t SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")
    run(spark, "INSERT INTO t VALUES (2)")
    run(spark, "INSERT INTO target SELECT id FROM s WITH (MAX_BATCH_SIZE = 1)")
    for commit in (path / "_delta_log").glob("*.json"):
        os.utime(commit, (1_700_000_000, 1_700_000_000))
    jvm(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
    run(spark, "INSERT INTO target SELECT id FROM s")
    assert sorted(r["id"] for r in run(spark, "SELECT id FROM target")) == [1, 2]
