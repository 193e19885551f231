"""Rows that a command has found itself, on stdout in the format that was asked for."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence

from streamql.console.render import grid
from streamql.console.render.formats import WRITERS, Row
from streamql.console.render.output import terminal_width


def write(output: str, names: Sequence[str], numeric: Sequence[bool], rows: Sequence[Row], skip: int = 0) -> None:
    """Rows to stdout, in one of options.FORMATS. `skip`: how many lines of its header were written before, and are left out."""
    writer = WRITERS.get(output)
    if writer is not None:
        text = io.StringIO()
        writer(text, names, numeric, rows)
        sys.stdout.write(text.getvalue().split("\n", skip)[-1])
    else:
        say(line.rstrip() for line in grid.render(names, numeric, rows, terminal_width()))
    sys.stdout.flush()


def say(lines: Iterable[str]) -> None:
    """Lines to stdout."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
