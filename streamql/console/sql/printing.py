"""A statement's result on stdout: in the format that is asked for, and to the screen how many rows there were."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from streamql.console.render import grid
from streamql.console.render.formats import WRITERS, text_of
from streamql.console.render.output import Display, Output, terminal_width
from streamql.console.render.screen import Screen, Stopwatch
from streamql.console.sql.result_types import ResultType, is_plain_text, result_type_of_columns, shape_of
from streamql.console.sql.results import Result, result_of
from streamql.console.sql.statement_summary import moved, note_on, summarize
from streamql.errors import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streamql.console.render.formats import Row
    from streamql.console.sql.script import Statement
    from streamql.console.sql.session import Session

_MEMORY_ROWS = ("SELECT", "VALUES", "TABLE", "FROM", "MAP", "REDUCE")
"""Queries whose rows may be many; those of all others are in the driver's memory already."""


class Printer:
    """Runs statements in a session and shows what they give; used by the one thread that runs statements.

    `open_output` gives the output of each result.
    """

    def __init__(self, session: Session, display: Display, screen: Screen, open_output: Callable[[], Output]) -> None:
        self.display = display
        self._session = session
        self._screen = screen
        self._open_output = open_output

    def execute(self, statement: Statement) -> None:
        """Runs one statement. Raises what Spark raises, StreamqlError, OutputClosedError."""
        watch = Stopwatch()
        shape = shape_of(statement.text)
        frame = self._session.sql(statement.text)
        result_type = shape.result_type
        if result_type is ResultType.SCRIPT:
            result_type = result_type_of_columns(frame.columns)
        if result_type is ResultType.QUERY:
            self._show(statement, frame, shape.verb, watch)
            return
        done = self._session.done()
        database = self._session.database() if done.effects else ""
        said = summarize(shape.verb, result_type, frame, done, database)
        if said:
            self._screen.note(f"{said}{self._time(watch)}" if self._screen.is_terminal else said)
        else:
            self._screen.aside(f"OK{self._time(watch)}")
        if result_type is ResultType.COMMAND and (scheduled := note_on(statement.text)):
            self._screen.note(scheduled)

    def _show(self, statement: Statement, frame: DataFrame, verb: str, watch: Stopwatch) -> None:
        result = result_of(frame, is_local=verb not in _MEMORY_ROWS)
        writer = WRITERS.get(self.display.output)
        shares_terminal = sys.stdout.isatty()
        try:
            with contextlib.closing(self._open_output()) as out:
                if writer is None:
                    shown, is_cut = self._table(result)
                    self._screen.mute()
                    count = self._write_table(out, result, shown, is_plain=is_plain_text(statement.text))
                else:
                    rows, is_cut = _started(result.rows()), False
                    if shares_terminal:
                        self._screen.mute()
                    count = writer(out, result.names, result.numeric, rows)
                time = self._time(watch)  # before a pager keeps the person
        finally:
            self._screen.mute(False)
        if is_cut:
            self._screen.error(f"there are more rows than the {self.display.max_rows} shown; {self.display.more}")
        said = counted(count, "row")
        if effects := self._session.done().effects:
            said += f"; {moved(effects, self._session.database())}"
            self._screen.note(f"{said}{time}" if self._screen.is_terminal else said)
        else:
            self._screen.aside(f"{said}{time}")

    def _table(self, result: Result) -> tuple[list[Row], bool]:
        """Returns the rows to show, and whether there are more."""
        limit = self.display.max_rows
        rows = list(result.first(limit + 1 if limit else 0))
        return (rows[:limit], True) if limit and len(rows) > limit else (rows, False)

    def _write_table(self, out: Output, result: Result, rows: list[Row], *, is_plain: bool) -> int:
        if is_plain and len(result.names) == 1:
            lines = (text_of(row[0]).rstrip("\n") for row in rows)
        else:
            lines = (line.rstrip() for line in grid.render(result.names, result.numeric, rows, terminal_width()))
        for line in lines:
            out.write(line + "\n")
        return len(rows)

    def _time(self, watch: Stopwatch) -> str:
        return f" ({watch})" if self.display.timing else ""


def _started(rows: Iterable[Row]) -> Iterable[Row]:
    """Returns the same rows, the first of them fetched: so that no header is written for a query that fails."""
    iterator = iter(rows)
    return itertools.chain(list(itertools.islice(iterator, 1)), iterator)
