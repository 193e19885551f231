"""Runs a task that this process has claimed, and ends it in the catalog."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from streamql.bridge import as_streamql_error
from streamql.catalog.observers import within
from streamql.delta.jvm import sentence
from streamql.durations import in_words
from streamql.errors import StreamqlError
from streamql.features.tasks.model.runs import FALSE, TaskState
from streamql.features.tasks.model.task import Task
from streamql.features.tasks.runs.body import Stopped, run_body, session_for
from streamql.features.tasks.runs.condition import ASKED, is_true
from streamql.features.tasks.runs.heartbeat import Heartbeat
from streamql.features.tasks.runs.steps import Claimed, around_of, end, give_back

log = logging.getLogger("streamql")

LOOK_SECONDS = 0.2
CANCEL_AGAIN_SECONDS = 0.5
"""How often the jobs of a cancelled task are cancelled: its statements may start others."""


@dataclass(frozen=True)
class Ended:
    """How a task ended. `state` None: it did not end; it was given back, or another process has taken it over. `error`: what it raised;
    None: it raised nothing. `root`: the root as it is then; None: it is gone, or `state` is None."""

    claimed: Claimed
    state: TaskState | None
    why: str | None
    error: BaseException | None
    seconds: float
    root: Task | None = None


class Control:
    """How a process ends the tasks that it runs. `stops`: asked between statements. `cancel`: ends the statements that run."""

    def __init__(self, stops: Callable[[], bool]) -> None:
        self.stops = stops
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Cancels the running statements of all tasks under this control."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        """Returns whether `cancel` was called."""
        return self._cancelled.is_set()


def run_claimed(spark: SparkSession, claimed: Claimed, control: Control, *, asks_root: bool = False) -> Ended:
    """Runs a task, and ends it in the catalog. `asks_root`: the condition of a root is looked at too. Raises what the catalog raises."""
    began = time.monotonic()
    entry = claimed.entry
    with claimed.work, Heartbeat(spark, claimed.root.uuid, entry) as heartbeat:
        watch = _Watch(spark, claimed, control, heartbeat)
        state, why, error = _state_of(spark, claimed, watch, asks_root=asks_root)
        took = time.monotonic() - began
        if heartbeat.is_lost:
            log.warning("task %s: another process has taken this run over", claimed.task.name)
            return Ended(claimed, None, "another process has taken it over", error, took)
        if state is None:
            give_back(spark, claimed)
            return Ended(claimed, None, why, error, took)
        root = end(spark, claimed, state, why)
    return Ended(claimed, state if root is not None else None, why, error, took, root)


def _state_of(
    spark: SparkSession, claimed: Claimed, watch: _Watch, *, asks_root: bool
) -> tuple[TaskState | None, str | None, BaseException | None]:
    """Runs a task. Returns its state (None: it is to be given back), why, and what it raised."""
    task = claimed.task
    asks = task.condition is not None and (asks_root or task.uuid != claimed.root.uuid)
    try:
        if asks and not is_true(session_for(spark, task), task.condition or ""):
            return "SKIPPED", FALSE, None
        asks = False
        with watch.watching(), within(spark, around_of(claimed)):
            run_body(spark, claimed.root, claimed.run, task, watch.stops)
    except Stopped as e:
        if not watch.is_late:
            return None, "it was stopped between two statements", e
        return "FAILED", watch.late, None
    except BaseException as e:
        error = as_streamql_error(e) if isinstance(e, Exception) else None
        if watch.is_late:
            return "FAILED", watch.late, error or e
        why = (ASKED if asks else "") + (str(error) if isinstance(error, StreamqlError) else sentence(e))
        return ("CANCELLED" if watch.is_cancelled else "FAILED"), why, error or e
    return "SUCCEEDED", None, None


class _Watch:
    """Cancels the jobs of a task that takes too long, is cancelled, or was taken over."""

    def __init__(self, spark: SparkSession, claimed: Claimed, control: Control, heartbeat: Heartbeat) -> None:
        self._context = spark.sparkContext
        self._tag = f"streamql-task-{claimed.entry.consumption_id.replace('/', '-')}"
        self._control = control
        self._heartbeat = heartbeat
        limit = claimed.task.timeout_ms
        self._deadline = time.monotonic() + limit / 1000 if limit else None
        self.late = f"it took longer than USER_TASK_TIMEOUT_MS ({in_words(limit, is_exact=True)})"

    @property
    def is_late(self) -> bool:
        """Returns whether the task has taken longer than it may."""
        return self._deadline is not None and time.monotonic() > self._deadline

    @property
    def is_cancelled(self) -> bool:
        """Returns whether the process cancels its tasks."""
        return self._control.is_cancelled

    def stops(self) -> bool:
        """Returns whether no further statement may begin."""
        return self._control.stops() or self.is_cancelled or self.is_late or self._heartbeat.is_lost

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watches the statements that the body runs in this thread."""
        done = threading.Event()
        self._context.addJobTag(self._tag)
        thread = threading.Thread(target=self._watch, args=(done,), name="streamql-task-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self._context.removeJobTag(self._tag)

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(LOOK_SECONDS):
            if self.is_cancelled or self.is_late or self._heartbeat.is_lost:
                self._context.cancelJobsWithTag(self._tag)
                done.wait(CANCEL_AGAIN_SECONDS)
