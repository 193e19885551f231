"""A thread that runs statements while the main one waits: so that Ctrl-C works at once, and progress can be shown.

PySpark gives each Python thread a connection of its own to the JVM. A signal handler that called the JVM over the
connection of the statement it interrupts would wait for that statement's end.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Generic, TypeVar

T = TypeVar("T")


class Task(Generic[T]):
    """A call that was handed over."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._done = threading.Event()
        self._value: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do it, in the worker."""
        try:
            self._value = self._call()
        except BaseException as e:  # it is raised again in the thread that waits
            self._error = e
        finally:
            self._done.set()

    def wait(self, seconds: float) -> bool:
        """Returns whether it is done after at most so many seconds."""
        return self._done.wait(seconds)

    @property
    def is_done(self) -> bool:
        """Returns whether it has ended, well or not."""
        return self._done.is_set()

    def result(self) -> T:
        """Returns what it gave; raises what it raised."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # None only where T allows it


class Worker:
    """Runs calls one after the other, all in the same thread. It does not keep the process from ending."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Task[object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="streamql-statements", daemon=True)
        self._thread.start()

    def start(self, call: Callable[[], T]) -> Task[T]:
        """Hand a call over."""
        task = Task(call)
        self._tasks.put(task)  # type: ignore[arg-type]  # Task[T] is a Task[object] for running
        return task

    def close(self, seconds: float = 1.0) -> None:
        """No more calls; waits a little for the one that runs."""
        self._tasks.put(None)
        self._thread.join(seconds)

    def _loop(self) -> None:
        while (task := self._tasks.get()) is not None:
            task.run()


class CtrlC:
    """Whether Ctrl-C was pressed. The handler that notes it raises KeyboardInterrupt too; Python drops that inside a finalizer."""

    def __init__(self) -> None:
        self.is_pressed = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT. Raises KeyboardInterrupt."""
        self.is_pressed = True
        signal.default_int_handler(number, frame)


@contextmanager
def ctrl_c() -> Iterator[CtrlC]:
    """Give what notes Ctrl-C until the end of the block. It notes nothing outside the main thread, or where SIGINT has a handler other
    than Python's: nohup, or an application around us."""
    found = CtrlC()
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield found
        return
    signal.signal(signal.SIGINT, found.hear)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
