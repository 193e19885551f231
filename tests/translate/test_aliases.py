"""Aliases of SELECT in WHERE: their expressions stand there, or a note says that Spark does not read them."""

from __future__ import annotations

import pytest

from streamql.features.translate.model import System
from tests.translate.support import becomes

SNOWFLAKE, DATABEND, CLICKZETTA = System
TABLES = "CREATE TABLE t (id INT, amount INT, doc VARIANT, name VARCHAR);\nCREATE STREAM s ON TABLE t;\n"

EXPANDED = [
    ("SELECT amount * 2 AS x FROM t WHERE x > 5", "SELECT amount * 2 AS x FROM t WHERE (amount * 2) > 5"),
    (
        "SELECT amount * 2 AS x, x + 1 AS y FROM t WHERE y = 3 AND id = 1",
        "SELECT amount * 2 AS x, x + 1 AS y FROM t WHERE ((amount * 2) + 1) = 3 AND id = 1",
    ),
    ("SELECT doc:k AS k FROM t WHERE k = 'a'", "SELECT doc:k AS k FROM t WHERE CAST(doc:k AS STRING) = 'a'"),
    (
        "SELECT b * 2 AS x FROM (SELECT id AS b FROM t) WHERE x = 1",
        "SELECT b * 2 AS x FROM (SELECT id AS b FROM t) WHERE (b * 2) = 1",
    ),
    # columns
    ("SELECT UPPER(name) AS name FROM t WHERE name = 'X'", "SELECT UPPER(name) AS name FROM t WHERE name = 'X'"),
    ("SELECT amount AS id FROM t WHERE id = 1", "SELECT amount AS id FROM t WHERE id = 1"),
    ("SELECT amount AS x FROM t WHERE t.x = 1", "SELECT amount AS x FROM t WHERE t.x = 1"),
    (
        "SELECT amount AS x FROM t WHERE id IN (SELECT x FROM u)",
        "SELECT amount AS x FROM t WHERE id IN (SELECT x FROM u)",
    ),
]


@pytest.mark.parametrize("system", [SNOWFLAKE, DATABEND])
@pytest.mark.parametrize(("query", "expected"), EXPANDED)
def test_an_alias_in_where(system: System, query: str, expected: str) -> None:
    assert becomes(system, f"{TABLES}{query};")[-1] == f"{expected};"


def test_an_alias_of_a_column_of_a_stream() -> None:
    found = becomes(SNOWFLAKE, f"{TABLES}SELECT METADATA$ACTION AS a, id FROM s WHERE a = 'INSERT';")
    assert found[-1] == "SELECT METADATA$ACTION AS a, id FROM s WHERE METADATA$ACTION = 'INSERT';"


@pytest.mark.parametrize("relation", ["elsewhere", "t, LATERAL FLATTEN(INPUT => doc) f"])
def test_a_name_that_may_be_a_column_has_a_note(relation: str) -> None:
    found = becomes(SNOWFLAKE, f"{TABLES}SELECT amount * 2 AS x FROM {relation} WHERE x > 5;")
    assert any("Spark's WHERE does not read aliases of SELECT" in line for line in found)
    assert found[-1].endswith("WHERE x > 5;")


def test_clickzetta_reads_columns_as_spark_does() -> None:
    statement = "SELECT amount * 2 AS x FROM elsewhere WHERE x > 5;"
    assert becomes(CLICKZETTA, statement) == [statement]
