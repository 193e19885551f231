"""A directed graph as a picture: boxes in columns from left to right, each right of all that leads to it, joined by curves. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from streamql.cli.html.markup import Content, Markup, element, joined, title
from streamql.console.render import quantities

ROW, BOX_WIDTH, BOX_HEIGHT, GAP = 54, 220, 42, 70
BEND = 0.4
"""Rows that an edge takes where it passes a column."""
TOP = 4
LETTERS_MAX, NOTE_LETTERS_MAX = 29, 33
WIDTH_MIN = 1400
"""Below this width, in pixels, the picture is not made smaller: one scrolls."""


@dataclass(frozen=True)
class Box:
    """`note`: the second line. `css`: classes; empty: it has no status. `said`: what is shown when the pointer rests on it."""

    name: str
    note: str
    said: str
    css: str = ""


@dataclass(frozen=True)
class Edge:
    """From one key to another. `weight`: how often something went along it, from 0 on."""

    start: str
    end: str
    said: str
    css: str = ""
    weight: int = 0


Node = str | tuple[int, int]
"""The key of a box; or, where an edge passes a column: its number, and the column."""


@dataclass(frozen=True)
class Layout:
    """Where everything is. `boxes`: with those that circles have added. `columns`: by key, from 0 on. `paths`: by edge, its nodes from its
    start to its end. `rows`: from 0 on."""

    boxes: Mapping[str, Box]
    edges: Sequence[Edge]
    columns: Mapping[str, int]
    paths: Sequence[Sequence[Node]]
    rows: Mapping[Node, float]


def laid_out(boxes: Mapping[str, Box], edges: Sequence[Edge]) -> Layout:
    """Returns where boxes and edges are."""
    drawn, joins, columns = _layered(boxes, edges)
    paths = [_path(n, edge, columns) for n, edge in enumerate(joins)]
    return Layout(drawn, joins, columns, paths, _rows(columns, paths))


def picture(boxes: Mapping[str, Box], edges: Sequence[Edge], label: str) -> Markup:
    """Returns the whole picture. `boxes`: by key, at least one. Edges that would close a circle lead to a second box of the same name."""
    placed = laid_out(boxes, edges)
    columns, rows = placed.columns, placed.rows
    width = (BOX_WIDTH + GAP) * max(columns.values()) + BOX_WIDTH
    height = 2 * TOP + ROW * (1 + max(rows.values())) - (ROW - BOX_HEIGHT)
    content: Sequence[Content] = [
        *(_curve(edge, path, columns, rows) for edge, path in zip(placed.edges, placed.paths, strict=True)),
        *(_box(columns[key], rows[key], box) for key, box in placed.boxes.items()),
    ]
    return element(
        "svg",
        *content,
        viewBox=f"0 0 {width} {height:.0f}",
        role="img",
        aria_label=label,
        class_="lineage",
        style=f"min-width:{min(width, WIDTH_MIN)}px;max-width:{width}px",
    )


def _layered(boxes: Mapping[str, Box], edges: Sequence[Edge]) -> tuple[dict[str, Box], list[Edge], dict[str, int]]:
    """Returns the boxes, the edges without circles, and the column of each box."""
    drawn, joins = dict(boxes), list(edges)
    while True:
        before: dict[str, list[str]] = {key: [] for key in drawn}
        for edge in joins:
            before[edge.end].append(edge.start)
        try:
            columns: dict[str, int] = {}
            for key in TopologicalSorter(before).static_order():
                columns[key] = 1 + max((columns[other] for other in before[key]), default=-1)
            return drawn, joins, columns
        except CycleError as e:
            circle: list[str] = e.args[1]
        start, end = min(pairwise(circle), key=lambda pair: (bool(drawn[pair[1]].css), pair[1], pair[0]))
        again = f"{end} again"
        drawn[again] = replace(drawn[end], note="the same, further left")
        joins = [replace(j, end=again) if (j.start, j.end) == (start, end) else j for j in joins]


def _path(number: int, edge: Edge, columns: Mapping[str, int]) -> list[Node]:
    """Returns where an edge is in each column from its start to its end."""
    return [edge.start, *((number, c) for c in range(columns[edge.start] + 1, columns[edge.end])), edge.end]


def _rows(columns: Mapping[str, int], paths: Iterable[Sequence[Node]]) -> dict[Node, float]:
    """Returns the row of each node: first near what leads to it, then near what it leads to, and apart from the others of its column."""
    before: dict[Node, list[Node]] = {}
    behind: dict[Node, list[Node]] = {}
    by_column: dict[int, list[Node]] = {}
    for key in sorted(columns):
        by_column.setdefault(columns[key], []).append(key)
    for path in paths:
        for at, node in enumerate(path[1:-1], columns[str(path[0])] + 1):
            by_column.setdefault(at, []).append(node)
        for a, b in pairwise(path):
            before.setdefault(b, []).append(a)
            behind.setdefault(a, []).append(b)
    rows: dict[Node, float] = {}
    order = sorted(by_column)
    for near, sweep in ((before, order), (behind, order[::-1])):
        for column in sweep:
            nodes = by_column[column]
            wanted = {n: _mean([rows[o] for o in near.get(n, ())], rows.get(n, float(i))) for i, n in enumerate(nodes)}
            rows |= _spread(wanted)
    return rows


def _mean(rows: Sequence[float], otherwise: float) -> float:
    return sum(rows) / len(rows) if rows else otherwise


def _spread(wanted: Mapping[Node, float]) -> dict[Node, float]:
    """Returns rows near the wanted ones, in their order and apart. What was pushed down too far is pushed up again."""
    nodes = sorted(wanted, key=lambda node: (wanted[node], str(node)))
    heights = [1.0 if isinstance(node, str) else BEND for node in nodes]
    rows: list[float] = []
    for n, node in enumerate(nodes):
        rows.append(max(wanted[node], rows[-1] + (heights[n - 1] + heights[n]) / 2 if rows else 0.0))
    limit = max([sum(heights) - 1.0, *wanted.values()])
    for n in range(len(rows) - 1, -1, -1):
        rows[n] = min(rows[n], limit)
        limit = rows[n] - (heights[n] + heights[n - 1]) / 2
    return dict(zip(nodes, rows, strict=True))


def _box(column: int, row: float, box: Box) -> Markup:
    left, top = (BOX_WIDTH + GAP) * column, TOP + row * ROW
    return element(
        "g",
        title(box.said),
        element("rect", x=left, y=top, width=BOX_WIDTH, height=BOX_HEIGHT, rx=6),
        element("text", quantities.shortened(box.name, LETTERS_MAX), x=left + 10, y=top + 18),
        element("text", quantities.shortened(box.note, NOTE_LETTERS_MAX), x=left + 10, y=top + 33, class_="lag"),
        element("circle", cx=left + BOX_WIDTH - 13, cy=top + BOX_HEIGHT / 2, r=4.5) if box.css else None,
        class_=f"box {box.css}".strip(),
    )


def _curve(edge: Edge, path: Sequence[Node], columns: Mapping[str, int], rows: Mapping[Node, float]) -> Markup:
    """Draws an edge: level within a column, and a curve between two."""
    points = []
    for column, node in enumerate(path, columns[edge.start]):
        left, middle = (BOX_WIDTH + GAP) * column, TOP + rows[node] * ROW + BOX_HEIGHT / 2
        points += [(left, middle), (left + BOX_WIDTH, middle)]
    drawn = ""
    inner = points[1:-1]
    for (start, top), (end, bottom) in zip(inner[::2], inner[1::2], strict=True):
        middle = (start + end) / 2
        drawn += f"{'L' if drawn else 'M'}{start},{top:.1f} "
        drawn += f"C{middle:.0f},{top:.1f} {middle:.0f},{bottom:.1f} {end},{bottom:.1f} "
    width = 1.5 + min(5.0, math.log10(1 + edge.weight) * 1.6)
    css = f"edge {edge.css}".strip()
    return joined(element("path", title(edge.said), d=drawn.strip(), stroke_width=width, class_=css))
