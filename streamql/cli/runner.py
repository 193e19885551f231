"""Runs statements one after the other: rows to stdout, all else to the screen."""

from __future__ import annotations

import io
import itertools
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from streamql.bridge import as_streamql_error
from streamql.cli import grid
from streamql.cli.formats import WRITERS, text_of
from streamql.cli.kinds import Kind, is_plain_text, kind_of_columns, shape_of
from streamql.cli.problems import Problem, describe, from_exception
from streamql.cli.progress import Progress
from streamql.cli.results import Result, result_of
from streamql.cli.screen import Screen, Stopwatch
from streamql.cli.script import Statement, open_end
from streamql.cli.worker import Worker
from streamql.sessions import run_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamql.cli.formats import Row
    from streamql.cli.options import Options
    from streamql.cli.worker import Task

T = TypeVar("T")

FAILED = 1
WAIT_SECONDS = 60.0
CANCEL_EVERY_SECONDS = 0.25
CANCEL_SECONDS_MAX = 10.0
"""How long a cancelled statement may take to end; then the process ends, and Spark with it."""

_MEMORY_ROWS = ("SELECT", "VALUES", "TABLE", "FROM", "MAP", "REDUCE")
"""Queries whose rows may be many; those of all others are in the driver's memory already."""


class OutputClosedError(Exception):
    """The reader of stdout went away."""


class _Stdout:
    """stdout, with a reader's going away told apart from a JVM's."""

    def write(self, text: str, /) -> object:
        try:
            return sys.stdout.write(text)
        except BrokenPipeError:
            raise OutputClosedError from None

    def flush(self) -> None:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            raise OutputClosedError from None


class Runner:
    """Statements in a session. `spark` is used by one thread for statements, by another for progress and cancelling."""

    def __init__(self, spark: SparkSession, options: Options, screen: Screen) -> None:
        self._spark = spark
        self._options = options
        self._screen = screen
        self._worker = Worker()
        self._progress = Progress(spark, screen)
        self._out = _Stdout()

    def run(self, statements: Sequence[Statement]) -> int:
        """All statements; the exit code. Raises KeyboardInterrupt after Ctrl-C, OutputClosedError."""
        failed: list[Statement] = []
        for statement in statements:
            problem = open_end(statement) or self._attempt(statement)
            if problem is None:
                continue
            failed.append(statement)
            self._screen.error(describe(problem, statement.place(problem.line), statement.line, statement.text))
            if not self._options.continue_on_error or problem.is_fatal:
                break
        if len(statements) > 1 and self._options.continue_on_error and failed:
            self._screen.error(f"{len(failed)} of {len(statements)} statements failed: {_places(failed)}")
        self._worker.close()
        return FAILED if failed else 0

    def use(self, database: str) -> None:
        """Makes the database the current one. Raises what Spark raises."""
        name = database if "`" in database else ".".join(f"`{part}`" for part in database.split("."))
        self._await(self._worker.start(lambda: run_sql(f"USE {name}", self._spark)))

    def _attempt(self, statement: Statement) -> Problem | None:
        try:
            self._await(self._worker.start(lambda: self._execute(statement)))
        except OutputClosedError:
            self._cancel(None)
            raise
        except Exception as e:
            if self._options.verbose:
                self._screen.error("".join(traceback.format_exception(e)).rstrip())
            return from_exception(as_streamql_error(e) or e)
        return None

    def _await(self, task: Task[T]) -> T:
        """Waits for the worker, showing progress. After Ctrl-C the statement is cancelled and KeyboardInterrupt raised."""
        try:
            with self._progress.of_statement():
                while not task.wait(WAIT_SECONDS):
                    pass
        except KeyboardInterrupt:
            self._cancel(task)
            raise
        return task.result()

    def _cancel(self, task: Task[T] | None) -> None:
        """Cancels the jobs that run, and those that the statement starts before it sees that it is cancelled."""
        watch = Stopwatch()
        while True:
            try:
                self._spark.sparkContext.cancelAllJobs()
            except Exception:  # the JVM is gone: nothing runs
                return
            if task is None or task.wait(CANCEL_EVERY_SECONDS) or watch.seconds > CANCEL_SECONDS_MAX:
                return

    def _execute(self, statement: Statement) -> None:
        """One statement, in the worker."""
        watch = Stopwatch()
        shape = shape_of(statement.text)
        frame = run_sql(statement.text, self._spark)
        kind = shape.kind
        if kind is Kind.SCRIPT:
            kind = kind_of_columns(frame.columns)
        if kind is Kind.QUERY:
            self._show(statement, frame, shape.verb, watch)
        else:
            report = _report(shape.verb, kind, frame)
            if report:
                self._screen.note(f"{report} ({watch})" if self._screen.is_terminal else report)
            else:
                self._screen.aside(f"OK ({watch})")

    def _show(self, statement: Statement, frame: DataFrame, verb: str, watch: Stopwatch) -> None:
        result = result_of(frame, is_local=verb not in _MEMORY_ROWS)
        writer = WRITERS.get(self._options.output)
        shares_terminal = sys.stdout.isatty()
        try:
            if writer is None:
                count = self._show_table(result, is_plain=is_plain_text(statement.text))
            else:
                rows = _started(result.rows())
                if shares_terminal:
                    self._screen.mute()
                count = writer(self._out, result.names, result.numeric, rows)
            self._out.flush()
        finally:
            self._screen.mute(False)
        self._screen.aside(f"{_counted(count, 'row')} ({watch})")

    def _show_table(self, result: Result, *, is_plain: bool) -> int:
        limit = self._options.max_rows
        rows = result.first(limit + 1 if limit else 0)
        is_cut = bool(limit) and len(rows) > limit
        shown = rows[:limit] if is_cut else rows
        self._screen.mute()
        if is_plain and len(result.names) == 1:
            lines = (text_of(row[0]).rstrip("\n") for row in shown)
        else:
            lines = (line.rstrip() for line in grid.render(result.names, result.numeric, shown, _terminal_width()))
        for line in lines:
            self._out.write(line + "\n")
        if is_cut:
            self._out.flush()
            self._screen.error(
                f"there are more rows than the {limit} shown; --max-rows 0 shows all, --output csv streams"
            )
        return len(shown)


def _started(rows: Iterable[Row]) -> Iterable[Row]:
    """The same rows, the first of them fetched: so that no header is written for a query that fails."""
    iterator = iter(rows)
    return itertools.chain(list(itertools.islice(iterator, 1)), iterator)


def _places(failed: Sequence[Statement]) -> str:
    """Numbers and lines, each file named once: 3 (line 17), 9 (line 80) of nightly.sql."""
    groups = itertools.groupby(failed, key=lambda statement: statement.origin)
    return "; ".join(
        ", ".join(f"{s.number} (line {s.line})" for s in group) + (f" of {origin}" if origin else "")
        for origin, group in groups
    )


def _report(verb: str, kind: Kind, frame: DataFrame) -> str:
    """What a statement that is no query did, in one line; empty where Spark does not say."""
    names = frame.columns
    if not names or kind not in (Kind.DML, Kind.COMMAND):
        return ""
    row = frame.first()
    if row is None:
        return ""
    facts: dict[str, object] = dict(zip(names, row, strict=True))
    return _REPORTS.get(verb, _changed)(verb, facts)


def _changed(verb: str, facts: dict[str, object]) -> str:
    """MERGE: 5 rows affected (0 updated, 2 deleted, 3 inserted)."""
    affected = facts.pop("num_affected_rows", None)
    if not isinstance(affected, int):
        return ""
    parts = [
        f"{text_of(v)} {k[4:-5].replace('_', ' ')}" for k, v in facts.items() if k.endswith("_rows") and v is not None
    ]
    return f"{verb}: {_counted(affected, 'row')} affected" + (f" ({', '.join(parts)})" if parts else "")


def _optimized(verb: str, facts: dict[str, object]) -> str:
    metrics = facts.get("metrics")
    added, removed = getattr(metrics, "numFilesAdded", None), getattr(metrics, "numFilesRemoved", None)
    return f"{verb}: {_counted(removed, 'file')} rewritten as {added}" if isinstance(removed, int) else ""


def _restored(verb: str, facts: dict[str, object]) -> str:
    removed, restored = facts.get("num_removed_files"), facts.get("num_restored_files")
    return f"{verb}: {_counted(removed, 'file')} removed, {restored} restored" if isinstance(removed, int) else ""


_REPORTS: dict[str, Callable[[str, dict[str, object]], str]] = {"OPTIMIZE": _optimized, "RESTORE": _restored}


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _terminal_width() -> int | None:
    """The width of the terminal that stdout is; None where it is none, so that what a pipe reads does not depend on one."""
    import os

    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None if sys.stdout.isatty() else None
    except (OSError, ValueError, io.UnsupportedOperation):
        return None
