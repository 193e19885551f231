"""What goes to stderr: notes, warnings, errors, and one line of progress that is gone before anything else is written."""

from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

from streamql.console.render.quantities import shortened
from streamql.durations import in_words

_ERASE = "\r\x1b[K"


class Screen:
    """stderr, shared by the thread that runs statements and the one that waits for it."""

    def __init__(self, stream: TextIO | None = None, *, silent: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._silent = silent
        self._lock = threading.Lock()
        self._progress = False
        self._muted = False
        self.defer: Callable[[str], bool] = lambda _: False
        """Takes a text that must not be written now, because a prompt is on the screen; whether it did."""
        self.is_terminal = _is_terminal(self._stream)
        self.shows_progress = self.is_terminal and not silent

    def error(self, text: str) -> None:
        """Shown always."""
        self._write(text)

    def note(self, text: str) -> None:
        """Shown unless -S."""
        if not self._silent:
            self._write(text)

    def aside(self, text: str) -> None:
        """Progress: shown on a terminal, unless -S."""
        if self.shows_progress:
            self._write(text)

    def progress(self, text: str) -> None:
        """Shows the line in place of the last one, as much of it as the terminal is wide; nothing if stderr is not a terminal, with -S, or
        while muted."""
        with self._lock:
            if self.shows_progress and not self._muted:
                self._progress = True
                self._put(f"{_ERASE}{shortened(text, shutil.get_terminal_size().columns - 1)}")

    def mute(self, muted: bool = True) -> None:
        """No progress while rows are written to the same terminal."""
        with self._lock:
            self._muted = muted
            self._clear()

    def _write(self, text: str) -> None:
        if self.defer(text):
            return
        self.put(text)

    def put(self, text: str) -> None:
        """Shown, and not deferred."""
        with self._lock:
            self._clear()
            self._put(text + "\n")

    def _clear(self) -> None:
        if self._progress:
            self._put(_ERASE)
            self._progress = False

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            pass  # stderr is closed: nothing reads it


class WarningHandler(logging.Handler):
    """Shows streamql's warnings."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        """Shows one."""
        self._screen.note(f"{record.levelname.lower()}: {record.getMessage()}")


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """Until now."""
        return time.monotonic() - self._start

    def __str__(self) -> str:
        seconds = self.seconds
        if seconds < 60:
            return f"{seconds:.2f} s"
        return in_words(seconds * 1000, parts=2)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False
