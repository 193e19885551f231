"""Tables large enough to have many row groups, splits and vectors too big to be inlined; compared inside Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from streamql.model import StreamMode, Versions
from tests.sample import sample

from . import spark_oracles, subject
from .recording import conf
from .tables import ROW_GROUPS, Table

SMALL_SPLITS = (("spark.sql.files.maxPartitionBytes", "262144"),)
COUNTED = (("parquet.hadoop.vectored.io.enabled", "false"),)
"""Vectored reads of local files are in no task's statistics."""
INLINE_BYTES_MAX = 64 * 1024
"""Delta refuses inline vectors over this size in what it sends to tasks."""


def scattered(percent: int, seed: int) -> str:
    """A predicate that holds for rows here and there."""
    return f"pmod(xxhash64(k, {seed}), 100) < {percent}"


def check(table: Table, after: int, mode: StreamMode = StreamMode.STANDARD) -> None:
    """The window from `after` to the latest version, against Spark's own joins of whole snapshots."""
    through = table.version
    standard = mode is StreamMode.STANDARD
    oracle = spark_oracles.snapshot_join if standard else spark_oracles.snapshot_appends
    expected = oracle(table.spark, table.path, after, through)
    columns = [c.name for c in table.log.columns[through]]
    actual = subject.shown(table.spark, table.path, Versions(after, through), mode, columns)
    missing, extra = spark_oracles.differing(expected, actual)
    assert (missing, extra) == ([], []), f"({after}, {through}], {mode.value}: missing {missing}, unexpected {extra}"


@pytest.fixture
def one_file(spark: SparkSession, table_path: str) -> Iterator[Table]:
    """600,000 rows in one file of many row groups, read in many splits."""
    table = Table(spark, table_path)
    table.create("k BIGINT, v STRING, n INT", properties="'delta.enableDeletionVectors' = 'true'")
    with conf(spark, (*ROW_GROUPS, *SMALL_SPLITS)):
        table.start = table.run("INSERT INTO {t} SELECT id, concat('v', id % 1000), 0 FROM range(0, 600000, 1, 1)")
        yield table


@pytest.mark.spark
def test_vectors_over_the_inline_limit(one_file: Table) -> None:
    """Random deletes make bitmaps that do not compress: the first alone passes 64 KiB, the second grows it."""
    first = one_file.run(f"DELETE FROM {{t}} WHERE {scattered(38, 1)}")
    sizes = one_file.spark.read.json(f"{one_file.path}/_delta_log/{first:020d}.json")
    assert sizes.selectExpr("max(add.deletionVector.sizeInBytes) AS bytes").collect()[0]["bytes"] > INLINE_BYTES_MAX
    second = one_file.run(f"DELETE FROM {{t}} WHERE {scattered(10, 2)}")
    for after in sample("windows of a file with less rows", (one_file.start, first), 1):
        check(one_file, after)
    one_file.run(f"UPDATE {{t}} SET n = n + 1 WHERE {scattered(5, 3)}", "UPDATE {t} SET n = n WHERE k % 3 = 0")
    for after in sample("windows of an updated file", (one_file.start, second), 1):
        check(one_file, after)
    one_file.run(f"RESTORE TABLE {{t}} TO VERSION AS OF {first}")
    for after in sample("windows over a restored file", (one_file.start, first, second), 1):
        check(one_file, after)
    check(one_file, one_file.start, StreamMode.APPEND_ONLY)


@pytest.mark.spark
@pytest.mark.parametrize("vectors", sample("vectors of many files", ["true", "false"], 1))
def test_many_files_and_row_groups(spark: SparkSession, table_path: str, vectors: str) -> None:
    table = Table(spark, table_path)
    properties = f"'delta.enableDeletionVectors' = '{vectors}'"
    table.create("k BIGINT, p INT, v STRING, n DOUBLE", clauses="PARTITIONED BY (p)", properties=properties)
    rows = "id AS k, CAST(id % 5 AS INT) AS p, concat('v', id) AS v, CAST(id AS DOUBLE) AS n"
    with conf(spark, (*ROW_GROUPS, *SMALL_SPLITS)):
        start = table.run(f"INSERT INTO {{t}} SELECT {rows} FROM range(0, 60000, 1, 1)")
        table.run(f"UPDATE {{t}} SET n = -n WHERE {scattered(2, 1)}")
        merged = table.run(
            f"MERGE INTO {{t}} t USING (SELECT {rows} FROM range(57000, 63000, 2)) s ON t.k = s.k AND t.p = s.p"
            " WHEN MATCHED AND s.k % 10 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = t.n + s.k % 4"
            " WHEN NOT MATCHED THEN INSERT *"
        )
        compacted = table.run("OPTIMIZE {t} WHERE p < 3")
        table.run(f"DELETE FROM {{t}} WHERE {scattered(3, 2)}", "DELETE FROM {t} WHERE p = 4")
        for after in sample("windows of many files", (start, start + 1, merged, compacted), 1):
            check(table, after)
        check(table, start, StreamMode.APPEND_ONLY)
        table.run(f"RESTORE TABLE {{t}} TO VERSION AS OF {merged}", f"UPDATE {{t}} SET v = 'z' WHERE {scattered(1, 3)}")
        for after in sample("windows over many restored files", (start, merged, compacted), 1):
            check(table, after)
        check(table, merged, StreamMode.APPEND_ONLY)


def bytes_read(df: DataFrame) -> int:
    """What the stages of a query say they read from files, in bytes."""
    context = df.sparkSession.sparkContext
    group = f"bytes read {id(df)}"
    context.setJobGroup(group, group)
    df.collect()
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    context.setLocalProperty("spark.jobGroup.id", None)
    return sum(int(store.lastStageAttempt(stage).inputBytes()) for stage in stages)


@pytest.mark.spark
def test_rows_lost_by_a_large_file_cost_pages(spark: SparkSession, table_path: str) -> None:
    """The reader is restricted to the runs that hold them: only the bytes read tell."""
    table = Table(spark, table_path)
    table.create("k BIGINT, v STRING", properties="'delta.enableDeletionVectors' = 'true'")
    table.start = table.run("INSERT INTO {t} SELECT id, uuid() FROM range(0, 500000, 1, 1)")
    whole = sum(f.stat().st_size for f in Path(table_path).glob("*.parquet"))
    table.run("DELETE FROM {t} WHERE k IN (7, 250000, 499999)")
    check(table, table.start)
    window = Versions(table.start, table.version)
    with conf(spark, COUNTED):
        lost = bytes_read(subject.change_set(spark, table.path, window, StreamMode.STANDARD))
    assert 0 < lost < whole / 4, f"{lost:,} of {whole:,} bytes"
