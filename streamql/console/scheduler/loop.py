"""The loop of the scheduler: looks, starts what is due in threads, and waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from streamql.console.jobs.stop_signals import Stop
from streamql.console.sql.worker import Worker
from streamql.engine.work import Desk, Item, Work
from streamql.times import now_ms

LOOK_SECONDS = 0.2
"""How often the main thread looks for signals and the end of work."""
FAILURE_PAUSE_SECONDS = 10.0
"""The pause after a look that failed, as when the catalog cannot be read."""
END_SECONDS_MAX = 60.0
"""How long cancelled work is waited for."""

Progress = Callable[[Sequence[tuple[str, float]]], None]
"""Shows what runs: labels, and for how many seconds."""


class Cancelled(Exception):
    """A second signal came, and what ran was cancelled."""


class Scheduler:
    """Runs work until it is stopped. `only_once`: until nothing is due.

    All that asks the JVM does so in other threads than the main one: a signal in the middle of a question would leave its connection
    unusable. A signal lets what runs end; a second one cancels it.
    """

    def __init__(self, desk: Desk, stop: Stop, works: Sequence[Work], progress: Progress, *, only_once: bool) -> None:
        self._desk = desk
        self._stop = stop
        self._works = works
        self._progress = progress
        self._only_once = only_once
        self._looker = Worker()
        self._running: dict[Future[bool], tuple[Item, float]] = {}
        self._has_looked = False
        self.failures = 0
        """How many pieces of work have failed."""

    def run(self) -> None:
        """Runs until it is stopped, or, `only_once`, until nothing is due. Raises `Cancelled`; what the first look raises."""
        stop = self._stop
        with ThreadPoolExecutor(self._desk.jobs, "streamql-work") as pool:
            try:
                while not stop.is_asked:
                    items, seconds = self._look()
                    for item in items:
                        if not stop.is_asked:
                            self._running[pool.submit(item.run)] = (item, time.monotonic())
                    if self._only_once and not self._running:
                        return
                    self._wait(seconds)
                while self._running:
                    self._wait(LOOK_SECONDS)
            except KeyboardInterrupt:
                self._cancel()
                raise Cancelled from None

    def _look(self) -> tuple[list[Item], float]:
        """Returns what is due and does not run yet, as much as there are free threads; and the seconds until the next look."""
        task = self._looker.start(self._ask)
        while not task.wait(LOOK_SECONDS):
            self._show()
        try:
            found = task.result()
        except Exception as e:
            if not self._has_looked:
                raise
            self._desk.tell("failed", now_ms(), error=str(e), next_seconds=FAILURE_PAUSE_SECONDS)
            self._desk.say(f"error: {e}")
            return [], FAILURE_PAUSE_SECONDS
        self._has_looked = True
        return found

    def _ask(self) -> tuple[list[Item], float]:
        looks = [work.look() for work in self._works]
        busy = {item.key for item, _ in self._running.values()}
        items = [item for look in looks for item in look.items if item.key not in busy]
        return items[: max(0, self._desk.jobs - len(self._running))], min(look.seconds for look in looks)

    def _wait(self, seconds: float) -> None:
        """Waits until work has ended, it is time to look again, or a signal comes."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._stop.is_asked:
            self._show()
            if self._running:
                done, _ = wait(self._running, timeout=min(LOOK_SECONDS, seconds), return_when=FIRST_COMPLETED)
                if done:
                    break
            elif self._stop.wait(min(seconds, max(0.0, deadline - time.monotonic()))):
                break
        self._collect()

    def _collect(self) -> None:
        for future in [f for f in self._running if f.done()]:
            item, _ = self._running.pop(future)
            try:
                self.failures += not future.result()
            except (
                Exception
            ) as e:  # the work tells its own errors; this one is of the catalog, such as a storage that is away
                self.failures += 1
                self._desk.tell("failed", now_ms(), work=item.label, error=str(e))
                self._desk.say(f"error: {item.label}: {e}")

    def _show(self) -> None:
        now = time.monotonic()
        self._progress([(item.label, now - since) for item, since in self._running.values()])

    def _cancel(self) -> None:
        deadline = time.monotonic() + END_SECONDS_MAX
        while self._running and time.monotonic() < deadline:
            for work in self._works:
                work.cancel()
            wait(self._running, timeout=1.0)
            self._collect()
