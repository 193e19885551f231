"""What a terminal is shown while statements run."""

from __future__ import annotations

import io
import logging
import signal
from collections.abc import Iterator

import pytest

from streamql.catalog.states import Claim, Owner, StreamState
from streamql.console.render.screen import Screen, WarningHandler
from streamql.console.render.waits import waiting_text
from streamql.console.sql.progress import line
from streamql.console.sql.session import Stages
from streamql.console.sql.worker import Worker, ctrl_c
from streamql.model import Offset, Stream, StreamMode, TableSource
from streamql.names import Name


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_erased_before_anything_else() -> None:
    terminal = Terminal()
    screen = Screen(terminal)
    screen.progress("1 s")
    screen.progress("2 s")
    screen.note("done")
    screen.aside("OK")
    assert terminal.getvalue() == "\r\x1b[K1 s\r\x1b[K2 s\r\x1b[Kdone\nOK\n"


def test_no_progress_while_rows_are_written() -> None:
    terminal = Terminal()
    screen = Screen(terminal)
    screen.mute()
    screen.progress("1 s")
    assert terminal.getvalue() == ""
    screen.mute(False)
    screen.progress("2 s")
    screen.mute()
    assert terminal.getvalue() == "\r\x1b[K2 s\r\x1b[K"


def test_a_pipe_gets_no_progress() -> None:
    pipe = io.StringIO()
    screen = Screen(pipe)
    screen.progress("1 s")
    screen.aside("OK")
    screen.note("MERGE: 1 row affected")
    assert pipe.getvalue() == "MERGE: 1 row affected\n"


def test_silence() -> None:
    terminal = Terminal()
    screen = Screen(terminal, silent=True)
    screen.progress("1 s")
    screen.aside("OK")
    screen.note("MERGE: 1 row affected")
    WarningHandler(screen).handle(logging.makeLogRecord({"levelname": "WARNING", "msg": "x"}))
    screen.error("error: y")
    assert terminal.getvalue() == "error: y\n"


def test_warnings() -> None:
    pipe = io.StringIO()
    WarningHandler(Screen(pipe)).handle(logging.makeLogRecord({"levelname": "WARNING", "msg": "a %s", "args": ("b",)}))
    assert pipe.getvalue() == "warning: a b\n"


def test_a_closed_stderr_is_no_error() -> None:
    pipe = io.StringIO()
    screen = Screen(pipe)
    pipe.close()
    screen.error("x")


@pytest.mark.parametrize(
    ("tasks", "text"),
    [
        ((0, 0, 0), "   3 s  planning …"),
        ((1, 1, 4), "   3 s  ██████░░░░░░░░░░░░░░░░░░  1 of 4 tasks, 1 stage running"),
        ((2, 1500, 1500), "   3 s  ████████████████████████  1,500 of 1,500 tasks, 2 stages running"),
    ],
)
def test_line(tasks: tuple[int, int, int], text: str) -> None:
    assert line(3.2, Stages(*tasks)) == text


def test_worker() -> None:
    worker = Worker()
    assert worker.start(lambda: 1 + 1).result() == 2
    task = worker.start(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        task.result()
    worker.close()


@pytest.fixture
def python_handles_ctrl_c() -> Iterator[None]:
    """PySpark handles it in a worker that has started Spark."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("python_handles_ctrl_c")
def test_ctrl_c_inside_a_finalizer_is_noted() -> None:
    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    with ctrl_c() as pressed:
        Finalized()
        assert pressed.is_pressed
    with ctrl_c() as pressed, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert pressed.is_pressed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_statement_waits_for() -> None:
    owner = Owner("", "host/boot", 4711, "", "ann")
    claim = Claim("c", 1, {}, (), owner, 1, 1_000_000, "MERGE INTO orders_copy\n  USING orders_stream", 60.0)
    source = TableSource(Name("spark_catalog", "demo", "orders"), "file:/orders", "id")
    stream = Stream("s", Name("spark_catalog", "demo", "st"), source, StreamMode.STANDARD, False, None, 0, "ann", "")
    text = waiting_text([StreamState(stream, Offset(1), 2, claim)], 1_012_000)
    assert text == (
        "waiting for process 4711 of ann@host, which consumes demo.st since 12 s: MERGE INTO orders_copy USING orders_stream"
    )
    assert line(3.0, Stages(), text) == f"   3 s  {text}"
    assert waiting_text([], 0) == ""
