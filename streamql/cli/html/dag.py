"""Dynamic tables as a picture: sources on the left, each table right of all that it reads, with its lag against its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamql.cli.html.markup import Content, Markup, element, joined, title
from streamql.console.render import quantities
from streamql.features.dynamic.lines import line_of
from streamql.features.dynamic.refreshes.facts import DynamicFacts

ROW, BOX_WIDTH, BOX_HEIGHT, GAP = 54, 220, 42, 70
BEND = 0.4
"""Rows that an edge takes where it passes a column."""
HEAD = 24
LETTERS_MAX = 29


Bend = tuple[str, str, int]
"""A column that an edge passes between its start and its end: both names, and the column."""


def dag(tables: Sequence[DynamicFacts], now_ms: int) -> Markup:
    """Returns the whole picture. Columns: how many tables lie between a table and its farthest source."""
    by_name = {t.name: t for t in tables}
    columns = levels(tables)
    rows = rows_of(tables, columns)
    left = {name: (BOX_WIDTH + GAP) * column for name, column in columns.items()}
    edges = [
        _edge(_points(other, t.name, columns, rows), f"{other} → {t.name}", _edge_css(by_name, other, t))
        for t in tables
        for other in (*t.reads, *t.sources)
    ]
    boxes = [
        _table_box(left[name], rows[name], by_name[name], now_ms)
        if name in by_name
        else _source_box(left[name], rows[name], name)
        for name in columns
    ]
    width = max(left.values()) + BOX_WIDTH
    height = HEAD + ROW * (1 + max(rows.values(), default=0))
    heads = [element("text", "source", x=0, y=14, class_="head")]
    heads += [element("text", "dynamic tables", x=BOX_WIDTH + GAP, y=14, class_="head")]
    content: Sequence[Content] = [*heads, *edges, *boxes]
    return element(
        "svg",
        *content,
        viewBox=f"0 0 {width} {height:.0f}",
        role="img",
        aria_label="dynamic tables",
        class_="lineage",
        style=f"min-width:{min(width, 1400)}px;max-width:{width}px",
    )


def levels(tables: Sequence[DynamicFacts]) -> dict[str, int]:
    """Returns the column of each name: 0 for sources, else one more than the last column of what it reads."""
    by_name = {t.name: t for t in tables}
    found: dict[str, int] = {}

    def level(name: str) -> int:
        if name not in found:
            table = by_name.get(name)
            below = () if table is None else (*table.reads, *table.sources)
            found[name] = 0 if table is None else 1 + max((level(other) for other in below), default=0)
        return found[name]

    for table in tables:
        level(table.name)
    return found


def rows_of(tables: Sequence[DynamicFacts], columns: Mapping[str, int]) -> dict[str | Bend, float]:
    """Returns the row of each name, and of each bend: near the mean of what is left of it, apart from the others of its column; sources in
    the order of their names."""
    by_name = {t.name: t for t in tables}
    edges = [(other, t.name) for t in tables for other in (*t.reads, *t.sources)]
    bends = [(start, end, c) for start, end in edges for c in range(columns[start] + 1, columns[end])]
    rows: dict[str | Bend, float] = {}

    def before(node: str | Bend) -> list[float]:
        """Returns the rows of what the edges to a node come from, in the column left of it."""
        if isinstance(node, str):
            table = by_name.get(node)
            starts = () if table is None else (*table.reads, *table.sources)
            return [rows[_passes(other, node, columns[node] - 1, columns)] for other in starts]
        return [rows[_passes(node[0], node[1], node[2] - 1, columns)]]

    for column in range(max(columns.values(), default=0) + 1):
        nodes: list[str | Bend] = [*sorted(n for n, c in columns.items() if c == column)]
        nodes += sorted({b for b in bends if b[2] == column})
        wanted = {n: sum(r) / len(r) if (r := before(n)) else float(i) for i, n in enumerate(nodes)}
        top = 0.0
        for node in sorted(nodes, key=lambda n: (wanted[n], str(n))):
            height = 1.0 if isinstance(node, str) else BEND
            rows[node] = max(wanted[node], top + (height - 1) / 2)
            top = rows[node] + (1 + height) / 2
    return rows


def _passes(start: str, end: str, column: int, columns: Mapping[str, int]) -> str | Bend:
    """Returns where an edge is in a column: at its start, or at a bend."""
    return start if columns[start] == column else (start, end, column)


def _points(
    start: str, end: str, columns: Mapping[str, int], rows: Mapping[str | Bend, float]
) -> list[tuple[float, float]]:
    """Returns the points of an edge, in pixels: it is level within a column, and a curve between two."""
    points = []
    for column in range(columns[start], columns[end] + 1):
        node = end if column == columns[end] else _passes(start, end, column, columns)
        left, middle = (BOX_WIDTH + GAP) * column, HEAD + rows[node] * ROW + BOX_HEIGHT / 2
        points += [(float(left), middle), (float(left + BOX_WIDTH), middle)]
    return points[1:-1]


def _edge_css(by_name: Mapping[str, DynamicFacts], start: str, end: DynamicFacts) -> str:
    suspended = start in by_name and by_name[start].is_suspended
    return "broken" if suspended or end.state == "failed" else ""


def _table_box(left: float, row: float, facts: DynamicFacts, now_ms: int) -> Markup:
    line = line_of(facts, now_ms)
    lag = f"lag {line.lag}" + (f" of {line.amount}" if line.amount else "")
    said = [f"{line.name}: {line.state}", lag, f"last refresh {line.last}"]
    said += [f"next refresh {line.deadline}"] if line.deadline else []
    said += [quantities.shortened(line.trouble, 500)] if line.trouble else []
    return _box(left, row, line.name, lag, f"{line.tone} {line.marks.get('lag', '')}", "\n".join(said))


def _source_box(left: float, row: float, name: str) -> Markup:
    return _box(left, row, name, "", "", name)


def _box(left: float, row: float, name: str, lag: str, css: str, said: str) -> Markup:
    top = HEAD + row * ROW
    return element(
        "g",
        title(said),
        element("rect", x=left, y=top, width=BOX_WIDTH, height=BOX_HEIGHT, rx=6),
        element("text", quantities.shortened(name, LETTERS_MAX), x=left + 10, y=top + (18 if lag else 26)),
        element("text", quantities.shortened(lag, LETTERS_MAX + 7), x=left + 10, y=top + 33, class_="lag")
        if lag
        else None,
        element("circle", cx=left + BOX_WIDTH - 13, cy=top + BOX_HEIGHT / 2, r=4.5) if lag else None,
        class_=f"box {css}".strip(),
    )


def _edge(points: Sequence[tuple[float, float]], said: str, css: str) -> Markup:
    """`points`: by twos the ends of the curves, which level lines join."""
    path = ""
    for (start, top), (end, bottom) in zip(points[::2], points[1::2], strict=True):
        middle = (start + end) / 2
        path += f"{'L' if path else 'M'}{start:.0f},{top:.1f} "
        path += f"C{middle:.1f},{top:.1f} {middle:.1f},{bottom:.1f} {end:.0f},{bottom:.1f} "
    return joined(element("path", title(said), d=path.strip(), stroke_width=1.5, class_=f"edge {css}".strip()))
