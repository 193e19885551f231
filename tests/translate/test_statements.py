"""Statements about streams, dynamic tables and lists of objects that streamql and Spark have in another form."""

from __future__ import annotations

import pytest

from streamql.features.translate.model import System
from tests.translate.support import becomes, check_noted, refusal

SNOWFLAKE, DATABEND, CLICKZETTA = System
HISTORY = "SHOW DYNAMIC TABLE REFRESH HISTORY"

BECOMES = [
    # comments
    (SNOWFLAKE, "COMMENT ON STREAM s IS 'x';", "ALTER STREAM s SET COMMENT = 'x';"),
    (SNOWFLAKE, "COMMENT ON DYNAMIC TABLE d IS 'x';", "ALTER DYNAMIC TABLE d SET COMMENT = 'x';"),
    (SNOWFLAKE, "COMMENT ON VIEW v IS 'x';", "ALTER VIEW v SET TBLPROPERTIES ('comment' = 'x');"),
    (SNOWFLAKE, "COMMENT ON COLUMN d.s.t.a IS 'x';", "ALTER TABLE d.s.t ALTER COLUMN a COMMENT 'x';"),
    (SNOWFLAKE, "COMMENT ON DATABASE d IS 'x';", "COMMENT ON SCHEMA d IS 'x';"),
    # lists
    (CLICKZETTA, "SHOW TABLES IN silver WHERE is_dynamic = true;", "SHOW DYNAMIC TABLES IN silver;"),
    (CLICKZETTA, "SHOW TABLES LIKE 'a%' WHERE is_materialized_view;", "SHOW MATERIALIZED VIEWS LIKE 'a%';"),
    (CLICKZETTA, "SHOW TABLES LIKE 'a%' WHERE is_view = true;", "SHOW VIEWS LIKE 'a*';"),
    (CLICKZETTA, f"{HISTORY} WHERE name = 'd' LIMIT 9;", f"{HISTORY} FOR d LIMIT 9;"),
    (
        CLICKZETTA,
        f"{HISTORY} WHERE name = 's.d' AND state = 'SUCCEED';",
        f"{HISTORY} FOR s.d WHERE outcome = 'REFRESHED';",
    ),
    (CLICKZETTA, f"{HISTORY} WHERE refresh_mode = 'FULL';", f"{HISTORY} WHERE mode = 'FULL';"),
    (
        CLICKZETTA,
        "SHOW TABLE STREAMS WHERE table_name = 'orders';",
        "SHOW TABLE STREAMS WHERE substring_index(table_name, '.', -1) = 'orders';",
    ),
    (DATABEND, "SHOW STREAMS WHERE mode = 'append_only';", "SHOW STREAMS WHERE mode = 'APPEND_ONLY';"),
    (SNOWFLAKE, "SHOW STREAMS IN SCHEMA;", "SHOW STREAMS;"),
    (SNOWFLAKE, "SHOW DYNAMIC TABLES LIKE 'a%' IN SCHEMA;", "SHOW DYNAMIC TABLES LIKE 'a%';"),
    (SNOWFLAKE, "SHOW COLUMNS IN TABLE t;", "SHOW COLUMNS IN t;"),
    # upkeep
    (
        CLICKZETTA,
        "RESTORE TABLE t TO TIMESTAMP AS OF '2024-01-15';",
        "RESTORE TABLE t TO TIMESTAMP AS OF '2024-01-15';",
    ),
    (
        CLICKZETTA,
        "RESTORE TABLE t TO TIMESTAMP AS OF CAST('2024-01-15 10:00:00' AS TIMESTAMP);",
        "RESTORE TABLE t TO TIMESTAMP AS OF '2024-01-15 10:00:00';",
    ),
    (
        CLICKZETTA,
        "RESTORE TABLE t TO TIMESTAMP AS OF TIMESTAMP '2024-01-15';",
        "RESTORE TABLE t TO TIMESTAMP AS OF '2024-01-15';",
    ),
    (DATABEND, "OPTIMIZE TABLE t COMPACT;", "OPTIMIZE t;"),
    (DATABEND, "OPTIMIZE TABLE t PURGE;", "VACUUM t;"),
    (DATABEND, "VACUUM TABLE t RETAIN 24 HOURS DRY RUN;", "VACUUM t RETAIN 24 HOURS DRY RUN;"),
]

NOTED = [
    (SNOWFLAKE, "COMMENT IF EXISTS ON TABLE t IS 'x';", "IF EXISTS was left out", ["COMMENT ON TABLE t IS 'x';"]),
    (
        SNOWFLAKE,
        "SHOW STREAMS LIKE 'a%' IN DATABASE;",
        "streamql.streams",
        ["SELECT * FROM streamql.streams WHERE name ILIKE '%.a%';"],
    ),
    (SNOWFLAKE, "SHOW STREAMS IN DATABASE d;", "is taken as a schema", ["SHOW STREAMS IN DATABASE d;"]),
    (
        SNOWFLAKE,
        "SHOW STREAMS LIKE 'a%' IN d.s;",
        "so only the schema was kept",
        ["SHOW STREAMS LIKE 'a%' IN s;"],
    ),
    (
        SNOWFLAKE,
        "SHOW DYNAMIC TABLES IN SCHEMA d.s;",
        "so only the schema was kept",
        ["SHOW DYNAMIC TABLES IN SCHEMA s;"],
    ),
    (
        SNOWFLAKE,
        "SHOW DYNAMIC TABLES IN DATABASE d;",
        "SHOW DYNAMIC TABLES lists one schema here",
        ["SHOW DYNAMIC TABLES IN DATABASE d;"],
    ),
    (CLICKZETTA, "SHOW TABLE STREAMS IN w.s;", "so only the schema was kept", ["SHOW TABLE STREAMS IN s;"]),
    (
        DATABEND,
        "CREATE OR REPLACE TABLE a LIKE b;",
        "OR REPLACE became DROP TABLE",
        ["DROP TABLE IF EXISTS a;", "CREATE TABLE a LIKE b;"],
    ),
    (
        SNOWFLAKE,
        "CREATE OR ALTER DYNAMIC TABLE d TARGET_LAG = '5 minutes' WAREHOUSE = w AS SELECT 1 AS a;",
        "OR ALTER became OR REPLACE",
        [
            "-- note: no service refreshes the table: run streamql scheduler, or streamql refresh --due from cron",
            "CREATE OR REPLACE DYNAMIC TABLE d TARGET_LAG = '5 minutes' WAREHOUSE = w AS SELECT 1 AS a;",
        ],
    ),
    (DATABEND, "OPTIMIZE TABLE t COMPACT LIMIT 9;", "LIMIT 9 was left out", ["OPTIMIZE t;"]),
    (SNOWFLAKE, "SHOW STREAMS IN ACCOUNT;", "streamql.streams", ["SELECT * FROM streamql.streams;"]),
    (SNOWFLAKE, "SHOW TABLES IN d.s;", "so only the schema was kept", ["SHOW TABLES IN s;"]),
    (SNOWFLAKE, "SHOW TABLES IN DATABASE;", "the current schema is listed", ["SHOW TABLES;"]),
    (
        SNOWFLAKE,
        "ALTER DYNAMIC TABLE d SET WAREHOUSE = w, TARGET_LAG = '5 minutes';",
        "WAREHOUSE was left out",
        ["ALTER DYNAMIC TABLE d SET TARGET_LAG = '5 minutes';"],
    ),
    (
        SNOWFLAKE,
        "ALTER DYNAMIC TABLE a, b REFRESH COPY SESSION;",
        "COPY SESSION was left out",
        ["ALTER DYNAMIC TABLE a REFRESH;", "ALTER DYNAMIC TABLE b REFRESH;"],
    ),
    (
        SNOWFLAKE,
        "CREATE OR ALTER STREAM s ON DYNAMIC TABLE d COMMENT = 'x';",
        "CREATE IF NOT EXISTS",
        ["CREATE STREAM IF NOT EXISTS s ON DYNAMIC TABLE d COMMENT = 'x';", "ALTER STREAM s SET COMMENT = 'x';"],
    ),
]

REFUSED = [
    (CLICKZETTA, "SHOW TABLES IN <schema> WHERE is_dynamic = true", "expected the name of a schema"),
    (CLICKZETTA, "SHOW TABLES WHERE", "SHOW TABLES with WHERE"),
    (SNOWFLAKE, "SHOW STREAMS IN ACCOUNT LIMIT 5", "SHOW STREAMS IN ACCOUNT with other clauses"),
    (SNOWFLAKE, "COMMENT ON WAREHOUSE w IS 'x'", "WAREHOUSE"),
    (SNOWFLAKE, "SHOW COLUMNS LIKE 'a%' IN TABLE t", "SHOW COLUMNS"),
    (SNOWFLAKE, "ALTER DYNAMIC TABLE d SET WAREHOUSE = w", "no warehouse"),
    (SNOWFLAKE, "ALTER DYNAMIC TABLE d SWAP WITH e", "SWAP"),
    (CLICKZETTA, f"{HISTORY} WHERE name = 'd' AND refresh_trigger = 'MANUAL'", "refresh_trigger"),
    (CLICKZETTA, f"{HISTORY} WHERE name = 'd' AND refresh_mode = 'NO_DATA'", "NO_DATA"),
    (DATABEND, "SHOW STREAMS WHERE owner = 'me'", "owner"),
    (CLICKZETTA, "RESTORE TABLE t TO TIMESTAMP AS OF now() - INTERVAL 1 HOUR", "Delta Lake takes a literal"),
    (CLICKZETTA, "SHOW PARTITIONS t", "Spark does not list those of Delta tables"),
    (DATABEND, "EXPLAIN ANALYZE SELECT 1", "Spark's EXPLAIN runs nothing"),
    (DATABEND, "SELECT * FROM FUSE_SNAPSHOT('a', 'b')", "versions, not snapshots"),
    (SNOWFLAKE, "SELECT GET_DDL('stream', 's')", "GET_DDL"),
    (CLICKZETTA, "SELECT value FROM READ_KAFKA('broker:9092', 'topic')", "no function that reads a topic"),
]


@pytest.mark.parametrize(("system", "statement", "expected"), BECOMES)
def test_what_becomes_of_it(system: System, statement: str, expected: str) -> None:
    assert becomes(system, statement) == [expected]


@pytest.mark.parametrize(("system", "statement", "note", "expected"), NOTED)
def test_what_differs_has_a_note(system: System, statement: str, note: str, expected: list[str]) -> None:
    check_noted(system, statement, note, expected)


@pytest.mark.parametrize(("system", "statement", "reason"), REFUSED)
def test_what_is_refused(system: System, statement: str, reason: str) -> None:
    assert reason in refusal(system, statement)


def test_a_stream_that_is_created_or_altered_is_one_of_the_script() -> None:
    found = becomes(SNOWFLAKE, "CREATE OR ALTER STREAM s ON TABLE t;\nSELECT * FROM s;")
    assert found[-1].endswith("METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID FROM s;")


def test_the_definition_of_a_stream_or_a_dynamic_table() -> None:
    """ClickZetta shows them by SHOW CREATE TABLE."""
    script = "CREATE TABLE STREAM s ON TABLE t;\nCREATE DYNAMIC TABLE d AS SELECT a FROM t;\nSHOW CREATE TABLE {};"
    assert becomes(CLICKZETTA, script.format("s"))[-1] == "SHOW CREATE STREAM s;"
    assert becomes(CLICKZETTA, script.format("d"))[-1] == "SHOW CREATE DYNAMIC TABLE d;"
    assert "SHOW CREATE TABLE" in refusal(CLICKZETTA, script.format("t"))


def test_constraints_of_the_columns_of_a_dynamic_table_are_left_out() -> None:
    columns = "a NUMBER NOT NULL, b VARCHAR WITH MASKING POLICY p USING (b, a), c PROJECTION POLICY q, d PRIMARY KEY"
    found = becomes(
        SNOWFLAKE, f"CREATE DYNAMIC TABLE t ({columns}) TARGET_LAG = '1 hour' WAREHOUSE = w AS SELECT 1, 2, 3, 4;"
    )
    assert found[-1] == "CREATE DYNAMIC TABLE t (a, b, c, d) TARGET_LAG = '1 hour' WAREHOUSE = w AS SELECT 1, 2, 3, 4;"
    assert sum("each user who reads the table sees the values" in line for line in found) == 2


@pytest.mark.parametrize(
    "index", ["INDEX i (a) BLOOMFILTER COMMENT 'x'", "INVERTED INDEX i (a, c) PROPERTIES ('k' = 'v')"]
)
def test_indexes_among_the_columns_are_left_out(index: str) -> None:
    for system in (DATABEND, CLICKZETTA):
        found = becomes(system, f"CREATE TABLE t (a STRING, {index}, c STRING);")
        assert found == [
            "-- note: INDEX i was left out: Delta Lake has no indexes",
            "CREATE TABLE t (a STRING, c STRING) USING DELTA;",
        ]


def test_a_column_with_the_name_index_stays() -> None:
    assert becomes(DATABEND, "CREATE TABLE t (a INT, index ARRAY(INT), b DECIMAL(9, 2));") == [
        "CREATE TABLE t (a INT, index ARRAY<INT>, b DECIMAL(9, 2)) USING DELTA;"
    ]


def test_a_pipe_from_kafka() -> None:
    statement = (
        "CREATE PIPE p VIRTUAL_CLUSTER = 'x' AS COPY INTO t FROM (SELECT value FROM READ_KAFKA('b:9092', 'topic'))"
    )
    assert refusal(CLICKZETTA, statement) == "streamql has no pipes"


def test_a_long_name_is_read_at_once() -> None:
    """A pattern that can split a name in many ways would take years for this one."""
    assert "of this form" in refusal(CLICKZETTA, f"DESC HISTORY {'a' * 200} x y")


def test_all_of_optimize_is_two_statements() -> None:
    assert becomes(DATABEND, "OPTIMIZE TABLE t ALL;") == ["OPTIMIZE t;", "VACUUM t;"]
