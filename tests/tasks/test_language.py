"""Statements about tasks in Snowflake's and Databend's spellings, the bodies of tasks, and what is wrong with others."""

from __future__ import annotations

import pytest

from streamql.dialect import parse
from streamql.dialect.suggest import explain_rejected
from streamql.errors import StreamqlError
from streamql.features.tasks.language.statements import (
    AddAfter,
    AlterTask,
    CreateTask,
    DescribeTask,
    DropTask,
    ExecuteTask,
    ModifyBody,
    ModifyCondition,
    RemoveAfter,
    Resume,
    Set,
    Settings,
    ShowCreateTask,
    ShowTaskHistory,
    ShowTasks,
    Suspend,
    Unset,
)
from streamql.features.tasks.model.schedule import read_schedule
from streamql.features.tasks.runs.body import statements_of
from streamql.features.tasks.runs.condition import condition_sql

CREATED = [
    # the examples of Snowflake's documentation, in their forms
    (
        "CREATE TASK t1 SCHEDULE = '60 MINUTES' TIMESTAMP_INPUT_FORMAT = 'x' AS SELECT 1",
        None,
    ),
    (
        """CREATE TASK t1
             SCHEDULE = 'USING CRON 0 9-17 * * SUN America/Los_Angeles'
             USER_TASK_MANAGED_INITIAL_WAREHOUSE_SIZE = 'XSMALL'
           AS INSERT INTO mytable(ts) VALUES(CURRENT_TIMESTAMP)""",
        {
            "settings": Settings(
                schedule=read_schedule("USING CRON 0 9-17 * * SUN America/Los_Angeles"),
                unused=("USER_TASK_MANAGED_INITIAL_WAREHOUSE_SIZE",),
            ),
            "body": "INSERT INTO mytable(ts) VALUES(CURRENT_TIMESTAMP)",
        },
    ),
    (
        "CREATE TASK mytask1 WAREHOUSE = mywh SCHEDULE = '5 minute' WHEN SYSTEM$STREAM_HAS_DATA('MYSTREAM') AS INSERT INTO a SELECT 1",
        {
            "condition": "SYSTEM$STREAM_HAS_DATA('MYSTREAM')",
            "settings": Settings(schedule=read_schedule("5 minute"), unused=("WAREHOUSE",)),
        },
    ),
    ("CREATE TASK task5 AFTER task2, task3, task4 AS INSERT INTO t1(ts) VALUES(1)", {"after": (("task2",), ("task3",), ("task4",))}),
    ("CREATE TASK a.b AFTER x.y WHEN a > 1 AND f(AS_OF) AS SELECT 1 AS b", {"body": "SELECT 1 AS b", "condition": "a > 1 AND f(AS_OF)"}),
    ("CREATE OR REPLACE TASK f FINALIZE = root AS CALL x()", {"settings": Settings(finalizes=("root",)), "or_replace": True}),
    (
        """CREATE TASK t TASK_AUTO_RETRY_ATTEMPTS = 2 SUSPEND_TASK_AFTER_NUM_FAILURES = 0 USER_TASK_TIMEOUT_MS = 1000
           ALLOW_OVERLAPPING_EXECUTION = TRUE COMMENT = 'c' AS SELECT 1""",
        {"settings": Settings(retries=2, failures_max=0, timeout_ms=1000, allows_overlap=True, comment="c")},
    ),
    (
        """CREATE TASK t WHEN x USER_TASK_MINIMUM_TRIGGER_INTERVAL_IN_SECONDS = 60
           spark.sql.shuffle.partitions = 8, TIMEZONE = 'UTC' AS SELECT 1""",
        {
            "condition": "x",
            "settings": Settings(
                trigger_ms=60_000, conf={"spark.sql.shuffle.partitions": "8", "spark.sql.session.timeZone": "UTC"}
            ),
        },
    ),
    # Databend's
    (
        """CREATE TASK IF NOT EXISTS mytask WAREHOUSE = 'default' SCHEDULE = 2 MINUTE
           SUSPEND_TASK_AFTER_NUM_FAILURES = 3 AS INSERT INTO t VALUES (1)""",
        {"settings": Settings(schedule=read_schedule("2 MINUTE"), failures_max=3, unused=("WAREHOUSE",)), "if_not_exists": True},
    ),
    (
        "CREATE TASK mytask SCHEDULE = USING CRON '0 0 0 * * *' 'Asia/Tokyo' WHEN STREAM_STATUS('s') = TRUE AS SELECT 1",
        {"settings": Settings(schedule=read_schedule("USING CRON 0 0 0 * * * Asia/Tokyo")), "condition": "STREAM_STATUS('s') = TRUE"},
    ),
    ("CREATE TASK t AFTER 'a', 'db.b' AS SELECT 1", {"after": (("a",), ("db", "b"))}),
    (
        "CREATE TASK t SCHEDULE = 1 SECOND ERROR_INTEGRATION = 'e' AS\nBEGIN\n  BEGIN;\n  INSERT INTO a VALUES (1);\n  COMMIT;\nEND;",
        {"body": "BEGIN\n  BEGIN;\n  INSERT INTO a VALUES (1);\n  COMMIT;\nEND"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fields"), CREATED)
def test_create(text: str, fields: dict[str, object] | None) -> None:
    if fields is None:  # a parameter that is neither ours, nor one that is known to have no effect
        with pytest.raises(StreamqlError, match="no parameter TIMESTAMP_INPUT_FORMAT"):
            parse(text)
        return
    made = parse(text)
    assert isinstance(made, CreateTask)
    assert {name: getattr(made, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("ALTER TASK t RESUME", Resume()),
        ("ALTER TASK IF EXISTS t SUSPEND;", Suspend()),
        (
            "ALTER TASK t SET SCHEDULE = '1 hour', COMMENT = 'x'",
            Set(Settings(schedule=read_schedule("1 hour"), comment="x")),
        ),
        (
            "ALTER TASK t SET WAREHOUSE = w USER_TASK_TIMEOUT_MS = 5",
            Set(Settings(timeout_ms=5, unused=("WAREHOUSE",))),
        ),
        ("ALTER TASK t UNSET SCHEDULE, COMMENT", Unset(("schedule", "comment"))),
        ("ALTER TASK t UNSET spark.sql.ansi.enabled", Unset((), ("spark.sql.ansi.enabled",))),
        ("ALTER TASK t ADD AFTER a, s.b", AddAfter((("a",), ("s", "b")))),
        ("ALTER TASK t REMOVE AFTER a", RemoveAfter((("a",),))),
        ("ALTER TASK t MODIFY AS DELETE FROM x", ModifyBody("DELETE FROM x")),
        ("ALTER TASK t MODIFY WHEN a OR b", ModifyCondition("a OR b")),
        ("ALTER TASK t REMOVE WHEN", ModifyCondition(None)),
    ],
)
def test_alter(text: str, statement: object) -> None:
    made = parse(text)
    assert isinstance(made, AlterTask)
    assert made.action == statement


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("DROP TASK IF EXISTS a.t", DropTask(("a", "t"), True)),
        ("EXECUTE TASK t", ExecuteTask(("t",))),
        ("execute task t retry last", ExecuteTask(("t",), True)),
        ("SHOW TASKS IN s LIKE 'a%' LIMIT 3", ShowTasks(("s",), "a%", None, 3)),
        ("SHOW TERSE TASKS", ShowTasks()),
        ("SHOW TASK HISTORY FOR t WHERE state = 'FAILED' LIMIT 1", ShowTaskHistory(("t",), "state = 'FAILED'", 1)),
        ("DESC TASK t", DescribeTask(("t",))),
        ("SHOW CREATE TASK t", ShowCreateTask(("t",))),
    ],
)
def test_others(text: str, statement: object) -> None:
    made = parse(text)
    span = {"name_span": None} if hasattr(statement, "name_span") else {}
    assert type(made) is type(statement)
    assert {**vars(made), **span} == {**vars(statement), **span}


@pytest.mark.parametrize(
    "text",
    [
        "DESC task",
        "DESCRIBE TABLE task",
        "DROP TABLE task",
        "ALTER TABLE task RENAME TO t",
        "SHOW COLUMNS IN tasks",
        "CREATE TABLE task (a INT)",
        "EXECUTE IMMEDIATE 'SELECT 1'",
    ],
)
def test_what_is_spark_s(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("CREATE TASK t SCHEDULE = 'often' AS SELECT 1", "not a schedule", "SCHEDULE takes '5 minutes'"),
        ("CREATE TASK t SCHEDULE = '5 minutes'", "expected AS", "write AS INSERT INTO"),
        ("CREATE TASK t SCEDULE = '5 minutes' AS SELECT 1", "no parameter SCEDULE", "did you mean SCHEDULE?"),
        ("CREATE TASK t CLONE u", "CLONE is not supported", "SHOW CREATE TASK"),
        ("CREATE OR ALTER TASK t AS SELECT 1", "OR ALTER is not supported", "CREATE OR REPLACE TASK"),
        ("CREATE TASK t TASK_AUTO_RETRY_ATTEMPTS = 31 AS SELECT 1", "from 0 to 30", ""),
        ("ALTER TASK t PAUSE", "expected RESUME", ""),
        ("EXECUTE TASK t AGAIN", "expected the end", ""),
    ],
)
def test_what_is_wrong(text: str, said: str, hint: str) -> None:
    with pytest.raises(StreamqlError) as raised:
        parse(text)
    assert said in raised.value.message
    assert hint in raised.value.hint


def test_misspelt_keywords() -> None:
    error = explain_rejected("CREATE TAKS t AS SELECT 1")
    assert error is not None
    assert "CREATE TASK" in error.hint


@pytest.mark.parametrize(
    ("body", "statements"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("BEGIN INSERT INTO a SELECT 1; DELETE FROM b; END", ["INSERT INTO a SELECT 1", "DELETE FROM b"]),
        ("BEGIN BEGIN; DELETE FROM b; COMMIT; END", ["BEGIN TRANSACTION", "DELETE FROM b", "COMMIT"]),
        ("BEGIN BEGIN TRANSACTION; DELETE FROM b; COMMIT; END;", ["BEGIN TRANSACTION", "DELETE FROM b", "COMMIT"]),
        ("BEGIN SELECT ';BEGIN;'; END", ["SELECT ';BEGIN;'"]),
        ("BEGIN SELECT CASE WHEN a THEN 1 END FROM b; END", ["SELECT CASE WHEN a THEN 1 END FROM b"]),
        ("BEGIN DECLARE n INT; SET n = 1; END", ["BEGIN DECLARE n INT; SET n = 1; END"]),
        ("BEGIN IF 1 > 2 THEN SELECT 1; END IF; END", ["BEGIN IF 1 > 2 THEN SELECT 1; END IF; END"]),
    ],
)
def test_bodies(body: str, statements: list[str]) -> None:
    assert statements_of(body) == statements


def test_conditions() -> None:
    text = "SYSTEM$STREAM_HAS_DATA('a') OR stream_status('b') = TRUE OR x = 'STREAM_STATUS('"
    assert condition_sql(text) == "stream_has_data('a') OR stream_has_data('b') = TRUE OR x = 'STREAM_STATUS('"
