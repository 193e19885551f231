"""Forms of queries and short statements that Spark's grammar does not have."""

from __future__ import annotations

import pytest

from streamql.features.translate.model import System
from tests.translate.support import becomes, check_noted, refusal

SNOWFLAKE, DATABEND, CLICKZETTA = System

BECOMES = [
    (
        SNOWFLAKE,
        "SELECT a FROM t WHERE a NOT IN (SELECT a FROM u);",
        "SELECT a FROM t WHERE NOT a IN (SELECT a FROM u);",
    ),
    (SNOWFLAKE, "SELECT a FROM t WHERE a = ANY (SELECT a FROM u);", "SELECT a FROM t WHERE a IN (SELECT a FROM u);"),
    (SNOWFLAKE, "SELECT TRUNC(a, 2) FROM t;", "SELECT IF(a < 0, CEIL(a, 2), FLOOR(a, 2)) FROM t;"),
    (SNOWFLAKE, "SELECT TO_TIMESTAMP_TZ(a) FROM t;", "SELECT CAST(a AS TIMESTAMP_LTZ) FROM t;"),
    (
        SNOWFLAKE,
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a) FROM t;",
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a NULLS LAST) FROM t;",
    ),
    (
        SNOWFLAKE,
        "SELECT f.value FROM t, LATERAL FLATTEN(INPUT => t.v, OUTER => TRUE) f;",
        "SELECT f.value FROM t, LATERAL VARIANT_EXPLODE_OUTER(t.v) AS f(index, key, value);",
    ),
    (
        SNOWFLAKE,
        "SELECT f.value FROM t, TABLE(FLATTEN(t.v, OUTER => FALSE)) f;",
        "SELECT f.value FROM t, LATERAL VARIANT_EXPLODE(t.v) AS f(index, key, value);",
    ),
    (
        SNOWFLAKE,
        "CREATE TABLE t (a OBJECT(b INT, c VARCHAR));",
        "CREATE TABLE t (a STRUCT<b: INT, c: STRING>) USING DELTA;",
    ),
    (SNOWFLAKE, "DESC DATABASE d;", "DESCRIBE SCHEMA d;"),
    (SNOWFLAKE, "SELECT a FROM DUAL;", "SELECT a FROM (SELECT 1 AS dummy) AS dual;"),
    (SNOWFLAKE, "CREATE TEMP VIEW v AS SELECT 1;", "CREATE TEMPORARY VIEW v AS SELECT 1;"),
    (SNOWFLAKE, "CREATE TABLE p (a INT) CLUSTER BY LINEAR(a);", "CREATE TABLE p (a INT) USING DELTA CLUSTER BY (a);"),
    (SNOWFLAKE, "ALTER TABLE p CLUSTER BY LINEAR(a, b);", "ALTER TABLE p CLUSTER BY (a, b);"),
    (DATABEND, "WITH s AS MATERIALIZED (SELECT 1 AS a) SELECT a FROM s;", "WITH s AS (SELECT 1 AS a) SELECT a FROM s;"),
    (
        DATABEND,
        "SELECT a, SUM(b) OVER w FROM t WINDOW w AS (PARTITION BY c);",
        "SELECT a, SUM(b) OVER w FROM t WINDOW w AS (PARTITION BY c);",
    ),
    (
        DATABEND,
        "SELECT number FROM numbers(3);",
        "SELECT number FROM (SELECT id AS number FROM RANGE(3)) AS numbers;",
    ),
    (DATABEND, "SELECT a FROM t SAMPLE ROW (50);", "SELECT a FROM t TABLESAMPLE (50 PERCENT);"),
    (DATABEND, "SELECT a FROM t SAMPLE BLOCK (5.5);", "SELECT a FROM t TABLESAMPLE (5.5 PERCENT);"),
    (SNOWFLAKE, "SELECT a FROM t SAMPLE ROW (3) SEED (8);", "SELECT a FROM t TABLESAMPLE (3 PERCENT) REPEATABLE (8);"),
    (CLICKZETTA, "SELECT a FROM t TABLESAMPLE SYSTEM (10);", "SELECT a FROM t TABLESAMPLE (10 PERCENT);"),
    (CLICKZETTA, "SELECT a FROM t TABLESAMPLE (10);", "SELECT a FROM t TABLESAMPLE (10 PERCENT);"),
    (DATABEND, "SELECT bitmap AS b FROM bitmap;", "SELECT bitmap AS b FROM bitmap;"),
    (DATABEND, "SELECT count() FROM t;", "SELECT COUNT(*) FROM t;"),
    (DATABEND, "SELECT CAST(a AS STRING NULL) FROM sample;", "SELECT CAST(a AS STRING) FROM sample;"),
    (DATABEND, "CALL system$stream_status('s');", "SELECT * FROM stream_status('s');"),
    (CLICKZETTA, "TRUNCATE TABLE t PARTITION (d > '2026-01-05');", "DELETE FROM t WHERE d > '2026-01-05';"),
    (CLICKZETTA, "TRUNCATE TABLE t PARTITION (d = 1, e = 2);", "DELETE FROM t WHERE d = 1 AND e = 2;"),
    (CLICKZETTA, "DESC HISTORY t LIMIT 10;", "DESC HISTORY t LIMIT 10;"),
    (CLICKZETTA, "DROP SCHEMA d;", "DROP SCHEMA d;"),
]

NOTED = [
    (
        DATABEND,
        "SELECT a FROM t SAMPLE ROW (10 ROWS);",
        "reads the first n rows in Spark",
        "SELECT a FROM t TABLESAMPLE (10 ROWS);",
    ),
    (
        CLICKZETTA,
        "SELECT a FROM t TABLESAMPLE ROW (10 ROWS);",
        "reads the first n rows in Spark",
        "SELECT a FROM t TABLESAMPLE (10 ROWS);",
    ),
    (
        DATABEND,
        "SELECT BITMAP_COUNT(a) FROM t;",
        "Spark's BITMAP_COUNT takes a BINARY",
        "SELECT BITMAP_COUNT(a) FROM t;",
    ),
    (
        SNOWFLAKE,
        "CREATE TEMP VIEW a.v AS SELECT 1;",
        "the view lasts longer than the session",
        "CREATE VIEW a.v AS SELECT 1;",
    ),
    (DATABEND, "DROP TABLE IF EXISTS t ALL;", "ALL was left out", "DROP TABLE IF EXISTS t;"),
    (
        CLICKZETTA,
        "CREATE EXTERNAL TABLE e (a INT) LOCATION 'oss://b/p' STORED AS PARQUET;",
        "EXTERNAL was left out",
        "CREATE TABLE e (a INT) USING PARQUET LOCATION 'oss://b/p';",
    ),
    (
        CLICKZETTA,
        "ALTER TABLE t SET PROPERTIES ('data_lifecycle' = '7');",
        "data_lifecycle has no effect here",
        "ALTER TABLE t SET TBLPROPERTIES ('data_lifecycle' = '7');",
    ),
    (SNOWFLAKE, "DROP SCHEMA IF EXISTS d;", "also drops the tables inside", "DROP SCHEMA IF EXISTS d CASCADE;"),
    (
        SNOWFLAKE,
        "SELECT EXTRACT(EPOCH_SECOND FROM a) FROM t;",
        "session's zone",
        "SELECT UNIX_SECONDS(CAST(a AS TIMESTAMP)) FROM t;",
    ),
    (
        SNOWFLAKE,
        "CREATE TABLE t (a INT WITH MASKING POLICY p);",
        "a policy of a was left out",
        "CREATE TABLE t (a INT) USING DELTA;",
    ),
    (
        SNOWFLAKE,
        "CREATE TABLE t (a INT WITH TAG (k = 'v'));",
        "TAG of a was left out",
        "CREATE TABLE t (a INT) USING DELTA;",
    ),
]

REFUSED = [
    (SNOWFLAKE, "SELECT ARRAY_SLICE(a, b, 3) FROM t", "ARRAY_SLICE whose bounds are not numbers"),
    (SNOWFLAKE, "SELECT REGEXP_SUBSTR(a, 'x', 1, 2) FROM t", "REGEXP_SUBSTR with occurrence"),
    (SNOWFLAKE, "SELECT REGEXP_REPLACE(a, 'x', 'y', 1, 2) FROM t", "REGEXP_REPLACE with occurrence"),
    (SNOWFLAKE, "SELECT REGEXP_LIKE(a, 'x', b) FROM t", "not a literal"),
    (SNOWFLAKE, "SELECT INITCAP(a, '-') FROM t", "INITCAP with delimiters"),
    (SNOWFLAKE, "INSERT INTO ... VALUES (1)", "... stands for something"),
    (DATABEND, "SELECT a FROM t SAMPLE BLOCK (10) ROW (5 ROWS)", "Spark samples a table once"),
    (DATABEND, "SELECT a::BITMAP FROM t", "a cast to BITMAP: Delta Lake has no such type"),
    (DATABEND, "ANALYZE TABLE t", "Spark analyzes no Delta table"),
    (CLICKZETTA, "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a", "Spark analyzes no Delta table"),
    (DATABEND, "SELECT quantile_cont(0.5)(a) FROM t", "quantile_cont(…)(…)"),
    (SNOWFLAKE, "SHOW DYNAMIC TABLES IN SCHEMA STARTS WITH 'd'", "STARTS WITH"),
    (SNOWFLAKE, "SELECT * ILIKE '%a%' FROM t", "* ILIKE"),
    (SNOWFLAKE, "SELECT * RENAME a AS b FROM t", "* RENAME"),
    (SNOWFLAKE, "SELECT * REPLACE (1 AS b) FROM t", "* REPLACE"),
    (SNOWFLAKE, "SELECT a FROM t ASOF JOIN u MATCH_CONDITION (t.x >= u.x)", "ASOF JOIN"),
    (SNOWFLAKE, "SELECT a FROM t START WITH a = 1 CONNECT BY PRIOR a = b", "CONNECT BY"),
    (SNOWFLAKE, "SELECT a FROM t UNION ALL BY NAME SELECT a FROM u", "UNION BY NAME"),
    (SNOWFLAKE, "SELECT a FROM t WHERE a > ALL (SELECT a FROM u)", "ALL (SELECT …)"),
    (SNOWFLAKE, "SELECT seq.NEXTVAL", "sequences"),
    (SNOWFLAKE, "SELECT EXTRACT(EPOCH_NANOSECOND FROM a) FROM t", "EPOCH_NANOSECOND"),
    (SNOWFLAKE, "SELECT ARRAY_AGG(a) WITHIN GROUP (ORDER BY b) FROM t", "WITHIN GROUP"),
    (SNOWFLAKE, "SELECT a::VECTOR(FLOAT, 3) FROM t", "VECTOR"),
    (SNOWFLAKE, "SELECT * FROM DIRECTORY(@files)", "stages"),
    (SNOWFLAKE, "CREATE TABLE t USING TEMPLATE (SELECT a FROM u)", "USING TEMPLATE"),
    (DATABEND, "SELECT * FROM system.streams", "system.streams"),
    (DATABEND, "REPLACE INTO t (id, v) ON (id) DELETE WHEN v = 'd' SELECT id, v FROM r", "DELETE WHEN"),
    (CLICKZETTA, "DESC HISTORY t WHERE version > 10", "DESC HISTORY"),
    (CLICKZETTA, "RESTORE DYNAMIC TABLE d TO TIMESTAMP AS OF '2026-01-05'", "RESTORE of a dynamic table"),
    (CLICKZETTA, "OPTIMIZE t OPTIONS ('a' = 'b')", "OPTIMIZE"),
]


@pytest.mark.parametrize(("system", "statement", "expected"), BECOMES)
def test_what_becomes_of_it(system: System, statement: str, expected: str) -> None:
    assert becomes(system, statement) == [expected]


@pytest.mark.parametrize(("system", "statement", "note", "expected"), NOTED)
def test_what_differs_has_a_note(system: System, statement: str, note: str, expected: str) -> None:
    check_noted(system, statement, note, [expected])


@pytest.mark.parametrize(("system", "statement", "reason"), REFUSED)
def test_what_is_refused(system: System, statement: str, reason: str) -> None:
    assert reason in refusal(system, statement)


def test_a_stream_needs_a_view_that_lasts() -> None:
    found = becomes(SNOWFLAKE, "CREATE TEMP VIEW v AS SELECT a FROM t;\nCREATE STREAM s ON VIEW v;")
    assert "CREATE VIEW v AS SELECT a FROM t;" in found


def test_a_property_without_an_effect_has_a_note_in_a_dynamic_table_too() -> None:
    found = becomes(CLICKZETTA, "CREATE DYNAMIC TABLE d PROPERTIES ('mv_const_tables' = 't') AS SELECT a FROM t;")
    assert any("mv_const_tables has no effect here" in line for line in found)


def test_a_name_in_a_variable_stays() -> None:
    found = becomes(SNOWFLAKE, "INSERT INTO IDENTIFIER($target) SELECT IFF(a, 1, 2) FROM IDENTIFIER($source);")
    assert [line.replace("session.", "") for line in found] == [
        "INSERT INTO IDENTIFIER(target) SELECT IF(a, 1, 2) FROM IDENTIFIER(source);"
    ]


def test_grants_of_a_clone_are_left_out() -> None:
    found = becomes(SNOWFLAKE, "CREATE TABLE r CLONE t COPY GRANTS;")
    assert found[0].startswith("-- note: COPY GRANTS was left out")
    assert found[-1] == "CREATE TABLE r SHALLOW CLONE t;"


def test_a_task_that_is_created_or_altered_is_replaced() -> None:
    found = becomes(SNOWFLAKE, "CREATE OR ALTER TASK k SCHEDULE = '5 minutes' AS SELECT IFF(a, 1, 2) FROM t;")
    assert found[1].startswith("-- note: CREATE OR ALTER became CREATE OR REPLACE")
    assert found[-1] == "CREATE OR REPLACE TASK k SCHEDULE = '5 minutes' AS SELECT IF(a, 1, 2) FROM t;"


def test_a_lag_in_the_properties_has_a_note() -> None:
    found = becomes(CLICKZETTA, "CREATE DYNAMIC TABLE d PROPERTIES ('target_lag' = '1 hour') AS SELECT a FROM t;")
    assert any("write TARGET_LAG = '1 hour' before AS" in line for line in found)
