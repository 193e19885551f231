"""The ledger counts, by change type, the rows that a statement took: the same ones that reading the stream shows."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.consume.support import fresh_schema, run, tracked_table

ROWS = 4_000


@pytest.fixture
def changed(spark: SparkSession) -> str:
    """A schema with tables t and target, and the stream s that has all types of changes to show, of several files and commits."""
    schema = fresh_schema(spark, "ledger")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    run(spark, "UPDATE t SET v = v + 1 WHERE id % 10 = 0")
    run(spark, "DELETE FROM t WHERE id % 10 = 1")
    spark.range(ROWS, ROWS + 300, 1, 3).selectExpr("id", "id AS v").writeTo("t").append()
    run(spark, f"UPDATE t SET v = v + 1 WHERE id % 20 = 0 OR id = {ROWS + 1}")
    run(spark, "OPTIMIZE t")
    return schema


def shown(spark: SparkSession, condition: str = "true") -> dict[str, int]:
    """What the stream shows, by change type."""
    rows = run(spark, f"SELECT __change_type AS t, count(*) AS n FROM s WHERE {condition} GROUP BY ALL")
    return {r["t"]: r["n"] for r in rows}


def noted(spark: SparkSession, schema: str) -> list[dict[str, int] | None]:
    """What the ledger says of the consumptions of stream s, the newest last."""
    ledger = spark.table("streamql.consumptions").where(f"stream = '{schema}.s'").orderBy("sequence", "target")
    return [r["changes"] for r in ledger.collect()]


def test_an_insert_takes_all_there_is(spark: SparkSession, changed: str) -> None:
    wanted = shown(spark)
    assert set(wanted) == {"INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"}
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    assert noted(spark, changed) == [{"INSERT": ROWS}, wanted]


def test_a_condition_is_applied_before_rows_are_counted(spark: SparkSession, changed: str) -> None:
    wanted = shown(spark, "__change_type <> 'UPDATE_BEFORE' AND id < 1000")
    run(spark, "INSERT INTO target SELECT id, v FROM s WHERE __change_type <> 'UPDATE_BEFORE' AND id < 1000")
    assert noted(spark, changed)[-1] == wanted
    assert sum(wanted.values()) < ROWS


def test_rows_that_are_read_twice_count_once(spark: SparkSession, changed: str) -> None:
    """MERGE reads its source in two passes."""
    wanted = shown(spark, "__change_type <> 'UPDATE_BEFORE'")
    run(
        spark,
        "MERGE INTO target t USING s ON t.id = s.id WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE "
        "WHEN MATCHED AND s.__change_type = 'UPDATE_AFTER' THEN UPDATE SET t.v = s.v "
        "WHEN NOT MATCHED AND s.__change_type = 'INSERT' THEN INSERT (id, v) VALUES (s.id, s.v)",
    )
    assert noted(spark, changed)[-1] == wanted


def test_each_statement_of_a_transaction_has_its_own(spark: SparkSession, changed: str) -> None:
    run(spark, "CREATE TABLE other (id BIGINT)")
    wanted, deleted = shown(spark), shown(spark, "__change_type = 'DELETE'")
    run(spark, "BEGIN TRANSACTION")
    run(spark, "INSERT INTO other SELECT id FROM s WHERE __change_type = 'DELETE'")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    run(spark, "COMMIT")
    assert noted(spark, changed)[-2:] == [deleted, wanted]


def test_what_failed_took_nothing_and_a_query_took_all(spark: SparkSession, changed: str) -> None:
    wanted = shown(spark)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        run(spark, "INSERT INTO target SELECT id, v DIV (id - id) FROM s")
    run(spark, "SELECT id, v FROM s WITH CONSUME")
    assert noted(spark, changed)[-2:] == [None, wanted]
    run(spark, "INSERT INTO t VALUES (-1, -1)")
    run(spark, "CREATE TABLE made AS SELECT id FROM s")
    assert noted(spark, changed)[-1] == {"INSERT": 1}


def test_operators_that_take_the_plan_below_along(spark: SparkSession, changed: str) -> None:
    """Windows, sorts and joins serialize what is under them; what counts there must travel, too."""
    run(spark, "CREATE TABLE ranked (id BIGINT, n INT)")
    run(
        spark,
        "INSERT INTO ranked SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY id ORDER BY __change_type) AS n FROM s) "
        "WHERE n = 1 ORDER BY id",
    )
    counted = noted(spark, changed)[-1]
    assert counted is not None
    assert counted["INSERT"] == 300
    run(spark, "UPDATE t SET v = 0 WHERE id % 3 = 0")
    wanted = shown(spark)
    run(
        spark, "INSERT INTO ranked SELECT max(a.id), count(*) FROM s a JOIN s b ON a.id = b.id GROUP BY a.__change_type"
    )
    assert noted(spark, changed)[-1] == wanted
