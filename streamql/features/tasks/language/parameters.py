"""The parameters of CREATE TASK and ALTER TASK … SET: `NAME = value`, in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import NameParts, TokenType, string_value
from streamql.errors import StreamqlError
from streamql.features.tasks.language.statements import Settings
from streamql.features.tasks.model.schedule import ALLOWED, Schedule, ScheduleError, read_schedule
from streamql.misspelt import suggestion

UNUSED = frozenset(
    (
        "WAREHOUSE", "USER_TASK_MANAGED_INITIAL_WAREHOUSE_SIZE", "ERROR_INTEGRATION", "SUCCESS_INTEGRATION", "CONFIG", "LOG_LEVEL",
        "TARGET_COMPLETION_INTERVAL", "SERVERLESS_TASK_MIN_STATEMENT_SIZE", "SERVERLESS_TASK_MAX_STATEMENT_SIZE",
        "TASK_RELATION", "OVERLAP_POLICY",
    )
)  # fmt: skip
"""Parameters of Snowflake and Databend that say where their tasks run and whom they tell."""

FIELDS = {
    "SCHEDULE": "schedule",
    "ALLOW_OVERLAPPING_EXECUTION": "allows_overlap",
    "SUSPEND_TASK_AFTER_NUM_FAILURES": "failures_max",
    "TASK_AUTO_RETRY_ATTEMPTS": "retries",
    "USER_TASK_TIMEOUT_MS": "timeout_ms",
    "USER_TASK_MINIMUM_TRIGGER_INTERVAL_IN_SECONDS": "trigger_ms",
    "FINALIZE": "finalizes",
    "COMMENT": "comment",
}
"""The field of `Settings` for each parameter."""

PARAMETERS = (*FIELDS, *sorted(UNUSED))
TIMEOUT_MS_MAX = 7 * 86_400_000
RETRIES_MAX = 30
TRIGGER_SECONDS = (1, 604_800)
TIME_ZONE = "spark.sql.session.timeZone"


def at_parameter(cursor: Cursor) -> bool:
    """Returns whether a parameter comes next: a word and =, or one of ours."""
    return cursor.at_any(PARAMETERS) or _key_of_spark(cursor) is not None or cursor.at("TIMEZONE")


def read_parameter(cursor: Cursor, settings: Settings) -> Settings:
    """Reads one parameter, and returns the settings with it. Raises SYNTAX_ERROR, INVALID_PROPERTY."""
    start, key = cursor.token, cursor.key()
    of_spark = _key_of_spark(cursor)
    if of_spark is not None or key == "TIMEZONE":
        name, cursor.index = of_spark or (TIME_ZONE, cursor.index + 1)
        cursor.expect("=")
        return replace(settings, conf={**settings.conf, name: _value(cursor)})
    cursor.advance()
    cursor.take("=")
    if key in UNUSED:
        _value(cursor)
        return replace(settings, unused=(*settings.unused, key))
    field = FIELDS[key]
    if getattr(settings, field) is not None:
        raise cursor.error(f"{key} is given twice", token=start)
    return replace(settings, **{field: _READERS[key](cursor)})


def _key_of_spark(cursor: Cursor) -> tuple[str, int] | None:
    """Returns `spark.….…`, which comes next and is a setting of Spark, and the index behind it; None: another word comes."""
    if cursor.key() != "SPARK" or cursor.key(1) != ".":
        return None
    parts, index = [cursor.token.text], cursor.index + 1
    while cursor.tokens[index].key == "." and cursor.tokens[index + 1].type is TokenType.WORD:
        parts.append(cursor.tokens[index + 1].text)
        index += 2
    return ".".join(parts), index


def _value(cursor: Cursor) -> str:
    """Returns a value of any type, as text."""
    if cursor.at_string():
        return cursor.string("the value")
    if cursor.token.type in (TokenType.WORD, TokenType.NUMBER):
        return cursor.advance().text
    raise cursor.expected("a value")


def read_schedule_of(cursor: Cursor) -> Schedule:
    """`'5 minutes'`, `5 MINUTE`, `'USING CRON … zone'`, or `USING CRON '…' ['zone']`. Raises INVALID_PROPERTY."""
    start = cursor.token
    if cursor.at_string():
        text = string_value(cursor.advance())
    elif cursor.take("USING", "CRON"):
        text = "USING CRON"
        while cursor.at_string():
            text += " " + string_value(cursor.advance())
    elif cursor.token.type is TokenType.NUMBER:
        text = f"{cursor.advance().text} {cursor.advance().text}"
    else:
        raise cursor.expected("a schedule", f"write SCHEDULE = {ALLOWED}")
    try:
        return read_schedule(text)
    except ScheduleError as e:
        raise cursor.error(str(e), hint=f"SCHEDULE takes {ALLOWED}", token=start, code="INVALID_PROPERTY") from None


def read_tasks(cursor: Cursor) -> tuple[NameParts, ...]:
    """`task, …`, as names or, as Databend has them, as strings."""
    names = [_task(cursor)]
    while cursor.take(","):
        names.append(_task(cursor))
    return tuple(names)


def _task(cursor: Cursor) -> NameParts:
    if cursor.at_string():
        return tuple(string_value(cursor.advance()).split("."))
    return cursor.name("the name of a task")[0]


def _number(name: str, least: int, most: int) -> Callable[[Cursor], int]:
    def read(cursor: Cursor) -> int:
        start, found = cursor.token, cursor.integer()
        if found is None or not least <= found <= most:
            message = f"{name} takes a number from {least} to {most}"
            raise cursor.error(message, hint=f"{name} = {max(least, 1)}", token=start, code="INVALID_PROPERTY")
        return found

    return read


def _seconds_as_ms(cursor: Cursor) -> int:
    return 1000 * _number("USER_TASK_MINIMUM_TRIGGER_INTERVAL_IN_SECONDS", *TRIGGER_SECONDS)(cursor)


_READERS: dict[str, Callable[[Cursor], Any]] = {
    "SCHEDULE": read_schedule_of,
    "ALLOW_OVERLAPPING_EXECUTION": lambda cursor: cursor.boolean("ALLOW_OVERLAPPING_EXECUTION"),
    "SUSPEND_TASK_AFTER_NUM_FAILURES": _number("SUSPEND_TASK_AFTER_NUM_FAILURES", 0, 1_000_000),
    "TASK_AUTO_RETRY_ATTEMPTS": _number("TASK_AUTO_RETRY_ATTEMPTS", 0, RETRIES_MAX),
    "USER_TASK_TIMEOUT_MS": _number("USER_TASK_TIMEOUT_MS", 0, TIMEOUT_MS_MAX),
    "USER_TASK_MINIMUM_TRIGGER_INTERVAL_IN_SECONDS": _seconds_as_ms,
    "FINALIZE": _task,
    "COMMENT": lambda cursor: cursor.string("the comment"),
}


def unknown(cursor: Cursor, also: tuple[str, ...]) -> StreamqlError:
    """Returns the error for a word that is not a parameter. `also`: other words that may stand here."""
    if cursor.key(1) == "=":
        hint = suggestion(cursor.key(), (*FIELDS, *also))
        hint = hint or "a setting of Spark is written with its whole key: spark.sql.shuffle.partitions = 8"
        return cursor.error(f"a task has no parameter {cursor.token.text}", hint=hint, code="INVALID_PROPERTY")
    return cursor.expected_one_of((*FIELDS, *also), "")
