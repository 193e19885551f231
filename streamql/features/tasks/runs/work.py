"""The tasks that are due, for the scheduler."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from streamql.console.jobs.schedule import code_of
from streamql.console.render.quantities import clock
from streamql.delta.jvm import sentence
from streamql.delta.names import qualify
from streamql.engine.work import Desk, Item, Look
from streamql.errors import StreamqlError
from streamql.features.tasks.model.runs import FALSE, GraphRun, TaskRun, ready
from streamql.features.tasks.model.task import Task, graph_of
from streamql.features.tasks.runs.body import session_for
from streamql.features.tasks.runs.condition import ASKED, is_true
from streamql.features.tasks.runs.conduct import Control, Ended, run_claimed
from streamql.features.tasks.runs.steps import Claimed, abandoned, begin, claim, end, take_over
from streamql.features.tasks.runs.store import all_tasks
from streamql.times import now_ms

PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.2, 5.0
UNDER_WAY_SECONDS = 1.0
"""How soon it looks again while a graph runs: tasks of it may be ready, or their process dead."""


class TaskWork:
    """See `Work`. `considered`: for each root the last tick for which this process has looked at its condition."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._control = Control(desk.stops)
        self._considered: dict[str, int] = {}
        self._passed: set[str] = set()
        """Roots whose condition was false the last time, so that the event of it was written."""

    def cancel(self) -> None:
        """See `Work`."""
        self._control.cancel()

    def look(self) -> Look:
        """Returns the roots that are due, the tasks that are ready behind others, and those whose process is dead. No job runs."""
        spark, now = self._desk.spark, now_ms()
        tasks = all_tasks(spark)
        roots = [t for t in tasks if t.is_root]
        if self._desk.database is not None:
            here = qualify(spark, (self._desk.database, "_"))
            roots = [t for t in roots if t.name.is_in(here.catalog, here.schema)]
        items: list[Item] = []
        seconds = PAUSE_SECONDS_MAX
        for root in roots:
            items += self._under_way(root, tasks)
            tick = self._due(root, now)
            if tick is not None:
                items.append(Item(f"{root.uuid} {tick}", str(root.name), partial(self._start, root, tick)))
            elif root.ticks is not None and not root.is_suspended:
                seconds = min(seconds, (root.ticks.tick_after(now, root.start_ms) - now) / 1000)
            seconds = min(seconds, UNDER_WAY_SECONDS) if root.runs else seconds
        return Look(items, max(seconds, PAUSE_SECONDS_MIN))

    def _due(self, root: Task, now: int) -> int | None:
        """Returns the tick that makes a root due; None: none does."""
        if root.ticks is None or root.is_suspended or (root.runs and not root.allows_overlap):
            return None
        tick = root.ticks.tick_up_to(now, root.start_ms)
        return tick if tick is not None and tick > max(root.tick_ms, self._considered.get(root.uuid, 0)) else None

    def _under_way(self, root: Task, tasks: list[Task]) -> list[Item]:
        if not root.runs:
            return []
        names = {t.uuid: str(t.name) for t in tasks}
        nodes = graph_of(root, tasks)
        items = [
            Item(f"{lost.consumption_id} lost", lost.name, partial(self._take_over, root, lost))
            for lost in abandoned(self._desk.spark, root)
        ]
        for run in root.runs:
            can_begin = ready(run, nodes, root.uuid)
            items += [Item(f"{run.id} {uuid}", names[uuid], partial(self._continue, root, run)) for uuid in can_begin]
            if not run.running and not can_begin:  # it can end; its process died before it said so
                items.append(Item(f"{run.id} end", str(root.name), partial(self._continue, root, run)))
        return items

    def _start(self, root: Task, tick: int) -> bool:
        """Runs a root that is due, if its condition is true, and what is ready behind it."""
        spark = self._desk.spark
        self._considered[root.uuid] = tick
        problem: Exception | None = None
        try:
            holds = root.condition is None or is_true(session_for(spark, root), root.condition)
        except Exception as e:
            holds, problem = True, e
        if not holds:
            if root.uuid not in self._passed:
                self._passed.add(root.uuid)
                self._desk.tell("skipped", now_ms(), task=str(root.name), reason=FALSE)
            return True
        claimed = begin(spark, root.uuid, tick)
        if claimed is None:
            return True
        self._passed.discard(root.uuid)
        if problem is not None:
            why = ASKED + sentence(problem)
            with claimed.work:
                ended = Ended(claimed, "FAILED", why, problem, 0.0, end(spark, claimed, "FAILED", why))
            return self._ended(ended)
        return self._run(claimed)

    def _continue(self, root: Task, run: GraphRun) -> bool:
        claimed = claim(self._desk.spark, root.uuid, run.id)
        return True if claimed is None else self._run(claimed)

    def _take_over(self, root: Task, lost: TaskRun) -> bool:
        claimed = take_over(self._desk.spark, root.uuid, lost.run_id, lost)
        return True if claimed is None else self._run(claimed, lost)

    def _run(self, claimed: Claimed, lost: TaskRun | None = None) -> bool:
        """Runs a claimed task, and then those that are ready behind it. Returns whether all went well."""
        is_well = True
        next_one: Claimed | None = claimed
        while next_one is not None:
            self._tell_start(next_one, lost)
            ended = run_claimed(self._desk.spark, next_one, self._control)
            is_well = self._ended(ended) and is_well
            lost = None
            stops = self._desk.stops() or ended.root is None
            next_one = None if stops else claim(self._desk.spark, claimed.root.uuid, claimed.run.id)
        return is_well

    def _tell_start(self, claimed: Claimed, lost: TaskRun | None) -> None:
        who = None if lost is None or lost.owner is None else f"{lost.owner.who}, process {lost.owner.pid}"
        scheduled = clock(claimed.run.scheduled_ms)
        about = {**_about(claimed), "scheduled_at": scheduled, "attempt": claimed.entry.attempt, "taken_over_from": who}
        self._desk.tell("started", now_ms(), **about)

    def _ended(self, ended: Ended) -> bool:
        """Tells how a task ended. Returns whether it went well."""
        about = {**_about(ended.claimed), "seconds": round(ended.seconds, 3)}
        tell, name = self._desk.tell, str(ended.claimed.task.name)
        if ended.state is None:
            tell("returned", now_ms(), **about, reason=ended.why)
            return True
        if ended.state == "SUCCEEDED":
            tell("finished", now_ms(), **about)
            self._say(name, f"finished in {ended.seconds:.1f} s")
        elif ended.state == "SKIPPED":
            tell("skipped", now_ms(), **about, reason=ended.why)
        else:
            why = ended.why or ""
            code, error = code_of(why.removeprefix(ASKED))
            error = ASKED + error if why.startswith(ASKED) else error
            hint = ended.error.hint if isinstance(ended.error, StreamqlError) else None
            tell("failed", now_ms(), **about, code=code, error=error, hint=hint or None)
            self._say(name, f"failed: {ended.why}")
        root = ended.root
        if root is not None and root.is_suspended and not ended.claimed.root.is_suspended and root.failures:
            tell("suspended", now_ms(), task=str(root.name), failures=root.failures)
            self._say(str(root.name), f"was suspended after {root.failures} failures in a row")
        return ended.state in ("SUCCEEDED", "SKIPPED")

    def _say(self, name: str, what: str) -> None:
        self._desk.say(f"{time.strftime('%H:%M:%S')} {name} {what}")


def _about(claimed: Claimed) -> Mapping[str, object]:
    return {"task": str(claimed.task.name), "run_id": claimed.run.id, "root": str(claimed.root.name)}
