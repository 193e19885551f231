"""What would mean something else in Spark: it is spelled otherwise, has a note, or is refused."""

from __future__ import annotations

import pytest

from streamql.features.translate.model import Refused, System
from streamql.features.translate.script import translate
from tests.translate.support import refusal

SNOWFLAKE, DATABEND, CLICKZETTA = System

CHANGED = [
    # variables: a column of the same name would hide a bare one
    (
        SNOWFLAKE,
        "SET id = 3; DELETE FROM t WHERE id = $id;",
        "DECLARE OR REPLACE VARIABLE id = 3; DELETE FROM t WHERE id = session.id;\n",
    ),
    (DATABEND, "SET VARIABLE a = 1; SELECT $a;", "DECLARE OR REPLACE VARIABLE a = 1; SELECT session.a;\n"),
    # OR ALTER keeps rows, OR REPLACE drops them
    (
        SNOWFLAKE,
        "CREATE OR ALTER TABLE e (id INT);",
        (
            "-- note: OR ALTER became IF NOT EXISTS: an existing table stays as it is, so change it by ALTER TABLE\n"
            "CREATE TABLE IF NOT EXISTS e (id INT) USING DELTA;\n"
        ),
    ),
    (SNOWFLAKE, "CREATE OR ALTER VIEW v AS SELECT 1 AS a;", "CREATE OR REPLACE VIEW v AS SELECT 1 AS a;\n"),
    # OVERWRITE of several tables
    (
        SNOWFLAKE,
        "INSERT OVERWRITE ALL WHEN id > 1 THEN INTO a ELSE INTO b SELECT id FROM s;",
        (
            "FROM (SELECT id FROM s)\nINSERT OVERWRITE a SELECT * WHERE (id > 1)\n"
            "INSERT OVERWRITE b SELECT * WHERE NOT coalesce((id > 1), false);\n"
        ),
    ),
    # transactions with a name
    (
        SNOWFLAKE,
        "BEGIN NAME t1; INSERT INTO a SELECT id FROM s; COMMIT;",
        (
            "-- note: NAME was left out: transactions have no names\n"
            "BEGIN TRANSACTION; INSERT INTO a SELECT id FROM s; COMMIT;\n"
        ),
    ),
]

REFUSED = [
    (SNOWFLAKE, "USE SCHEMA $x", "a variable stands for a name"),
    (SNOWFLAKE, "SELECT * FROM TABLE($x)", "a variable stands for a name"),
    (SNOWFLAKE, "INSERT OVERWRITE ALL INTO a INTO a SELECT id FROM s", "twice"),
]

BODIES = [
    (SNOWFLAKE, "CREATE ALERT a IF (EXISTS (SELECT 1 FROM t)) THEN BEGIN DELETE FROM a; INSERT INTO b VALUES (2); END"),
    (SNOWFLAKE, "CREATE OR REPLACE SECURE PROCEDURE p() RETURNS INT AS BEGIN DELETE FROM a; RETURN 1; END"),
    (
        SNOWFLAKE,
        "CREATE TEMPORARY PROCEDURE p() RETURNS INT AS DECLARE x INT; BEGIN TRUNCATE TABLE a; DROP TABLE b; END",
    ),
    (SNOWFLAKE, "WITH p AS PROCEDURE () RETURNS INT AS BEGIN DELETE FROM a; RETURN 1; END CALL p()"),
    (SNOWFLAKE, "CREATE TASK k AS IF (a > 1) THEN DELETE FROM t; ELSE DELETE FROM u; END IF"),
    (SNOWFLAKE, "ALTER TASK k MODIFY AS BEGIN DELETE FROM t; CALL u(); END"),
    (SNOWFLAKE, "BEGIN FOR r IN c LOOP DELETE FROM t; END LOOP; WHILE (a) LOOP DELETE FROM u; END LOOP; END"),
    (DATABEND, "CREATE TASK k SCHEDULE = 5 MINUTE AS BEGIN BEGIN; DELETE FROM t; CALL u(); COMMIT; END"),
]
"""Statements inside another one, which must not run when the script runs."""


@pytest.mark.parametrize(("system", "script", "expected"), CHANGED)
def test_it_means_the_same(system: System, script: str, expected: str) -> None:
    assert translate(script, system).text == expected


@pytest.mark.parametrize(("system", "statement", "reason"), REFUSED)
def test_it_is_refused(system: System, statement: str, reason: str) -> None:
    assert reason in refusal(system, statement)


@pytest.mark.parametrize(("system", "statement"), BODIES)
def test_a_body_is_not_run(system: System, statement: str) -> None:
    pieces = translate(f"{statement};\nSELECT 1;", system).pieces
    assert [piece.source for piece in pieces] == [statement, "SELECT 1"]
    assert isinstance(pieces[0].result, Refused)


# --- the columns of a stream

SHOWN = "* EXCEPT (__change_type, __commit_version, __commit_timestamp)"
OF_CHANGE = "change$action, change$row_id, change$is_update"
WITH_CHANGE = f"SELECT {SHOWN}, {OF_CHANGE} FROM s"
PLAIN = f"* EXCEPT ({OF_CHANGE})"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "INSERT INTO x SELECT * FROM s WHERE change$action = 'INSERT'",
            f"INSERT INTO x SELECT {PLAIN} FROM ({WITH_CHANGE}) AS s WHERE change$action = 'INSERT'",
        ),
        (
            "INSERT INTO x SELECT * FROM s WHERE a > 1",
            f"INSERT INTO x SELECT * FROM (SELECT {SHOWN} FROM s) AS s WHERE a > 1",
        ),
        ("INSERT INTO x (SELECT * FROM s)", f"INSERT INTO x (SELECT {SHOWN} FROM s)"),
        (
            "INSERT INTO x SELECT * FROM s UNION ALL SELECT * FROM y",
            f"INSERT INTO x SELECT {SHOWN} FROM s UNION ALL SELECT * FROM y",
        ),
        (
            "INSERT INTO x WITH c AS (SELECT * FROM s) SELECT * FROM c",
            f"WITH c AS ({WITH_CHANGE}) INSERT INTO x SELECT {PLAIN} FROM c",
        ),
        (
            "INSERT INTO x SELECT * FROM (SELECT * FROM s) AS q",
            f"INSERT INTO x SELECT {PLAIN} FROM ({WITH_CHANGE}) AS q",
        ),
        (
            "INSERT ALL WHEN change$action = 'INSERT' THEN INTO x SELECT * FROM s",
            f"FROM ({WITH_CHANGE})\nINSERT INTO x SELECT {PLAIN} WHERE (change$action = 'INSERT')",
        ),
        (
            "REPLACE INTO x (a) ON (a) SELECT * FROM s",
            (
                f"WITH _source (a) AS (SELECT {SHOWN} FROM s) MERGE INTO x AS _target USING _source ON _target.a = _source.a "
                "WHEN NOT MATCHED THEN INSERT (a) VALUES (_source.a)"
            ),
        ),
        ("CREATE TABLE z AS (SELECT * FROM s)", f"CREATE TABLE z USING DELTA AS (SELECT {SHOWN} FROM s)"),
        ("CREATE VIEW v AS SELECT * FROM s", f"CREATE VIEW v AS {WITH_CHANGE}"),
    ],
)
def test_databend_writes_no_columns_of_the_change(source: str, expected: str) -> None:
    pieces = translate(f"CREATE STREAM s ON TABLE t; {source};", DATABEND).pieces
    assert not isinstance(pieces[1].result, Refused)
    assert pieces[1].result.statements == (expected,)
    assert any("without the columns of the change" in note for note in pieces[1].result.notes) is ("VIEW" not in source)


@pytest.mark.parametrize(
    "query", ["WITH s AS (SELECT a FROM x) SELECT * FROM s", "WITH s AS (SELECT a FROM s) SELECT * FROM s"]
)
def test_a_cte_hides_a_stream(query: str) -> None:
    assert translate(f"CREATE STREAM s ON TABLE t; {query};", SNOWFLAKE).text.endswith(f"; {query};\n")


def test_a_stream_inside_a_cte_of_its_name() -> None:
    script = "CREATE STREAM s ON TABLE t; WITH s AS (SELECT * FROM s) SELECT * FROM s;"
    assert translate(script, DATABEND).text.endswith(f" WITH s AS ({WITH_CHANGE}) SELECT * FROM s;\n")


def test_a_name_is_that_of_a_stream_until_something_else_has_it() -> None:
    script = "CREATE STREAM s ON TABLE t; DROP STREAM s; CREATE TABLE s (a INT); SELECT * FROM s; {} SELECT * FROM s;"
    plain = translate(script.format(""), DATABEND).text
    assert plain.count("SELECT * FROM s;") == 2
    again = translate(script.format("DROP TABLE s; CREATE STREAM s ON TABLE t;"), DATABEND).text
    assert again.count("SELECT * FROM s;") == 1
    assert again.endswith(f"{WITH_CHANGE};\n")


def test_columns_of_values_have_the_names_of_the_source_system() -> None:
    query = "SELECT {} FROM VALUES (1), (2);"
    assert (
        translate(query.format("column1"), SNOWFLAKE).text
        == "SELECT column1 FROM VALUES (1), (2) AS _values(column1);\n"
    )
    assert translate(query.format("col1"), CLICKZETTA).text == f"{query.format('col1')}\n"


def test_an_expression_of_a_variable_or_a_default_is_adapted_as_in_a_query() -> None:
    epoch = "EXTRACT(EPOCH_SECOND FROM '2020-01-01'::TIMESTAMP)"
    assert "UNIX_SECONDS(" in translate(f"SET x = {epoch};", SNOWFLAKE).text
    assert "UNIX_SECONDS(" in translate(f"ALTER TABLE t ADD COLUMN x INT DEFAULT {epoch};", SNOWFLAKE).text


@pytest.mark.parametrize("statement", ["SELECT * FROM t AT (TIMESTAMP => )", "SET x = "])
def test_an_expression_that_is_missing_is_refused(statement: str) -> None:
    assert isinstance(translate(statement, SNOWFLAKE).pieces[0].result, Refused)


def test_elements_of_flatten_with_outer_are_those_of_a_variant() -> None:
    query = "SELECT f.value['a'] FROM t, LATERAL FLATTEN(input => v, outer => true) f;"
    assert """VARIANT_GET(f.value, '$["a"]')""" in translate(query, DATABEND).text


def test_a_word_in_a_literal_gives_no_note() -> None:
    statement = "SELECT 'SYSTEM$STREAM_BACKLOG' AS a;\n"
    assert translate(statement, SNOWFLAKE).text == statement
