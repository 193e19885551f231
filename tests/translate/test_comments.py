"""Comments inside statements that the translation writes anew: each is kept, also beside a clause that is left out."""

from __future__ import annotations

from collections import Counter

import pytest

from streamql.dialect import split
from streamql.translate import Refused, System, translate
from streamql.translate.text.comments import comments

SNOWFLAKE, DATABEND, CLICKZETTA = System

STATEMENTS = [
    (SNOWFLAKE, "CREATE STREAM r /* why */ CLONE s"),
    (SNOWFLAKE, "SET /* why */ x = 1"),
    (SNOWFLAKE, "USE SCHEMA -- why\n a"),
    (SNOWFLAKE, "ALTER TABLE t /* why */ SET DATA_RETENTION_TIME_IN_DAYS = 3"),
    (SNOWFLAKE, "SHOW TABLES /* why */ LIKE 'a%'"),
    (SNOWFLAKE, "SHOW STREAMS /* why */ IN ACCOUNT"),
    (SNOWFLAKE, "EXPLAIN /* why */ SELECT 1"),
    (SNOWFLAKE, "EXPLAIN USING TEXT SELECT /* why */ IFF(a, 1, 2) FROM t"),
    (SNOWFLAKE, "CREATE STREAM r COPY GRANTS -- why\n ON TABLE t"),
    (SNOWFLAKE, "CREATE STREAM r WITH TAG (a = 'b' -- why\n) ON TABLE t"),
    (SNOWFLAKE, "BEGIN TRANSACTION NAME x /* why */"),
    (SNOWFLAKE, "CREATE OR ALTER /* why */ TABLE t (a INT)"),
    (SNOWFLAKE, "UPDATE t /* why */ SET a = s.a FROM s WHERE s.id = t.id"),
    (DATABEND, "REPLACE INTO t (a) -- why\n ON (a) VALUES (1)"),
    (DATABEND, "OPTIMIZE TABLE /* why */ t COMPACT"),
    (DATABEND, "ALTER TABLE t SET OPTIONS (/* why */ change_tracking = true)"),
    (CLICKZETTA, "CREATE TABLE t (id BIGINT PRIMARY KEY DISABLE /* why */ NOVALIDATE RELY)"),
]


@pytest.mark.parametrize(("system", "statement"), STATEMENTS)
def test_a_comment_is_kept(system: System, statement: str) -> None:
    translation = translate(f"CREATE STREAM s ON TABLE t; {statement}; SELECT 1;", system)
    assert not any(isinstance(piece.result, Refused) for piece in translation.pieces)
    assert len([c for c in comments(translation.text) if c.strip("-/* ") == "why"]) == 1
    assert split(translation.text)[-1].text == "SELECT 1"


def test_each_of_equal_comments_is_kept() -> None:
    """A comment is not lost because another one has the same words, or contains them."""
    script = "SET /* id */ x = /* id of it */ 1; REPLACE INTO t (a) -- id\n ON (a) -- id\n VALUES (1);"
    kept = Counter(c.strip("-/* \n") for c in comments(translate(script.replace("SET", "SET VARIABLE"), DATABEND).text))
    assert kept["id"] == 3
    assert kept["id of it"] == 1
