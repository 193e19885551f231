"""What the tests of consumption share: a tracked table, a second process, and what must hold at the end."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import Row, SparkSession

import streamql
from streamql.delta.jvm import jvm
from streamql.engine.doctor import Finding, examine

ROOT = Path(__file__).parents[2]
BLOCK_ROWS = 2_000
TIMEOUT_SECONDS = 240
TRACKED = "TBLPROPERTIES ({})".format(
    ", ".join(f"'delta.enable{name}' = 'true'" for name in ("RowTracking", "InCommitTimestamps", "DeletionVectors"))
)
"""What change_tracking sets; from its first version on, a table needs no commits for it."""
"""Every point of every matrix of kills; else a sample of them: each is a process of its own."""
_numbers = itertools.count()


def fresh_schema(spark: SparkSession, prefix: str) -> str:
    """A schema of its own, made the current one."""
    name = f"{prefix}_{next(_numbers)}"
    spark.sql(f"CREATE SCHEMA {name}")
    spark.sql(f"USE {name}")
    return name


def tracked_table(spark: SparkSession, rows: int, files: int = 4) -> None:
    """Table t (id, v) of several files with change tracking on, and a STANDARD stream s on it that shows all its rows as new."""
    run(spark, f"CREATE TABLE t (id BIGINT, v BIGINT) {TRACKED}")
    run(spark, "CREATE STREAM s ON TABLE t")
    spark.range(0, rows, 1, files).selectExpr("id", "id * 10 AS v").writeTo("t").append()


def checkpoint(spark: SparkSession, path: Path) -> None:
    """Makes Delta write down the state of the table at `path`."""
    log = jvm(spark).org.apache.spark.sql.delta.DeltaLog
    log.clearCache()
    log.forTable(spark._jsparkSession, str(path)).checkpoint()


def run(spark: SparkSession, text: str) -> list[Row]:
    """Runs a statement; its rows."""
    return streamql.sql(text, spark).collect()


def in_threads(*works: Callable[[], object]) -> list[BaseException]:
    """Runs all of them at the same time; what they raised."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return failures


def data_of(spark: SparkSession) -> str:
    """The data directory of the embedded session."""
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    assert warehouse is not None
    return str(Path(warehouse.removeprefix("file:")).parent)


def start_child(
    spark: SparkSession, point: str, *statements: str, data: str | None = None, conf: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """A second process, on the same data directory unless `data` is another."""
    command = [sys.executable, "-m", "tests.consume.child", data or data_of(spark), point, *statements]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "CHILD_CONF": json.dumps(conf or {})},
    )


def killed(spark: SparkSession, point: str, *statements: str, conf: dict[str, str] | None = None) -> None:
    """A second process that dies at a point of the statements, and has died."""
    with start_child(spark, point, *statements, conf=conf) as child:
        _, errors = child.communicate(timeout=TIMEOUT_SECONDS)
    assert child.returncode == -signal.SIGKILL, errors


def killed_within(spark: SparkSession, seconds: float, *statements: str, conf: dict[str, str] | None = None) -> None:
    """A second process that runs the statements over and over, and is killed so long after its first line."""
    with start_child(spark, "loop", *statements, conf=conf) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:  # still running, as it should
            child.kill()
        else:
            raise AssertionError(child.stderr.read() if child.stderr else "")


def path_of(spark: SparkSession, table: str = "t") -> Path:
    """Where a table's files are."""
    return Path(run(spark, f"DESCRIBE DETAIL {table}")[0]["location"].removeprefix("file:"))


def findings(spark: SparkSession, subject: str, *, fix: bool = False) -> list[Finding]:
    """What the doctor finds of what a name is or begins with: `schema.` for all of a schema, streams and tables."""
    return [f for f in examine(spark, fix=fix) if f".{subject}" in f".{f.subject}"]


def offset_of(spark: SparkSession, stream: str) -> int:
    """The version that a stream, by its schema and name, stands at."""
    row = spark.table("streamql.streams").where(f"name = '{stream}'").first()
    assert row is not None
    return int(row["offset_version"])


def assert_ledger_tiles(spark: SparkSession, stream: str, first: int) -> None:
    """The intervals that were consumed follow one another without gap or overlap, from `first` to the stream's offset."""
    ledger = spark.table("streamql.consumptions").where(f"stream = '{stream}' AND outcome = 'CONSUMED'")
    # A transaction has a row for each of its statements.
    rows = ledger.select("sequence", "consumption_id", "from_version", "through_version").distinct()
    intervals = [(r["from_version"], r["through_version"]) for r in rows.orderBy("sequence").collect()]
    at = first
    for after, through in intervals:
        assert after == at, intervals
        at = through
    assert offset_of(spark, stream) == at, intervals


def two_targets(spark: SparkSession, prefix: str, rows: int = BLOCK_ROWS) -> tuple[str, list[str]]:
    """A schema with a stream, two tables, and the transaction that fills both."""
    schema = fresh_schema(spark, prefix)
    tracked_table(spark, rows)
    for table in ("a", "b"):
        run(spark, f"CREATE TABLE {table} (id BIGINT, v BIGINT)")
    inserts = [f"INSERT INTO {schema}.{table} SELECT id, v FROM {schema}.s" for table in ("a", "b")]
    return schema, ["BEGIN TRANSACTION", *inserts, "COMMIT"]


def assert_arrived_once(spark: SparkSession, schema: str, rows: int = BLOCK_ROWS) -> None:
    """Each row of the source is in both tables, once, and nothing is left in the stream."""
    for table in ("a", "b"):
        row = run(spark, f"SELECT count(*) AS n, count(DISTINCT id) AS d, sum(v) AS v FROM {table}")[0]
        assert (row["n"], row["d"], row["v"]) == (rows, rows, 10 * sum(range(rows))), table
    assert run(spark, "SELECT * FROM s") == []
    first = run(spark, f"SELECT min(from_version) AS v FROM streamql.consumptions WHERE stream = '{schema}.s'")[0]["v"]
    assert first is not None
