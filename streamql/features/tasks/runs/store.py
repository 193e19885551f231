"""Tasks in the catalog: found by name, and changed by compare-and-set."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from streamql.catalog.store import catalog_of
from streamql.delta.names import qualify
from streamql.errors import StreamqlError
from streamql.features.tasks.model.runs import GraphRun, TaskRun
from streamql.features.tasks.model.task import Task, task_of
from streamql.misspelt import nearest
from streamql.names import Name
from streamql.sources.definitions import DefinitionType

ATTEMPTS_MAX = 50
"""How often a change is tried again after other processes have changed the task in between."""
EVENT = "task_run"
"""The event of the catalog that says how a task of a graph run has ended."""


def all_tasks(spark: SparkSession) -> list[Task]:
    """Returns all tasks, sorted by name. Raises CATALOG_UNREADABLE."""
    return [task_of(d) for d in catalog_of(spark).definitions(spark, DefinitionType.TASK)]


def find_task(spark: SparkSession, name: Name) -> Task | None:
    """Returns the task of a name; None: there is none."""
    found = catalog_of(spark).definition(spark, name, DefinitionType.TASK)
    return None if found is None else task_of(found)


def need_task(spark: SparkSession, parts: Sequence[str], where: Mapping[str, int]) -> Task:
    """Returns the task of a name as written. `where`: its line and column. Raises TASK_NOT_FOUND."""
    name = qualify(spark, tuple(parts))
    found = find_task(spark, name)
    if found is not None:
        return found
    known = all_tasks(spark)
    elsewhere = next((t.name for t in known if t.name.object.lower() == name.object.lower()), None)
    near = nearest(name.object, [t.name.object for t in known if t.name.schema.lower() == name.schema.lower()])
    hint = f"did you mean {near}?" if near else "SHOW TASKS lists those there are"
    if elsewhere is not None:
        hint = f"it is in another schema: {elsewhere}"
    raise StreamqlError("TASK_NOT_FOUND", f"there is no task {name}", hint=hint, name=str(name), **where)


@dataclass(frozen=True)
class Change:
    """A task as it becomes, and the rows of the events that are written with it."""

    after: Task
    events: Sequence[Mapping[str, Any]] = ()


def changed(spark: SparkSession, uuid: str, step: Callable[[Task, list[Task]], Change | None]) -> Task | None:
    """Changes a task by one commit of the catalog, and returns it. None: it does not exist, or `step` returned None.

    `step`: takes the task and all tasks as they are now, and is called again if another process has changed the task meanwhile. Raises
    STREAM_BUSY, and what `step` raises.
    """
    catalog = catalog_of(spark)
    for _ in range(ATTEMPTS_MAX):
        tasks = all_tasks(spark)
        task = next((t for t in tasks if t.uuid == uuid), None)
        change = None if task is None else step(task, tasks)
        if task is None or change is None:
            return None
        if catalog.commit(spark, [task.definition], [change.after.to_definition()], list(change.events)):
            return change.after
    raise StreamqlError("STREAM_BUSY", "other processes keep changing the task", hint="run the statement again")


def run_event(root: Task, run: GraphRun, task: TaskRun, body: str) -> dict[str, Any]:
    """Returns the row of the event that a task of a run has ended. `body`: its statements."""
    owner = task.owner
    return {
        "event": EVENT,
        "sequence": root.definition.sequence,
        "stream": task.name,
        "source": str(root.name),
        "source_id": task.uuid,
        "consumption_id": run.id,
        "statement": body,
        "operation": "TASK",
        "user_name": None if owner is None else owner.user,
        "host": None if owner is None else owner.host.split("/")[0],
        "pid": None if owner is None else owner.pid,
        "started_at": task.started_ms,
        "ended_at": task.ended_ms,
        "outcome": task.state,
        "error": task.why,
        "details": json.dumps(
            {
                "scheduled_ms": run.scheduled_ms,
                "attempt": task.attempt,
                "graph_attempt": run.attempt,
                "by_hand": run.is_by_hand,
            }
        ),
    }


VIEW_COLUMNS = {
    "task": "stream",
    "state": "outcome",
    "scheduled_at": "timestamp_millis(CAST(get_json_object(details, '$.scheduled_ms') AS BIGINT))",
    "started_at": "started_at",
    "ended_at": "ended_at",
    "attempt": "CAST(get_json_object(details, '$.attempt') AS BIGINT)",
    "error": "error",
    "root": "source",
    "run_id": "consumption_id",
    "task_id": "source_id",
    "statement": "statement",
    "user_name": "user_name",
    "host": "host",
    "pid": "pid",
    "details": "details",
}
"""The columns of the view `streamql.task_runs`, over those of the table of events."""
