"""SHOW TASKS, DESCRIBE TASK, SHOW CREATE TASK and SHOW TASK HISTORY."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamql.catalog.store import catalog_of
from streamql.delta.names import qualify
from streamql.delta.rows import Value, small_frame
from streamql.engine.ddl import place_of
from streamql.engine.show import CREATE_COLUMNS, DESCRIBE_COLUMNS, listed_schema, narrowed, time_text
from streamql.features.tasks.language.statements import DescribeTask, ShowCreateTask, ShowTaskHistory, ShowTasks
from streamql.features.tasks.lines import last_run, next_ms, predecessors, with_roots
from streamql.features.tasks.model.task import Task, root_of
from streamql.features.tasks.runs.store import EVENT, VIEW_COLUMNS, all_tasks, find_task, need_task
from streamql.times import now_ms

TASKS_COLUMNS = (
    "name STRING, schema_name STRING, state STRING, schedule STRING, predecessors STRING, condition STRING, is_running BOOLEAN, "
    "next_run TIMESTAMP_LTZ, last_run TIMESTAMP_LTZ, last_state STRING, last_error STRING, failures BIGINT, comment STRING, "
    "create_time TIMESTAMP_LTZ, definition STRING"
)
HISTORY_COLUMNS = (
    "name STRING, state STRING, scheduled_at TIMESTAMP_LTZ, started_at TIMESTAMP_LTZ, ended_at TIMESTAMP_LTZ, duration_ms BIGINT, "
    "attempt BIGINT, error STRING, root STRING, run_id STRING, host STRING"
)


def show_tasks(spark: SparkSession, statement: ShowTasks) -> DataFrame:
    """Returns the tasks of a schema, the current one unless named: TASKS_COLUMNS. Raises SCHEMA_NOT_FOUND."""
    catalog, schema = listed_schema(spark, statement.schema)
    tasks = all_tasks(spark)
    rows = [_row(t, root) for t, root in with_roots(tasks, tasks) if t.name.is_in(catalog, schema)]
    frame = small_frame(spark, TASKS_COLUMNS, rows)
    return narrowed(frame, statement.like, statement.where, statement.limit)


def state_of(task: Task) -> str:
    """Returns STARTED or SUSPENDED, as Snowflake and Databend call them."""
    return "SUSPENDED" if task.is_suspended else "STARTED"


def _schedule(task: Task) -> str | None:
    """Returns a task's schedule as SHOW has it; None: it has none."""
    if task.schedule is not None:
        return str(task.schedule)
    return f"when its condition is true, looked at every {task.ticks}" if task.is_triggered else None


def _last(task: Task, root: Task | None) -> tuple[int | None, str | None, str | None]:
    """Returns when the last run of a task began, how it ended, and its error. The run of a root has failed if one of its graph has.
    All are None: it has not run."""
    last = last_run(task, root)
    if last is None:
        return None, None, None
    failed = root.last.failed if root is not None and root.last is not None and task.is_root else []
    if failed:
        return last.started_ms, "FAILED", failed[0].why_in(task.uuid)
    return last.started_ms, last.state, last.why if last.is_failure else None


def _row(task: Task, root: Task | None) -> list[Value]:
    started_ms, state, error = _last(task, root)
    return [
        task.name.object,
        task.name.schema,
        state_of(task),
        _schedule(task),
        predecessors(task) or None,
        task.condition,
        bool(task.runs),
        next_ms(task, now_ms()),
        started_ms,
        state,
        error,
        task.failures,
        task.definition.comment,
        task.definition.created_at_ms,
        task.body,
    ]


def describe_task(spark: SparkSession, statement: DescribeTask) -> DataFrame:
    """Returns what is known of a task, a row a fact: info_name, info_value."""
    task = need_task(spark, statement.name, place_of(statement.name_span))
    at = next_ms(task, now_ms())
    started_ms, state, error = _last(task, root_of(task, all_tasks(spark)))
    facts: list[tuple[str, str | None]] = [
        ("name", str(task.name)),
        ("state", state_of(task)),
        ("schedule", _schedule(task)),
        ("predecessors", predecessors(task) or None),
        ("condition", task.condition),
        ("next_run", None if at is None else time_text(spark, at)),
        ("running", ", ".join(t.name for r in task.runs for t in r.running) or None),
        ("last_run", None if started_ms is None else time_text(spark, started_ms)),
        ("last_state", state),
        ("last_error", error),
        ("failures", str(task.failures)),
        ("suspend_task_after_num_failures", str(task.failures_max)),
        ("task_auto_retry_attempts", str(task.retries)),
        ("user_task_timeout_ms", str(task.timeout_ms)),
        ("allow_overlapping_execution", str(task.allows_overlap).lower()),
        ("schema", ".".join(task.place)),
        ("settings", ", ".join(f"{k} = {v}" for k, v in sorted(task.conf.items())) or None),
        ("comment", task.definition.comment),
        ("created_by", task.definition.created_by),
        ("create_time", time_text(spark, task.definition.created_at_ms)),
        ("definition", task.body),
    ]
    return small_frame(spark, DESCRIBE_COLUMNS, [[k, v] for k, v in facts])


def show_create_task(spark: SparkSession, statement: ShowCreateTask) -> DataFrame:
    """Returns the statement that made the task, as it was written. ALTER TASK does not change it."""
    task = need_task(spark, statement.name, place_of(statement.name_span))
    return small_frame(spark, CREATE_COLUMNS, [[task.definition.text]])


def show_task_history(spark: SparkSession, statement: ShowTaskHistory) -> DataFrame:
    """Returns the runs of tasks that have ended, the newest first: HISTORY_COLUMNS. Raises TASK_NOT_FOUND if neither a task nor its history
    is there."""
    events = catalog_of(spark).events(spark)
    name = None if statement.name is None else qualify(spark, statement.name)
    if (
        name is not None
        and statement.name is not None
        and find_task(spark, name) is None
        and (events is None or events.where((F.col("event") == EVENT) & (F.col("stream") == str(name))).isEmpty())
    ):
        need_task(spark, statement.name, place_of(statement.name_span))
    if events is None:
        return small_frame(spark, HISTORY_COLUMNS, [])
    shown = events.where(F.col("event") == EVENT).selectExpr(*(f"{e} AS {c}" for c, e in VIEW_COLUMNS.items()))
    frame = shown.selectExpr(
        "task AS name", "state", "scheduled_at", "started_at", "ended_at",
        "unix_millis(ended_at) - unix_millis(started_at) AS duration_ms", "attempt", "error", "root", "run_id", "host",
    ).orderBy(F.desc("ended_at"), F.desc("started_at"))  # fmt: skip
    if name is not None:
        frame = frame.where(F.col("name") == str(name))
    return narrowed(frame, None, statement.where, statement.limit)
