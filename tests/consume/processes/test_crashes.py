"""kill -9 of a consumer at each step: afterwards the next consumer brings every change over, once.

pytest tests/consume/processes/test_crashes.py                     # a sample of the steps
STREAMQL_LONG=1 pytest tests/consume/processes/test_crashes.py     # all
"""

from __future__ import annotations

import time

import pytest
from pyspark.sql import SparkSession

from tests.consume.support import assert_ledger_tiles, fresh_schema, killed, run, start_child, tracked_table
from tests.sample import sample

ROWS = 5_000
KILLED_INSERTS = ["after:claim", "after:execute", "before:end", "before:claim", "after:end"]
PAUSES_SECONDS = [0.3, 1.0, 1.5, 2.0]


@pytest.mark.parametrize("point", sample("kills of an insert", KILLED_INSERTS, 1))
def test_insert_arrives_once(spark: SparkSession, point: str) -> None:
    schema = fresh_schema(spark, "crash")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    insert = f"INSERT INTO {schema}.target SELECT id, v FROM {schema}.s"
    killed(spark, point, insert)
    run(spark, insert)
    row = run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d, sum(v) AS v FROM target")[0]
    assert (row["n"], row["d"], row["v"]) == (ROWS, ROWS, 10 * sum(range(ROWS)))
    assert run(spark, "SELECT * FROM s") == []
    first = run(spark, "SELECT min(from_version) AS v FROM streamql.consumptions WHERE stream = '" + schema + ".s'")[0][
        "v"
    ]
    assert_ledger_tiles(spark, f"{schema}.s", first)


def test_killed_at_some_instant_of_a_merge(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "crash")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    merge = (
        f"MERGE INTO {schema}.target r USING {schema}.s s ON r.id = s.id WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE "
        "WHEN MATCHED AND s.__change_type = 'UPDATE_AFTER' THEN UPDATE SET r.v = s.v "
        "WHEN NOT MATCHED AND s.__change_type = 'INSERT' THEN INSERT (id, v) VALUES (s.id, s.v)"
    )
    for pause in sample("pauses", PAUSES_SECONDS, 1):
        run(spark, "UPDATE t SET v = v + 1 WHERE id % 7 = 0")
        with start_child(spark, "never", f"SELECT count(*) FROM {schema}.s", merge) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(pause)
            child.kill()
        run(spark, merge)
        assert run(spark, "SELECT * FROM target EXCEPT ALL SELECT * FROM t") == []
        assert run(spark, "SELECT count(*) AS n FROM target")[0]["n"] == ROWS


def test_create_table_as_select_killed_after_its_reservation(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "crash")
    tracked_table(spark, ROWS)
    properties = "TBLPROPERTIES ('delta.appendOnly' = 'true')"  # Delta would not replace a reservation that has it
    create = f"CREATE TABLE {schema}.target USING delta {properties} AS SELECT id, v FROM {schema}.s"
    killed(spark, "after:claim", create)
    run(spark, create)
    row = run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM target")[0]
    assert (row["n"], row["d"]) == (ROWS, ROWS)
    shown = {r["key"]: r["value"] for r in run(spark, "SHOW TBLPROPERTIES target")}
    assert "streamql.reserved" not in shown
    assert shown["delta.appendOnly"] == "true"


KILLS = [("after:execute", 1), ("before:execute", 2), ("after:execute", 3), ("before:execute", 1), ("before:end", 1)]


@pytest.mark.parametrize(("point", "calls"), sample("kills of several inserts", KILLS, 1))
def test_tables_made_in_a_transaction_arrive_once(spark: SparkSession, point: str, calls: int) -> None:
    schema = fresh_schema(spark, "crash")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    run(spark, "CREATE TABLE again AS SELECT -1 AS id, -1 AS v")
    block = [
        "BEGIN TRANSACTION",
        f"CREATE TABLE {schema}.made AS SELECT id, v FROM {schema}.s",
        f"CREATE OR REPLACE TABLE {schema}.again AS SELECT id, v FROM {schema}.s",
        f"INSERT INTO {schema}.target SELECT id, v FROM {schema}.s",
        "COMMIT",
    ]
    killed(spark, f"{point}:{calls}", *block)
    for statement in block:
        run(spark, statement)
    for table in ("made", "again", "target"):
        row = run(spark, f"SELECT count(*) AS n, count(DISTINCT id) AS d, sum(v) AS v FROM {table}")[0]
        assert (row["n"], row["d"], row["v"]) == (ROWS, ROWS, 10 * sum(range(ROWS))), table
        assert "streamql.reserved" not in [r["key"] for r in run(spark, f"SHOW TBLPROPERTIES {table}")]
    assert run(spark, "SELECT * FROM s") == []
