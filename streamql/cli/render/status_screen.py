"""The screen of `streamql watch` as a rich renderable, cut to the terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from streamql.cli.render import quantities, status_lines
from streamql.cli.render.grid import clean
from streamql.cli.render.status_lines import Line
from streamql.engine.overview import Overview

STYLES = {
    "stale": "bold red",
    "invalid": "bold red",
    "partial": "bold yellow",
    "busy": "cyan",
    "data": "green",
    "empty": "dim",
}
WIDE = 120
"""From this width on sources have a column; below, targets and sources are left out."""

FRAME_LINES = 4
"""What stands around the streams: title, header, rule, and the line that says how many are not shown."""


def screen(overview: Overview, width: int, height: int, every_seconds: float) -> Group:
    """All streams, those with trouble first, in at most `height` lines of `width` columns."""
    lines = status_lines.lines(overview, worst_first=True)
    troubled = [line for line in lines if line.trouble][: max(0, min(8, height // 4))]
    room = max(1, height - FRAME_LINES - len(troubled) - (1 if troubled else 0))
    shown = lines[:room]
    parts: list[Table | Text] = [_title(overview, width, every_seconds), _table(shown, width)]
    if len(lines) > len(shown):
        parts.append(Text(f" … and {len(lines) - len(shown)} more: {_rest(lines[room:])}", style="dim"))
    if troubled:
        parts.append(Text(""))
        parts += [_trouble(line, width) for line in troubled]
    return Group(*parts)


def _title(overview: Overview, width: int, every_seconds: float) -> Text:
    right = f"{quantities.clock(overview.at_ms)[11:19]} UTC" + (f", every {every_seconds:g} s" if width >= WIDE else "")
    left = quantities.shortened(status_lines.summary(overview), max(10, width - len(right) - 3))
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


def _rest(lines: Sequence[Line]) -> str:
    counts: dict[str, int] = {}
    for line in lines:
        counts[line.state] = counts.get(line.state, 0) + 1
    return ", ".join(f"{n} {state}" for state, n in counts.items())


def _trouble(line: Line, width: int) -> Text:
    text = quantities.shortened(f" {clean(line.cells[0])}: {clean(line.trouble)}", width)
    return Text(text, style="red" if line.rank < 2 else "yellow", no_wrap=True, overflow="ellipsis")
