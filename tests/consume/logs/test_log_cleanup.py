"""Delta's own log cleanup, really run: what it takes is said before a job starts, an extension keeps it off, and no decision is lost."""

from __future__ import annotations

import os
import time

import pytest
from pyspark.sql import SparkSession

from streamql.delta.jvm import jvm
from streamql.errors import StreamqlError
from tests.consume.support import (
    assert_arrived_once,
    assert_ledger_tiles,
    findings,
    fresh_schema,
    killed,
    offset_of,
    path_of,
    run,
    tracked_table,
    two_targets,
)
from tests.sample import sample

ROWS = 1_000
DAYS_OLD = 3
FILES, LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


def commits(spark: SparkSession, table: str) -> list[int]:
    """The versions that the log still has commits of."""
    return sorted(int(f.stem) for f in (path_of(spark, table) / "_delta_log").glob("*.json") if f.stem.isdigit())


def cleaned(spark: SparkSession, table: str, *writes: str) -> list[int]:
    """Makes the log of a table as old as its cleanup asks for, and writes until Delta runs it; the versions that are left."""
    before, after = writes[: len(writes) // 2], writes[len(writes) // 2 :]
    for write in before:
        run(spark, write)
    for file in (path_of(spark, table) / "_delta_log").iterdir():
        if (version := file.name.split(".")[0]).isdigit():
            then = (
                time.time() - DAYS_OLD * 24 * 3600 + int(version)
            )  # of files that are as old as each other, it takes none
            os.utime(file, (then, then))
    jvm(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
    for write in after:
        run(spark, write)
    return commits(spark, table)


def keep(spark: SparkSession, table: str, duration: str) -> None:
    """So long a table is to keep what it has; it looks with every second commit."""
    often = "'delta.checkpointInterval' = '2'"
    run(spark, f"ALTER TABLE {table} SET TBLPROPERTIES ('{FILES}' = '{duration}', '{LOG}' = '{duration}', {often})")


def rows_of(name: str, first: int, count: int = 6) -> list[str]:
    return [f"INSERT INTO {name} VALUES ({first + n}, 0)" for n in range(count)]


def test_what_cleanup_took_is_said_before_a_job_starts(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "cleaned")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    keep(spark, "t", "1 day")
    before = offset_of(spark, f"{schema}.s")
    assert cleaned(spark, "t", *rows_of("t", ROWS))[0] > before + 1, "Delta has taken what the stream has to read"
    context = spark.sparkContext
    context.setJobGroup(schema, schema)
    try:
        for text in (
            "SELECT * FROM s",
            "INSERT INTO target SELECT id, v FROM s",
            "CREATE TABLE made AS SELECT * FROM s",
        ):
            with pytest.raises(StreamqlError, match="STREAM_STALE"):
                run(spark, text)
        assert list(context.statusTracker().getJobIdsForGroup(schema)) == []
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert offset_of(spark, f"{schema}.s") == before
    assert not spark.catalog.tableExists(f"{schema}.made")
    assert "STREAM_STALE" in run(spark, "SHOW STREAMS LIKE 's'")[0]["invalid_reason"]
    assert "STREAM_STALE" in {f.code for f in findings(spark, f"{schema}.s")}
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    run(spark, "INSERT INTO t VALUES (-1, 0)")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    assert run(spark, "SELECT * FROM target") == [(-1, 0)]


@pytest.mark.parametrize("is_extended", [True, False])
def test_an_extension_keeps_cleanup_off(spark: SparkSession, is_extended: bool) -> None:
    schema = fresh_schema(spark, "kept")
    tracked_table(spark, ROWS)
    keep(spark, "t", "1 second")
    first = commits(spark, "t")[0]
    if is_extended:
        (finding,) = findings(spark, f"{schema}.s", fix=True)
        assert (finding.code, finding.is_fixed) == ("STREAM_STALE", True)
    left = cleaned(spark, "t", *rows_of("t", ROWS))
    if is_extended:
        assert left[0] == first
        assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == ROWS + 6
    else:
        with pytest.raises(StreamqlError, match="STREAM_STALE"):
            run(spark, "SELECT * FROM s")


def test_a_stream_that_is_ahead_of_it_reads_on(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "ahead")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    keep(spark, "t", "1 day")
    start = offset_of(spark, f"{schema}.s")
    consume = "INSERT INTO target SELECT id, v FROM s WHERE __change_type = 'INSERT'"
    assert cleaned(spark, "t", *rows_of("t", ROWS, 3), consume, *rows_of("t", ROWS + 3, 4))[0] > start + 1
    run(spark, "UPDATE t SET v = -1 WHERE id = 0")
    shown = run(spark, "SELECT __change_type AS c, count(*) AS n FROM s GROUP BY 1 ORDER BY 1")
    assert [tuple(r) for r in shown] == [("INSERT", 4), ("UPDATE_AFTER", 1), ("UPDATE_BEFORE", 1)]
    run(spark, consume)
    assert_ledger_tiles(spark, f"{schema}.s", start)
    assert run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM target") == [(ROWS + 7, ROWS + 7)]


@pytest.mark.parametrize("point", sample("kills before a cleanup", ["before:execute", "after:execute"], 1))
def test_a_target_whose_log_was_cleaned_still_says_what_it_has(spark: SparkSession, point: str) -> None:
    """The commit that resolves a consumption is gone from the target's log; its transaction's number is in the checkpoint."""
    schema = fresh_schema(spark, "resolved")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    keep(spark, "target", "1 day")
    start = offset_of(spark, f"{schema}.s")
    insert = f"INSERT INTO {schema}.target SELECT id, v FROM {schema}.s"
    killed(spark, point, insert)
    written = commits(spark, "target")[-1]
    assert cleaned(spark, "target", *rows_of("target", -9))[0] > written
    run(spark, insert)
    row = run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM target WHERE id >= 0")[0]
    assert (row["n"], row["d"]) == (ROWS, ROWS)
    assert run(spark, "SELECT * FROM s") == []
    assert_ledger_tiles(spark, f"{schema}.s", start)


def test_a_transaction_is_resumed_over_a_cleaned_target(spark: SparkSession) -> None:
    schema, block = two_targets(spark, "half", ROWS)
    killed(spark, "before:execute:2", *block)
    keep(spark, "a", "1 day")
    written = commits(spark, "a")[-1]
    assert cleaned(spark, "a", *rows_of("a", -9), "DELETE FROM a WHERE id < 0")[0] > written
    for statement in block:
        run(spark, statement)
    assert_arrived_once(spark, schema, ROWS)
