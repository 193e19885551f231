"""How each statement about tasks is run."""

from __future__ import annotations

from streamql.engine import StatementType, without_text
from streamql.engine.show import CREATE_COLUMNS, DESCRIBE_COLUMNS
from streamql.features.tasks.language.statements import (
    AlterTask,
    CreateTask,
    DescribeTask,
    DropTask,
    ExecuteTask,
    ShowCreateTask,
    ShowTaskHistory,
    ShowTasks,
)
from streamql.features.tasks.statements.create import alter_task, create_task, drop_task
from streamql.features.tasks.statements.execute import EXECUTE_COLUMNS, execute_task
from streamql.features.tasks.statements.show import (
    HISTORY_COLUMNS,
    TASKS_COLUMNS,
    describe_task,
    show_create_task,
    show_task_history,
    show_tasks,
)

STATEMENTS = (
    StatementType(CreateTask, create_task),
    StatementType(AlterTask, alter_task),
    StatementType(DropTask, drop_task),
    StatementType(ExecuteTask, without_text(execute_task), EXECUTE_COLUMNS),
    StatementType(ShowTasks, without_text(show_tasks), TASKS_COLUMNS),
    StatementType(ShowTaskHistory, without_text(show_task_history), HISTORY_COLUMNS),
    StatementType(DescribeTask, without_text(describe_task), DESCRIBE_COLUMNS),
    StatementType(ShowCreateTask, without_text(show_create_task), CREATE_COLUMNS),
)
