"""CREATE, ALTER and DROP of tasks. Each is one commit of the catalog."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from pyspark.sql import SparkSession

from streamql.catalog.identity import user_of
from streamql.catalog.store import catalog_of
from streamql.consume import session_transactions
from streamql.delta.names import qualify
from streamql.dialect import parse
from streamql.engine.ddl import ATTEMPTS_MAX, check_free, check_free_of_streams, definition_exists, place_of
from streamql.errors import StreamqlError
from streamql.features.tasks.language.statements import (
    Action,
    AddAfter,
    AlterTask,
    CreateTask,
    DropTask,
    ModifyBody,
    ModifyCondition,
    RemoveAfter,
    Resume,
    Set,
    Settings,
    Suspend,
    Unset,
)
from streamql.features.tasks.model.task import Task, circle, root_of
from streamql.features.tasks.runs.body import statements_of
from streamql.features.tasks.runs.store import Change, all_tasks, changed, find_task, need_task
from streamql.names import Name
from streamql.sources.definitions import Definition, DefinitionType
from streamql.times import now_ms

log = logging.getLogger("streamql")

_OF_TASK = ("schedule", "allows_overlap", "failures_max", "retries", "timeout_ms", "trigger_ms")
"""Fields of `Settings` that `Task` has under the same name."""


def create_task(spark: SparkSession, statement: CreateTask, text: str) -> None:
    """Makes a task, which is suspended. Raises NAME_ALREADY_IN_USE, SCHEMA_NOT_FOUND, TASK_NOT_FOUND for a task behind AFTER,
    INVALID_PROPERTY for a task that would wait for itself, and what is wrong with its statements."""
    session_transactions.refuse_in_transaction(spark, "CREATE TASK")
    name, where = qualify(spark, statement.name), place_of(statement.name_span)
    catalog = catalog_of(spark)
    for _ in range(ATTEMPTS_MAX):
        old = find_task(spark, name)
        if old is not None and statement.if_not_exists:
            return
        if old is not None and not statement.or_replace:
            raise definition_exists(old.definition, where)
        if old is None:
            check_free_of_streams(spark, name, where)
            check_free(spark, name, statement.name_span)
        made = _made(spark, statement, name, text)
        _check(made, [t for t in all_tasks(spark) if t.name.key != name.key], where)
        before = [] if old is None else [old.definition]
        if catalog.commit(spark, before, [made.to_definition()], []):
            _warn_of_unused(statement.settings)
            return
    raise StreamqlError("STREAM_BUSY", f"other processes keep changing {name}", hint="run the statement again")


def _made(spark: SparkSession, statement: CreateTask, name: Name, text: str) -> Task:
    check_body(statement.body)
    here = qualify(spark, ("_",))
    definition = Definition(
        uuid=str(uuid.uuid4()),
        type=DefinitionType.TASK,
        name=name,
        options={},
        comment=statement.settings.comment,
        created_at_ms=now_ms(),
        created_by=user_of(spark),
        text=text.strip().rstrip(";").strip(),
    )
    task = Task(definition, statement.body, (here.catalog, here.schema), condition=statement.condition)
    given = {f: getattr(statement.settings, f) for f in _OF_TASK if getattr(statement.settings, f) is not None}
    finalizes = statement.settings.finalizes
    return replace(
        task,
        **given,
        conf=dict(statement.settings.conf),
        after=tuple(_named(spark, name, parts) for parts in statement.after),
        finalizes=None if finalizes is None else _named(spark, name, finalizes),
    )


def _named(spark: SparkSession, task: Name, parts: Sequence[str]) -> Name:
    """Returns the name of another task, which is in the schema of the task unless it says otherwise."""
    return Name(task.catalog, task.schema, parts[0]) if len(parts) == 1 else qualify(spark, tuple(parts))


def check_body(body: str) -> None:
    """Raises what is wrong with statements of streamql's own in a body. Spark's are checked when they run."""
    for text in statements_of(body):
        parse(text)


def _check(task: Task, others: Sequence[Task], where: Mapping[str, int]) -> None:
    """Raises TASK_NOT_FOUND, INVALID_PROPERTY if a task does not fit into a graph."""
    known = {t.name.key: t for t in others}
    for name in (*task.after, *(() if task.finalizes is None else (task.finalizes,))):
        if name.key not in known and name.key != task.name.key:
            hint = "SHOW TASKS lists those there are; the tasks before a task are made first"
            raise StreamqlError("TASK_NOT_FOUND", f"there is no task {name}", hint=hint, name=str(name), **where)
    found = circle(task, others)
    if found is not None:
        raise _invalid(
            f"the tasks would wait for each other: {' → '.join(reversed(found))}", "leave one of them out", where
        )
    if task.schedule is not None and not task.is_root:
        raise _invalid(
            "a task behind others has no schedule: it runs when they have ended", "leave SCHEDULE out", where
        )
    if task.after and task.finalizes is not None:
        raise _invalid("AFTER and FINALIZE exclude each other", "leave one of them out", where)
    if task.finalizes is not None and not known[task.finalizes.key].is_root:
        raise _invalid(f"{task.finalizes} is not the root of a graph", "name the task with the schedule", where)
    if task.finalizes is not None and any(
        t.finalizes is not None and t.finalizes.key == task.finalizes.key for t in others
    ):
        raise _invalid(f"{task.finalizes} has a finalizer", "DROP TASK the other one first", where)
    roots = {r.name.key: r.name for t in task.after if (r := root_of(known[t.key], [*others, task])) is not None}
    if len(roots) > 1:
        named = " and ".join(str(name) for name in roots.values())
        raise _invalid(f"the tasks behind AFTER are of several graphs: {named}", "name tasks of one graph", where)


def _invalid(message: str, hint: str, where: Mapping[str, int]) -> StreamqlError:
    return StreamqlError("INVALID_PROPERTY", message, hint=hint, **where)


def _warn_of_unused(settings: Settings) -> None:
    for name in settings.unused:
        log.warning("%s has no effect: a task runs in the process of the scheduler", name)


def alter_task(spark: SparkSession, statement: AlterTask, _: str) -> None:
    """Changes a task. A run that is under way keeps what it began with. Raises TASK_NOT_FOUND, and what CREATE raises."""
    session_transactions.refuse_in_transaction(spark, "ALTER TASK")
    where = place_of(statement.name_span)
    if statement.if_exists and find_task(spark, qualify(spark, statement.name)) is None:
        return
    found = need_task(spark, statement.name, where)
    if isinstance(statement.action, ModifyBody):
        check_body(statement.action.body)

    def step(task: Task, tasks: list[Task]) -> Change | None:
        after = replace(task, **_altered(spark, task, statement.action))
        if isinstance(statement.action, Resume) and after.is_root and after.ticks is None:
            raise _invalid(
                f"{task.name} has neither a schedule nor a condition",
                f"ALTER TASK {task.name} SET SCHEDULE = '5 minutes'; or EXECUTE TASK {task.name}",
                where,
            )
        _check(after, [t for t in tasks if t.uuid != task.uuid], where)
        return Change(after.next())

    if changed(spark, found.uuid, step) is None:
        raise StreamqlError("TASK_NOT_FOUND", f"task {found.name} was dropped meanwhile", hint="SHOW TASKS", **where)
    if isinstance(statement.action, Set):
        _warn_of_unused(statement.action.settings)


def _altered(spark: SparkSession, task: Task, action: Action) -> Mapping[str, Any]:
    """Returns the fields that an action changes, with their new values."""
    if isinstance(action, Resume):
        return {"is_suspended": False, "failures": 0, "since_ms": now_ms() if task.is_suspended else task.since_ms}
    if isinstance(action, Suspend):
        return {"is_suspended": True}
    if isinstance(action, ModifyBody):
        return {"body": action.body}
    if isinstance(action, ModifyCondition):
        return {"condition": action.condition}
    if isinstance(action, AddAfter):
        named = [_named(spark, task.name, parts) for parts in action.tasks]
        keys = {n.key for n in task.after}
        return {"after": (*task.after, *(n for n in named if n.key not in keys))}
    if isinstance(action, RemoveAfter):
        keys = {_named(spark, task.name, parts).key for parts in action.tasks}
        return {"after": tuple(n for n in task.after if n.key not in keys)}
    if isinstance(action, Unset):
        return _unset(task, action)
    return _set(spark, task, action.settings)


def _set(spark: SparkSession, task: Task, settings: Settings) -> Mapping[str, Any]:
    given = {f: getattr(settings, f) for f in _OF_TASK if getattr(settings, f) is not None}
    if settings.finalizes is not None:
        given["finalizes"] = _named(spark, task.name, settings.finalizes)
    if settings.comment is not None:
        given["definition"] = replace(task.definition, comment=settings.comment)
    if settings.schedule is not None and not task.is_suspended:
        given["since_ms"] = now_ms()
    return given | ({"conf": {**task.conf, **settings.conf}} if settings.conf else {})


def _unset(task: Task, action: Unset) -> Mapping[str, Any]:
    defaults = {f.name: f.default for f in fields(Task)}
    given: dict[str, Any] = {f: defaults[f] for f in action.fields if f != "comment"}
    if "comment" in action.fields:
        given["definition"] = replace(task.definition, comment=None)
    if action.conf:
        gone = {key.lower() for key in action.conf}
        given["conf"] = {k: v for k, v in task.conf.items() if k.lower() not in gone}
    return given


def _is_only_before(task: Task, other: Task) -> bool:
    """Returns whether a task is all that comes before another one."""
    before = other.after if other.finalizes is None else (other.finalizes,)
    return bool(before) and all(name.key == task.name.key for name in before)


def drop_task(spark: SparkSession, statement: DropTask, _: str) -> None:
    """Drops a task. Its history stays. A run that is under way ends with the statement that runs. Raises TASK_NOT_FOUND."""
    session_transactions.refuse_in_transaction(spark, "DROP TASK")
    for _attempt in range(ATTEMPTS_MAX):
        if statement.if_exists and find_task(spark, qualify(spark, statement.name)) is None:
            return
        found = need_task(spark, statement.name, place_of(statement.name_span))
        left = [str(t.name) for t in all_tasks(spark) if _is_only_before(found, t)]
        if catalog_of(spark).commit(spark, [found.definition], [None], []):
            if left:
                log.warning("%s ran behind %s, and no longer has a task before it", ", ".join(left), found.name)
            return
    raise StreamqlError("STREAM_BUSY", "other processes keep changing the task", hint="run the statement again")
