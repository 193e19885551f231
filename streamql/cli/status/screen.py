"""The screen of `streamql watch` as a rich renderable, cut to the terminal. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from streamql.cli.status.overview import Overview
from streamql.console.render import quantities
from streamql.console.render.grid import clean
from streamql.console.status import MARKS, Line, Subject, Tone

STYLES: dict[Tone, str] = {
    "bad": "bold red",
    "warn": "bold yellow",
    "busy": "cyan",
    "good": "green",
    "fine": "dim",
    "quiet": "dim",
}
ORDER = ("name", "origin", "state", "lag", "amount", "deadline", "last")
WIDE = 120
"""From this width on sources have a column; below, targets and sources are left out."""

SHARES = {"name": 3, "origin": 2}
"""The parts of the width that is left."""

LAST_WIDTHS = {"stream": (3, 18), "dynamic table": (None, 12)}
"""The last column by what is listed: its share on a wide terminal (of streams it names targets), and its width on others."""

DETAILS = re.compile(r"(?:, | \(| → ).*")
"""What is left out of amounts and last consumptions or refreshes on a terminal that is not wide."""

FRAME_LINES = 4
"""What stands around the streams: title, header, rule, and the line that says how many are not shown."""

DYNAMIC_FRAME_LINES = 3
"""What stands around the dynamic tables below streams: an empty line, header, and the line that says how many are not shown."""


def screen(overview: Overview, width: int, height: int, every_seconds: float) -> Group:
    """Returns all streams and dynamic tables, those with trouble first, in at most `height` lines of `width` columns."""
    lines, tables = overview.stream_listing.worst_first(), overview.dynamic_listing.worst_first()
    both = bool(lines) and bool(tables)
    troubled = overview.troubled[: max(0, min(8, (height - (FRAME_LINES if both else 0)) // 4))]
    room = max(2, height - FRAME_LINES - len(troubled) - (1 if troubled else 0) - (DYNAMIC_FRAME_LINES if both else 0))
    for_tables = min(len(tables), max(room - len(lines), room // 2)) if tables else 0
    parts: list[Table | Text] = [_title(overview, width, every_seconds)]
    if lines or not tables:
        parts += _part(overview.stream_listing.subject, lines, max(1, room - for_tables), width)
    if tables:
        parts += [Text("")] if lines else []
        parts += _part(overview.dynamic_listing.subject, tables, for_tables, width)
    if troubled:
        parts += [Text(""), *(_trouble(line, width) for line in troubled)]
    return Group(*parts)


def _title(overview: Overview, width: int, every_seconds: float) -> Text:
    right = f"{quantities.clock(overview.at_ms)[11:19]} UTC" + (f", every {every_seconds:g} s" if width >= WIDE else "")
    left = quantities.shortened(overview.summary, max(10, width - len(right) - 3))
    blank = " " * max(1, width - len(left) - len(right) - 2)
    return Text(f" {left}{blank}{right}", style="bold", no_wrap=True, overflow="ellipsis")


def _part(subject: Subject, lines: Sequence[Line], shown: int, width: int) -> list[Table | Text]:
    """Returns the first lines as a table, and the line that says how many are not shown, and in which states; none if all are."""
    hidden = lines[shown:]
    states = ", ".join(f"{n} {state}" for state, n in Counter(line.state for line in hidden).items())
    more = [Text(f" … and {len(hidden)} more: {states}", style="dim")] if hidden else []
    return [_table(subject, lines[:shown], width), *more]


def _table(subject: Subject, lines: Sequence[Line], width: int) -> Table:
    wide = width >= WIDE
    fields = [field for field in ORDER if wide or field != "origin"]
    table = Table(box=None, expand=True, pad_edge=True, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    for field in fields:
        if field in ("lag", "amount", "deadline"):
            table.add_column(subject.label(field), no_wrap=True, justify="right")
        elif field == "last":
            share, most = LAST_WIDTHS[subject.noun]
            sizes = (share, None) if wide else (None, most)
            table.add_column(
                subject.header[field], ratio=sizes[0], max_width=sizes[1], no_wrap=True, overflow="ellipsis"
            )
        else:
            table.add_column(subject.header[field], ratio=SHARES.get(field), no_wrap=True, overflow="ellipsis")
    for line in lines:
        table.add_row(*(_cell(line, field, wide=wide) for field in fields))
    return table


def _cell(line: Line, field: str, *, wide: bool) -> Text:
    text, mark = clean(getattr(line, field)), line.marks.get(field)
    if field in ("amount", "last") and not wide:
        text = DETAILS.sub("", text)
    if field == "state":
        return Text(text, style=STYLES[line.tone])
    if mark is not None:
        return Text(text.removeprefix("in ").removesuffix(f" ({mark})"), style=STYLES[MARKS[mark]])
    return Text(text.removeprefix("in ") if field == "deadline" else text, style="dim" if field == "origin" else "")


def _trouble(line: Line, width: int) -> Text:
    text = quantities.shortened(f" {clean(line.name)}: {clean(line.trouble)}", width)
    return Text(text, style="red" if line.is_bad else "yellow", no_wrap=True, overflow="ellipsis")
