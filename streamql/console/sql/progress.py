"""One line that says how far a long statement is, for a terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streamql.console.render.screen import Screen, Stopwatch
from streamql.console.sql.worker import Worker

if TYPE_CHECKING:
    from streamql.console.sql.session import Session, Stages

SHOWN_AFTER_SECONDS = 2.0
EVERY_SECONDS = 0.25
_BAR_WIDTH = 24


class Progress:
    """Asks Spark what runs, in a thread of its own: Ctrl-C in the middle of a question would leave its connection unusable."""

    def __init__(self, session: Session, screen: Screen) -> None:
        self._session = session
        self._screen = screen
        self._worker = Worker() if screen.shows_progress else None

    @contextmanager
    def of_statement(self) -> Iterator[None]:
        """While a statement runs, once it takes long. The line is gone at the end."""
        if self._worker is None:
            yield
            return
        over = threading.Event()
        task = self._worker.start(lambda: self._watch(over))
        try:
            yield
        finally:
            over.set()
            task.wait(1.0)
            self._screen.mute(False)

    def _watch(self, over: threading.Event) -> None:
        watch = Stopwatch()
        pause = SHOWN_AFTER_SECONDS
        while not over.wait(pause):
            stages, waiting = self._session.stages(), self._session.waiting()
            if not over.is_set():
                self._screen.progress(line(watch.seconds, stages, waiting))
            pause = EVERY_SECONDS


def line(seconds: float, stages: Stages, waiting: str = "") -> str:
    """Returns the line: seconds; a bar and tasks, or what the statement waits for."""
    running, done, total = stages
    if waiting:
        return f"{seconds:4.0f} s  {waiting}"
    if not total:
        return f"{seconds:4.0f} s  planning …"
    filled = _BAR_WIDTH * done // total
    bar = "█" * filled + "░" * (_BAR_WIDTH - filled)
    return f"{seconds:4.0f} s  {bar}  {done:,} of {total:,} tasks, {running} stage{'' if running == 1 else 's'} running"
