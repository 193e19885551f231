"""The entry point: options, statements, session, run. Spark is imported only once there is something to run."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from streamql.console import data_directory
from streamql.console.options import Input, Options, parse, short_help
from streamql.feature import Command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.console.render.screen import Screen
    from streamql.console.sql.inputs import Text
    from streamql.console.sql.script import Statement
    from streamql.console.sql.session import Session

OK, FAILED, USAGE, CANCELLED, OUTPUT_CLOSED = 0, 1, 2, 130, 141
"""Exit codes; the last two are 128 and the number of the signal that a Unix command would have died of."""

END_SECONDS_MAX = 5.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with the arguments `argv` (None: of this process); its exit code. Never raises."""
    try:
        options = parse(argv)
    except SystemExit as e:
        return e.code if isinstance(e.code, int) else USAGE
    if not options.connect:
        options = replace(options, is_new=data_directory.is_new(options.data))
    try:
        return _main(options) if options.command is None else _command(options, options.command)
    except KeyboardInterrupt:
        _say("cancelled")
        return CANCELLED
    except BrokenPipeError:
        return _output_closed()


def _main(options: Options) -> int:
    is_shell = not options.inputs and (sys.stdin is None or sys.stdin.isatty())
    if is_shell and options.consumptions is not None:
        _say("error: --consumptions needs statements: -e, -f or a pipe")
        return USAGE
    if is_shell and (sys.stdin is None or sys.stdout is None or not sys.stdout.isatty()):
        _say(short_help())
        return USAGE
    if not options.inputs and not is_shell:
        options = _with_stdin(options)
    from streamql.console.sql.inputs import UsageError, read

    try:
        texts = read((*options.init, *options.inputs))
    except UsageError as e:
        _say(f"error: {e}")
        return USAGE
    if is_shell:
        return _shell(options, texts)
    if options.consumptions is not None:
        options.consumptions.unlink(missing_ok=True)  # what an earlier run left: no file means that it is not known
    from streamql.console.sql.result_types import is_brief
    from streamql.console.sql.script import open_end, statements

    found = statements(texts)
    if not found:
        if not options.silent:
            _say("nothing to run: no statement was given")
        return OK
    if not options.continue_on_error:
        # Before anything runs: a quote that is never closed has swallowed the rest of the script.
        for statement in found:
            problem = open_end(statement)
            if problem is not None:
                from streamql.console.problems import describe

                _say(describe(problem, statement.place(problem.line), statement.line, statement.text))
                return FAILED
    brief = all(is_brief(statement.text) for statement in found)
    return _run(options, lambda session, screen: _statements(session, options, screen, found), is_brief=brief)


def _shell(options: Options, init: Sequence[Text]) -> int:
    """Returns the prompt; Spark starts behind it."""
    from streamql.cli.shell.app import App
    from streamql.console.render.screen import Screen
    from streamql.console.sql.server_url import server_of

    screen = Screen(silent=options.silent)
    _set_encoding()
    with _logging(options, screen), _interruptible() as listen:
        listen()  # PySpark puts no handler of its own in place where it does not start in the main thread
        try:
            _start_java(options, is_brief=False)
            server = server_of(options.connect) if options.connect else ""
            return App(options, screen, lambda: _open(options, screen), server).run(init)
        except Exception as e:
            return _start_failed(e, options)


def _command(options: Options, command: Command) -> int:
    """`streamql NAME`."""
    problem = _refusal(options, command)
    if problem is not None:
        _say(problem)
        return USAGE
    _set_encoding()
    if command.in_session:
        return _run(options, lambda *_: int(command.code.run(_spark(options), options)), is_brief=command.is_brief)
    from streamql.errors import StreamqlError

    try:
        return int(command.code.run(options))
    except StreamqlError as e:
        _say(f"error: {e}")
        return FAILED
    except OSError as e:
        _say(f"error: {e.filename}: {e.strerror}" if e.filename else f"error: {e}")
        return FAILED


def _refusal(options: Options, command: Command) -> str | None:
    """Returns why the command is not even tried: said at once, before Spark starts."""
    if command.reads_only and (missing := data_directory.no_data(options.data)) is not None:
        return missing
    check: Callable[[Options], str | None] | None = getattr(command.code, "check", None)
    wrong = None if check is None else check(options)
    return None if wrong is None else f"error: {wrong}"


def _with_stdin(options: Options) -> Options:
    return replace(options, inputs=(Input("stdin"),))


def _run(options: Options, work: Callable[[Session, Screen], int], *, is_brief: bool) -> int:
    """Work in the session. `is_brief`: it ends within seconds."""
    from streamql.console.render.screen import Screen

    screen = Screen(silent=options.silent)
    with _logging(options, screen), _interruptible() as listen:
        try:
            _start_java(options, is_brief=is_brief)
        except Exception as e:
            return _start_failed(e, options)
        from pyspark import SparkContext

        is_ours = SparkContext._active_spark_context is None
        try:
            session = _open(options, screen)
            listen()
            return work(session, screen)
        except KeyboardInterrupt:
            if is_ours:
                _end_java()
            raise
        except BrokenPipeError:  # the reader of the output went away, not Spark's process
            raise
        except Exception as e:
            return _start_failed(e, options)


def _statements(session: Session, options: Options, screen: Screen, found: Sequence[Statement]) -> int:
    from streamql.console.render.output import Display, OutputClosedError
    from streamql.console.sql.statement_runner import Runner

    display = Display(options.output, options.max_rows)
    runner = Runner(session, display, screen, verbose=options.verbose)
    _set_encoding()
    try:
        if options.database is not None:
            runner.use(options.database)
        code = runner.run_script(found, continue_on_error=options.continue_on_error)
        is_written = runner.is_dead or _write_consumptions(session, screen, options)
        return code or (OK if is_written else FAILED)
    except OutputClosedError:
        return _output_closed()
    finally:
        session.close()


def _write_consumptions(session: Session, screen: Screen, options: Options) -> bool:
    """Writes what the run consumed, if this was asked for. Returns whether it is written; the user is told of an error."""
    if options.consumptions is None:
        return True
    from streamql.console.problems import from_exception
    from streamql.console.sql.consumptions import write

    try:
        write(session, options.consumptions, options.run)
    except Exception as e:
        what = f"what was consumed cannot be written to {options.consumptions}"
        screen.error(f"error: {what}: {from_exception(e).message}")
        return False
    return True


def _open(options: Options, screen: Screen) -> Session:
    """Returns the session that runs statements: over the data directory, or on a server."""
    if options.connect:
        from streamql.console.sql.remote import RemoteSession

        return RemoteSession(options.connect, options.run)
    from streamql.console.sql.embedded import EmbeddedSession

    session = EmbeddedSession(_spark(options))
    if options.is_new and not (
        options.command is not None and options.command.name == "run"
    ):  # that one tells it by an event
        screen.note(data_directory.made(options.data))
    return session


def _spark(options: Options) -> SparkSession:
    """Returns the session over the data directory; the second time, the same one."""
    import streamql

    return streamql.session(options.data, _settings(options))


def _start_java(options: Options, *, is_brief: bool) -> None:
    """Starts the JVM of the session, if it is in this process: PySpark is imported meanwhile. Raises what the session's start raises."""
    if options.connect:
        return
    if options.verbose:
        os.environ.setdefault("STREAMQL_LOG_LEVEL", "info")
    from streamql.extension.embedded import start_ahead

    start_ahead(options.data, _settings(options), is_brief=is_brief)


def _settings(options: Options) -> dict[str, str]:
    """Returns the settings of the session in this process."""
    from streamql.settings import RUN

    return {**options.conf, **({RUN: options.run} if options.run else {})}


def _start_failed(e: Exception, options: Options) -> int:
    """Says why there is no session, or no such database."""
    from streamql.bridge import as_streamql_error
    from streamql.console.problems import from_exception

    if options.verbose:
        import traceback

        traceback.print_exception(e)
    if isinstance(e, OSError) and e.filename is not None:
        _say(f"error: the data directory cannot be used: {e.filename}: {e.strerror}")
        return USAGE
    problem = from_exception(as_streamql_error(e) or e)
    _say(f"error: {problem.message}")
    if problem.hint:
        _say(f"hint: {problem.hint}")
    return FAILED if options.command is None else options.command.failed


@contextlib.contextmanager
def _logging(options: Options, screen: Screen) -> Iterator[None]:
    """streamql's warnings on the screen; Python's own, which are for developers, only with -v. So with what Py4J says to the root logger:
    with the trace of a call that Ctrl-C has cut short."""
    from streamql.console.render.screen import WarningHandler

    logger = logging.getLogger("streamql")
    handler = WarningHandler(screen)
    others = logging.StreamHandler()
    others.setLevel(logging.WARNING)
    others.addFilter(lambda record: options.verbose or not record.getMessage().endswith("while sending command."))
    is_alone = not logging.root.handlers
    if is_alone:
        logging.root.addHandler(others)
    level, propagates = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    if options.verbose:
        handler.setLevel(logging.DEBUG)
        logger.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings():
            if not options.verbose and not sys.warnoptions:
                warnings.simplefilter("ignore")
            yield
    finally:
        logging.root.removeHandler(others)
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates


@contextlib.contextmanager
def _interruptible() -> Iterator[Callable[[], None]]:
    """Ctrl-C raises KeyboardInterrupt: what is given is to be called after PySpark has put its own handler in place."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = signal.getsignal(signal.SIGINT)
    wanted = before if before is signal.SIG_IGN else signal.default_int_handler  # nohup and & of a script: not for us

    def listen() -> None:
        signal.signal(signal.SIGINT, wanted)

    try:
        yield listen
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.default_int_handler)


def _end_java() -> None:
    """Ends the JVM that this process started, and waits for it: nothing of a cancelled statement is left running."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return
    import subprocess

    with contextlib.suppress(OSError):
        process.stdin.close()  # the JVM takes that for this process's end
    try:
        process.wait(END_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()


def _set_encoding() -> None:
    """Rows are UTF-8 whatever the locale says; what cannot be encoded is replaced rather than an error."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="replace")


def _output_closed() -> int:
    """Drops what Python still writes to stdout, whose reader is gone. Returns the exit code."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    return OUTPUT_CLOSED


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
