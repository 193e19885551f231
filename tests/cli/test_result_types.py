"""What counts as rows of a query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.console.sql.result_types import (
    ResultType,
    Shape,
    is_brief,
    is_plain_text,
    result_type_of,
    result_type_of_columns,
    shape_of,
)

QUERIES = [
    "SELECT 1",
    "select * from s with (consume = true)",
    "-- INSERT\n/* MERGE /* nested */ */ SELECT 1;",
    "SELECT /*+ BROADCAST(t) */ * FROM t",
    "VALUES (1), (2)",
    "TABLE t",
    "FROM t SELECT a",
    "FROM t |> WHERE a > 1",
    "FROM (FROM t INSERT INTO x SELECT *) insert",
    "FROM insert SELECT into",
    "(SELECT 1)",
    "((SELECT 1) UNION ALL (SELECT 2)) ORDER BY 1",
    "WITH s AS (SELECT 1) SELECT * FROM s",
    "WITH s (a, b) AS (SELECT 1, 2), u AS (SELECT (3)) SELECT * FROM s, u",
    "WITH s AS (INSERT) SELECT 1",
    "WITH insert AS (SELECT 1) SELECT * FROM insert",
    "WITH s (SELECT 1) (SELECT * FROM s)",
    "WITH s (SELECT 1) FROM s SELECT 1",
    "WITH RECURSIVE r(n) MAX RECURSION LEVEL 9 AS (VALUES (1) UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
    "WITH recursive AS (SELECT 1) SELECT * FROM recursive",
    "WITH `a(` AS (SELECT ')') SELECT 1",
    "SHOW STREAMS",
    "SHOW CREATE TABLE STREAM s",
    "DESC STREAM s",
    "DESCRIBE HISTORY t",
    "EXPLAIN INSERT INTO t SELECT 1",
    "explain merge into t using s on true when matched then delete",
    "LIST JARS",
    "CALL p(1)",
    "SET",
    "SET -v",
    "SET spark.sql.ansi.enabled",
    "VACUUM t DRY RUN",
    "VERIFY DYNAMIC TABLE d",
]
DML = {
    "INSERT INTO t SELECT * FROM s": "INSERT",
    "insert overwrite t values (1)": "INSERT",
    "FROM s INSERT INTO a SELECT x INSERT INTO b SELECT y": "INSERT",
    "FROM (SELECT 1 AS insert) q INSERT OVERWRITE a SELECT 1": "INSERT",
    "WITH s AS (SELECT 1) INSERT INTO t SELECT * FROM s": "INSERT",
    "WITH s (a) (SELECT 1) INSERT INTO t SELECT * FROM s": "INSERT",
    "WITH s AS (SELECT 1) FROM s INSERT INTO t SELECT *": "INSERT",
    "WITH select AS (SELECT 1), b AS (TABLE c) MERGE INTO t USING b ON true WHEN MATCHED THEN DELETE": "MERGE",
    "/* SELECT */ MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE": "MERGE",
    "UPDATE t SET a = 1": "UPDATE",
    "DELETE FROM t": "DELETE",
    "COPY INTO t FROM 'x'": "COPY",
}
COMMANDS = [
    "CREATE TABLE t AS SELECT 1",
    "CREATE STREAM s ON TABLE t",
    "ALTER STREAM s SET OFFSET TO LATEST",
    "DROP TABLE t",
    "TRUNCATE TABLE t",
    "USE db",
    "SET k = v",
    "SET k=",
    "SET TIME ZONE LOCAL",
    "SET VAR x = 1",
    "SET CATALOG c",
    "OPTIMIZE t",
    "VACUUM t",
    "RESTORE t TO VERSION AS OF 1",
    "BEGIN TRANSACTION",
    "BEGIN",
    "COMMIT",
    "",
    ";",
    "-- only a comment",
    "`SELECT` 1",
    "'SELECT' 1",
    "garbage",
]
SCRIPTS = [
    "BEGIN SELECT 1; END",
    "l: BEGIN SELECT 1; END l",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "begin atomic select 1; end",
]


@pytest.mark.parametrize("text", QUERIES)
def test_queries(text: str) -> None:
    assert result_type_of(text) is ResultType.QUERY


@pytest.mark.parametrize(("text", "verb"), DML.items())
def test_dml(text: str, verb: str) -> None:
    assert shape_of(text) == Shape(ResultType.DML, verb)


@pytest.mark.parametrize("text", COMMANDS)
def test_commands(text: str) -> None:
    assert result_type_of(text) is ResultType.COMMAND


@pytest.mark.parametrize("text", SCRIPTS)
def test_scripts(text: str) -> None:
    assert result_type_of(text) is ResultType.SCRIPT


@pytest.mark.parametrize(
    ("names", "result_type"),
    [
        ([], ResultType.COMMAND),
        (["num_affected_rows"], ResultType.DML),
        (["num_affected_rows", "num_inserted_rows"], ResultType.DML),
        (["num_affected_rows", "x"], ResultType.QUERY),
        (["a"], ResultType.QUERY),
    ],
)
def test_result_type_of_columns(names: list[str], result_type: ResultType) -> None:
    assert result_type_of_columns(names) is result_type


def test_plain_text() -> None:
    assert is_plain_text("explain select 1")
    assert is_plain_text("-- x\nSHOW CREATE TABLE t")
    assert not is_plain_text("SHOW TABLES")
    assert not is_plain_text("SELECT 'EXPLAIN'")
    assert not is_plain_text("")


WORDS = "WITH RECURSIVE s AS ( ) , SELECT FROM INSERT INTO MAX SET = BEGIN ; ' ` /* -- 1 : EXECUTE"


@given(st.lists(st.sampled_from(WORDS.split()), max_size=30))
def test_never_raises(words: list[str]) -> None:
    assert isinstance(result_type_of(" ".join(words)), ResultType)
    assert isinstance(result_type_of("WITH " + " ".join(words)), ResultType)


@pytest.mark.parametrize(
    ("text", "brief"),
    [
        ("SELECT stream_has_data('s') AS has", True),
        ("SHOW STREAMS; ", True),
        ("CREATE TABLE t (id INT) -- SELECT", True),
        ("DROP STREAM s", True),
        ("SELECT * FROM s", False),
        ("CREATE TABLE t AS SELECT 1", False),
        ("CREATE TABLE t SHALLOW CLONE u", False),
        ("ALTER DYNAMIC TABLE d REFRESH", False),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", False),
        ("CALL p()", False),
    ],
)
def test_statements_that_read_no_rows_are_brief(text: str, brief: bool) -> None:
    assert is_brief(text) is brief
