"""Several processes consume, into one target and into targets of their own, while another writes all that can be written.

pytest tests/consume/processes/test_crowds.py                      # a sample
STREAMQL_LONG=60 pytest tests/consume/processes/test_crowds.py     # four processes, for so many seconds
"""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.consume.support import assert_ledger_tiles, fresh_schema, run, start_child, tracked_table
from tests.sample import IS_LONG, SEED, amount

SECONDS = amount(8, 60)
CONSUMERS = 4 if IS_LONG else 2
ROWS = 5_000

WRITES = (
    "INSERT INTO t SELECT id + {n} * 1000 + 100000, {n} FROM range(0, 200, 1, 2)",
    "UPDATE t SET v = v + 1 WHERE id % 17 = {n} % 17",
    "DELETE FROM t WHERE id > 1000 AND id % 101 = {n} % 101",
    (
        "MERGE INTO t USING (SELECT IF(id % 2 = 0, id * 7 + {n}, id + {n} * 1000 + 500000) AS id FROM range(100)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = -{n} WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, {n})"
    ),
    "OPTIMIZE t",
)
"""An id that was deleted does not come back: in one interval its DELETE and its INSERT both match the replica's row, which Delta's MERGE
refuses. Which writes are in one interval depends on the machine's speed."""


def consuming(schema: str, i: int) -> list[str]:
    """One replica for all, and a log of changes for each."""
    merge = (
        f"MERGE INTO {schema}.replica r USING {schema}.s s ON r.id = s.id "
        "WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE "
        "WHEN MATCHED AND s.__change_type = 'UPDATE_AFTER' THEN UPDATE SET r.v = s.v "
        "WHEN NOT MATCHED AND s.__change_type = 'INSERT' THEN INSERT (id, v) VALUES (s.id, s.v)"
    )
    return [merge, f"INSERT INTO {schema}.log{i} SELECT __change_type, id, v FROM {schema}.s2"]


def test_a_crowd_loses_and_doubles_nothing(spark: SparkSession) -> None:
    rng = random.Random(SEED)
    schema = fresh_schema(spark, "crowd")
    tracked_table(spark, ROWS)
    run(spark, "CREATE STREAM s2 ON TABLE t AT (STREAM => 's')")
    run(spark, "CREATE TABLE replica (id BIGINT, v BIGINT)")
    for i in range(CONSUMERS):
        run(spark, f"CREATE TABLE log{i} (change STRING, id BIGINT, v BIGINT)")
    first = run(
        spark, "SELECT offset_version AS v FROM streamql.streams WHERE name LIKE '%.s2' ORDER BY changed_at DESC"
    )[0]
    children = [start_child(spark, "loop", *consuming(schema, i)) for i in range(CONSUMERS)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline(), child.communicate()[1]
    end, n = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        n += 1
        run(spark, rng.choice(WRITES).format(n=n))
    for child in children:
        try:
            child.wait(0.1)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
        else:
            raise AssertionError(child.communicate()[1])
    for statement in consuming(schema, 0):
        run(spark, statement)
    for one, other in (("t", "replica"), ("replica", "t")):
        assert run(spark, f"SELECT id, v FROM {one} EXCEPT ALL SELECT id, v FROM {other}") == []
    logs = " UNION ALL ".join(f"SELECT * FROM log{i}" for i in range(CONSUMERS))
    signed = f"SELECT id, v, IF(change IN ('INSERT', 'UPDATE_AFTER'), 1, -1) AS n FROM ({logs}) UNION ALL SELECT id, v, -1 FROM t"
    assert run(spark, f"SELECT id, v, sum(n) AS n FROM ({signed}) GROUP BY id, v HAVING sum(n) <> 0") == []
    assert_ledger_tiles(spark, f"{schema}.s", first["v"])
    assert_ledger_tiles(spark, f"{schema}.s2", first["v"])


def test_processes_with_metastores_of_their_own_share_a_catalog_by_path(spark: SparkSession, tmp_path: Path) -> None:
    location = {"spark.streamql.catalogLocation": str(tmp_path / "catalog")}
    source, target = (f"delta.`{tmp_path / name}`" for name in ("t", "target"))
    child = start_child(
        spark,
        "never",
        "CREATE SCHEMA IF NOT EXISTS shared",
        f"CREATE TABLE shared.t (id BIGINT, v BIGINT) LOCATION '{tmp_path / 't'}'",
        "ALTER TABLE shared.t SET PROPERTIES ('change_tracking' = 'true')",
        "CREATE STREAM shared.s ON TABLE shared.t",
        f"CREATE TABLE shared.target (id BIGINT, v BIGINT) LOCATION '{tmp_path / 'target'}'",
        "INSERT INTO shared.t SELECT id, id FROM range(1000)",
        "INSERT INTO shared.target SELECT id, v FROM shared.s",
        data=str(tmp_path / "one"),
        conf=location,
    )
    _, errors = child.communicate(timeout=240)
    assert child.returncode == 0, errors
    other = start_child(
        spark,
        "never",
        "CREATE SCHEMA IF NOT EXISTS shared",
        f"INSERT INTO {source} SELECT id, id FROM range(1000, 1500)",
        f"INSERT INTO {target} SELECT id, v FROM shared.s",
        f"INSERT INTO {target} SELECT id, v FROM shared.s",
        f"CREATE TABLE shared.ledger LOCATION '{tmp_path / 'ledger'}' AS SELECT * FROM streamql.consumptions",
        data=str(tmp_path / "two"),
        conf=location,
    )
    _, errors = other.communicate(timeout=240)
    assert other.returncode == 0, errors
    row = run(spark, f"SELECT count(*) AS n, count(DISTINCT id) AS d FROM {target}")[0]
    assert (row["n"], row["d"]) == (1500, 1500)
    assert (
        run(spark, f"SELECT count(*) AS n FROM delta.`{tmp_path / 'ledger'}`")[0]["n"] == 2
    )  # in the other's metastore as well
