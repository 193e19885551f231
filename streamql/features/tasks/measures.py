"""What is measured of tasks: how they stand, their last run, and how their runs have ended."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from streamql.engine.measures import Measure, Metric, Sample, one_of
from streamql.features.tasks.lines import TASKS, last_run, next_ms, state_of, with_roots
from streamql.features.tasks.model.runs import TASK_STATES, TOOK
from streamql.features.tasks.model.task import Task
from streamql.features.tasks.runs.store import all_tasks
from streamql.times import now_ms

_TASK = ("task",)

STATE = Metric(
    "streamql_task_state",
    "gauge",
    "1 for the state of the task, 0 for the others. States are those of streamql streams; lost: the tasks before it do not exist.",
    (*_TASK, "state"),
)
LAST_RUN = Metric(
    "streamql_task_last_run_timestamp_seconds",
    "gauge",
    "When the task ended in the last run of its graph that has ended, since 1970. Absent if it had none.",
    _TASK,
    "seconds",
)
LAST_DURATION = Metric(
    "streamql_task_last_run_duration_seconds",
    "gauge",
    "How long the task took in that run. Absent if it had none.",
    _TASK,
    "seconds",
)
LAST_OUTCOME = Metric(
    "streamql_task_last_run_outcome",
    "gauge",
    "1 for the outcome of the task in that run, 0 for the others. Absent if it had none.",
    (*_TASK, "outcome"),
)
FAILURES = Metric(
    "streamql_task_consecutive_failures",
    "gauge",
    "Runs of the task's graph that have failed in a row. Only the root of a graph has it.",
    _TASK,
)
NEXT = Metric(
    "streamql_task_next_run_timestamp_seconds",
    "gauge",
    "When the task is due next, since 1970. Absent if it is suspended, or has no schedule.",
    _TASK,
    "seconds",
)
OVERDUE = Metric(
    "streamql_task_overdue_seconds",
    "gauge",
    "How long a tick of the schedule has waited for a scheduler. 0: none waits. Absent if the task has no schedule, or a condition.",
    _TASK,
    "seconds",
)
RUNS = Metric(
    "streamql_task_runs_total",
    "counter",
    "Runs of the task that have ended, by outcome. A run that was tried again counts each time.",
    (*_TASK, "outcome"),
)
SECONDS = Metric(
    "streamql_task_run_seconds_total", "counter", "How long runs of the task took together.", _TASK, "seconds"
)

OUTCOMES = tuple(state for state in TASK_STATES if state != "RUNNING")


def _look(spark: SparkSession) -> Iterator[Sample]:
    tasks = all_tasks(spark)
    now = now_ms()
    for task, root in with_roots(tasks, tasks):
        name = str(task.name)
        yield from one_of(STATE, TASKS.states, state_of(task, root), name)
        yield from _last(name, task, root)
        if task.is_root:
            yield FAILURES.sample(task.failures, name)
            yield from _times(name, task, now)
        counts = {} if root is None else root.counts.get(task.uuid, {})
        for outcome in OUTCOMES:
            yield RUNS.sample(counts.get(outcome, 0), name, outcome)
        yield SECONDS.sample(counts.get(TOOK, 0) / 1000, name)


def _last(name: str, task: Task, root: Task | None) -> Iterator[Sample]:
    last = last_run(task, root)
    if last is not None:
        yield LAST_RUN.sample(last.ended_ms / 1000, name)
        yield LAST_DURATION.sample((last.ended_ms - last.started_ms) / 1000, name)
        yield from one_of(LAST_OUTCOME, OUTCOMES, last.state, name)


def _times(name: str, task: Task, now: int) -> Iterator[Sample]:
    at = next_ms(task, now)
    if at is not None:
        yield NEXT.sample(at / 1000, name)
    if task.schedule is None or task.condition is not None:
        return
    is_waiting = not task.is_suspended and not task.runs
    due = task.schedule.tick_after(max(task.tick_ms, task.since_ms), task.since_ms) if is_waiting else now
    yield OVERDUE.sample(max(0, now - due) / 1000, name)


MEASURE = Measure(
    "tasks", (STATE, LAST_RUN, LAST_DURATION, LAST_OUTCOME, FAILURES, NEXT, OVERDUE, RUNS, SECONDS), _look
)
