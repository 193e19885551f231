"""Dynamic tables as a picture: sources on the left, each table right of all that it reads, with its lag against its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamql.cli.html.markup import Content, Markup, element, joined, title
from streamql.cli.render import dynamic_lines, quantities
from streamql.engine.dynamic.facts import DynamicFacts

ROW, BOX_WIDTH, BOX_HEIGHT, GAP = 54, 220, 42, 90
HEAD = 24
LETTERS_MAX = 29

CSS = {
    "failed": "invalid",
    "late": "stale",
    "held": "partial",
    "empty": "partial",
    "refreshing": "busy",
    "behind": "data",
    "suspended": "",
    "current": "data",
}
"""The colours of states are those of streams."""


def dag(tables: Sequence[DynamicFacts], now_ms: int) -> Markup:
    """The whole picture. Columns: how many tables lie between a table and its farthest source."""
    by_name = {t.name: t for t in tables}
    columns = levels(tables)
    rows = rows_of(tables, columns)
    left = {name: (BOX_WIDTH + GAP) * column for name, column in columns.items()}
    curves = [
        _curve(
            left[other] + BOX_WIDTH,
            rows[other],
            left[t.name],
            rows[t.name],
            f"{other} → {t.name}",
            _edge_css(by_name, other, t),
        )
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
    height = HEAD + ROW * (1 + max(rows.values()))
    heads = [element("text", "source", x=0, y=14, class_="head")]
    heads += [element("text", "dynamic tables", x=BOX_WIDTH + GAP, y=14, class_="head")]
    content: Sequence[Content] = [*heads, *curves, *boxes]
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
    """The column of each name: 0 for sources, else one more than the last column of what it reads."""
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


def rows_of(tables: Sequence[DynamicFacts], columns: Mapping[str, int]) -> dict[str, float]:
    """The row of each name: near the mean of what it reads, in a column at least one apart; sources in the order of their readers."""
    by_name = {t.name: t for t in tables}
    rows: dict[str, float] = {}
    for column in range(max(columns.values(), default=0) + 1):
        wanted: dict[str, float] = {}
        for name in sorted(n for n, c in columns.items() if c == column):
            table = by_name.get(name)
            below = [] if table is None else [rows[other] for other in (*table.reads, *table.sources)]
            wanted[name] = sum(below) / len(below) if below else float(len(wanted))
        last = -1.0
        for name in sorted(wanted, key=lambda n: (wanted[n], n)):
            last = rows[name] = max(wanted[name], last + 1)
    return rows


def _edge_css(by_name: Mapping[str, DynamicFacts], start: str, end: DynamicFacts) -> str:
    suspended = start in by_name and by_name[start].is_suspended
    return "broken" if suspended or end.state == "failed" else ""


def _table_box(left: float, row: float, facts: DynamicFacts, now_ms: int) -> Markup:
    line = dynamic_lines.line_of(facts, now_ms)
    target = dynamic_lines.schedule_text(facts.schedule, facts.target_ms)
    lag = f"lag {dynamic_lines.lag_text(facts)}" + (f" of {target}" if target else "")
    said = [f"{facts.name}: {facts.state}", lag, f"last refresh {dynamic_lines.last_text(facts, now_ms)}"]
    said += [f"next refresh {following}"] if (following := dynamic_lines.next_text(facts, now_ms)) else []
    said += [quantities.shortened(line.trouble, 500)] if line.trouble else []
    return _box(left, row, facts.name, lag, f"{CSS[facts.state]} {'late' if facts.is_late else ''}", "\n".join(said))


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


def _curve(start: float, row: float, end: float, end_row: float, said: str, css: str) -> Markup:
    top, bottom, middle = HEAD + row * ROW + BOX_HEIGHT / 2, HEAD + end_row * ROW + BOX_HEIGHT / 2, (start + end) / 2
    path = f"M{start:.0f},{top:.1f} C{middle:.1f},{top:.1f} {middle:.1f},{bottom:.1f} {end:.0f},{bottom:.1f}"
    return joined(element("path", title(said), d=path, stroke_width=1.5, class_=f"edge {css}".strip()))
