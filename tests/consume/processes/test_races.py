"""Two consumers of one stream, in threads and in processes, while a writer goes on: every change arrives once."""

from __future__ import annotations

import threading

from pyspark.sql import SparkSession

from streamql import StreamqlError
from tests.consume.support import assert_ledger_tiles, fresh_schema, run, start_child, tracked_table

ROUNDS = 4
ROWS = 5_000


def test_threads_share_a_stream(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "race")
    tracked_table(spark, ROWS)
    for i in range(2):
        run(spark, f"CREATE TABLE target{i} (id BIGINT, v BIGINT)")
    failures: list[BaseException] = []

    def consume(i: int) -> None:
        own = spark.newSession()
        for _ in range(ROUNDS):
            try:
                run(own, f"INSERT INTO {schema}.target{i} SELECT id, v FROM {schema}.s")
            except StreamqlError as e:
                if e.code not in ("STREAM_BUSY", "STREAM_MOVED"):
                    failures.append(e)
            except BaseException as e:
                failures.append(e)

    threads = [threading.Thread(target=consume, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for n in range(3):
        spark.range(ROWS * (n + 1), ROWS * (n + 2)).selectExpr("id", "id AS v").writeTo(f"{schema}.t").append()
    for t in threads:
        t.join()
    assert failures == []
    run(spark, f"INSERT INTO {schema}.target0 SELECT id, v FROM {schema}.s")
    both = "SELECT id, v FROM target0 UNION ALL SELECT id, v FROM target1"
    assert run(spark, f"SELECT id, v FROM t EXCEPT ALL ({both})") == []
    assert run(spark, f"({both}) EXCEPT ALL SELECT id, v FROM t") == []
    _assert_tiles(spark, schema)


def test_processes_share_a_stream(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "race")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    insert = f"INSERT INTO {schema}.target SELECT id, v FROM {schema}.s"
    child = start_child(spark, "never", *[insert] * ROUNDS)
    for n in range(ROUNDS):
        spark.range(ROWS * (n + 1), ROWS * (n + 2)).selectExpr("id", "id AS v").writeTo(f"{schema}.t").append()
        run(spark, insert)
    _, errors = child.communicate(timeout=240)
    assert child.returncode == 0, errors
    run(spark, insert)
    assert run(spark, "SELECT id, v FROM t EXCEPT ALL SELECT id, v FROM target") == []
    assert run(spark, "SELECT id, v FROM target EXCEPT ALL SELECT id, v FROM t") == []
    _assert_tiles(spark, schema)


def _assert_tiles(spark: SparkSession, schema: str) -> None:
    first = run(spark, f"SELECT min(from_version) AS v FROM streamql.consumptions WHERE stream = '{schema}.s'")[0]["v"]
    assert_ledger_tiles(spark, f"{schema}.s", first)
