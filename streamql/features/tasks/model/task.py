"""A task as the catalog stores it: a definition whose options are JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamql.errors import StreamqlError
from streamql.features.tasks.model.runs import GraphRun, Node, read_run, run_json
from streamql.features.tasks.model.schedule import Schedule
from streamql.names import Name
from streamql.sources.definitions import Definition, DefinitionType

FAILURES_MAX = 10
"""After so many failed runs in a row a task is suspended, unless it says otherwise; as in Snowflake."""
TIMEOUT_MS = 3_600_000
TRIGGER_MS = 30_000
"""How often the condition of a task without a schedule is looked at."""
_OPTION = "task"
_COUNTS = "counts"
"""The option that has what was counted of runs. An earlier release does not read it, and drops it with its next change."""


@dataclass(frozen=True)
class Task:
    """A task. Times in milliseconds since 1970, durations in milliseconds.

    `after`: the tasks before it, by name. `finalizes`: the root of the graph whose last task it is; None: it is an ordinary one. `place`:
    the catalog and schema in which its statements run. `failures_max`: 0: it is never suspended. `timeout_ms`: 0: there is none.
    `since_ms`: when it was resumed; ticks before do not count. `tick_ms`: the last tick for which a run began, or was left out because
    another run was under way. `runs`: of a root, its runs that have not ended; `last`: the last that ended; None: none has. `failures`:
    how many runs have failed in a row. `number`: that of its last run. `counts`: of a root, how often its tasks have ended, by their ids:
    by state, and in TOOK the milliseconds that they took together.
    """

    definition: Definition
    body: str
    place: tuple[str, str]
    schedule: Schedule | None = None
    after: tuple[Name, ...] = ()
    finalizes: Name | None = None
    condition: str | None = None
    allows_overlap: bool = False
    failures_max: int = FAILURES_MAX
    retries: int = 0
    timeout_ms: int = TIMEOUT_MS
    trigger_ms: int = TRIGGER_MS
    conf: Mapping[str, str] = field(default_factory=dict)
    is_suspended: bool = True
    since_ms: int = 0
    tick_ms: int = 0
    failures: int = 0
    number: int = 0
    runs: tuple[GraphRun, ...] = ()
    last: GraphRun | None = None
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        """Returns the id of its definition."""
        return self.definition.uuid

    @property
    def name(self) -> Name:
        """Returns its name."""
        return self.definition.name

    @property
    def is_root(self) -> bool:
        """Returns whether a graph, perhaps of one task, begins with it."""
        return not self.after and self.finalizes is None

    @property
    def ticks(self) -> Schedule | None:
        """Returns when it is due: by its schedule, or, if it has only a condition, whenever that is looked at. None: never."""
        if not self.is_root:
            return None
        if self.schedule is None and self.condition is not None:
            return Schedule(self.trigger_ms)
        return self.schedule

    @property
    def start_ms(self) -> int:
        """Returns the time behind which its ticks begin. A condition without a schedule is looked at as soon as the task is resumed."""
        return self.since_ms - self.trigger_ms if self.is_triggered else self.since_ms

    @property
    def is_triggered(self) -> bool:
        """Returns whether it has a condition and no schedule."""
        return self.is_root and self.schedule is None and self.condition is not None

    def run(self, run_id: str) -> GraphRun | None:
        """Returns one of its runs that have not ended."""
        return next((r for r in self.runs if r.id == run_id), None)

    def with_run(self, run: GraphRun) -> Task:
        """Returns the task with one of its runs as it is now."""
        return replace(self, runs=tuple(run if r.id == run.id else r for r in self.runs))

    def next(self, **changes: Any) -> Task:
        """Returns the task after one more event. `changes`: fields with their new values."""
        definition = changes.pop("definition", self.definition)
        return replace(self, definition=replace(definition, sequence=self.definition.sequence + 1), **changes)

    def to_definition(self) -> Definition:
        """Returns what the catalog stores."""
        data = {
            "body": self.body,
            "place": list(self.place),
            "schedule": None if self.schedule is None else vars(self.schedule),
            "after": [list(name.parts) for name in self.after],
            "finalizes": None if self.finalizes is None else list(self.finalizes.parts),
            "condition": self.condition,
            "allows_overlap": self.allows_overlap,
            "failures_max": self.failures_max,
            "retries": self.retries,
            "timeout_ms": self.timeout_ms,
            "trigger_ms": self.trigger_ms,
            "conf": dict(self.conf),
            "is_suspended": self.is_suspended,
            "since_ms": self.since_ms,
            "tick_ms": self.tick_ms,
            "failures": self.failures,
            "number": self.number,
            "runs": [run_json(run) for run in self.runs],
            "last": None if self.last is None else run_json(self.last),
        }
        counts = {_COUNTS: json.dumps(self.counts, sort_keys=True)} if self.counts else {}
        return replace(self.definition, options={_OPTION: json.dumps(data, sort_keys=True), **counts})


def task_of(definition: Definition) -> Task:
    """Returns the task that a definition of its type stores. Raises CATALOG_UNREADABLE."""
    assert definition.type is DefinitionType.TASK
    try:
        data = json.loads(definition.options[_OPTION])
        schedule, finalizes, last = data["schedule"], data["finalizes"], data["last"]
        return Task(
            **{
                **data,
                "definition": definition,
                "place": (str(data["place"][0]), str(data["place"][1])),
                "schedule": None if schedule is None else Schedule(**schedule),
                "after": tuple(Name.of(parts) for parts in data["after"]),
                "finalizes": None if finalizes is None else Name.of(finalizes),
                "runs": tuple(read_run(run) for run in data["runs"]),
                "last": None if last is None else read_run(last),
                "counts": json.loads(definition.options.get(_COUNTS, "{}")),
            }
        )
    except (LookupError, TypeError, ValueError, AttributeError) as e:
        raise StreamqlError(
            "CATALOG_UNREADABLE",
            f"the entry of task {definition.name} is damaged, or a newer streamql wrote it: {e!r}",
            hint=f"upgrade streamql here; or DROP TASK {definition.name}, and make it again",
        ) from e


def graph_of(root: Task, tasks: Sequence[Task]) -> dict[str, Node]:
    """Returns the graph that begins with a root: its tasks by id, the root first, each behind those before it. A task whose predecessors
    do not all exist waits for those that do. `tasks`: all that there are."""
    by_key = {task.name.key: task for task in tasks}
    found = {root.uuid: Node(root.uuid, str(root.name), (), root.is_suspended)}
    waiting = [t for t in tasks if t.after]
    while True:
        rest = []
        for task in waiting:
            parents = tuple(by_key[n.key].uuid for n in task.after if n.key in by_key)
            if parents and all(p in found for p in parents):
                found[task.uuid] = Node(task.uuid, str(task.name), parents, task.is_suspended)
            else:
                rest.append(task)
        if len(rest) == len(waiting):
            break
        waiting = rest
    for task in tasks:
        if task.finalizes is not None and task.finalizes.key == root.name.key:
            found[task.uuid] = Node(task.uuid, str(task.name), (), task.is_suspended, is_finalizer=True)
    return found


def root_of(task: Task, tasks: Sequence[Task]) -> Task | None:
    """Returns the root of a task's graph; None: the tasks before it do not exist."""
    by_key = {} if task.is_root else {t.name.key: t for t in tasks}
    seen: set[str] = set()
    while not task.is_root:
        if task.uuid in seen:
            return None
        seen.add(task.uuid)
        above = task.finalizes or next((n for n in task.after if n.key in by_key), None)
        if above is None or above.key not in by_key:
            return None
        task = by_key[above.key]
    return task


def circle(task: Task, tasks: Sequence[Task]) -> list[str] | None:
    """Returns the names of tasks that would each run behind the next one in a circle; None: there is no circle through the task."""
    by_key = {t.name.key: t for t in tasks} | {task.name.key: task}
    path: list[Task] = []

    def visit(one: Task) -> list[str] | None:
        if one.name.key == task.name.key and path:
            return [str(t.name) for t in (*path, one)]
        if any(t.name.key == one.name.key for t in path):
            return None
        path.append(one)
        for name in one.after:
            found = visit(by_key[name.key]) if name.key in by_key else None
            if found is not None:
                return found
        path.pop()
        return None

    return visit(task)
