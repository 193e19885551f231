"""kill -9 at random instants of a process that applies events, which come late and twice.

STREAMQL_LONG=50 make test TESTS=tests/autocdc/test_kills.py    # that many kills
"""

from __future__ import annotations

import random

from pyspark.sql import SparkSession

from tests.autocdc.oracle import Event
from tests.autocdc.support import assert_copy, assert_history
from tests.consume.support import assert_ledger_tiles, fresh_schema, killed_within, run
from tests.sample import SEED, amount

KILLS = amount(1, 30)
ROUND_SECONDS = 12.0
"""One round of the loop takes about so long; the kill comes at any instant of the first two."""


def test_all_arrives_once(spark: SparkSession) -> None:
    rng = random.Random(SEED)
    schema = fresh_schema(spark, "cdc_kills")
    ddl = "k INT, v STRING, w STRING, op STRING, seq INT"
    run(spark, f"CREATE TABLE events ({ddl}) TBLPROPERTIES ('change_tracking' = 'true')")
    for stream in ("of_copy", "of_history"):
        run(spark, f"CREATE STREAM {stream} ON TABLE events WITH (TABLE_STREAM_MODE = APPEND_ONLY)")
    run(spark, "CREATE TABLE a_copy (k INT, v STRING, w STRING)")
    run(spark, "CREATE TABLE a_history (k INT, v STRING, w STRING, __START_AT INT, __END_AT INT)")
    clauses = "KEYS (k) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)"
    # What an event is follows from its key and its sequence, so that no two of them differ.
    number = "CAST(pmod(xxhash64(k, seq), 97) AS INT)"
    events = f"SELECT k, elt(1 + {number} % 2, 'a', 'b'), elt(1 + {number} % 3, 'x', 'y', NULL), if({number} % 5 = 0, 'D', 'U'), seq"
    statements = [
        f"INSERT INTO {schema}.events {events} FROM (SELECT CAST(rand() * 40 AS INT) AS k, CAST(rand() * 30 AS INT) AS seq FROM range(60))",
        f"AUTO CDC INTO {schema}.a_copy FROM STREAM {schema}.of_copy {clauses}",
        f"AUTO CDC INTO {schema}.a_history FROM STREAM {schema}.of_history {clauses} STORED AS SCD TYPE 2 TRACK HISTORY ON v",
    ]
    spark.conf.set("spark.streamql.lease", "5s")  # the JVM of a dead process goes on for a moment
    for _ in range(KILLS):
        killed_within(spark, rng.uniform(0, 2 * ROUND_SECONDS), *statements)
    for statement in statements:
        run(spark, statement)
    spark.conf.unset("spark.streamql.lease")
    arrived: dict[tuple[int], list[Event]] = {}
    for r in run(spark, "SELECT * FROM events"):
        arrived.setdefault((r["k"],), []).append(Event(r["seq"], r["op"] == "D", r["v"], r["w"]))
    assert_copy(spark, ["k"], arrived)
    assert_history(spark, ["k"], arrived)
    for stream in ("of_copy", "of_history"):
        assert_ledger_tiles(spark, f"{schema}.{stream}", 0)
