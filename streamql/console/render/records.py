"""Rows that a command has found itself, on stdout in the format that was asked for."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence

from streamql.console.render import grid
from streamql.console.render.formats import WRITERS, Row
from streamql.console.render.output import terminal_width

HEADER_LINES = {"csv": 1, "tsv": 1, "markdown": 2}


def write(
    output: str, names: Sequence[str], numeric: Sequence[bool], rows: Sequence[Row], *, header: bool = True
) -> None:
    """Rows to stdout, in one of options.FORMATS. `header`: whether csv, tsv and markdown have one; not if it was written before."""
    writer = WRITERS.get(output)
    if writer is not None:
        text = io.StringIO()
        writer(text, names, numeric, rows)
        sys.stdout.write(text.getvalue().split("\n", 0 if header else HEADER_LINES.get(output, 0))[-1])
    else:
        say(line.rstrip() for line in grid.render(names, numeric, rows, terminal_width()))
    sys.stdout.flush()


def say(lines: Iterable[str]) -> None:
    """Lines to stdout."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
