"""The screen of `streamql watch` as a rich renderable, cut to the terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from streamql.cli.status import lines as status_lines
from streamql.cli.status.lines import Line
from streamql.cli.status.overview import Overview
from streamql.console.render import quantities
from streamql.console.render.grid import clean
from streamql.features.dynamic import lines as dynamic_lines
from streamql.features.dynamic.lines import DynamicLine

STYLES = {
    "stale": "bold red",
    "invalid": "bold red",
    "partial": "bold yellow",
    "busy": "cyan",
    "data": "green",
    "empty": "dim",
}
DYNAMIC_STYLES = {
    "failed": "bold red",
    "late": "bold red",
    "held": "bold yellow",
    "empty": "yellow",
    "refreshing": "cyan",
    "behind": "green",
    "suspended": "dim",
    "current": "dim",
}
WIDE = 120
"""From this width on sources have a column; below, targets and sources are left out."""

FRAME_LINES = 4
"""What stands around the streams: title, header, rule, and the line that says how many are not shown."""

DYNAMIC_FRAME_LINES = 3
"""What stands around the dynamic tables below streams: an empty line, header, and the line that says how many are not shown."""


def screen(overview: Overview, width: int, height: int, every_seconds: float) -> Group:
    """Returns all streams and dynamic tables, those with trouble first, in at most `height` lines of `width` columns."""
    lines = status_lines.lines(overview, worst_first=True)
    tables = dynamic_lines.lines(overview.dynamic, overview.at_ms, worst_first=True)
    said = [(line.cells[0], line.trouble, line.rank < 2) for line in lines if line.trouble]
    said += [(line.cells[0], line.trouble, line.rank < 1) for line in tables if line.trouble]
    both = bool(lines) and bool(tables)
    troubled = said[: max(0, min(8, (height - (FRAME_LINES if both else 0)) // 4))]
    room = max(2, height - FRAME_LINES - len(troubled) - (1 if troubled else 0) - (DYNAMIC_FRAME_LINES if both else 0))
    for_tables = min(len(tables), max(room - len(lines), room // 2)) if tables else 0
    for_lines = max(1, room - for_tables)
    parts: list[Table | Text] = [_title(overview, width, every_seconds)]
    if lines or not tables:
        parts += [_table(lines[:for_lines], width), *_more([line.state for line in lines[for_lines:]])]
    if tables:
        parts += [Text("")] if lines else []
        parts += [_dynamic_table(tables[:for_tables], width), *_more([line.state for line in tables[for_tables:]])]
    if troubled:
        parts.append(Text(""))
        parts += [_trouble(name, trouble, is_bad, width) for name, trouble, is_bad in troubled]
    return Group(*parts)


def _title(overview: Overview, width: int, every_seconds: float) -> Text:
    right = f"{quantities.clock(overview.at_ms)[11:19]} UTC" + (f", every {every_seconds:g} s" if width >= WIDE else "")
    left = quantities.shortened(status_lines.summary_of_all(overview), max(10, width - len(right) - 3))
    blank = " " * max(1, width - len(left) - len(right) - 2)
    return Text(f" {left}{blank}{right}", style="bold", no_wrap=True, overflow="ellipsis")


def _table(lines: Sequence[Line], width: int) -> Table:
    wide = width >= WIDE
    table = Table(box=None, expand=True, pad_edge=True, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("stream", ratio=3, no_wrap=True, overflow="ellipsis")
    if wide:
        table.add_column("source", ratio=2, no_wrap=True, overflow="ellipsis")
    table.add_column("state", no_wrap=True)
    table.add_column("lag", no_wrap=True, justify="right")
    table.add_column("backlog", no_wrap=True, justify="right")
    table.add_column("stale", no_wrap=True, justify="right")
    table.add_column(
        "last consumption", ratio=3 if wide else None, max_width=None if wide else 18, no_wrap=True, overflow="ellipsis"
    )
    for line in lines:
        stream, source, lag, backlog, state, stale, last = map(clean, line.cells)
        cells = [
            Text(stream),
            *([Text(source, style="dim")] if wide else []),
            Text(state, style=STYLES[line.state]),
            Text(lag),
            Text(backlog if wide else backlog.rpartition(", ")[0] or backlog),
            Text(stale.removeprefix("in "), style="bold yellow" if line.stale_soon else ""),
            Text(last if wide else last.partition(" → ")[0], style="red" if line.failed else ""),
        ]
        table.add_row(*cells)
    return table


def _dynamic_table(lines: Sequence[DynamicLine], width: int) -> Table:
    wide = width >= WIDE
    table = Table(box=None, expand=True, pad_edge=True, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("dynamic table", ratio=3, no_wrap=True, overflow="ellipsis")
    if wide:
        table.add_column("reads", ratio=2, no_wrap=True, overflow="ellipsis")
    table.add_column("state", no_wrap=True)
    table.add_column("lag", no_wrap=True, justify="right")
    table.add_column("target", no_wrap=True, justify="right")
    table.add_column("next", no_wrap=True, justify="right")
    table.add_column("last refresh", max_width=None if wide else 12, no_wrap=True, overflow="ellipsis")
    for line in lines:
        name, reads, lag, target, state, following, last = map(clean, line.cells)
        cells = [
            Text(name),
            *([Text(reads, style="dim")] if wide else []),
            Text(state, style=DYNAMIC_STYLES[line.state]),
            Text(lag.removesuffix(" (late)"), style="bold red" if line.is_late else ""),
            Text(target if wide else target.partition(" (")[0]),
            Text(following.removeprefix("in ")),
            Text(last if wide else last.partition(",")[0], style="red" if line.state == "failed" else ""),
        ]
        table.add_row(*cells)
    return table


def _more(states: Sequence[str]) -> list[Text]:
    """Returns the line that says how many are not shown, and in which states; none if all are."""
    counts: dict[str, int] = {}
    for state in states:
        counts[state] = counts.get(state, 0) + 1
    said = ", ".join(f"{n} {state}" for state, n in counts.items())
    return [Text(f" … and {len(states)} more: {said}", style="dim")] if states else []


def _trouble(name: str, trouble: str, is_bad: bool, width: int) -> Text:
    text = quantities.shortened(f" {clean(name)}: {clean(trouble)}", width)
    return Text(text, style="red" if is_bad else "yellow", no_wrap=True, overflow="ellipsis")
