"""EXECUTE TASK: runs a graph of tasks now, in the process of the statement."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from streamql.consume import session_transactions
from streamql.delta.rows import Value, small_frame
from streamql.engine.ddl import place_of
from streamql.errors import StreamqlError, counted
from streamql.features.tasks.language.statements import ExecuteTask
from streamql.features.tasks.model.runs import GraphRun, TaskRun
from streamql.features.tasks.model.task import Task, root_of
from streamql.features.tasks.runs.graph import run_graph
from streamql.features.tasks.runs.steps import abandoned, begin, retry
from streamql.features.tasks.runs.store import all_tasks, need_task
from streamql.times import now_ms

EXECUTE_COLUMNS = "name STRING, state STRING, attempt BIGINT, duration_ms BIGINT, reason STRING"


def execute_task(spark: SparkSession, statement: ExecuteTask) -> DataFrame:
    """Runs a graph of tasks, suspended or not, and returns a row for each task: EXECUTE_COLUMNS. Raises TASK_NOT_FOUND, TASK_RUNNING,
    TASK_FAILED, INVALID_ARGUMENT for a task that is not a root."""
    session_transactions.refuse_in_transaction(spark, "EXECUTE TASK")
    where = place_of(statement.name_span)
    task = need_task(spark, statement.name, where)
    if not task.is_root:
        root = root_of(task, all_tasks(spark))
        hint = "" if root is None else f"EXECUTE TASK {root.name}"
        message = f"{task.name} runs behind other tasks"
        raise StreamqlError("INVALID_ARGUMENT", message, hint=hint or f"ALTER TASK {task.name} REMOVE AFTER …", **where)
    if statement.retries_last:
        run = retry(spark, task.uuid)
        if run is None:
            raise _not_retried(task, where)
        ended = run_graph(spark, task.uuid, run.id, None)
    else:
        first = begin(spark, task.uuid, now_ms(), by_hand=True)
        run = _left(spark, task) if first is None else first.run
        if run is None:
            raise _running(task, where)
        ended = run_graph(spark, task.uuid, run.id, first)
    if ended is None:
        raise StreamqlError("TASK_NOT_FOUND", f"task {task.name} was dropped while it ran", hint="SHOW TASKS", **where)
    if ended.failed:
        raise _failed(task, ended)
    return small_frame(spark, EXECUTE_COLUMNS, [_row(t) for t in _in_order(ended.tasks.values())])


def _left(spark: SparkSession, task: Task) -> GraphRun | None:
    """Returns a run that no process works on: a scheduler was stopped, or has died. None: there is none."""
    now = next((t for t in all_tasks(spark) if t.uuid == task.uuid), task)
    lost = {t.consumption_id for t in abandoned(spark, now)}
    return next((r for r in now.runs if all(t.consumption_id in lost for t in r.running)), None)


def _in_order(tasks: Iterable[TaskRun]) -> list[TaskRun]:
    return sorted(tasks, key=lambda t: (t.started_ms, t.name))


def _row(task: TaskRun) -> list[Value]:
    return [task.name, task.state, task.attempt, task.ended_ms - task.started_ms, task.why]


def _running(task: Task, where: dict[str, int]) -> StreamqlError:
    under_way = task.runs[0].running if task.runs else []
    who = f" by {under_way[0].owner.who}" if under_way and under_way[0].owner is not None else ""
    hint = f"wait for its end; or ALTER TASK {task.name} SET ALLOW_OVERLAPPING_EXECUTION = TRUE"
    return StreamqlError("TASK_RUNNING", f"{task.name} is run{who} now", hint=hint, name=str(task.name), **where)


def _not_retried(task: Task, where: dict[str, int]) -> StreamqlError:
    if task.runs:
        return _running(task, where)
    what = "has not run" if task.last is None else "did not fail in its last run"
    hint = f"EXECUTE TASK {task.name}"
    return StreamqlError("INVALID_ARGUMENT", f"{task.name} {what}, so there is nothing to retry", hint=hint, **where)


def _failed(task: Task, run: GraphRun) -> StreamqlError:
    first = _in_order(run.failed)[0]
    others = len(run.failed) - 1
    more = f", and {counted(others, 'other task')} failed" if others else ""
    hint = f"correct it, then EXECUTE TASK {task.name} RETRY LAST. SHOW TASK HISTORY shows all"
    return StreamqlError("TASK_FAILED", f"{first.why_in(task.uuid)}{more}", hint=hint, name=first.name, run_id=run.id)
