"""CREATE TASK; the parameters and clauses come in any order before AS."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import NameParts
from streamql.features.tasks.language.parameters import at_parameter, read_parameter, read_tasks, unknown
from streamql.features.tasks.language.statements import CreateTask, Settings

CREATE_TASK_GRAMMAR = (
    "CREATE [OR REPLACE] TASK [IF NOT EXISTS] name [SCHEDULE = {'n unit' | 'USING CRON fields zone'}] [AFTER task, …] "
    "[WHEN condition] [FINALIZE = root] [ALLOW_OVERLAPPING_EXECUTION = {TRUE | FALSE}] "
    "[SUSPEND_TASK_AFTER_NUM_FAILURES = n] [TASK_AUTO_RETRY_ATTEMPTS = n] [USER_TASK_TIMEOUT_MS = n] "
    "[USER_TASK_MINIMUM_TRIGGER_INTERVAL_IN_SECONDS = n] [COMMENT = '…'] [spark.… = value, …] "
    "AS {statement | BEGIN statement; … END}"
)
_CLAUSES = ("AFTER", "WHEN", "AS")


def parse_create_task(cursor: Cursor) -> CreateTask:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_PROPERTY."""
    cursor.grammar = CREATE_TASK_GRAMMAR
    cursor.expect("CREATE")
    or_replace = cursor.take("OR", "REPLACE")
    if cursor.at("OR", "ALTER"):
        raise cursor.refused(
            "OR ALTER", "a task is made or altered", "write CREATE OR REPLACE TASK, or ALTER TASK … SET"
        )
    cursor.expect("TASK")
    if_not_exists = cursor.if_not_exists(or_replace, "task")
    name, name_span = cursor.name("the name of the task")
    if cursor.at("CLONE"):
        raise cursor.refused(
            "CLONE", "a task has no copy", "SHOW CREATE TASK shows the statement: give it another name"
        )
    settings, after, condition = _clauses(cursor)
    return CreateTask(name, read_body(cursor), settings, after, condition, or_replace, if_not_exists, name_span)


def _clauses(cursor: Cursor) -> tuple[Settings, tuple[NameParts, ...], str | None]:
    settings = Settings()
    after: tuple[NameParts, ...] = ()
    condition: str | None = None
    while not cursor.at("AS"):
        if cursor.at_end() or cursor.at(";"):
            raise cursor.expected("AS and the statements of the task", "write AS INSERT INTO …, or AS BEGIN …; …; END")
        if cursor.take(","):  # between Databend's session parameters
            continue
        if cursor.at("AFTER") and not after:
            cursor.advance()
            after = read_tasks(cursor)
        elif cursor.at("WHEN") and condition is None:
            cursor.advance()
            condition = read_condition(cursor)
        elif cursor.at_any(_CLAUSES):
            raise cursor.error(f"{cursor.key()} is given twice")
        elif cursor.at("EXECUTE", "AS"):
            raise cursor.refused("EXECUTE AS", "a task runs as the user of the scheduler", "leave EXECUTE AS … out")
        elif at_parameter(cursor):
            settings = read_parameter(cursor, settings)
        else:
            raise unknown(cursor, _CLAUSES)
    cursor.advance()
    return settings, after, condition


def read_condition(cursor: Cursor) -> str:
    """Returns the condition behind WHEN, up to AS or a parameter."""
    return cursor.raw("a condition", lambda: cursor.at("AS") or (at_parameter(cursor) and cursor.key(1) == "="))


def read_body(cursor: Cursor) -> str:
    """Returns the statements behind AS, as written, up to the end of the text."""
    if cursor.at_end() or cursor.at(";"):
        raise cursor.expected("the statements of the task", "write AS INSERT INTO …, or AS BEGIN …; …; END")
    first = cursor.token
    last = len(cursor.tokens) - 1
    while last > cursor.index and cursor.tokens[last - 1].key == ";" and not cursor.at("BEGIN"):
        last -= 1
    body = cursor.text[first.start : cursor.tokens[last - 1].end]
    cursor.index = len(cursor.tokens) - 1
    return body
