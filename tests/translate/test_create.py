"""CREATE TABLE and CREATE SCHEMA with clauses that Spark and Delta Lake do not have in this place."""

from __future__ import annotations

import pytest

from streamql.features.translate.model import Refused, System
from streamql.features.translate.script import translate
from tests.translate.support import becomes, refusal

SNOWFLAKE, DATABEND, CLICKZETTA = System

_FROM_QUERY = "was left out: CREATE TABLE AS takes its columns from the query"

AS_QUERY = [
    (
        "CREATE TABLE r (a VARCHAR(9) DEFAULT NULL, b INT) AS SELECT x, y FROM t CHANGES (INFORMATION => DEFAULT) AT (OFFSET => -60);",
        [
            (
                "CREATE TABLE r USING DELTA AS SELECT CAST(x AS VARCHAR(9)) AS a, CAST(y AS INT) AS b "
                "FROM t CHANGES (INFORMATION => DEFAULT) AT (OFFSET => -60);"
            )
        ],
    ),
    ("CREATE TABLE r (a, b) AS SELECT 1, b FROM t;", ["CREATE TABLE r USING DELTA AS SELECT 1 AS a, b FROM t;"]),
    (
        "CREATE TABLE r (a INT, PRIMARY KEY (a)) AS SELECT DISTINCT x FROM t;",
        [
            "-- note: PRIMARY KEY was left out: Delta Lake has no primary, unique or foreign keys",
            "CREATE TABLE r USING DELTA AS SELECT CAST(a AS INT) AS a FROM (SELECT DISTINCT x FROM t) AS _query(a);",
        ],
    ),
    (
        "CREATE TABLE r (a INT PRIMARY KEY RELY, b INT) AS SELECT x, y FROM t;",
        [
            "CREATE TABLE r (PRIMARY KEY (a) RELY) USING DELTA AS SELECT CAST(x AS INT) AS a, CAST(y AS INT) AS b FROM t;"
        ],
    ),
    (
        "CREATE TABLE r (a, b) AS SELECT * FROM t;",
        ["CREATE TABLE r USING DELTA AS SELECT a, b FROM (SELECT * FROM t) AS _query(a, b);"],
    ),
    (
        # The name y stays known to the second expression.
        "CREATE TABLE r (a, b) AS SELECT x AS y, y + 1 FROM t;",
        ["CREATE TABLE r USING DELTA AS SELECT a, b FROM (SELECT x AS y, y + 1 FROM t) AS _query(a, b);"],
    ),
    (
        "CREATE TABLE r (a INT NOT NULL COMMENT 'the key') AS SELECT 1;",
        [
            f"-- note: NOT NULL of a {_FROM_QUERY}",
            "CREATE TABLE r USING DELTA AS SELECT CAST(1 AS INT) AS a;",
            "ALTER TABLE r ALTER COLUMN a COMMENT 'the key';",
        ],
    ),
    (
        "CREATE TABLE r (a INT DEFAULT 5) AS SELECT 1;",
        [
            "CREATE TABLE r USING DELTA TBLPROPERTIES ('delta.feature.allowColumnDefaults'='supported') AS SELECT CAST(1 AS INT) AS a;",
            "ALTER TABLE r ALTER COLUMN a SET DEFAULT 5;",
        ],
    ),
    (
        "CREATE TABLE IF NOT EXISTS r (a INT COMMENT 'x') AS SELECT 1;",
        [
            "-- note: DEFAULT and COMMENT of columns were left out: an existing table would get them too",
            "CREATE TABLE IF NOT EXISTS r USING DELTA AS SELECT CAST(1 AS INT) AS a;",
        ],
    ),
]


def test_times_with_and_without_a_zone_get_a_note_once() -> None:
    script = "CREATE TABLE r (a TIMESTAMP, b TIMESTAMP_TZ, c DATETIME);\nCREATE TABLE u (a TIMESTAMP, b TIMESTAMP_TZ);"
    notes = [line for line in becomes(SNOWFLAKE, script) if line.startswith("-- note: ")]
    assert len(notes) == 2
    assert "TIMESTAMP is TIMESTAMP_NTZ in Snowflake" in notes[0]
    assert "and not the offset of its time zone" in notes[1]
    for plain in ("CREATE TABLE r (a TIMESTAMP_NTZ, b TIMESTAMP_LTZ);", "CREATE TABLE r (a DATE);"):
        assert len(becomes(SNOWFLAKE, plain)) == 1
    assert len(becomes(DATABEND, "CREATE TABLE r (a TIMESTAMP);")) == 1


@pytest.mark.parametrize(
    ("system", "default"),
    [(CLICKZETTA, "random()"), (SNOWFLAKE, "UUID_STRING()"), (SNOWFLAKE, "RANDOM()"), (DATABEND, "gen_random_uuid()")],
)
def test_a_default_that_is_not_constant_is_left_out(system: System, default: str) -> None:
    assert becomes(system, f"CREATE TABLE t (a INT, b STRING DEFAULT {default});") == [
        "-- note: DEFAULT of b was left out: Spark's defaults are constants, so write the expression into INSERT",
        "CREATE TABLE t (a INT, b STRING) USING DELTA;",
    ]


def test_a_retention_in_hours_is_whole_days() -> None:
    assert becomes(DATABEND, "CREATE TABLE r (a INT) DATA_RETENTION_PERIOD_IN_HOURS = 30;") == [
        "-- note: 30 hours of retention became 2 days",
        "CREATE TABLE r (a INT) USING DELTA;",
        "ALTER TABLE r SET PROPERTIES ('data_retention_days' = '2');",
    ]


@pytest.mark.parametrize(("statement", "expected"), AS_QUERY)
def test_columns_of_create_table_as_move_into_the_query(statement: str, expected: list[str]) -> None:
    found = becomes(SNOWFLAKE, statement)
    defaults = " TBLPROPERTIES ('delta.feature.allowColumnDefaults'='supported')"
    if "SET DEFAULT" not in found[-1]:  # a script with DEFAULT in it gives each CREATE TABLE AS the feature
        found = [line.replace(defaults, "") for line in found]
    assert found == expected


@pytest.mark.parametrize("system", System)
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("a INT PRIMARY KEY RELY, b INT", "a INT, b INT, PRIMARY KEY (a) RELY"),
        ("a INT CONSTRAINT k PRIMARY KEY NOT ENFORCED RELY COMMENT 'x'", "a INT COMMENT 'x', PRIMARY KEY (a) RELY"),
        (
            "a INT, CONSTRAINT k PRIMARY KEY (b, a) DISABLE NOVALIDATE RELY, b INT",
            "a INT, b INT, PRIMARY KEY (b, a) RELY",
        ),
    ],
)
def test_a_key_with_rely_is_kept(system: System, columns: str, expected: str) -> None:
    assert becomes(system, f"CREATE TABLE t ({columns});") == [f"CREATE TABLE t ({expected}) USING DELTA;"]


@pytest.mark.parametrize("key", ["PRIMARY KEY (a) NORELY", "UNIQUE (a) RELY", "FOREIGN KEY (a) REFERENCES o (a) RELY"])
def test_other_keys_are_left_out(key: str) -> None:
    note, statement = becomes(SNOWFLAKE, f"CREATE TABLE t (a INT, {key});")
    assert note.endswith("was left out: Delta Lake has no primary, unique or foreign keys")
    assert statement == "CREATE TABLE t (a INT) USING DELTA;"


def test_an_identity_column_of_create_table_as_is_refused() -> None:
    assert "identity" in refusal(SNOWFLAKE, "CREATE TABLE r (a INT AUTOINCREMENT) AS SELECT 1")


def test_a_table_is_clustered_by_its_columns_only() -> None:
    note = (
        "-- note: CLUSTER BY DATE_TRUNC('HOUR', at), CAST(v:x AS STRING) was left out: Delta Lake clusters by columns"
    )
    create = "CREATE TABLE t (a INT, at TIMESTAMP_LTZ, v VARIANT)"
    functions = "DATE_TRUNC('hour', at), v:x::STRING"
    kept = "CREATE TABLE t (a INT, at TIMESTAMP_LTZ, v VARIANT) USING DELTA"
    assert becomes(SNOWFLAKE, f"{create} CLUSTER BY (a, {functions});") == [note, f"{kept} CLUSTER BY (a);"]
    assert becomes(SNOWFLAKE, f"{create} CLUSTER BY ({functions});") == [note, f"{kept};"]


@pytest.mark.parametrize(
    "what", ["DATABASE d CLONE e AT (OFFSET => -60)", "SCHEMA d CLONE e", "SCHEMA d CLONE e BEFORE (OFFSET => -60)"]
)
def test_a_clone_of_a_schema_is_refused(what: str) -> None:
    assert "does not clone schemas" in refusal(SNOWFLAKE, f"CREATE {what}")


def test_retention_of_a_schema_gives_no_alter_table() -> None:
    found = becomes(SNOWFLAKE, "CREATE SCHEMA d DATA_RETENTION_TIME_IN_DAYS = 1;")
    assert found[0].startswith("-- note: retention and change tracking of the schema were left out")
    assert found[1:] == ["CREATE SCHEMA d;"]


@pytest.mark.parametrize("value", ["0", "x"])
def test_a_retention_that_delta_lake_does_not_keep_has_a_note(value: str) -> None:
    note, statement = becomes(SNOWFLAKE, f"CREATE TABLE t (a INT) DATA_RETENTION_TIME_IN_DAYS = {value};")
    assert note.startswith(f"-- note: DATA_RETENTION_TIME_IN_DAYS of {value} was left out")
    assert statement == "CREATE TABLE t (a INT) USING DELTA;"


@pytest.mark.parametrize(
    ("system", "written", "expected"),
    [
        # 64 bits in Snowflake
        (SNOWFLAKE, "REAL", "DOUBLE"),
        (SNOWFLAKE, "FLOAT4", "DOUBLE"),
        (SNOWFLAKE, "FLOAT", "DOUBLE"),
        # fields without names
        (DATABEND, "TUPLE(INT, STRING)", "STRUCT<`1`: INT, `2`: STRING>"),
        (DATABEND, "ARRAY(TUPLE(a INT, STRING))", "ARRAY<STRUCT<a: INT, `2`: STRING>>"),
        (CLICKZETTA, "STRUCT<a: INT, b: STRING>", "STRUCT<a: INT, b: STRING>"),
    ],
)
def test_types_of_columns(system: System, written: str, expected: str) -> None:
    assert becomes(system, f"CREATE TABLE t (c {written});") == [f"CREATE TABLE t (c {expected}) USING DELTA;"]


@pytest.mark.parametrize(
    ("system", "data_type", "hint"),
    [
        (DATABEND, "BITMAP", "BINARY"),
        (CLICKZETTA, "BITMAP", "COUNT(DISTINCT x)"),
        (CLICKZETTA, "ARRAY<BITMAP>", "COUNT(DISTINCT x)"),
        (DATABEND, "GEOMETRY", "WKT"),
        (SNOWFLAKE, "GEOGRAPHY", "WKT"),
        (SNOWFLAKE, "FILE", "path"),
        (SNOWFLAKE, "DECFLOAT", "DECIMAL(38, 10)"),
        (DATABEND, "INTERVAL", "MAKE_DT_INTERVAL"),
        (CLICKZETTA, "INTERVAL DAY", "MAKE_DT_INTERVAL"),
    ],
)
def test_a_type_that_delta_lake_does_not_have(system: System, data_type: str, hint: str) -> None:
    for statement in (f"CREATE TABLE t (a INT, c {data_type});", f"ALTER TABLE t ADD COLUMN c {data_type};"):
        result = translate(statement, system).pieces[0].result
        assert isinstance(result, Refused)
        assert "of the column c: Delta Lake has no such type" in result.reason
        assert hint in result.hint
