"""The shell: reads an input, does it, and keeps what is shown in step with the session."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.cli.shell import actions, commands, lookups
from streamql.cli.shell.commands import CommandError
from streamql.cli.shell.editor import Editor
from streamql.cli.shell.pager import Paging
from streamql.cli.shell.prompt import State, prompt
from streamql.cli.shell.snapshot import Snapshot, Want
from streamql.cli.shell.staleness import mentions
from streamql.cli.shell.terminal import echo
from streamql.console.options import Input, Options, is_utf8
from streamql.console.render.output import Display, OutputClosedError
from streamql.console.render.screen import Screen, Stopwatch
from streamql.console.sql.inputs import Text, UsageError, read
from streamql.console.sql.named_objects import use_statement
from streamql.console.sql.result_types import ResultType, result_type_of
from streamql.console.sql.script import Statement, statements, typed
from streamql.console.sql.worker import Task, Worker
from streamql.console.versions import version_line
from streamql.times import now_ms

if TYPE_CHECKING:
    from streamql.console.sql.session import Session
    from streamql.console.sql.statement_runner import Runner

OK, FAILED = 0, 1
IDLE_SECONDS = 0.3
"""How long the prompt stands before the catalog is looked at again: not between statements that are pasted or typed ahead."""
_POLL_SECONDS = 0.25


class App:
    """One run of the shell. `open_session` makes the session, in a thread of its own, while the person types; `server`: where it is."""

    def __init__(self, options: Options, screen: Screen, open_session: Callable[[], Session], server: str = "") -> None:
        self.display = Display(options.output, options.max_rows, more="\\rows 0 shows all, \\o csv streams")
        self._options = options
        self._screen = screen
        self._open_session = open_session
        self._paging = Paging()
        self._state = State(is_starting=True, server=server)
        self._snapshot = Snapshot()
        self._starting: Task[Session] | None = None
        self._runner: Runner | None = None
        self._lookups = Worker()
        self._is_outdated = True
        self._mentioned: set[tuple[str, bool]] = set()
        self._notices: list[str] = []
        self._is_reading = False
        self._is_leaving = False
        self._last = ""
        self._editor = Editor(lambda: prompt(self._state), lambda: self._snapshot, self._resolve)
        screen.defer = self._defer

    def run(self, init: Sequence[Text]) -> int:
        """Reads and runs until the person leaves; the exit code. `init`: scripts to run first. Raises what the session's start
        raised."""
        with echo(False):
            return self._loop(init)

    def _loop(self, init: Sequence[Text]) -> int:
        try:
            if init and not self._run(statements(init)):
                return FAILED
            if not self._options.silent:
                self.say(f"{version_line()}\nhelp lists commands and statements; Ctrl-D leaves")
            while not self._is_leaving:
                text = self._read()
                if text is None:
                    break
                self._do(text)
            return FAILED if self._runner is not None and self._runner.is_dead else OK
        finally:
            self._end()
            if self._starting is not None and self._starting.is_done:
                with contextlib.suppress(Exception):  # it did not start
                    self._starting.result().close()

    # --- what commands ask of the shell

    @property
    def pages(self) -> bool:
        """Returns whether long results go to a pager."""
        return self._paging.is_on

    @pages.setter
    def pages(self, on: bool) -> None:
        self._paging.is_on = on

    def run_text(self, text: str) -> bool:
        """Runs what was typed; whether all statements succeeded. Raises KeyboardInterrupt after Ctrl-C."""
        self._last = text
        return self._run(typed(text))

    def run_file(self, path: Path) -> bool:
        """Runs a file of statements. Raises CommandError where it cannot be read, KeyboardInterrupt after Ctrl-C."""
        try:
            texts = read([Input("file", str(path))])
        except UsageError as e:
            raise CommandError(str(e)) from None
        return self._run(statements(texts))

    def say(self, text: str, end: str = "\n") -> None:
        """To stdout."""
        print(text, end=end, flush=True)

    def known(self, database: str | None = None) -> Snapshot:
        """Returns the catalog, with the names in the database (None: the current one) looked up now. Raises KeyboardInterrupt."""
        session = self._ready_session()

        def read() -> Snapshot:
            self._snapshot = lookups.look_up(session, Want((database or self._state.database).lower()), self._snapshot)
            return self._snapshot

        task = self._lookups.start(read)
        while not task.wait(_POLL_SECONDS):
            pass
        return task.result()

    def last_statements(self) -> str:
        """Returns the last input that was SQL."""
        return self._last

    def pause(self, seconds: float) -> None:
        """Waits. Raises KeyboardInterrupt after Ctrl-C."""
        time.sleep(seconds)

    def leave(self) -> None:
        """Ends the loop."""
        self._is_leaving = True

    # --- one input

    def _read(self) -> str | None:
        """Reads one input; None: the user leaves. Raises what kept the session from starting."""
        while True:
            self._flush()
            self._is_reading = True
            try:
                return self._editor.read(self._shown)
            except KeyboardInterrupt:
                continue  # the input was given up, not the shell
            except EOFError:
                return None
            finally:
                self._is_reading = False

    def _do(self, text: str) -> None:
        try:
            call = commands.parse(text)
            if call is not None:
                actions.run(self, call)
            elif not is_utf8(text):
                raise CommandError("the input is not UTF-8")
            elif text.strip().strip(";"):
                self.run_text(text)
        except CommandError as e:
            self._screen.error(f"error: {e.message}" + (f"\nhint: {e.hint}" if e.hint else ""))
        except KeyboardInterrupt:
            is_left = self._runner is not None and self._runner.is_busy
            self._screen.error(
                "cancelled" + ("; it has not ended yet, the next statement waits for it" if is_left else "")
            )

    def _run(self, found: Sequence[Statement]) -> bool:
        """Runs statements; whether all succeeded. Raises KeyboardInterrupt after Ctrl-C."""
        if not found:
            return True
        runner = self._ready()
        runner.printer.display = self.display
        try:
            return not runner.run(found)
        except OutputClosedError:  # the user left the pager: that is not a failure
            return True
        finally:
            self._after(runner, found)

    def _after(self, runner: Runner, ran: Sequence[Statement]) -> None:
        """Looks at what the statements changed."""
        if runner.is_dead:
            self._is_leaving = True
        elif not runner.is_busy:
            session = self._ready_session()
            database, in_transaction = runner.call(lambda: (session.database(), session.in_transaction()))
            self._state = replace(self._state, database=database, in_transaction=in_transaction)
            if database.lower() != self._snapshot.database.lower():
                self._snapshot = replace(self._snapshot, database=database)
        types = {result_type_of(statement.text) for statement in ran}
        if types - {ResultType.QUERY, ResultType.DML}:
            self._snapshot = replace(self._snapshot, relations={}, columns={})
        self._is_outdated = self._is_outdated or types != {ResultType.QUERY}

    # --- the session

    def _shown(self) -> None:
        """Notes that the prompt stands."""
        self._begin()
        if self._is_outdated:
            threading.Timer(IDLE_SECONDS, self._refresh).start()

    def _begin(self) -> None:
        """Starts the session in the background, once."""
        if self._starting is not None:
            return

        def start() -> Session:
            try:
                session = self._open_session()
                if self._options.database is not None:
                    session.sql(use_statement(self._options.database))
                self._state = replace(self._state, is_starting=False, database=session.database())
            except Exception as e:
                self._editor.abort(e)
                raise
            self._editor.wake()
            return session

        worker = Worker()
        self._starting = worker.start(start)

    def _ready_session(self) -> Session:
        """Returns the session, waited for. Raises KeyboardInterrupt, and what kept it from starting."""
        self._begin()
        assert self._starting is not None
        watch = Stopwatch()
        try:
            while not self._starting.wait(_POLL_SECONDS):
                what = "connecting" if self._state.server else "starting Spark"
                self._screen.progress(f"{watch.seconds:4.0f} s  {what} …")
        finally:
            self._screen.mute(False)
        return self._starting.result()

    def _ready(self) -> Runner:
        session = self._ready_session()
        if self._runner is None:
            from streamql.console.sql.statement_runner import Runner

            self._runner = Runner(
                session,
                self.display,
                self._screen,
                verbose=self._options.verbose,
                open_output=self._paging.open_output,
                keeps_ctrl_c=lambda: self._paging.is_active,
            )
        return self._runner

    def _end(self) -> None:
        """Ends an open transaction; the session ends with the process."""
        self._screen.defer = lambda _: False
        self._flush()
        if self._runner is None or self._runner.is_dead or not self._state.in_transaction:
            return
        if self._runner.is_busy:
            self._screen.error(
                "warning: a statement of the open transaction has not ended; others may roll it back after its lease"
            )
            return
        try:
            self._runner.end_transaction("warning: the transaction was left without COMMIT")
        except Exception as e:  # the process ends: the catalog's lease ends the transaction
            self._screen.error(f"warning: the open transaction could not be rolled back: {e}")

    # --- the catalog, in the background

    def _refresh(self) -> None:
        """Looks at names and staleness again, unless a statement runs by now: then the next prompt does."""

        def read() -> None:
            assert self._starting is not None
            session = self._starting.result()
            if not self._is_outdated:
                return
            self._is_outdated = False
            try:
                self._snapshot, streams = lookups.overview(session, self._snapshot)
            except Exception:  # cancelled with a statement, say: the next prompt tries again
                self._is_outdated = True
                return
            for sentence in mentions(streams, now_ms(), self._mentioned):
                self._screen.note(f"warning: {sentence}")

        if self._is_reading:
            self._lookups.start(read)

    def _resolve(self, wants: Iterable[Want], seconds: float) -> bool:
        """Looks up what a completion lacks; False: that takes longer, or Spark is still starting."""
        if self._starting is None or not self._starting.is_done:
            return False
        session = self._starting.result()

        def read(want: Want) -> None:
            self._snapshot = lookups.look_up(session, want, self._snapshot)

        tasks = [self._lookups.start(partial(read, want)) for want in wants]
        deadline = time.monotonic() + seconds
        return all(task.wait(max(0.0, deadline - time.monotonic())) for task in tasks)

    # --- notes that come while the prompt is shown

    def _defer(self, text: str) -> bool:
        if threading.current_thread() is threading.main_thread() or not (self._is_reading or self._paging.is_active):
            return False
        self._notices.append(text)
        self._editor.wake(self._flush)
        return True

    def _flush(self) -> None:
        while self._notices:
            self._screen.put(self._notices.pop(0))
