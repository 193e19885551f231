"""Statements about streams, dynamic tables and lists of objects that streamql and Spark have in another form."""

from __future__ import annotations

import pytest

from streamql.translate import System
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


def test_a_long_name_is_read_at_once() -> None:
    """A pattern that can split a name in many ways would take years for this one."""
    assert "of this form" in refusal(CLICKZETTA, f"DESC HISTORY {'a' * 200} x y")


def test_all_of_optimize_is_two_statements() -> None:
    assert becomes(DATABEND, "OPTIMIZE TABLE t ALL;") == ["OPTIMIZE t;", "VACUUM t;"]
