"""Streams, their tables and the catalog on S3: every change arrives once, though a consumer is killed and some answers are lost.

pytest tests/s3/test_consuming.py                     # one kill
STREAMQL_LONG=50 pytest tests/s3/test_consuming.py    # so many
"""

from __future__ import annotations

import random
import subprocess

from pyspark.sql import SparkSession

from tests.consume.support import TRACKED, fresh_schema, run, start_child
from tests.s3.support import IMPATIENT, S3, SECRET, Store
from tests.sample import SEED, amount

KILLS = amount(1, 20)
BATCHES_PER_KILL = 3
ROWS = 100
CHAOS = 0.05
LEASE = {"spark.streamql.lease": "5s"}  # the JVM of a dead process goes on for a moment


def test_whatever_the_instant_of_a_kill_each_row_arrives_once(s3: S3, store: Store, spark: SparkSession) -> None:
    rng = random.Random(SEED)
    bucket = s3.bucket(store.hadoop, **IMPATIENT)
    session = spark.newSession()
    schema = fresh_schema(session, "lake")
    catalog = {
        "spark.streamql.catalog": f"catalog_{schema}",
        "spark.streamql.catalogLocation": f"s3a://{bucket}/catalog",
    }
    for key, value in {**catalog, **LEASE}.items():
        session.conf.set(key, value)
    run(session, f"CREATE TABLE t (id BIGINT, v BIGINT) {TRACKED} LOCATION 's3a://{bucket}/t'")
    run(session, f"CREATE TABLE sink (id BIGINT, v BIGINT) LOCATION 's3a://{bucket}/sink'")
    run(session, "CREATE STREAM s ON TABLE t")
    consume = f"INSERT INTO {schema}.sink SELECT id, v FROM {schema}.s WITH (MAX_BATCH_SIZE = 150)"
    rows = 0
    with s3.proxy.chaos(SEED, CHAOS):
        for _ in range(KILLS):
            with start_child(
                session, "loop", consume, conf={**s3.child_conf(bucket, IMPATIENT), **catalog, **LEASE}
            ) as child:
                assert child.stdout is not None
                assert child.stdout.readline(), child.communicate()[1]
                for _ in range(BATCHES_PER_KILL):
                    run(session, f"INSERT INTO t SELECT id, id FROM range({rows}, {rows + ROWS})")
                    rows += ROWS
                try:
                    child.wait(rng.uniform(0, 2))
                except subprocess.TimeoutExpired:  # still running, as it should
                    child.kill()
                else:
                    raise AssertionError(child.communicate()[1])
        while run(session, "SELECT 1 FROM s LIMIT 1"):
            run(session, consume)
    row = run(session, "SELECT count(*) AS n, count(DISTINCT id) AS d, sum(v) AS v FROM sink")[0]
    assert (row["n"], row["d"], row["v"]) == (rows, rows, sum(range(rows)))
    ledger = session.table(f"catalog_{schema}.consumptions")
    assert {r["guarantee"] for r in ledger.where("outcome = 'CONSUMED'").collect()} == {"exactly_once"}
    assert SECRET not in str(ledger.collect()) + str(run(session, "SHOW STREAMS")) + str(run(session, "SET -v"))
