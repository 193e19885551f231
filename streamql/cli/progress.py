"""One line that says how far a long statement is, for people who watch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streamql.cli.screen import Screen, Stopwatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN_AFTER_SECONDS = 2.0
_BAR_WIDTH = 24


class Progress:
    """Asks Spark what runs."""

    def __init__(self, spark: SparkSession, screen: Screen) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._screen = screen

    @contextmanager
    def of_statement(self) -> Iterator[Callable[[], None]]:
        """While a statement runs: what is given is to be called every now and then. The line is gone at the end."""
        watch = Stopwatch()

        def tick() -> None:
            if self._screen.is_terminal and watch.seconds >= SHOWN_AFTER_SECONDS:
                self._screen.progress(line(watch.seconds, self._tasks()))

        try:
            yield tick
        finally:
            self._screen.mute(False)

    def _tasks(self) -> tuple[int, int, int]:
        """Of the stages that run: how many they are, their tasks done, and all their tasks."""
        try:
            stages = [self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()]
        except Exception:  # a progress line is never worth an error
            return 0, 0, 0
        known = [stage for stage in stages if stage is not None]
        return len(known), sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)


def line(seconds: float, tasks: tuple[int, int, int]) -> str:
    """The line: seconds, a bar, tasks."""
    stages, done, total = tasks
    if not total:
        return f"{seconds:4.0f} s  planning …"
    filled = _BAR_WIDTH * done // total
    bar = "█" * filled + "░" * (_BAR_WIDTH - filled)
    return f"{seconds:4.0f} s  {bar}  {done:,} of {total:,} tasks, {stages} stage{'' if stages == 1 else 's'} running"
