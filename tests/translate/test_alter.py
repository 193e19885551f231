"""ALTER TABLE and ALTER VIEW: what Spark and Delta Lake have comes out, everything else is refused."""

from __future__ import annotations

import pytest

from streamql.features.translate.model import System
from tests.translate.support import becomes, refusal

SNOWFLAKE, DATABEND, CLICKZETTA = System

BECOMES = [
    # columns
    (SNOWFLAKE, "ADD x INT, y INT", ["ALTER TABLE t ADD COLUMNS (x INT, y INT);"]),
    (
        SNOWFLAKE,
        "ADD COLUMN n NUMBER(8, 2) COMMENT 'x', v VARIANT",
        ["ALTER TABLE t ADD COLUMNS (n DECIMAL(8, 2) COMMENT 'x', v VARIANT);"],
    ),
    (
        DATABEND,
        "ADD COLUMN a UInt8, ADD COLUMN b INT AFTER a",
        ["ALTER TABLE t ADD COLUMNS (a SMALLINT, b INT AFTER a);"],
    ),
    (CLICKZETTA, "ADD COLUMN p.zip STRING FIRST", ["ALTER TABLE t ADD COLUMNS (p.zip STRING FIRST);"]),
    (
        SNOWFLAKE,
        "ADD COLUMN IF NOT EXISTS x STRING NOT NULL",
        [
            "-- note: IF NOT EXISTS was left out: Spark's ADD COLUMNS has none, and fails if the column exists",
            "-- note: NOT NULL of x was left out: Delta Lake adds only columns that may be NULL",
            "ALTER TABLE t ADD COLUMNS (x STRING);",
        ],
    ),
    (
        SNOWFLAKE,
        "ADD COLUMN x INT DEFAULT 5",
        [
            "-- note: the rows that the table has get the default of x by UPDATE, which streams on the table show as changes",
            "ALTER TABLE t ADD COLUMNS (x INT);",
            "ALTER TABLE t SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');",
            "ALTER TABLE t ALTER COLUMN x SET DEFAULT 5;",
            "UPDATE t SET x = 5;",
        ],
    ),
    (
        SNOWFLAKE,
        "MODIFY (a DROP NOT NULL, b COMMENT 'x')",
        ["ALTER TABLE t ALTER COLUMN a DROP NOT NULL;", "ALTER TABLE t ALTER COLUMN b COMMENT 'x';"],
    ),
    (CLICKZETTA, "CHANGE COLUMN a COMMENT 'x'", ["ALTER TABLE t ALTER COLUMN a COMMENT 'x';"]),
    # settings
    (
        SNOWFLAKE,
        "SET CHANGE_TRACKING = TRUE, DATA_RETENTION_TIME_IN_DAYS = 45",
        ["ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true', 'data_retention_days' = '45');"],
    ),
    (
        SNOWFLAKE,
        "SET DATA_RETENTION_TIME_IN_DAYS = 45 CHANGE_TRACKING = TRUE COMMENT = 'x'",
        [
            "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true', 'data_retention_days' = '45');",
            "COMMENT ON TABLE t IS 'x';",
        ],
    ),
    (
        DATABEND,
        "SET OPTIONS(change_tracking = true, data_retention_period_in_hours = 240)",
        ["ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true', 'data_retention_days' = '10');"],
    ),
    (
        DATABEND,
        "SET OPTIONS(row_per_page = 9, data_retention_period_in_hours = 25)",
        [
            "-- note: the option row_per_page was left out: Delta Lake has no such setting",
            "-- note: 25 hours of retention became 2 days",
            "ALTER TABLE t SET PROPERTIES ('data_retention_days' = '2');",
        ],
    ),
    (DATABEND, "COMMENT = 'x'", ["COMMENT ON TABLE t IS 'x';"]),
    (SNOWFLAKE, "UNSET COMMENT", ["COMMENT ON TABLE t IS NULL;"]),
    (CLICKZETTA, "SET PROPERTIES ('owner' = 'me')", ["ALTER TABLE t SET TBLPROPERTIES ('owner' = 'me');"]),
    # the table
    (SNOWFLAKE, "DROP PRIMARY KEY", ["ALTER TABLE t DROP PRIMARY KEY;"]),
    (SNOWFLAKE, "ADD CONSTRAINT k PRIMARY KEY (a) RELY", ["ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (a) RELY;"]),
    (DATABEND, "ADD PRIMARY KEY (a, b) RELY", ["ALTER TABLE t ADD PRIMARY KEY (a, b) RELY;"]),
    (
        CLICKZETTA,
        "ADD PRIMARY KEY (a) DISABLE NOVALIDATE RELY",
        ["ALTER TABLE t ADD PRIMARY KEY (a) DISABLE NOVALIDATE RELY;"],
    ),
    (SNOWFLAKE, "DROP CLUSTERING KEY", ["ALTER TABLE t CLUSTER BY NONE;"]),
    (DATABEND, "DROP CLUSTER KEY", ["ALTER TABLE t CLUSTER BY NONE;"]),
    (
        SNOWFLAKE,
        "CLUSTER BY (a, TO_DATE(at))",
        [
            "-- note: CLUSTER BY TO_DATE(at) was left out: Delta Lake clusters by columns",
            "ALTER TABLE t CLUSTER BY (a);",
        ],
    ),
    (
        DATABEND,
        "FLASHBACK TO (TIMESTAMP => '2026-01-05 06:00:00'::TIMESTAMP)",
        ["RESTORE TABLE t TO TIMESTAMP AS OF '2026-01-05 06:00:00';"],
    ),
]

CHANGED = [
    ("a b INT", ["RENAME COLUMN a TO b", "ALTER COLUMN b TYPE INT"]),
    ("a A BIGINT", ["ALTER COLUMN A TYPE BIGINT"]),
    (
        "a `b c` DECIMAL(10, 2) COMMENT 'x' AFTER d",
        [
            "RENAME COLUMN a TO `b c`",
            "ALTER COLUMN `b c` TYPE DECIMAL(10, 2)",
            "ALTER COLUMN `b c` COMMENT 'x'",
            "ALTER COLUMN `b c` AFTER d",
        ],
    ),
    ("a DECIMAL(10, 2)", ["ALTER COLUMN a TYPE DECIMAL(10, 2)"]),
    ("a ARRAY<INT>", ["ALTER COLUMN a TYPE ARRAY<INT>"]),
]

REFUSED = [
    (SNOWFLAKE, "TABLE t SET TAG a = 'b', c = 'd'", "SET TAG"),
    (SNOWFLAKE, "TABLE t UNSET TAG a", "UNSET TAG"),
    (SNOWFLAKE, "TABLE t UNSET CHANGE_TRACKING", "UNSET CHANGE_TRACKING"),
    (SNOWFLAKE, "TABLE t SET DATA_RETENTION_TIME_IN_DAYS = 0", "one day at least"),
    (SNOWFLAKE, "TABLE t ADD ROW ACCESS POLICY p ON (a)", "ROW ACCESS"),
    (SNOWFLAKE, "TABLE t ADD SEARCH OPTIMIZATION", "SEARCH OPTIMIZATION"),
    (SNOWFLAKE, "TABLE t DROP ROW ACCESS POLICY p", "ROW ACCESS"),
    (SNOWFLAKE, "TABLE t DROP ALL ROW ACCESS POLICIES", "ALL ROW"),
    (SNOWFLAKE, "TABLE t ADD CONSTRAINT k PRIMARY KEY (a)", "primary"),
    (SNOWFLAKE, "TABLE t SWAP WITH u", "swap"),
    (SNOWFLAKE, "TABLE t CLUSTER BY (TO_DATE(at))", "clusters by columns"),
    (SNOWFLAKE, "TABLE t SUSPEND RECLUSTER", "SUSPEND RECLUSTER"),
    (SNOWFLAKE, "TABLE t ALTER COLUMN a SET NOT NULL", "SET NOT NULL"),
    (SNOWFLAKE, "TABLE t MODIFY COLUMN a SET MASKING POLICY p", "MASKING"),
    (SNOWFLAKE, "TABLE t ADD COLUMN a INT AUTOINCREMENT", "IDENTITY"),
    (SNOWFLAKE, "VIEW v SET SECURE", "SET SECURE"),
    (SNOWFLAKE, "VIEW v SET TAG a = 'b'", "SET TAG"),
    (DATABEND, "TABLE t DROP TAG v1", "DROP TAG"),
    (DATABEND, "TABLE t CREATE TAG v1", "CREATE TAG"),
    (DATABEND, "TABLE t SET OPTIONS(row_per_page = 9)", "SET OPTIONS"),
    (DATABEND, "TABLE t FLASHBACK TO (SNAPSHOT => 'x')", "snapshot"),
    (DATABEND, "TABLE t FLASHBACK TO (TIMESTAMP => now())", "takes a literal"),
    (CLICKZETTA, "TABLE t ADD PARTITION (d = 1)", "PARTITION"),
]


@pytest.mark.parametrize(("system", "action", "expected"), BECOMES)
def test_actions_of_alter_table(system: System, action: str, expected: list[str]) -> None:
    assert becomes(system, f"ALTER TABLE t {action};") == expected


@pytest.mark.parametrize(("system", "statement", "word"), REFUSED)
def test_actions_without_a_counterpart_are_refused(system: System, statement: str, word: str) -> None:
    assert word in refusal(system, f"ALTER {statement}")


@pytest.mark.parametrize(
    "action",
    [
        "SET CHANGE_TRACKING = FALSE",
        "DROP COLUMNS (a)",
        "ALTER COLUMN a TYPE BIGINT",
        "ADD PRIMARY KEY (a) RELY",
        "DROP PRIMARY KEY",
    ],
)
def test_if_exists_is_left_out(action: str) -> None:
    found = becomes(SNOWFLAKE, f"ALTER TABLE IF EXISTS t {action};")
    assert found[0].startswith("-- note: IF EXISTS was left out")
    assert found[-1] == f"ALTER TABLE t {action};"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("RENAME COLUMN a TO b", "RENAME COLUMN a TO b"),
        ("DROP a", "DROP COLUMNS (a)"),
        ("DROP IF EXISTS a", "DROP COLUMNS IF EXISTS (a)"),
        ("DROP COLUMN IF EXISTS a, b", "DROP COLUMNS IF EXISTS (a, b)"),
    ],
)
def test_a_note_says_that_columns_need_a_mapping(action: str, expected: str) -> None:
    note, statement = becomes(SNOWFLAKE, f"ALTER TABLE t {action};")
    assert "'delta.columnMapping.mode' = 'name'" in note
    assert statement == f"ALTER TABLE t {expected};"


def test_a_note_says_which_types_change() -> None:
    note, statement = becomes(SNOWFLAKE, "ALTER TABLE t ALTER COLUMN a SET DATA TYPE NUMBER(38, 2);")
    assert "'delta.enableTypeWidening' = 'true'" in note
    assert statement == "ALTER TABLE t ALTER COLUMN a TYPE DECIMAL(38, 2);"


@pytest.mark.parametrize("word", ["CHANGE COLUMN", "CHANGE"])
@pytest.mark.parametrize(("change", "actions"), CHANGED)
def test_a_column_that_is_changed_by_hive_s_form(word: str, change: str, actions: list[str]) -> None:
    found = becomes(CLICKZETTA, f"ALTER TABLE t {word} {change};")
    notes = [line for line in found if line.startswith("-- note: ")]
    assert found[len(notes) :] == [f"ALTER TABLE t {action};" for action in actions]
    is_renamed = actions[0].startswith("RENAME")
    assert any("Spark's CHANGE COLUMN does not rename" in note for note in notes) is is_renamed
    assert any("'delta.enableTypeWidening'" in note for note in notes)


def test_actions_of_alter_view() -> None:
    assert becomes(SNOWFLAKE, "ALTER VIEW v RENAME TO w;") == ["ALTER VIEW v RENAME TO w;"]
    assert becomes(SNOWFLAKE, "ALTER VIEW v SET COMMENT = 'x';") == [
        "ALTER VIEW v SET TBLPROPERTIES ('comment' = 'x');"
    ]
    assert becomes(DATABEND, "ALTER VIEW v AS SELECT IFF(a, 1, 2) AS b FROM t;") == [
        "ALTER VIEW v AS SELECT IF(a, 1, 2) AS b FROM t;"
    ]
