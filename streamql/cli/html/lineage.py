"""Where changes come from and where they go: sources, streams and targets in three columns, joined by curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamql.cli.html.markup import Content, Markup, element, joined, title
from streamql.cli.html.model import Report
from streamql.cli.status.lines import STREAMS
from streamql.console.render import quantities
from streamql.engine.stream_facts import StreamFacts
from streamql.errors import counted

ROW, BOX_WIDTH, BOX_HEIGHT, GAP = 34, 240, 26, 110
COLUMNS = tuple((BOX_WIDTH + GAP) * n for n in range(3))
WIDTH = COLUMNS[2] + BOX_WIDTH
HEAD = 28
LETTERS_MAX = 32


@dataclass(frozen=True)
class Edge:
    """From row to row of two neighbouring columns; `weight` from 0 on: how often."""

    start: float
    end: float
    weight: int
    css: str
    said: str


def lineage(report: Report) -> Markup:
    """Returns the whole picture; as high as its longest column."""
    streams = sorted(report.overview.streams, key=lambda s: (s.source, s.name))
    rows = {s.uuid: float(n) for n, s in enumerate(streams)}
    sources = _spread(_centres([(s.source, rows[s.uuid]) for s in streams]))
    into = [(flow.target, rows[s.uuid]) for s in streams for flow in report.flows.get(s.uuid, ())]
    targets = _spread(_centres(into))
    edges = [_in_edge(s, sources[s.source], rows[s.uuid]) for s in streams]
    for s in streams:
        for flow in report.flows.get(s.uuid, ()):
            written = "" if flow.rows_written is None else f", {counted(flow.rows_written, 'row')} written"
            last = quantities.plain_clock(flow.last_ms)
            said = f"{s.name} → {flow.target}\n{counted(flow.consumptions, 'consumption')}{written}\nlast {last}"
            edges.append(Edge(rows[s.uuid], targets[flow.target], flow.consumptions, "", said))
    boxes = [_box(0, row, name, "", name) for name, row in sources.items()]
    boxes += [_box(1, rows[s.uuid], s.name, STREAMS.states[s.state], f"{s.name}: {s.state}, {s.mode}") for s in streams]
    boxes += [_box(2, row, name, "", _target_said(name, sources)) for name, row in targets.items()]
    height = HEAD + ROW * (1 + max([0.0, *rows.values(), *sources.values(), *targets.values()]))
    heads = [
        element("text", name, x=at, y=14, class_="head")
        for name, at in zip(("source", "stream", "target"), COLUMNS, strict=True)
    ]
    columns = [0] * len(streams) + [1] * (len(edges) - len(streams))
    curves = [_curve(column, edge) for column, edge in zip(columns, edges, strict=True)]
    content: Sequence[Content] = [*heads, *curves, *boxes]
    return element(
        "svg", *content, viewBox=f"0 0 {WIDTH} {height:.0f}", role="img", aria_label="lineage", class_="lineage"
    )


def _target_said(name: str, sources: Mapping[str, float]) -> str:
    return f"{name}\nalso a source of streams" if name in sources else name


def _in_edge(stream: StreamFacts, start: float, end: float) -> Edge:
    css = "broken" if stream.state in ("stale", "invalid") else ""
    return Edge(start, end, 0, css, f"{stream.source} → {stream.name}")


def _centres(pairs: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Name → the mean of the rows that it is joined to."""
    found: dict[str, list[float]] = {}
    for name, row in pairs:
        found.setdefault(name, []).append(row)
    return {name: sum(rows) / len(rows) for name, rows in found.items()}


def _spread(wanted: Mapping[str, float]) -> dict[str, float]:
    """Rows near the wanted ones, in their order, at least one apart; what was pushed down too far is pushed up again."""
    names = sorted(wanted, key=lambda name: (wanted[name], name))
    rows: list[float] = []
    for name in names:
        rows.append(max(wanted[name], rows[-1] + 1 if rows else 0.0))
    limit = max([len(names) - 1.0, *wanted.values()]) if names else 0.0
    for i in range(len(rows) - 1, -1, -1):
        rows[i] = min(rows[i], limit)
        limit = rows[i] - 1
    return dict(zip(names, rows, strict=True))


def _y(row: float) -> float:
    return HEAD + row * ROW


def _box(column: int, row: float, name: str, css: str, said: str) -> Markup:
    left, top = COLUMNS[column], _y(row)
    return element(
        "g",
        title(said),
        element("rect", x=left, y=top, width=BOX_WIDTH, height=BOX_HEIGHT, rx=6),
        element("text", quantities.shortened(name, LETTERS_MAX), x=left + 10, y=top + 17.5),
        element("circle", cx=left + BOX_WIDTH - 13, cy=top + BOX_HEIGHT / 2, r=4.5) if css else None,
        class_=f"box {css}".strip(),
    )


def _curve(column: int, edge: Edge) -> Markup:
    start, end = COLUMNS[column] + BOX_WIDTH, COLUMNS[column + 1]
    top, bottom, middle = _y(edge.start) + BOX_HEIGHT / 2, _y(edge.end) + BOX_HEIGHT / 2, (start + end) / 2
    path = f"M{start},{top:.1f} C{middle:.1f},{top:.1f} {middle:.1f},{bottom:.1f} {end},{bottom:.1f}"
    width = 1.5 + min(5.0, math.log10(1 + edge.weight) * 1.6)
    return joined(element("path", title(edge.said), d=path, stroke_width=width, class_=f"edge {edge.css}".strip()))
