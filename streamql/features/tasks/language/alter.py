"""ALTER TASK."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor
from streamql.features.tasks.language.create import read_body
from streamql.features.tasks.language.parameters import (
    FIELDS,
    UNUSED,
    at_parameter,
    read_parameter,
    read_tasks,
    unknown,
)
from streamql.features.tasks.language.statements import (
    Action,
    AddAfter,
    AlterTask,
    ModifyBody,
    ModifyCondition,
    RemoveAfter,
    Resume,
    Set,
    Settings,
    Suspend,
    Unset,
)

ALTER_TASK_GRAMMAR = (
    "ALTER TASK [IF EXISTS] name {RESUME | SUSPEND | SET parameter = value … | UNSET parameter, … | ADD AFTER task, … | "
    "REMOVE AFTER task, … | MODIFY AS {statement | BEGIN … END} | MODIFY WHEN condition | REMOVE WHEN}"
)
_ACTIONS = ("RESUME", "SUSPEND", "SET", "UNSET", "ADD", "REMOVE", "MODIFY")


def parse_alter_task(cursor: Cursor) -> AlterTask:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR, INVALID_PROPERTY."""
    cursor.grammar = ALTER_TASK_GRAMMAR
    cursor.expect("ALTER", "TASK")
    if_exists = cursor.take("IF", "EXISTS")
    name, name_span = cursor.name("the name of the task")
    return AlterTask(name, _action(cursor), if_exists, name_span)


def _action(cursor: Cursor) -> Action:
    if cursor.take("RESUME"):
        return Resume()
    if cursor.take("SUSPEND"):
        return Suspend()
    if cursor.take("ADD"):
        cursor.expect("AFTER")
        return AddAfter(read_tasks(cursor))
    if cursor.take("REMOVE"):
        if cursor.take("WHEN"):
            return ModifyCondition(None)
        cursor.expect("AFTER", hint="write REMOVE AFTER task, or REMOVE WHEN")
        return RemoveAfter(read_tasks(cursor))
    if cursor.take("MODIFY"):
        if cursor.take("AS"):
            return ModifyBody(read_body(cursor))
        cursor.expect("WHEN", hint="write MODIFY AS statement, or MODIFY WHEN condition")
        return ModifyCondition(cursor.raw("a condition", lambda: False))
    if cursor.take("SET"):
        return Set(_settings(cursor))
    if cursor.take("UNSET"):
        return _unset(cursor)
    raise cursor.expected_one_of(_ACTIONS)


def _settings(cursor: Cursor) -> Settings:
    settings = Settings()
    while True:
        if not at_parameter(cursor):
            raise unknown(cursor, ())
        settings = read_parameter(cursor, settings)
        cursor.take(",")
        if cursor.at_end() or cursor.at(";"):
            return settings


def _unset(cursor: Cursor) -> Unset:
    fields: list[str] = []
    conf: list[str] = []
    while True:
        if cursor.at("SPARK"):
            conf.append(cursor.raw("a setting", lambda: cursor.at(",")).replace(" ", ""))
        elif cursor.at_any(FIELDS):
            fields.append(FIELDS[cursor.advance().key])
        elif cursor.at_any(UNUSED):
            cursor.advance()
        else:
            raise unknown(cursor, ())
        if not cursor.take(","):
            return Unset(tuple(fields), tuple(conf))
