"""Printing: sections, steps with their time, tables, proofs. Made for a terminal of 100 columns and for the log of a CI job."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from examples.flights.problems import ProofFailed
from examples.flights.proofs import Proof
from examples.flights.scripts import Script

WIDTH_MAX = 100
INDENT = "  "
LABEL_WIDTH = 40
CLAIM_WIDTH = 30
COUNTS = frozenset({"rows", "flights", "cancelled", "late", "messages", "orders", "tombstones", "bad"})
"""Columns whose numbers are counts: they are grouped by thousands. 1,825 would be no time of day."""


class Step:
    """A step under way; what is put into `note` is printed with it when it ends."""

    def __init__(self) -> None:
        self.note = ""


class Terminal:
    """What the demo prints to stdout."""

    def __init__(self) -> None:
        console = Console(highlight=False)
        self.is_live = console.is_terminal
        self._width = min(WIDTH_MAX, console.width) if self.is_live else WIDTH_MAX
        self._console = Console(highlight=False, width=self._width)
        self._section = 0
        self._shown: set[Path] = set()
        self._blank = True
        self._started_s = time.monotonic()
        unicode = (sys.stdout.encoding or "").lower().startswith("utf")
        self._yes, self._no = ("✓", "✗") if unicode else ("ok", "NO")

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started_s

    def section(self, title: str, sentence: str) -> None:
        """A numbered heading, and a sentence on what comes."""
        self._section += 1
        self._gap()
        heading = Text(f"{self._section}. {title}", style="bold cyan")
        self._print(Rule(heading, align="left", style="cyan"))
        self.say(sentence)

    def say(self, sentence: str, style: str = "") -> None:
        """A sentence, wrapped, and a blank line."""
        self._print(Text(sentence, style=style))
        self._gap()

    def line(self, text: str, style: str = "") -> None:
        """A line as it is, never wrapped."""
        self._print(Text(text, style=style), wrap=False)

    def sql(self, path: Path, text: str) -> None:
        """A script's text, the first time that it is asked for."""
        if path in self._shown:
            return
        self._shown.add(path)
        self._gap()
        syntax = Syntax(text, "sql", theme="ansi_dark", background_color="default", word_wrap=True)
        self._print(Padding(syntax, (0, 0, 0, 4)))
        self._gap()

    @contextmanager
    def step(self, label: str, hint: str = "") -> Iterator[Step]:
        """A line with what was done, what came of it (`note`) and how long it took. While it runs: a spinner; in a log, the hint."""
        step = Step()
        started_s = time.monotonic()
        if hint and not self.is_live:
            self.line(f"{INDENT}… {label}: {hint}")
        with self.spinner(f"{label}: {hint}" if hint else label):
            yield step
        took = f"{time.monotonic() - started_s:.1f} s"
        text = Text.assemble((f"{INDENT}{self._yes} ", "green"), label.ljust(LABEL_WIDTH), " ", step.note)
        text.append(took.rjust(max(len(took) + 1, self._width - text.cell_len)), style="dim")
        self._print(text, wrap=False)

    @contextmanager
    def running(self, chosen: Script, *, show: bool) -> Iterator[Step]:
        """The step that runs a script; with `show`, its text first."""
        if show:
            self.sql(chosen.path, chosen.text)
        with self.step(chosen.shown) as step:
            yield step

    @contextmanager
    def spinner(self, label: str) -> Iterator[None]:
        """Says what is being done, while it is done, at a terminal."""
        if not self.is_live:
            yield
            return
        with self._console.status(f"{label} …"):
            yield

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> None:
        """A table under its title, numbers to the right; `empty` in place of no rows."""
        self._gap()
        if not rows:
            self.line(f"{INDENT}{title}: {empty}")
            self._gap()
            return
        self.line(f"{INDENT}{title}", "dim")
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
        for index, name in enumerate(columns):
            number = all(row[index] is None or _is_number(row[index]) for row in rows)
            table.add_column(name, justify="right" if number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(_cell(value, name in COUNTS)) for name, value in zip(columns, row, strict=True)))
        self._print(Padding(table, (0, 0, 0, 2), expand=False))
        self._gap()

    def prove(self, proofs: Sequence[Proof]) -> None:
        """Prints proofs. Raises ProofFailed if one does not hold."""
        for proof in proofs:
            mark, style = (f"{self._yes} PROVED", "bold green") if proof.holds else (f"{self._no} FAILED", "bold red")
            text = Text.assemble((f"{INDENT}{mark}  ", style), proof.claim.ljust(CLAIM_WIDTH), (proof.evidence, "dim"))
            self._print(text, wrap=False)
        check(proofs)

    def cells(self, values: Sequence[object], widths: Sequence[int], style: str = "") -> None:
        """One row of a table that grows while one looks at it; a negative width: to the left."""
        cells = [_cell(v, True) for v in values]
        placed = [c.ljust(-w) if w < 0 else c.rjust(w) for c, w in zip(cells, widths, strict=True)]
        self.line(INDENT + " ".join(placed), style)

    def mark(self, good: bool) -> str:
        """A tick or a cross."""
        return self._yes if good else self._no

    def _gap(self) -> None:
        """One blank line, unless there is one."""
        if not self._blank:
            self._console.print()
        self._blank = True

    def _print(self, what: RenderableType, wrap: bool = True) -> None:
        self._blank = False
        if self.is_live:
            self._console.print(what, soft_wrap=not wrap)
            return
        with self._console.capture() as captured:
            self._console.print(what, soft_wrap=not wrap)
        for line in captured.get().splitlines():  # rich fills lines up with spaces, which a log has no use for
            print(line.rstrip())


def check(proofs: Sequence[Proof]) -> None:
    """Raises ProofFailed with those proofs that do not hold."""
    failed = [f"{proof.claim}: {proof.evidence}" for proof in proofs if not proof.holds]
    if failed:
        raise ProofFailed("; ".join(failed))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object, grouped: bool) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if grouped and isinstance(value, int) else str(value)
