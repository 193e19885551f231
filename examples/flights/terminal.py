"""Printing: sections, steps with their time, tables, proofs. Made for a terminal of 100 columns and for the log of a CI job."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from examples.flights.problems import ProofFailed
from examples.flights.proofs import Proof

WIDTH_MAX = 100
INDENT = "  "
NOTE_COLUMN = 42


class Step:
    """A step under way; what is put into `note` is printed with it when it ends."""

    def __init__(self) -> None:
        self.note = ""


class Terminal:
    """What the demo prints to stdout."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, width=WIDTH_MAX)
        if self._console.is_terminal:
            width = Console().width
            self._console = Console(highlight=False, width=min(WIDTH_MAX, width))
        self._section = 0
        self._shown: set[Path] = set()
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
        self._console.print()
        self._console.rule(Text(f"{self._section}. {title}", style="bold cyan"), align="left", style="cyan")
        self.say(sentence)
        self._console.print()

    def say(self, sentence: str, style: str = "") -> None:
        """A sentence."""
        self._console.print(Padding(Text(sentence, style=style), (0, 0, 0, 0)))

    def line(self, text: str, style: str = "") -> None:
        """A line as it is, never wrapped."""
        self._console.print(Text(text, style=style), soft_wrap=True)

    def sql(self, path: Path, text: str) -> None:
        """A script's text, the first time that it is asked for."""
        if path in self._shown:
            return
        self._shown.add(path)
        syntax = Syntax(text, "sql", theme="ansi_dark", background_color="default", word_wrap=True)
        self._console.print(Padding(syntax, (0, 0, 1, 4)))

    @contextmanager
    def step(self, label: str, hint: str = "") -> Iterator[Step]:
        """A line with what was done, what came of it (`note`) and how long it took. While it runs: a spinner, or the hint in a log."""
        step = Step()
        started_s = time.monotonic()
        if self._console.is_terminal:
            with self._console.status(f"{label} {hint}".strip()):
                yield step
        else:
            if hint:
                self.line(f"{INDENT}... {label} {hint}")
            yield step
        seconds = time.monotonic() - started_s
        left = Text.assemble((f"{INDENT}{self._yes} ", "green"), label.ljust(NOTE_COLUMN), " ", step.note)
        left.append(f"{seconds:.1f} s".rjust(max(8, self._console.width - left.cell_len)), style="dim")
        self._console.print(left, soft_wrap=True)

    @contextmanager
    def quiet_step(self, label: str) -> Iterator[None]:
        """A spinner and nothing else."""
        if self._console.is_terminal:
            with self._console.status(label):
                yield
        else:
            yield

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], empty: str = "no rows") -> None:
        """A table under its title; numbers to the right, `empty` in place of no rows."""
        if not rows:
            self.line(f"\n{INDENT}{title}: {empty}\n")
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="bold", show_edge=False)
        for index, name in enumerate(columns):
            number = all(row[index] is None or _is_number(row[index]) for row in rows)
            table.add_column(name, justify="right" if number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(_cell(value) for value in row))
        self._console.print()
        self.line(f"{INDENT}{title}", "dim")
        self._console.print(Padding(table, (0, 0, 1, 2)))

    def prove(self, proofs: Sequence[Proof]) -> None:
        """Prints proofs. Raises ProofFailed if one does not hold."""
        for proof in proofs:
            mark, style = (self._yes, "bold green") if proof.holds else (self._no, "bold red")
            text = Text.assemble((f"{INDENT}{mark} PROVED  " if proof.holds else f"{INDENT}{mark} FAILED  ", style))
            text.append(proof.claim.ljust(30))
            text.append(proof.evidence, style="dim")
            self._console.print(text, soft_wrap=True)
        check(proofs)

    def cells(self, values: Sequence[object], widths: Sequence[int], style: str = "") -> None:
        """One row of a table that grows while one looks at it: to the left where the width is negative."""
        cells = [_cell(v).ljust(-w) if w < 0 else _cell(v).rjust(w) for v, w in zip(values, widths, strict=True)]
        self.line(INDENT + " ".join(cells), style)

    def mark(self, good: bool) -> str:
        """A tick or a cross."""
        return self._yes if good else self._no


def check(proofs: Sequence[Proof]) -> None:
    """Raises ProofFailed with those proofs that do not hold."""
    failed = [f"{proof.claim}: {proof.evidence}" for proof in proofs if not proof.holds]
    if failed:
        raise ProofFailed("; ".join(failed))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
