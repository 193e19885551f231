"""Runs of graphs of tasks, as the entry of a graph's root stores them. Pure.

A graph run begins with its root. Each task of it is claimed by a process, runs, and ends. Each of these steps is a compare-and-set on the
entry of the root. So one process at a time runs a task of a graph run.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from streamql.catalog.states import Owner, read_count

TaskState = Literal["RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"]
TASK_STATES: tuple[TaskState, ...] = get_args(TaskState)
TOOK = "took_ms"
"""The name, among the counts of a task, of the milliseconds that its runs took together."""
SUSPENDED, FALSE, NOT_REACHED, ABOVE = "it is suspended", "WHEN is false", "all tasks before it were skipped", "failed"
"""Why a task was skipped. ABOVE: a task before it failed; the reason is `task NAME failed`."""


@dataclass(frozen=True)
class TaskRun:
    """A task in a graph run. Times in milliseconds since 1970; `ended_ms` 0: it has not ended.

    `number`: that of its claim among those of the run. `owner`: the process that runs or ran it; None: no process did. `heartbeat`: how
    often the owner has shown that it is alive. `lease_seconds`: after so long without a heartbeat, other processes take the task over.
    `attempt`: how often it began. `why`: the error of a task that failed, the reason for one that was skipped.
    """

    run_id: str
    uuid: str
    name: str
    state: TaskState
    number: int = 0
    owner: Owner | None = None
    heartbeat: int = 0
    lease_seconds: float = 0.0
    attempt: int = 1
    started_ms: int = 0
    ended_ms: int = 0
    why: str | None = None

    @property
    def consumption_id(self) -> str:
        """Returns what stands for this claim of the task, for the process that runs it."""
        return f"{self.run_id}/{self.number}"

    @property
    def is_failure(self) -> bool:
        """Returns whether it ran, and did not succeed."""
        return self.state in ("FAILED", "CANCELLED")

    def why_in(self, root: str) -> str:
        """Returns why it failed, with its name unless it is the root of its graph. `root`: the id of that."""
        return f"{self.why}" if self.uuid == root else f"{self.name}: {self.why}"

    @property
    def has_failed(self) -> bool:
        """Returns whether tasks behind it cannot run."""
        return self.is_failure or (self.state == "SKIPPED" and (self.why or "").endswith(ABOVE))


@dataclass(frozen=True)
class GraphRun:
    """One run of a graph.

    `number`: grows from run to run of a root. `scheduled_ms`: the tick that made it due, or when EXECUTE TASK began it (`is_by_hand`).
    `attempt`: 1, and one more for each time that failed tasks were tried again. `claims`: how often a process has claimed one of its tasks.
    `tasks`: those that began or were skipped, by id.
    """

    id: str
    number: int
    scheduled_ms: int
    started_ms: int
    is_by_hand: bool = False
    attempt: int = 1
    claims: int = 0
    tasks: Mapping[str, TaskRun] = field(default_factory=dict)
    ended_ms: int = 0

    @property
    def running(self) -> list[TaskRun]:
        """Returns the tasks that a process runs, or ran when it died."""
        return [t for t in self.tasks.values() if t.state == "RUNNING"]

    @property
    def failed(self) -> list[TaskRun]:
        """Returns the tasks that failed or were cancelled."""
        return [t for t in self.tasks.values() if t.is_failure]

    def claimed(self, task: TaskRun) -> tuple[GraphRun, TaskRun]:
        """Returns the run with a task that a process claims now, and the task with the number of the claim."""
        made = replace(task, number=self.claims + 1)
        return replace(self.put(made), claims=self.claims + 1), made

    def put(self, task: TaskRun) -> GraphRun:
        """Returns the run with a task as it is now."""
        return replace(self, tasks={**self.tasks, task.uuid: task})

    def without(self, uuid: str) -> GraphRun:
        """Returns the run as if a task had not begun."""
        return replace(self, tasks={u: t for u, t in self.tasks.items() if u != uuid})

    def again(self, nodes: Mapping[str, Node]) -> GraphRun:
        """Returns the run with its failed tasks, and those that their failure skipped, to be tried again. A finalizer runs behind them.
        `nodes`: as `continued` takes them."""
        finals = {n.uuid for n in nodes.values() if n.is_finalizer}
        kept = {u: t for u, t in self.tasks.items() if not t.has_failed and u not in finals}
        return replace(self, tasks=kept, attempt=self.attempt + 1, ended_ms=0)


@dataclass(frozen=True)
class Node:
    """A task of a graph, as its runs see it. `parents`: the ids of the tasks before it. `is_finalizer`: it runs once all others ended,
    if one has begun."""

    uuid: str
    name: str
    parents: tuple[str, ...] = ()
    is_suspended: bool = False
    is_finalizer: bool = False


def continued(run: GraphRun, nodes: Mapping[str, Node], root: str, retries: int, now_ms: int) -> GraphRun:
    """Returns a run with all that follows from the tasks which have ended: others are skipped, failed ones are tried again, or the run
    ends. `nodes`: the tasks of the graph by id, its root among them. `retries`: how often failed tasks are tried again."""
    while True:
        run, is_changed = _with_skipped(run, nodes, now_ms)
        if is_changed:
            continue
        if run.running or ready(run, nodes, root):
            return run
        if run.failed and run.attempt <= retries:
            run = run.again(nodes)
            continue
        return replace(run, ended_ms=now_ms)


def _with_skipped(run: GraphRun, nodes: Mapping[str, Node], now_ms: int) -> tuple[GraphRun, bool]:
    """Returns the run with the tasks skipped that can no longer run, and whether there are any."""
    is_changed = False
    for node in nodes.values():
        if node.uuid in run.tasks or node.is_finalizer or not node.parents:
            continue
        above = _above(run, node)
        why = None if above is None else _skipped(node, above)
        if why is not None:
            skipped = TaskRun(run.id, node.uuid, node.name, "SKIPPED", started_ms=now_ms, ended_ms=now_ms, why=why)
            run, is_changed = run.put(skipped), True
    return run, is_changed


def _skipped(node: Node, above: list[TaskRun]) -> str | None:
    """Returns why a task cannot run, whose parents have all ended; None: it can."""
    failed = next((t for t in above if t.has_failed), None)
    if failed is not None:
        return f"task {failed.name} {ABOVE}" if failed.state != "SKIPPED" else failed.why
    if all(t.state == "SKIPPED" for t in above):
        return NOT_REACHED
    return SUSPENDED if node.is_suspended else None


def _above(run: GraphRun, node: Node) -> list[TaskRun] | None:
    """Returns the tasks before a task; None: not all of them have ended."""
    above = [run.tasks[p] for p in node.parents if p in run.tasks]
    return above if len(above) == len(node.parents) and all(t.state != "RUNNING" for t in above) else None


def ready(run: GraphRun, nodes: Mapping[str, Node], root: str) -> list[str]:
    """Returns the ids of the tasks that can begin now."""
    if run.ended_ms:
        return []
    if root not in run.tasks:
        return [root]
    rest = [n for n in nodes.values() if n.uuid not in run.tasks]
    found = [n.uuid for n in rest if n.parents and _above(run, n) is not None]
    finals = [n.uuid for n in rest if n.is_finalizer and not n.is_suspended]
    has_begun = any(t.state != "SKIPPED" for t in run.tasks.values())
    is_waited_for = any(not nodes[t.uuid].is_finalizer for t in run.running if t.uuid in nodes)
    return found if found or is_waited_for or not has_begun else finals


def counted(
    before: Mapping[str, Mapping[str, int]], ended: Iterable[TaskRun], known: Container[str]
) -> dict[str, dict[str, int]]:
    """Returns the counts of tasks, by their ids, after some have ended. `known`: the ids of the tasks that there are; others are left
    out."""
    counts = {uuid: dict(own) for uuid, own in before.items() if uuid in known}
    for task in ended:
        own = counts.setdefault(task.uuid, {})
        own[task.state] = own.get(task.state, 0) + 1
        own[TOOK] = own.get(TOOK, 0) + max(0, task.ended_ms - task.started_ms)
    return counts


def run_json(run: GraphRun) -> dict[str, Any]:
    """Returns the JSON form of a run."""
    tasks = [
        {**{k: v for k, v in vars(t).items() if k not in ("run_id", "owner")}, "owner": t.owner and vars(t.owner)}
        for t in run.tasks.values()
    ]
    return {**vars(run), "tasks": tasks}


def read_run(data: Mapping[str, Any]) -> GraphRun:
    """Returns the run that `run_json` wrote. Raises LookupError, TypeError, ValueError."""
    tasks = {}
    for one in data["tasks"]:
        owner = one["owner"]
        made = Owner(**owner | {"pid": read_count(owner["pid"])}) if owner else None
        tasks[one["uuid"]] = TaskRun(**{**one, "run_id": data["id"], "owner": made})
    return GraphRun(**{**data, "tasks": tasks})
