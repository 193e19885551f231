"""Tasks in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from streamql.console.render import quantities
from streamql.console.status import Line, Listing, Subject
from streamql.errors import counted
from streamql.features.tasks.model.runs import TaskRun
from streamql.features.tasks.model.task import Task, root_of


def with_roots(chosen: Sequence[Task], tasks: Sequence[Task]) -> tuple[tuple[Task, Task | None], ...]:
    """Returns tasks, each with the root of its graph. `tasks`: all that there are."""
    return tuple((task, root_of(task, tasks)) for task in chosen)


def listing(tasks: Sequence[tuple[Task, Task | None]], at_ms: int) -> Listing:
    """Returns tasks, with their roots, as they stood at a time, in milliseconds since 1970."""
    return Listing(TASKS, [line_of(task, root, at_ms) for task, root in tasks])


def line_of(task: Task, root: Task | None, now_ms: int) -> Line:
    """Returns the line of one task. `root`: that of its graph; None: the tasks before it do not exist."""
    last, state = last_run(task, root), state_of(task, root)
    return Line(
        name=str(task.name),
        origin=predecessors(task) or task.condition or "",
        lag=schedule_text(task),
        amount=counted(task.failures, "failure") if task.failures else "",
        state=state,
        deadline=_next_text(task, now_ms),
        last="never" if last is None else f"{last.state} {quantities.ago(last.ended_ms, now_ms)}",
        tone=TASKS.states[state],
        trouble=_trouble(root, last),
        error=(last.why or "") if last is not None and last.is_failure else "",
        marks={"last": "failed"} if state == "failed" else {},
    )


def last_run(task: Task, root: Task | None) -> TaskRun | None:
    """Returns what became of a task in the last run of its graph that has ended. None: there was no run with it."""
    return None if root is None or root.last is None else root.last.tasks.get(task.uuid)


def state_of(task: Task, root: Task | None) -> str:
    """Returns one word for the status. If several apply, it is the one that needs attention most."""
    if root is None:
        return "lost"
    last = last_run(task, root)
    if last is not None and last.is_failure:
        return "failed"
    if any(t.uuid == task.uuid for run in root.runs for t in run.running):
        return "running"
    return "suspended" if task.is_suspended else "started"


def schedule_text(task: Task) -> str:
    """every 5 minutes; USING CRON 0 9 * * MON Europe/Berlin; on data: it has a condition and no schedule; empty: it has neither."""
    if task.schedule is not None:
        return f"every {task.schedule}" if task.schedule.interval_ms is not None else str(task.schedule)
    return "on its condition" if task.is_triggered else ""


def predecessors(task: Task) -> str:
    """Returns the tasks before a task; empty: there are none."""
    return f"all tasks of {task.finalizes}" if task.finalizes is not None else ", ".join(map(str, task.after))


def next_ms(task: Task, now_ms: int) -> int | None:
    """Returns when a task is due next, in milliseconds since 1970. None: no schedule makes it due."""
    return None if task.ticks is None or task.is_suspended else task.ticks.tick_after(now_ms, task.start_ms)


def _next_text(task: Task, now_ms: int) -> str:
    at = next_ms(task, now_ms)
    return "" if at is None else quantities.until(at, now_ms)


def _trouble(root: Task | None, last: TaskRun | None) -> str:
    if root is None:
        return "the tasks before it do not exist"
    if last is None or not last.is_failure:
        return ""
    ended = f", and {root.name} was suspended" if root.is_suspended and root.failures else ""
    return f"its last run failed{ended}: {last.why}"


TASKS = Subject(
    noun="task",
    header={
        "name": "task",
        "origin": "behind, or when",
        "lag": "schedule",
        "amount": "failures",
        "state": "state",
        "deadline": "next",
        "last": "last run",
    },
    states={"lost": "bad", "failed": "bad", "running": "busy", "started": "good", "suspended": "quiet"},
    fields=(),
    numeric=frozenset(),
)
