"""DROP, EXECUTE, SHOW and DESCRIBE of tasks."""

from __future__ import annotations

from streamql.dialect.listing import read_limit, read_listing, read_where
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import NameParts, Span
from streamql.features.tasks.language.statements import (
    DescribeTask,
    DropTask,
    ExecuteTask,
    ShowCreateTask,
    ShowTaskHistory,
    ShowTasks,
)

DROP_TASK_GRAMMAR = "DROP TASK [IF EXISTS] name"
EXECUTE_TASK_GRAMMAR = "EXECUTE TASK name [RETRY LAST]"
SHOW_TASKS_GRAMMAR = "SHOW TASKS [{IN | FROM} schema] [LIKE 'pattern' | WHERE condition] [LIMIT n]"
SHOW_TASK_HISTORY_GRAMMAR = "SHOW TASK HISTORY [FOR name] [WHERE condition] [LIMIT n]"
DESCRIBE_TASK_GRAMMAR = "DESCRIBE TASK name"
SHOW_CREATE_TASK_GRAMMAR = "SHOW CREATE TASK name"

_A_TASK = "the name of the task"


def parse_drop_task(cursor: Cursor) -> DropTask:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = DROP_TASK_GRAMMAR
    cursor.expect("DROP", "TASK")
    if_exists = cursor.take("IF", "EXISTS")
    name, name_span = cursor.name(_A_TASK)
    return DropTask(name, if_exists, name_span)


def parse_execute_task(cursor: Cursor) -> ExecuteTask:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = EXECUTE_TASK_GRAMMAR
    cursor.expect("EXECUTE", "TASK")
    name, name_span = cursor.name(_A_TASK)
    if cursor.at("USING"):
        raise cursor.refused("USING CONFIG", "a run of a task has no configuration of its own", "leave USING … out")
    return ExecuteTask(name, cursor.take("RETRY", "LAST"), name_span)


def parse_show_tasks(cursor: Cursor) -> ShowTasks:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE."""
    cursor.grammar = SHOW_TASKS_GRAMMAR
    cursor.expect("SHOW")
    cursor.take("TERSE")
    cursor.expect("TASKS")
    show = read_listing(cursor, "SHOW TASKS", "tasks")
    return ShowTasks(show.schema, show.like, show.where, show.limit)


def parse_show_task_history(cursor: Cursor) -> ShowTaskHistory:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = SHOW_TASK_HISTORY_GRAMMAR
    cursor.expect("SHOW", "TASK", "HISTORY")
    name: NameParts | None = None
    name_span: Span | None = None
    where: str | None = None
    limit: int | None = None
    while not cursor.at_end() and not cursor.at(";"):
        if cursor.at_any(("FOR", "OF")) and name is None:
            cursor.advance()
            name, name_span = cursor.name(_A_TASK)
        elif cursor.at("WHERE") and where is None:
            where = read_where(cursor)
        elif cursor.at("LIMIT") and limit is None:
            limit = read_limit(cursor)
        elif cursor.at_any(("FOR", "OF", "WHERE", "LIMIT")):
            raise cursor.error(f"{cursor.key()} is given twice")
        else:
            hint = f"write FOR {cursor.token.text}" if cursor.at_name() else ""
            raise cursor.expected_one_of(("FOR", "WHERE", "LIMIT"), hint)
    return ShowTaskHistory(name, where, limit, name_span)


def parse_describe_task(cursor: Cursor) -> DescribeTask:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = DESCRIBE_TASK_GRAMMAR
    cursor.advance()
    cursor.expect("TASK")
    return DescribeTask(*cursor.name(_A_TASK))


def parse_show_create_task(cursor: Cursor) -> ShowCreateTask:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = SHOW_CREATE_TASK_GRAMMAR
    cursor.expect("SHOW", "CREATE", "TASK")
    return ShowCreateTask(*cursor.name(_A_TASK))
