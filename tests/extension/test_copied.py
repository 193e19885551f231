"""Expressions over a stream's columns in code that Spark generates."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tests.consume.support import fresh_schema
from tests.histories.recording import conf

COMPILED = (
    ("spark.sql.codegen.wholeStage", "true"),
    ("spark.sql.codegen.fallback", "false"),  # code that does not compile is an error
    ("spark.sql.codegen.factoryMode", "CODEGEN_ONLY"),
    ("spark.sql.subexpressionElimination.enabled", "true"),
)


def test_a_string_in_two_equal_expressions(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "copied")
    spark.sql(f"CREATE TABLE {schema}.t (id INT, s STRING)")
    spark.sql(f"ALTER TABLE {schema}.t SET PROPERTIES ('change_tracking' = 'true')")
    spark.sql(f"INSERT INTO {schema}.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql(f"CREATE STREAM {schema}.st ON TABLE {schema}.t")
    spark.sql(f"UPDATE {schema}.t SET s = 'x' WHERE id = 1")
    spark.sql(f"DELETE FROM {schema}.t WHERE id = 2")
    is_new = "__change_type IN ('INSERT', 'UPDATE_AFTER')"
    with conf(spark, COMPILED):
        rows = spark.sql(
            f"SELECT if({is_new}, upper(s), s) AS a, if({is_new}, 1, -1) AS w, concat(upper(s), upper(s)) AS b "
            f"FROM {schema}.st ORDER BY a"
        ).collect()
    assert [tuple(row) for row in rows] == [("X", 1, "XX"), ("a", -1, "AA"), ("b", -1, "BB")]
    spark.sql(f"DROP STREAM {schema}.st")
    spark.sql(f"DROP SCHEMA {schema} CASCADE")
