"""The check of tasks: those that fail, that no scheduler runs, and that can never run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.durations import in_words
from streamql.engine.doctor.check import About, Check, Finding, Problem
from streamql.errors import counted
from streamql.features.tasks.model.task import Task, root_of
from streamql.features.tasks.runs.steps import abandoned
from streamql.features.tasks.runs.store import all_tasks
from streamql.times import HOUR_MS, now_ms

LATE_MS = HOUR_MS // 6
"""A task is reported as late if it has been due for so long, and nothing runs it."""


class Tasks(Check[None]):
    """Tasks that fail, are late, were left half way, or lack the tasks before them. Has no fix."""

    about = About.TASKS

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[None]]:  # noqa: ARG002 - not of streams
        """See Check."""
        tasks = all_tasks(spark)
        for task in tasks:
            found = _finding(spark, task, tasks)
            if found is not None:
                yield Problem(found)


def _finding(spark: SparkSession, task: Task, tasks: Sequence[Task]) -> Finding | None:
    name = str(task.name)
    if not task.is_root:
        if root_of(task, tasks) is not None:
            return None
        return Finding(
            name,
            "error",
            "TASK_NOT_FOUND",
            "the tasks before it do not exist",
            f"create them again, or DROP TASK {name}"
            if task.finalizes is not None
            else f"ALTER TASK {name} ADD AFTER …, or DROP TASK",
        )
    if task.failures and task.last is not None and task.last.failed:
        ended = "; it is suspended" if task.is_suspended else ""
        what = f"{counted(task.failures, 'run')} in a row failed{ended}: {task.last.failed[0].why_in(task.uuid)}"
        again = f"EXECUTE TASK {name} RETRY LAST" + (f", and ALTER TASK {name} RESUME" if task.is_suspended else "")
        return Finding(name, "error", "TASK_FAILED", what, f"correct it, then {again}")
    running = [t for run in task.runs for t in run.running]
    if task.runs and len(abandoned(spark, task)) == len(running):
        what = "a run of it was left half way, and no scheduler continues it"
        return Finding(name, "warning", "TASK_LATE", what, f"streamql scheduler continues it, or EXECUTE TASK {name}")
    # Of a task with a condition it is not known whether it was due: schedulers look at that, and write nothing.
    if task.is_suspended or task.schedule is None or task.condition is not None or task.runs:
        return None
    due = task.schedule.tick_after(max(task.tick_ms, task.since_ms), task.since_ms)
    if now_ms() - due < LATE_MS:
        return None
    return Finding(
        name, "warning", "TASK_LATE", f"it has been due for {in_words(now_ms() - due)}", "run streamql scheduler"
    )
