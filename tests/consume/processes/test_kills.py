"""kill -9 at random instants of a process that consumes without a pause: INSERT, MERGE, transaction blocks, statements of two streams and
of two targets, and CREATE TABLE AS.

pytest tests/consume/processes/test_kills.py                       # a sample
STREAMQL_LONG=200 pytest tests/consume/processes/test_kills.py     # that many kills
"""

from __future__ import annotations

import random

from pyspark.sql import SparkSession

from tests.consume.support import assert_ledger_tiles, fresh_schema, killed_within, offset_of, run, tracked_table
from tests.sample import SEED, amount

KILLS = amount(1, 50)
ROUND_SECONDS = 9.0
"""One round of the loop takes about so long; the kill comes at any instant of the first two."""


def loop(schema: str) -> list[str]:
    """New rows for the source, and what consumes them, six ways."""
    return [
        (
            f"INSERT INTO {schema}.t SELECT m + id, 10 * (m + id) FROM range(0, 500, 1, 2) "
            f"CROSS JOIN (SELECT coalesce(max(id) + 1, 0) AS m FROM {schema}.t)"
        ),
        f"INSERT INTO {schema}.a SELECT id, v FROM {schema}.s",
        (
            f"MERGE INTO {schema}.b r USING {schema}.s2 s ON r.id = s.id WHEN MATCHED THEN UPDATE SET r.v = s.v "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
        ),
        "BEGIN TRANSACTION",
        f"INSERT INTO {schema}.c SELECT id, v FROM {schema}.s3",
        f"INSERT INTO {schema}.d SELECT id, v FROM {schema}.s3",
        "COMMIT",
        f"INSERT INTO {schema}.both SELECT id, v FROM {schema}.s4 UNION ALL SELECT id, v FROM {schema}.s5",
        f"FROM {schema}.s6 INSERT INTO {schema}.e SELECT id, v INSERT INTO {schema}.f SELECT id, v",
        f"CREATE TABLE {schema}.made_{{n}} AS SELECT id, v FROM {schema}.s7",
    ]


STREAMS = ("s", "s2", "s3", "s4", "s5", "s6", "s7")


def test_whatever_the_instant_all_arrives_once(spark: SparkSession) -> None:
    rng = random.Random(SEED)
    schema = fresh_schema(spark, "kills")
    tracked_table(spark, 1000)
    for stream in STREAMS[1:]:
        run(spark, f"CREATE STREAM {stream} ON TABLE t AT (STREAM => 's')")
    for table in ("a", "b", "c", "d", "e", "f", "both"):
        run(spark, f"CREATE TABLE {table} (id BIGINT, v BIGINT)")
    spark.conf.set("spark.streamql.lease", "5s")  # the JVM of a dead process goes on for a moment
    statements = loop(schema)
    starts = {s: offset_of(spark, f"{schema}.{s}") for s in STREAMS}
    for _ in range(KILLS):
        killed_within(spark, rng.uniform(0, 2 * ROUND_SECONDS), *statements)
    # Twice: a transaction that resumes one that was begun ends where that one would have; what came since is the next one's.
    for n in range(2):
        for statement in statements[1:]:
            run(spark, statement.replace("{n}", f"last_{n}"))
    made = [f"SELECT * FROM {row['tableName']}" for row in run(spark, "SHOW TABLES LIKE 'made_*'")]
    for table in (*"abcdef", f"({' UNION ALL '.join(made)})"):
        assert run(spark, f"SELECT * FROM t EXCEPT ALL SELECT * FROM {table}") == [], table
        assert run(spark, f"SELECT * FROM {table} EXCEPT ALL SELECT * FROM t") == [], table
    twice = "(SELECT * FROM t UNION ALL SELECT * FROM t)"
    assert run(spark, f"SELECT * FROM {twice} EXCEPT ALL SELECT * FROM both") == []
    assert run(spark, f"SELECT * FROM both EXCEPT ALL SELECT * FROM {twice}") == []
    for stream, start in starts.items():
        assert_ledger_tiles(spark, f"{schema}.{stream}", start)
    spark.conf.unset("spark.streamql.lease")
