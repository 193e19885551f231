"""Runs statements one after the other, for scripts and for the shell: rows to stdout, all else to the screen."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from streamql.bridge import as_streamql_error
from streamql.console.problems import Problem, describe, from_exception
from streamql.console.render.output import Display, Output, OutputClosedError, Stdout
from streamql.console.render.screen import Screen, Stopwatch
from streamql.console.sql.named_objects import use_statement
from streamql.console.sql.printing import Printer
from streamql.console.sql.progress import Progress
from streamql.console.sql.script import Statement, open_end
from streamql.console.sql.worker import CtrlC, Worker, ctrl_c
from streamql.errors import StreamqlError, counted

if TYPE_CHECKING:
    from streamql.console.sql.session import Session
    from streamql.console.sql.worker import Task

T = TypeVar("T")

FAILED = 1
WAIT_SECONDS = 0.5
"""How often the main thread looks for a Ctrl-C that did not reach it as an exception."""
CANCEL_EVERY_SECONDS = 0.25
CANCEL_SECONDS_MAX = 10.0
"""How long a cancelled statement may take to end; then a script's process ends, and Spark with it."""


@dataclass(frozen=True)
class Failure:
    """What went wrong, with which statement; None: with all of them, which left a transaction open."""

    statement: Statement | None
    problem: Problem


class Runner:
    """Statements in a session, which one thread uses for statements, and another one for progress and cancelling.

    `keeps_ctrl_c`: while it says so, Ctrl-C is a pager's.
    """

    def __init__(
        self,
        session: Session,
        display: Display,
        screen: Screen,
        *,
        verbose: bool = False,
        open_output: Callable[[], Output] = Stdout,
        keeps_ctrl_c: Callable[[], bool] = lambda: False,
    ) -> None:
        self.printer = Printer(session, display, screen, open_output)
        self._session = session
        self._screen = screen
        self._verbose = verbose
        self._keeps_ctrl_c = keeps_ctrl_c
        self._worker = Worker()
        self._task: Task[object] | None = None
        self._progress = Progress(session, screen)
        self.is_dead = False
        """Whether statements can no longer run."""
        self.done = 0
        """How many statements succeeded."""
        self.failures: list[Failure] = []

    @property
    def is_busy(self) -> bool:
        """Returns whether a statement that was cancelled has not ended yet: the next one waits for it."""
        return self._task is not None and not self._task.is_done

    def run_script(
        self,
        statements: Sequence[Statement],
        *,
        continue_on_error: bool = False,
        stops: Callable[[], bool] = lambda: False,
    ) -> int:
        """Runs all statements there will be; returns the exit code. `stops`: asked before each, whether to leave it and the rest alone;
        inside a transaction, which would be left half way, it is not asked. Raises KeyboardInterrupt after Ctrl-C, OutputClosedError."""
        failed = self.run(statements, continue_on_error=continue_on_error, stops=stops)
        if len(statements) > 1 and continue_on_error and failed:
            self._screen.error(f"{len(failed)} of {len(statements)} statements failed: {_places(failed)}")
        is_left = self.end_transaction("error: the statements ended inside a transaction, without COMMIT")
        self._worker.close()
        return FAILED if failed or is_left else 0

    def run(
        self,
        statements: Sequence[Statement],
        *,
        continue_on_error: bool = False,
        stops: Callable[[], bool] = lambda: False,
    ) -> list[Statement]:
        """Runs some statements; returns those that failed, which were reported to the user. Raises KeyboardInterrupt after Ctrl-C,
        OutputClosedError."""
        failed: list[Statement] = []
        for position, statement in enumerate(statements):
            if stops() and not self._session.in_transaction():
                break
            if len(statements) > 1:
                self._screen.aside(statement.title())
            problem = open_end(statement) or self._attempt(statement)
            if problem is None:
                self.done += 1
                continue
            failed.append(statement)
            self.failures.append(Failure(statement, problem))
            self._screen.error(describe(problem, statement.place(problem.line), statement.line, statement.text))
            self.is_dead = self.is_dead or problem.is_fatal
            if not continue_on_error or problem.is_fatal:
                if left := len(statements) - position - 1:
                    self._screen.error(
                        f"{counted(left, 'statement')} after it {'was' if left == 1 else 'were'} not run"
                    )
                break
        return failed

    def end_transaction(self, said: str) -> bool:
        """Returns whether a transaction was open: it is rolled back and the user is warned, `said` first."""
        if not self._session.in_transaction():
            return False
        try:
            self.call(lambda: self._session.sql("ROLLBACK"))
            said += "; it was rolled back"
        except StreamqlError as e:
            said += f". {e}"
        self._screen.error(said)
        if not self.failures:
            self.failures.append(Failure(None, Problem(said.removeprefix("error: "))))
        return True

    def use(self, database: str) -> None:
        """Makes the database the current one. Raises what Spark raises."""
        self.call(lambda: self._session.sql(use_statement(database)))

    def call(self, work: Callable[[], T]) -> T:
        """Work in the thread of statements, with progress shown. After Ctrl-C it is cancelled, and KeyboardInterrupt raised."""
        task = self._worker.start(work)
        self._task = task  # type: ignore[assignment]  # Task[T] is a Task[object] for asking whether it is done
        return self._await(task)

    def _attempt(self, statement: Statement) -> Problem | None:
        try:
            self.call(lambda: self.printer.execute(statement))
        except OutputClosedError:
            self._cancel(None)
            raise
        except Exception as e:
            if self._verbose:
                self._screen.error("".join(traceback.format_exception(e)).rstrip())
            return from_exception(as_streamql_error(e) or e)
        return None

    def _await(self, task: Task[T]) -> T:
        try:
            with ctrl_c() as pressed, self._progress.of_statement():
                while not self._is_over(task, pressed):
                    pass
        except KeyboardInterrupt:
            self._cancel(task)  # progress must no longer ask: the process may be about to end
            raise
        return task.result()

    def _is_over(self, task: Task[T], pressed: CtrlC) -> bool:
        try:
            is_over = task.wait(WAIT_SECONDS)
            if pressed.is_pressed and not is_over:
                raise KeyboardInterrupt
            return is_over
        except KeyboardInterrupt:
            pressed.is_pressed = False
            if task.is_done or not self._keeps_ctrl_c():
                raise
            return False

    def _cancel(self, task: Task[T] | None) -> None:
        """Cancels the jobs that run, and those that the statement starts before it sees that it is cancelled."""
        watch = Stopwatch()
        while True:
            self._session.cancel()
            if task is None or task.wait(CANCEL_EVERY_SECONDS) or watch.seconds > CANCEL_SECONDS_MAX:
                return


def _places(failed: Sequence[Statement]) -> str:
    """Numbers and lines, each file named once: 3 (line 17), 9 (line 80) of nightly.sql."""
    groups = itertools.groupby(failed, key=lambda statement: statement.origin)
    return "; ".join(
        ", ".join(f"{s.number} (line {s.line})" for s in group) + (f" of {origin}" if origin else "")
        for origin, group in groups
    )
