"""Reasons and hints of what is refused: they name the construct, and what to type in its place."""

from __future__ import annotations

import pytest

from streamql.features.translate.model import Refused, System, Translated
from streamql.features.translate.script import translate

SNOWFLAKE, DATABEND, CLICKZETTA = System
DYNAMIC = "CREATE DYNAMIC TABLE d TARGET_LAG = '1 hour' WAREHOUSE = w"

REASONS = [
    (
        SNOWFLAKE,
        f"{DYNAMIC} REFRESH USING (MERGE INTO SELF USING s ON a WHEN MATCHED THEN DELETE)",
        "REFRESH USING: a refresh computes the query",
    ),
    (
        SNOWFLAKE,
        f"{DYNAMIC} FROZEN WHERE (a < 1) AS SELECT 1 AS a",
        "FROZEN is not supported: a refresh may change every row",
    ),
    (SNOWFLAKE, f"{DYNAMIC} ROW_TIMESTAMP = TRUE AS SELECT 1 AS a", "ROW_TIMESTAMP is not supported"),
    (SNOWFLAKE, f"{DYNAMIC} WITH STORAGE LIFECYCLE POLICY p ON (a) AS SELECT 1 AS a", "streamql has no policies"),
    (
        SNOWFLAKE,
        "SELECT a FROM t CHANGES (INFORMATION => DEFAULT) AT (OFFSET => -1) END (STATEMENT => 'x')",
        "END (STATEMENT => …)",
    ),
    (SNOWFLAKE, "ALTER STREAM s UNSET TAG a", "UNSET TAG is not supported"),
    (SNOWFLAKE, "USE SECONDARY ROLES ALL", "Spark has no roles"),
    (SNOWFLAKE, "SHOW STREAMS ->> SELECT * FROM $1", "->>: Spark does not keep the results"),
    (SNOWFLAKE, "CREATE CONNECTION c", "Spark has no connections"),
    (SNOWFLAKE, "ALTER SCHEMA a RENAME TO b", "Spark neither renames schemas"),
    (SNOWFLAKE, "ALTER DATABASE a SET DATA_RETENTION_TIME_IN_DAYS = 1", "nor keeps settings of their tables"),
    (SNOWFLAKE, "CREATE TASK k AS SELECT $1 FROM t", "a statement of the task: columns have names in Spark"),
    (SNOWFLAKE, "SELECT OBJECT_CONSTRUCT(k)", "sqlglot cannot parse this as SQL of Snowflake"),
    (DATABEND, "SELECT * FROM t AT (SNAPSHOT => 'x')", "Delta tables have versions, not snapshots"),
    (DATABEND, "SELECT * FROM t AT (TAG => 'x')", "Delta tables have versions, without tags"),
]


@pytest.mark.parametrize(("system", "statement", "reason"), REASONS)
def test_the_reason_names_the_construct(system: System, statement: str, reason: str) -> None:
    result = translate(f"{statement};", system).pieces[0].result
    assert isinstance(result, Refused)
    assert reason in result.reason
    assert len(result.hint) < 200


def test_no_class_of_the_program_is_in_a_reason() -> None:
    result = translate(
        "SELECT HEX_ENCODE(a, 0), LPAD(a, b, c), CHARINDEX(a, b, c) FROM t; SELECT TRUNC(a, 2) FROM t;", SNOWFLAKE
    )
    assert "_Written" not in result.text


def test_a_pipe_from_a_stream() -> None:
    script = (
        "CREATE TABLE STREAM s ON TABLE t WITH PROPERTIES ('TABLE_STREAM_MODE' = 'STANDARD');\n"
        "CREATE PIPE fill VIRTUAL_CLUSTER = 'x' AS INSERT INTO u SELECT a FROM s;"
    )
    result = translate(script, CLICKZETTA).pieces[1].result
    assert result == Refused(
        "streamql has no pipes",
        "put the statement after AS into fill.sql, then type: streamql run fill.sql --every 1min --when-has-data s",
        ("INSERT INTO u SELECT a FROM s;",),
    )
    other = translate("CREATE PIPE p AS COPY INTO t FROM VOLUME v;", CLICKZETTA).pieces[0].result
    assert isinstance(other, Refused)
    assert "Spark has no stages" in other.reason


def test_managed_access_is_left_out() -> None:
    assert translate("CREATE SCHEMA s WITH MANAGED ACCESS;", SNOWFLAKE).text == (
        "-- note: WITH MANAGED ACCESS was left out: permissions are those of the catalog and the storage\nCREATE SCHEMA s;\n"
    )


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM a.b.c",
        "SELECT * FROM x JOIN a.b.c USING (id)",
        "INSERT INTO a.b.c (id) SELECT 1",
        "CREATE TABLE a.b.c (id INT)",
        "CREATE STREAM s ON TABLE a.b.c",
    ],
)
def test_a_database_is_noted_once(statement: str) -> None:
    pieces = translate(
        f"{statement}; SELECT * FROM A.b.d; SELECT * FROM spark_catalog.b.c; SELECT x.y.z FROM b.x;", SNOWFLAKE
    ).pieces
    notes = [note for piece in pieces if isinstance(piece.result, Translated) for note in piece.result.notes]
    assert notes == ["the first part of a.b.c names a catalog in Spark: leave it out, or configure a catalog a"]
