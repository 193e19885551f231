"""What cannot be a dynamic table, and what cannot be done to one: the code, and what is said."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamql.errors import StreamqlError
from tests.dynamic.support import DynamicPlace
from tests.sample import sample

QUERIES: list[tuple[str, str | None, str]] = [
    ("SELECT id FROM untracked", "CHANGE_TRACKING_DISABLED", "untracked does not track changes"),
    ("SELECT id FROM untracked JOIN another USING (id)", "CHANGE_TRACKING_DISABLED", "untracked do not track changes"),
    ("SELECT id FROM s", "UNSUPPORTED_SOURCE", "reads a stream"),
    ("SELECT id FROM temporary", "UNSUPPORTED_SOURCE", "reads a temporary view"),
    ("SELECT id FROM over_temporary", "UNSUPPORTED_SOURCE", "reads a temporary view"),
    ("SELECT 1 AS a", "UNSUPPORTED_SOURCE", "reads no table"),
    ("VALUES (1), (2)", "UNSUPPORTED_SOURCE", "reads no table"),
    ("SELECT id FROM t VERSION AS OF 0", "UNSUPPORTED_SOURCE", "reads a table at a fixed version or time"),
    ("SELECT id FROM foreign_table", "UNSUPPORTED_SOURCE", "reads a table that is not a Delta table"),
    ("SELECT id, _metadata.file_path AS f FROM t", "UNSUPPORTED_SOURCE", "shows the column _metadata"),
    ("SELECT id, v AS id FROM t", "RESERVED_COLUMN_NAME", "column id appears twice"),
    ("SELECT id AS a, v AS A FROM t", "RESERVED_COLUMN_NAME", "appears twice"),
    ("SELECT id AS __dynamic_key_1 FROM t", "RESERVED_COLUMN_NAME", "begins with __dynamic_key_"),
    ("SELECT id AS __change_type FROM t", "RESERVED_COLUMN_NAME", "__change_type"),
    ("SELECT map(id, v) AS m FROM t UNION SELECT map(1, 2)", None, "MAP"),
    ("SELECT DISTINCT map(id, v) AS m FROM t", None, ""),
    ("SELECT no_such FROM t", None, "no_such"),
    ("SELECT id FROM no_such", None, "no_such"),
    ("SELECT id FROM", None, ""),
]
NAMES: list[tuple[str, str | None, str]] = [
    ("t", "NAME_ALREADY_IN_USE", "is a table or view"),
    ("v", "NAME_ALREADY_IN_USE", "is a table or view"),
    ("s", "NAME_ALREADY_IN_USE", "is a stream"),
    ("no_such.d", "SCHEMA_NOT_FOUND", "there is no schema no_such"),
]
CLAUSES: list[tuple[str, str | None, str]] = [
    ("(a, b)", "SYNTAX_ERROR", "the list has 2 columns, and the query has 1"),
]
NOT_INCREMENTAL: list[tuple[str, str]] = [
    ("SELECT id FROM t ORDER BY id LIMIT 3", "has LIMIT"),
    ("SELECT id, row_number() OVER (ORDER BY id) AS n FROM t", "has a window function without PARTITION BY"),
    ("SELECT x.id FROM t x LEFT JOIN t y ON x.id < y.id", "has an outer, semi or anti join"),
    ("SELECT id, (SELECT max(id) FROM t) AS m FROM t", "has a scalar subquery"),
    (
        "SELECT session_window(timestamp_seconds(v), '5 minutes') AS w, count(*) AS n FROM t GROUP BY 1",
        "groups by session_window()",
    ),
    ("SELECT v, first(id) AS f FROM t GROUP BY v", "uses a function whose value may depend on the order of rows"),
]


@pytest.fixture
def others(spark: SparkSession, place: DynamicPlace) -> DynamicPlace:
    """Things that a dynamic table cannot be made of, or cannot be called."""
    place.run(
        "CREATE TABLE untracked (id BIGINT) USING DELTA",
        "CREATE TABLE another (id BIGINT) USING DELTA",
        "CREATE TABLE foreign_table (id BIGINT) USING PARQUET",
        "CREATE STREAM s ON TABLE t",
        "CREATE VIEW v AS SELECT id FROM t",
    )
    spark.table("t").createOrReplaceTempView("temporary")
    spark.sql("CREATE TEMPORARY VIEW over_temporary AS SELECT * FROM temporary")
    return place


def test_queries_names_and_clauses(spark: SparkSession, others: DynamicPlace) -> None:
    before = others.tables()
    texts = [(f"CREATE DYNAMIC TABLE d AS {q}", code, said) for q, code, said in sample("refused queries", QUERIES, 9)]
    texts += [(f"CREATE DYNAMIC TABLE {name} AS SELECT id FROM t", code, said) for name, code, said in NAMES]
    texts += [
        (
            f"CREATE DYNAMIC TABLE d REFRESH_MODE = INCREMENTAL AS {query}",
            "UNSUPPORTED_CLAUSE",
            f"the query {why}",
        )
        for query, why in NOT_INCREMENTAL
    ]
    texts += [(f"CREATE DYNAMIC TABLE d {clause} AS SELECT id FROM t", code, said) for clause, code, said in CLAUSES]
    for text, code, message in texts:
        if code is None:
            with pytest.raises((StreamqlError, PySparkException)) as found:
                others.run(text)
            assert message in str(found.value), text
        else:
            refused = others.refused(text)
            assert (refused.code, message in str(refused)) == (code, True), f"{text}\n{refused}"
        assert others.tables() == before, text
    assert others.run("SHOW DYNAMIC TABLES") == []
    spark.catalog.dropTempView("over_temporary")
    spark.catalog.dropTempView("temporary")


def test_in_a_transaction(place: DynamicPlace) -> None:
    place.create("SELECT id FROM t")
    place.run("BEGIN TRANSACTION")
    for text in (
        "CREATE DYNAMIC TABLE e AS SELECT id FROM t",
        "DROP DYNAMIC TABLE d",
        "ALTER DYNAMIC TABLE d SUSPEND",
        "REFRESH DYNAMIC TABLE d",
    ):
        refused = place.refused(text)
        assert (refused.code, refused.hint) == ("INVALID_TRANSACTION_STATE", "COMMIT or ROLLBACK first"), text
    place.run("ROLLBACK")


def test_the_name_is_taken(place: DynamicPlace) -> None:
    """By the dynamic table, for everything else."""
    place.create("SELECT id FROM t")
    backing = place.backing()
    for text in (
        "CREATE TABLE d (id BIGINT)",
        "CREATE OR REPLACE TABLE d (id BIGINT) USING DELTA",
        "CREATE OR REPLACE VIEW d AS SELECT 1 AS a",
        "CREATE STREAM d ON TABLE t",
        "DROP TABLE d",
        "DROP VIEW d",
        f"DROP TABLE {backing}",
        f"CREATE OR REPLACE TABLE {backing} (id BIGINT) USING DELTA",
        "ALTER VIEW d AS SELECT 1 AS id",
        f"DROP SCHEMA {place.schema} CASCADE",
    ):
        refused = place.refused(text)
        assert refused.code == "NAME_ALREADY_IN_USE", text
    assert place.verify() == ("EQUAL", 0, 0, 0)


def test_the_columns_are_those_of_the_query(place: DynamicPlace) -> None:
    place.create("SELECT id, v FROM t")
    for action in ("ADD COLUMN more INT", "RENAME COLUMN v TO w", "DROP COLUMN v", "ALTER COLUMN v COMMENT 'mine'"):
        assert place.refused(f"ALTER TABLE {place.backing()} {action}").code == "UNSUPPORTED_TARGET", action
    assert place.verify() == ("EQUAL", 0, 0, 0)


def test_names_that_nothing_has(place: DynamicPlace) -> None:
    place.create("SELECT id FROM t", name="totals")
    for text in (
        "REFRESH DYNAMIC TABLE total",
        "DESC DYNAMIC TABLE total",
        "VERIFY DYNAMIC TABLE total",
        "EXPLAIN REFRESH DYNAMIC TABLE total",
        "SHOW CREATE DYNAMIC TABLE total",
        "SHOW DYNAMIC TABLE REFRESH HISTORY FOR total",
        "ALTER DYNAMIC TABLE total SUSPEND",
        "DROP DYNAMIC TABLE total",
    ):
        refused = place.refused(text)
        assert refused.code == "DYNAMIC_TABLE_NOT_FOUND", text
        assert "totals" in (refused.hint or ""), text
    refused = place.refused("REFRESH MATERIALIZED VIEW totals")
    assert refused.hint == f"write DYNAMIC TABLE {place.schema}.totals"
