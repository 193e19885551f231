"""Scripts of other systems as text: what each construct becomes, and that nothing is dropped. No Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.dialect import parse, split
from streamql.translate import Outcome, Refused, System, translate
from streamql.translate.lexical import comments
from tests.translate.corpus import files, translated

SNOWFLAKE, DATABEND, CLICKZETTA = System

KEPT = [
    (SNOWFLAKE, "CREATE OR REPLACE STREAM s ON DYNAMIC TABLE d APPEND_ONLY = TRUE COMMENT = 'x'"),
    (SNOWFLAKE, "SHOW STREAMS LIKE 's%'"),
    (SNOWFLAKE, "ALTER STREAM s SET COMMENT = 'x'"),
    (SNOWFLAKE, "BEGIN TRANSACTION"),
    (SNOWFLAKE, "SELECT id, METADATA$ACTION FROM s WHERE METADATA$ISUPDATE = FALSE"),
    (
        SNOWFLAKE,
        "SELECT id\n  FROM t CHANGES (INFORMATION => APPEND_ONLY) AT (OFFSET => -60) x  -- the last minute\n  WHERE x.id > 1",
    ),
    (SNOWFLAKE, "INSERT INTO t SELECT id FROM s WHERE METADATA$ACTION = 'INSERT'"),
    (SNOWFLAKE, "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.METADATA$ACTION = 'DELETE' THEN DELETE"),
    (SNOWFLAKE, "ALTER TABLE t SET CHANGE_TRACKING = TRUE"),
    (SNOWFLAKE, "ALTER DYNAMIC TABLE d SUSPEND"),
    (DATABEND, "SELECT id, change$action FROM s WITH (CONSUME = TRUE, MAX_BATCH_SIZE = 10)"),
    (DATABEND, "SELECT has_data FROM stream_status('s')"),
    (CLICKZETTA, "DROP TABLE STREAM IF EXISTS s"),
    (CLICKZETTA, "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')"),
    (CLICKZETTA, "SELECT * FROM t TIMESTAMP AS OF '2023-06-01'"),
    (CLICKZETTA, "SELECT `a b` FROM t"),
    (CLICKZETTA, "DESC HISTORY t"),
]
"""Statements that run as they are."""

STAR = "* EXCEPT (__change_type, __commit_version, __commit_timestamp)"
TRACKED = "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true');"
MADE = "CREATE STREAM s ON TABLE t APPEND_ONLY = FALSE;"

CHANGED = [
    # streams
    (SNOWFLAKE, "CREATE STREAM s ON TABLE t;", f"{TRACKED}\nCREATE STREAM s ON TABLE t;\n"),
    (DATABEND, "CREATE STREAM s ON TABLE t;", f"{TRACKED}\nCREATE STREAM s ON TABLE t APPEND_ONLY = TRUE;\n"),
    (
        CLICKZETTA,
        "CREATE TABLE STREAM s ON TABLE t WITH PROPERTIES ('TABLE_STREAM_MODE' = 'STANDARD');",
        f"{TRACKED}\nCREATE TABLE STREAM s ON TABLE t WITH PROPERTIES ('TABLE_STREAM_MODE' = 'STANDARD');\n",
    ),
    (
        SNOWFLAKE,
        "CREATE STREAM s ON TABLE t AT (TIMESTAMP => DATEADD('day', -1, '2023-01-02'::TIMESTAMP));",
        f"{TRACKED}\nCREATE STREAM s ON TABLE t AT (TIMESTAMP => DATEADD(DAY, -1, CAST('2023-01-02' AS TIMESTAMP)));\n",
    ),
    (
        SNOWFLAKE,
        f"{MADE} CREATE STREAM r CLONE s;",
        (
            f"{TRACKED}\n{MADE}\n"
            "-- note: CLONE became AT (STREAM => …): the new stream begins where the other one stands\n"
            "CREATE STREAM r ON TABLE t AT (STREAM => 's') APPEND_ONLY = FALSE;\n"
        ),
    ),
    (
        SNOWFLAKE,
        'CREATE STREAM "My s" COPY GRANTS ON TABLE "t";',
        (
            "-- note: COPY GRANTS was left out: permissions are those of the catalog and the storage\n"
            "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true');\nCREATE STREAM `My s` ON TABLE `t`;\n"
        ),
    ),
    # all columns of a stream
    (
        SNOWFLAKE,
        f"{MADE} SELECT * FROM s;",
        f"{TRACKED}\n{MADE} SELECT {STAR}, METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID FROM s;\n",
    ),
    (
        SNOWFLAKE,
        f"{MADE} SELECT x.* FROM s AS x JOIN y USING (id);",
        (
            f"{TRACKED}\n{MADE} SELECT x.* FROM (SELECT {STAR}, METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID FROM s) AS x"
            " JOIN y USING (id);\n"
        ),
    ),
    (
        DATABEND,
        f"{MADE} SELECT * FROM s;",
        f"{TRACKED}\n{MADE} SELECT {STAR}, change$action, change$row_id, change$is_update FROM s;\n",
    ),
    (
        DATABEND,
        f"{MADE} INSERT INTO r SELECT * FROM s;",
        (
            f"{TRACKED}\n{MADE}\n"
            "-- note: * of the stream became the columns of its source, without the columns of the change\n"
            f"INSERT INTO r SELECT {STAR} FROM s;\n"
        ),
    ),
    # change tracking
    (
        SNOWFLAKE,
        "CREATE TABLE t (id INT); CREATE VIEW v AS SELECT id FROM t; CREATE STREAM s ON VIEW v;",
        f"CREATE TABLE t (id INT) USING DELTA;\n{TRACKED} CREATE VIEW v AS SELECT id FROM t; CREATE STREAM s ON VIEW v;\n",
    ),
    (
        SNOWFLAKE,
        "CREATE TABLE t (id INT); ALTER TABLE t SET CHANGE_TRACKING = TRUE; CREATE STREAM s ON TABLE t;",
        "CREATE TABLE t (id INT) USING DELTA; ALTER TABLE t SET CHANGE_TRACKING = TRUE; CREATE STREAM s ON TABLE t;\n",
    ),
    # dynamic tables
    (
        SNOWFLAKE,
        "CREATE DYNAMIC TABLE d TARGET_LAG = '1 hour' WAREHOUSE = w AS SELECT IFF(a > 1, 1, 0) AS b FROM t;",
        (
            "-- note: no service refreshes the table: run streamql refresh --due from cron, or streamql refresh --loop\n"
            f"{TRACKED}\nCREATE DYNAMIC TABLE d TARGET_LAG = '1 hour' WAREHOUSE = w AS SELECT IF(a > 1, 1, 0) AS b FROM t;\n"
        ),
    ),
    # tables
    (
        SNOWFLAKE,
        "CREATE TABLE t (id NUMBER NOT NULL, v VARIANT, o OBJECT, a ARRAY, at TIMESTAMP_NTZ(9), s STRING NULL);",
        "CREATE TABLE t (id DECIMAL(38, 0) NOT NULL, v VARIANT, o VARIANT, a VARIANT, at TIMESTAMP_NTZ, s STRING) USING DELTA;\n",
    ),
    (
        SNOWFLAKE,
        "CREATE TRANSIENT TABLE t (id INT AUTOINCREMENT PRIMARY KEY, s VARCHAR DEFAULT 'x') DATA_RETENTION_TIME_IN_DAYS = 3;",
        (
            "-- note: id became BIGINT: an identity column of Delta Lake is one\n"
            "-- note: Delta Lake has no primary keys, unique or foreign keys: PRIMARY KEY of id was left out\n"
            "-- note: TRANSIENT was left out: Delta Lake keeps the history of every table\n"
            "CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 1 INCREMENT BY 1), s STRING DEFAULT 'x')"
            " USING DELTA TBLPROPERTIES ('delta.feature.allowColumnDefaults'='supported');\n"
            "ALTER TABLE t SET PROPERTIES ('data_retention_days' = '3');\n"
        ),
    ),
    (
        DATABEND,
        "CREATE TABLE t (a UInt64, b INT UNSIGNED, c ARRAY(INT), d TUPLE(x INT)) CLUSTER BY (b);",
        "CREATE TABLE t (a DECIMAL(20, 0), b BIGINT, c ARRAY<INT>, d STRUCT<x: INT>) USING DELTA CLUSTER BY (b);\n",
    ),
    (
        CLICKZETTA,
        "CREATE TABLE t (id BIGINT IDENTITY(1), j JSON) PROPERTIES ('change_tracking' = 'true');",
        (
            "CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 1 INCREMENT BY 1), j VARIANT) USING DELTA;\n"
            f"{TRACKED}\n"
        ),
    ),
    # queries and DML
    (SNOWFLAKE, "SELECT v:a.b::STRING FROM t;", "SELECT CAST(v:a.b AS STRING) FROM t;\n"),
    (
        SNOWFLAKE,
        "SELECT f.value FROM t, LATERAL FLATTEN(INPUT => t.v:items) f;",
        "SELECT f.value FROM t, LATERAL VARIANT_EXPLODE(t.v:items) AS f(index, key, value);\n",
    ),
    (
        SNOWFLAKE,
        "UPDATE t SET a = s.a FROM s WHERE s.id = t.id;",
        (
            "-- note: UPDATE … FROM became MERGE, which fails if several rows of the source match one row of the target\n"
            "MERGE INTO t USING s ON s.id = t.id WHEN MATCHED THEN UPDATE SET a = s.a;\n"
        ),
    ),
    (
        SNOWFLAKE,
        "INSERT FIRST WHEN a > 1 THEN INTO x ELSE INTO y (a) VALUES (a) SELECT a FROM s;",
        (
            "FROM (SELECT a FROM s)\nINSERT INTO x SELECT * WHERE (a > 1)\n"
            "INSERT INTO y (a) SELECT a WHERE NOT coalesce((a > 1), false);\n"
        ),
    ),
    (
        DATABEND,
        "REPLACE INTO t (id, v) ON (id) VALUES (1, 'a');",
        (
            "-- note: REPLACE INTO became MERGE, which fails if two new rows have the same key\n"
            "WITH _source (id, v) AS (VALUES (1, 'a')) MERGE INTO t AS _target USING _source ON _target.id = _source.id "
            "WHEN MATCHED THEN UPDATE SET v = _source.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (_source.id, _source.v);\n"
        ),
    ),
    (
        SNOWFLAKE,
        "SET ts = (SELECT CURRENT_TIMESTAMP()); SELECT id FROM t AT (TIMESTAMP => $ts);",
        "DECLARE OR REPLACE VARIABLE ts = CURRENT_TIMESTAMP(); SELECT id FROM t AT (TIMESTAMP => ts);\n",
    ),
    (SNOWFLAKE, "USE SCHEMA sales;", "USE sales;\n"),
    (SNOWFLAKE, "SHOW TABLES LIKE 'a%' IN SCHEMA s;", "SHOW TABLES IN s LIKE 'a*';\n"),
    (
        SNOWFLAKE,
        "ALTER TABLE t SET DATA_RETENTION_TIME_IN_DAYS = 30;",
        "ALTER TABLE t SET PROPERTIES ('data_retention_days' = '30');\n",
    ),
    (
        SNOWFLAKE,
        "SELECT zorro(1);",
        "-- note: Spark has no function zorro: define one, or use another\nSELECT zorro(1);\n",
    ),
    (
        SNOWFLAKE,
        f"{MADE} BEGIN; INSERT INTO log VALUES (1); COMMIT; INSERT INTO log VALUES (2);",
        (
            f"{TRACKED}\n{MADE} BEGIN;\n"
            "-- note: in a transaction each statement that writes must read a stream here: move this one before BEGIN or behind COMMIT\n"
            "INSERT INTO log VALUES (1); COMMIT; INSERT INTO log VALUES (2);\n"
        ),
    ),
]

REFUSED = [
    (SNOWFLAKE, "CREATE STREAM s ON TABLE t BEFORE (STATEMENT => 'x')", "statement ids"),
    (SNOWFLAKE, "CREATE STREAM s ON EXTERNAL TABLE t", "Kafka topics"),
    (SNOWFLAKE, "CREATE STREAM s ON STAGE g", "ON STAGE"),
    (SNOWFLAKE, "SELECT * FROM t AT (STATEMENT => 'x')", "statement ids"),
    (SNOWFLAKE, "ALTER TASK k RESUME", "no tasks"),
    (SNOWFLAKE, "GRANT SELECT ON TABLE t TO ROLE r", "permissions"),
    (SNOWFLAKE, "COPY INTO t FROM @g", "stages"),
    (SNOWFLAKE, "SELECT * FROM @g/x.csv", "stage"),
    (SNOWFLAKE, "SELECT $1 FROM t", "$1"),
    (SNOWFLAKE, "BEGIN LET x := 1; RETURN x; END", "scripting"),
    (SNOWFLAKE, "CREATE TABLE t (g GEOGRAPHY)", "GEOGRAPHY"),
    (SNOWFLAKE, "FLY TO t", "sqlglot cannot parse"),
    (SNOWFLAKE, "VACUUM FULL t", "does not know"),
    (SNOWFLAKE, "SELECT FROM WHERE", "sqlglot cannot parse"),
    (SNOWFLAKE, "SELECT 'a", "no end"),
    (SNOWFLAKE, "SELECT 'a' /* b", "no end"),
    (SNOWFLAKE, "UPDATE t SET a = 1 FROM r, s WHERE t.id = s.id", "several sources"),
    (DATABEND, "CREATE STREAM s ON TABLE t AT (SNAPSHOT => 'x')", "snapshots"),
    (DATABEND, "REPLACE INTO t ON (id) SELECT * FROM r", "list of columns"),
    (CLICKZETTA, "USE VCLUSTER v", "warehouses"),
    (CLICKZETTA, "SELECT SESSION_CONFIGS()['dt']", "parameters"),
]


@pytest.mark.parametrize(("system", "statement"), KEPT)
def test_what_runs_stays_as_written(system: System, statement: str) -> None:
    assert translate(f"-- before\n{statement};\n", system).text == f"-- before\n{statement};\n"


@pytest.mark.parametrize(("system", "script", "expected"), CHANGED)
def test_what_becomes_of_it(system: System, script: str, expected: str) -> None:
    assert translate(script, system).text == expected


@pytest.mark.parametrize(("system", "statement", "reason"), REFUSED)
def test_refused_by_name(system: System, statement: str, reason: str) -> None:
    translation = translate(f"SELECT 1 AS a;\n{statement};\nSELECT 2 AS b;\n", system)
    refused = next(piece for piece in translation.pieces if isinstance(piece.result, Refused))
    assert isinstance(refused.result, Refused)
    assert reason in refused.result.reason
    assert f"-- not translated: {refused.result.reason}\n" in translation.text
    assert f"\n-- {statement}" in translation.text
    ours = [fragment.text for fragment in split(translation.text)]
    assert ours == ["SELECT 1 AS a", "SELECT 2 AS b"][: len(translation.pieces) - 1]


def test_a_task_has_its_statements_translated() -> None:
    script = """CREATE TASK fill WAREHOUSE = w SCHEDULE = '5 minutes' WHEN SYSTEM$STREAM_HAS_DATA('s') AS
BEGIN
  INSERT INTO t SELECT IFF(a, 1, 2) FROM s; -- one
  CALL tidy();
END;
SELECT 1;
"""
    assert translate(script, SNOWFLAKE).text == (
        "-- not translated: streamql has no tasks\n"
        "-- instead: put the statements after AS into fill.sql, then type: streamql run fill.sql --every 5min --when-has-data s\n"
        "-- CREATE TASK fill WAREHOUSE = w SCHEDULE = '5 minutes' WHEN SYSTEM$STREAM_HAS_DATA('s') AS\n"
        "-- BEGIN\n"
        "--   INSERT INTO t SELECT IFF(a, 1, 2) FROM s; -- one\n"
        "--   CALL tidy();\n"
        "-- END;\n"
        "-- its statements, translated:\n"
        "--   INSERT INTO t SELECT IF(a, 1, 2) FROM s;\n"
        "--   -- not translated: CALL: Spark does not run procedures and functions of this language\n"
        "--   -- CALL tidy();\n"
        "SELECT 1;\n"
    )


def test_comments_are_kept() -> None:
    script = """// a comment of Snowflake's
SELECT IFF(a, -- why; not
  1, /* or
  this */ 2) FROM t; -- behind it
-- C:\\
GRANT x TO y; /* after; a refusal */
-- the end
"""
    text = translate(script, SNOWFLAKE).text
    for comment in ("-- a comment of Snowflake's", "why; not", "-- behind it", "/* after; a refusal */", "-- the end"):
        assert comment in text
    assert [fragment.text[:6] for fragment in split(text)] == ["SELECT"]


@pytest.mark.parametrize("file", files(), ids=lambda file: f"{file.parent.name}/{file.name}")
def test_nothing_is_dropped(file: Path) -> None:
    """Each statement of the corpus is in the translation: as statements, or as comments with a reason. So are the comments."""
    translation = translated(file)
    expected: list[str] = []
    for piece in translation.pieces:
        if isinstance(piece.result, Refused):
            assert f"-- not translated: {piece.result.reason}" in translation.text
            assert all(f"-- {line}".rstrip() in translation.text for line in piece.source.splitlines())
        else:
            expected += piece.result.statements
    assert [without_comments(f.text) for f in split(translation.text)] == [without_comments(text) for text in expected]
    words = " ".join(translation.text.split())
    for comment in comments(file.read_text(encoding="utf-8")):
        assert " ".join(comment.strip("-/* \n").split()) in words
    assert len(translation.pieces) == sum(translation.count(outcome) for outcome in Outcome)


def without_comments(text: str) -> str:
    return split(text + ";")[0].text


PIECES = st.sampled_from(
    ["SELECT 1", "GRANT a TO b", "CREATE STREAM s ON TABLE t", "-- c;\n", "/* d; */", ";", "\n", " ", "'", '"', "`",
     "$$", "BEGIN", "END", "CREATE TASK k AS", "//", "\\", "AT (TIMESTAMP => '2020-01-01'::DATE)", "SELECT * FROM s", "(", ")"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12), st.sampled_from(System))
def test_any_text_is_translated_without_an_error(pieces: list[str], system: System) -> None:
    script = " ".join(pieces)
    translation = translate(script, system)
    for piece in translation.pieces:
        if isinstance(piece.result, Refused):
            assert f"-- not translated: {piece.result.reason}" in translation.text
        else:
            assert all(statement in translation.text for statement in piece.result.statements)
    # What was refused is not run.
    ran = [fragment.text for fragment in split(translation.text) if fragment.text.strip()]
    assert len(ran) == sum(len(p.result.statements) for p in translation.pieces if not isinstance(p.result, Refused)), (
        translation.text
    )


def test_statements_of_ours_can_be_parsed() -> None:
    """What the translation prints about streams and dynamic tables is in our own grammar."""
    found = 0
    for file in files():
        for piece in translated(file).pieces:
            if not isinstance(piece.result, Refused):
                found += sum(parse(statement) is not None for statement in piece.result.statements)
    assert found > 100


def test_a_session_does_not_import_sqlglot() -> None:
    program = (
        "import sys, streamql, streamql.cli.main, streamql.cli.commands.translate; print('sqlglot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
