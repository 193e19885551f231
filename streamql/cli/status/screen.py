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

LAST_WIDTHS = {"stream": (3, 18), "dynamic table": (None, 12), "task": (None, 18)}
"""The last column by what is listed: its share on a wide terminal (of streams it names targets), and its width on others."""

DETAILS = re.compile(r"(?:, | \(| → ).*")
"""What is left out of amounts and last consumptions or refreshes on a terminal that is not wide."""

FRAME_LINES = 4
"""What stands around the streams: title, header, rule, and the line that says how many are not shown."""

FURTHER_FRAME_LINES = 3
"""What stands around each listing below the first one: an empty line, header, and the line that says how many are not shown."""


def screen(overview: Overview, width: int, height: int, every_seconds: float) -> Group:
    """Returns all streams, dynamic tables and tasks, those with trouble first, in at most `height` lines of `width` columns."""
    listings = overview.listings or [overview.stream_listing]
    frames = FRAME_LINES + FURTHER_FRAME_LINES * (len(listings) - 1)
    troubled = overview.troubled[: max(0, min(8, (height - frames + FRAME_LINES) // 4))]
    room = max(len(listings), height - frames - len(troubled) - (1 if troubled else 0))
    parts: list[Table | Text] = [_title(overview, width, every_seconds)]
    for listing, shown in zip(listings, shares([len(found.lines) for found in listings], room), strict=True):
        parts += [Text("")] if len(parts) > 1 else []
        parts += _part(listing.subject, listing.worst_first(), max(1, shown), width)
    if troubled:
        parts += [Text(""), *(_trouble(line, width) for line in troubled)]
    return Group(*parts)


def shares(wanted: Sequence[int], room: int) -> list[int]:
    """Returns how many lines each of several listings gets. Those that want less than an equal share leave the rest to the others."""
    given = [0] * len(wanted)
    for n, place in enumerate(sorted(range(len(wanted)), key=lambda place: wanted[place])):
        given[place] = min(wanted[place], (room - sum(given)) // (len(wanted) - n))
    return given


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
