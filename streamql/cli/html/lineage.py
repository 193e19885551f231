"""Where rows come from and where they go: tables, streams, dynamic tables and tasks in one picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streamql.cli.html.graph import Box, Edge, picture
from streamql.cli.html.markup import Markup
from streamql.cli.html.model import Report
from streamql.cli.status import lines
from streamql.console.jobs.script_tables import Parts, names_read, names_written
from streamql.console.render import quantities
from streamql.engine.ledger import Flow
from streamql.engine.stream_facts import StreamFacts
from streamql.errors import counted
from streamql.features.dynamic import lines as dynamic_lines
from streamql.features.dynamic.refreshes.facts import DynamicFacts
from streamql.features.tasks import lines as task_lines
from streamql.features.tasks.model.task import Task

TASK = "task "
"""The keys of tasks begin with it: a task may have the name of a table."""


def lineage(report: Report) -> Markup:
    """Returns the whole picture. The report has at least one stream, dynamic table or task."""
    seen = report.overview
    boxes = {s.name: _stream_box(s, seen.at_ms) for s in seen.streams}
    boxes |= {t.name: _dynamic_box(t, seen.at_ms) for t in seen.dynamic}
    by_name = {t.name: t for t in seen.dynamic}
    edges = [_source_edge(s) for s in seen.streams]
    edges += [
        Edge(other, t.name, f"{other} → {t.name}", _dynamic_css(by_name, other, t))
        for t in seen.dynamic
        for other in (*t.reads, *t.sources)
    ]
    flows = [(s, flow) for s in seen.streams for flow in report.flows.get(s.uuid, ())]
    names = [*boxes, *(e.start for e in edges), *(flow.target for _, flow in flows)]
    of_tasks, by_task = _task_edges([task for task, _ in seen.tasks], flows, names)
    edges += [e for e in (_flow_edge(s.name, s, flow) for s, flow in flows) if (e.start, e.end) not in by_task]
    edges += of_tasks
    tables = {key: Box(key, "table", key) for e in edges for key in (e.start, e.end) if not key.startswith(TASK)}
    tasks = {f"{TASK}{task.name}": _task_box(task, root, seen.at_ms) for task, root in seen.tasks}
    return picture(tables | boxes | tasks, edges, "lineage")


def _task_edges(
    tasks: Sequence[Task], flows: Sequence[tuple[StreamFacts, Flow]], names: Sequence[str]
) -> tuple[list[Edge], set[tuple[str, str]]]:
    """Returns the edges from and to tasks; and the streams, each with a target, between which a task is drawn."""
    known = {name.replace("`", "").lower(): name for name in names}
    keys = {str(task.name): f"{TASK}{task.name}" for task in tasks}
    edges: list[Edge] = []
    between: set[tuple[str, str]] = set()
    for task in tasks:
        key = keys[str(task.name)]
        written = list(_found(names_written([task.body]), task, known))
        read = [n for n in _found(names_read([task.body]), task, known) if n not in written]
        edges += [Edge(name, key, f"{name} → {task.name}") for name in read]
        for name in written:
            into = [(s, flow) for s, flow in flows if s.name in read and flow.target == name]
            between |= {(s.name, name) for s, _ in into}
            edges += [_flow_edge(key, s, flow) for s, flow in into] or [Edge(key, name, f"{task.name} → {name}")]
        before = task.after if task.finalizes is None else (task.finalizes,)
        edges += [Edge(keys[str(b)], key, f"{task.name} runs after {b}", "order") for b in before if str(b) in keys]
    return edges, between


def _found(names: Sequence[Parts], task: Task, known: Mapping[str, str]) -> Iterator[str]:
    """Yields those of the names, as a task's statements have them, that are known."""
    for name in names:
        parts = name[-2:] if len(name) > 1 else (task.place[1].lower(), *name)
        if (key := ".".join(parts)) in known:
            yield known[key]


def _source_edge(stream: StreamFacts) -> Edge:
    css = "broken" if stream.state in ("stale", "invalid") else ""
    return Edge(stream.source, stream.name, f"{stream.source} → {stream.name}", css)


def _flow_edge(start: str, stream: StreamFacts, flow: Flow) -> Edge:
    written = "" if flow.rows_written is None else f", {counted(flow.rows_written, 'row')} written"
    last = quantities.plain_clock(flow.last_ms)
    said = f"{stream.name} → {flow.target}\n{counted(flow.consumptions, 'consumption')}{written}\nlast {last}"
    return Edge(start, flow.target, said, weight=flow.consumptions)


def _dynamic_css(by_name: Mapping[str, DynamicFacts], start: str, end: DynamicFacts) -> str:
    suspended = start in by_name and by_name[start].is_suspended
    return "broken" if suspended or end.state == "failed" else ""


def _stream_box(facts: StreamFacts, now_ms: int) -> Box:
    line = lines.line_of(facts, now_ms)
    said = [f"{line.name}: {line.state}, {facts.mode}", *_trouble(line.trouble)]
    return Box(line.name, _note("stream", line.lag), "\n".join(said), line.tone)


def _dynamic_box(facts: DynamicFacts, now_ms: int) -> Box:
    line = dynamic_lines.line_of(facts, now_ms)
    lag = f"lag {line.lag}" + (f" of {line.amount}" if line.amount else "")
    said = [f"{line.name}: {line.state}", lag, f"last refresh {line.last}"]
    said += [f"next refresh {line.deadline}"] if line.deadline else []
    said += _trouble(line.trouble)
    return Box(
        line.name,
        _note(facts.label.lower(), f"lag {line.lag}"),
        "\n".join(said),
        f"{line.tone} {line.marks.get('lag', '')}",
    )


def _task_box(task: Task, root: Task | None, now_ms: int) -> Box:
    line = task_lines.line_of(task, root, now_ms)
    said = [f"{line.name}: {line.state}", f"last run {line.last}", *_trouble(line.trouble)]
    return Box(line.name, _note("task", line.lag), "\n".join(said), f"{line.tone} task")


def _note(kind: str, more: str) -> str:
    return f"{kind}, {more}" if more else kind


def _trouble(said: str) -> list[str]:
    return [quantities.shortened(said, 500)] if said else []
