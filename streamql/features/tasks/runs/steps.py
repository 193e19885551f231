"""The steps of a graph run, each one commit of the catalog: begin, claim a task, take it over, end it, give it back."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from streamql.catalog.observers import Around, Event, tell_began, work_id
from streamql.consume.claims.liveness import is_abandoned
from streamql.consume.claims.owner import running, this_owner
from streamql.features.tasks.model.runs import GraphRun, TaskRun, TaskState, continued, counted, ready
from streamql.features.tasks.model.task import Task, graph_of
from streamql.features.tasks.runs.store import Change, changed, run_event
from streamql.settings import LEASE, seconds
from streamql.times import now_ms


@dataclass(frozen=True)
class Claimed:
    """A task of a graph run that this process has claimed. `work`: notes, until it is closed, that this process works on it."""

    root: Task
    run: GraphRun
    task: Task
    entry: TaskRun
    work: ExitStack


class _Claiming:
    """Makes a claim of this process by one commit. The work is noted before other threads can see the claim: they take a claim of this
    process without noted work for abandoned."""

    def __init__(self, spark: SparkSession, root_uuid: str) -> None:
        self._spark = spark
        self._root = root_uuid
        self._work = ExitStack()
        self._made: Claimed | None = None

    def forget(self) -> None:
        """Forgets what an earlier attempt to commit has noted."""
        self._work.close()
        self._made = None

    def note(self, root: Task, run: GraphRun, task: Task, entry: TaskRun) -> None:
        """Notes the claim that the next commit makes."""
        self._work.enter_context(running(entry.consumption_id))
        self._made = Claimed(root, run, task, entry, self._work)

    def committed(self, step: Callable[[Task, list[Task]], Change | None]) -> Claimed | None:
        """Commits what `step` makes, which forgets, and then may note a claim. Returns the claim; None: there is none."""
        is_done = False
        try:
            is_done = changed(self._spark, self._root, step) is not None
            if is_done and self._made is not None:
                row = _begun(self._made)
                tell_began(self._spark, lambda: ([row], [], {}))
        finally:
            if not is_done:
                self.forget()
        return self._made


def around_of(claimed: Claimed) -> Around:
    """Returns a claimed task as the work around its statements."""
    return Around(work_id(_begun(claimed)), "TASK", str(claimed.task.name))


def _begun(claimed: Claimed) -> Event:
    row = run_event(claimed.root, claimed.run, claimed.entry, claimed.task.body)
    return {**row, "ended_at": None, "outcome": None}


def begin(spark: SparkSession, root_uuid: str, tick_ms: int, *, by_hand: bool = False) -> Claimed | None:
    """Begins a run of a graph with its root. `tick_ms`: the tick that made it due. None: another process has begun a run for the tick, or
    the task is suspended or gone. Also None: a run is under way, and there may be only one."""
    claiming = _Claiming(spark, root_uuid)

    def step(root: Task, _: list[Task]) -> Change | None:
        claiming.forget()
        is_taken = not by_hand and (root.is_suspended or tick_ms <= root.tick_ms)
        if is_taken or (root.runs and not root.allows_overlap):
            return None
        now = now_ms()
        number = max(root.number + 1, now)  # grows, even if an operator restores an earlier state of the catalog
        run = GraphRun(str(uuid.uuid4()), number, tick_ms, now, by_hand)
        run, entry = run.claimed(_entry(spark, run, root, 1))
        after = root.next(number=number, tick_ms=root.tick_ms if by_hand else tick_ms, runs=(*root.runs, run))
        claiming.note(after, run, after, entry)
        return Change(after)

    return claiming.committed(step)


def claim(spark: SparkSession, root_uuid: str, run_id: str) -> Claimed | None:
    """Claims a task of a run that can begin now. None: there is none, or the run has ended. Ends a run that has nothing left to do."""
    claiming = _Claiming(spark, root_uuid)

    def step(root: Task, tasks: list[Task]) -> Change | None:
        claiming.forget()
        run = root.run(run_id)
        if run is None:
            return None
        nodes = graph_of(root, tasks)
        then = continued(run, nodes, root.uuid, root.retries, now_ms())
        can_begin = ready(then, nodes, root.uuid)
        if not can_begin:
            return None if then == run else _put(root, run, then, tasks)
        task = next(t for t in tasks if t.uuid == can_begin[0])
        then, entry = then.claimed(_entry(spark, then, task, then.attempt))
        change = _put(root, run, then, tasks)
        claiming.note(change.after, then, task, entry)
        return change

    return claiming.committed(step)


def take_over(spark: SparkSession, root_uuid: str, run_id: str, lost: TaskRun) -> Claimed | None:
    """Claims a task whose process is dead. None: another process was first."""
    claiming = _Claiming(spark, root_uuid)

    def step(root: Task, tasks: list[Task]) -> Change | None:
        claiming.forget()
        run = root.run(run_id)
        now = None if run is None else run.tasks.get(lost.uuid)
        task = next((t for t in tasks if t.uuid == lost.uuid), None)
        if (
            run is None
            or now is None
            or task is None
            or now.consumption_id != lost.consumption_id
            or now.state != "RUNNING"
        ):
            return None
        then, entry = run.claimed(replace(_entry(spark, run, task, now.attempt), started_ms=now.started_ms))
        change = _put(root, run, then, tasks)
        claiming.note(change.after, then, task, entry)
        return change

    return claiming.committed(step)


def end(spark: SparkSession, claimed: Claimed, state: TaskState, why: str | None) -> Task | None:
    """Ends a task that this process runs, with what follows for the others. Returns the root as it is then; None: another process has taken
    the task over, or the root is gone."""

    def step(root: Task, tasks: list[Task]) -> Change | None:
        run = _held(root, claimed)
        if run is None:
            return None
        entry = replace(run.tasks[claimed.entry.uuid], state=state, ended_ms=now_ms(), why=why)
        nodes = graph_of(root, tasks)
        then = continued(run.put(entry), nodes, root.uuid, root.retries, now_ms())
        return _put(root, run, then, tasks, {entry.uuid: entry})

    return changed(spark, claimed.root.uuid, step)


def give_back(spark: SparkSession, claimed: Claimed) -> None:
    """Gives a task back that has not ended, as if it had not begun: another process can run it. Its statements that are done stay done."""

    def step(root: Task, tasks: list[Task]) -> Change | None:
        run = _held(root, claimed)
        return None if run is None else _put(root, run, run.without(claimed.entry.uuid), tasks)

    changed(spark, claimed.root.uuid, step)


def abandoned(spark: SparkSession, root: Task) -> list[TaskRun]:
    """Returns the tasks of a root's runs whose process is dead."""
    return [task for run in root.runs for task in run.running if is_abandoned(spark, Sign(task)) is not None]


class Sign:
    """A running task as `claims.liveness` takes it."""

    def __init__(self, task: TaskRun) -> None:
        assert task.owner is not None
        self.owner = task.owner
        self.consumption_id = task.consumption_id
        self.heartbeat = task.heartbeat
        self.lease_seconds = task.lease_seconds


def _held(root: Task, claimed: Claimed) -> GraphRun | None:
    """Returns the run of a claimed task as it is now; None: the task is no longer this process's."""
    run = root.run(claimed.run.id)
    now = None if run is None else run.tasks.get(claimed.entry.uuid)
    is_mine = (
        now is not None and now.consumption_id == claimed.entry.consumption_id and now.owner == claimed.entry.owner
    )
    return run if is_mine and now is not None and now.state == "RUNNING" else None


def _entry(spark: SparkSession, run: GraphRun, task: Task, attempt: int) -> TaskRun:
    lease = seconds(spark, LEASE)
    owner = this_owner(spark)
    return TaskRun(
        run.id,
        task.uuid,
        str(task.name),
        "RUNNING",
        owner=owner,
        lease_seconds=lease,
        attempt=attempt,
        started_ms=now_ms(),
    )


def _put(
    root: Task, before: GraphRun, then: GraphRun, tasks: list[Task], ended: Mapping[str, TaskRun] | None = None
) -> Change:
    """Returns the change of a root after which its run is `then`, with an event for each task that has ended. `ended`: tasks that ended
    now, which `then` may no longer have, because they are tried again."""
    bodies = {t.uuid: t.body for t in tasks}
    now = {**{u: t for u, t in then.tasks.items() if u not in before.tasks and t.state != "RUNNING"}, **(ended or {})}
    after = _ended(root, then) if then.ended_ms else root.with_run(then).next()
    after = replace(after, counts=counted(root.counts, now.values(), bodies))
    events: list[Mapping[str, Any]] = [run_event(after, then, t, bodies.get(t.uuid, "")) for t in now.values()]
    return Change(after, events)


def _ended(root: Task, run: GraphRun) -> Task:
    """Returns a root after the end of a run. After too many failures in a row it is suspended."""
    failures = root.failures + 1 if run.failed else 0
    is_over = bool(root.failures_max) and failures >= root.failures_max
    tick = (
        None if root.schedule is None or root.allows_overlap else root.schedule.tick_up_to(run.ended_ms, root.since_ms)
    )
    return root.next(
        runs=tuple(r for r in root.runs if r.id != run.id),
        last=run,
        failures=failures,
        is_suspended=root.is_suspended or is_over,
        tick_ms=max(root.tick_ms, tick or 0),  # ticks that came while it ran are left out
    )


def retry(spark: SparkSession, root_uuid: str) -> GraphRun | None:
    """Begins the last run of a root again with the tasks that failed. None: the last run has not failed, or a run is under way."""
    made: list[GraphRun] = []

    def step(root: Task, tasks: list[Task]) -> Change | None:
        if root.last is None or not root.last.failed or root.runs:
            return None
        run = root.last.again(graph_of(root, tasks))
        made[:] = [run]
        return Change(root.next(runs=(run,)))

    return made[0] if changed(spark, root_uuid, step) is not None else None
