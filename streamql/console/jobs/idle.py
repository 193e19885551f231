"""Runs in a row that find no data: the first of them is an event, and the others are one event at their end."""

from __future__ import annotations

from streamql.console.jobs.events import Journal
from streamql.console.render import quantities
from streamql.times import now_ms

NO_DATA = "NO_DATA"


class Idle:
    """The runs without data since the last run that had some."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._since_ms = 0
        self._checks = 0
        self._run = 0

    def note(self, number_of_run: int, seconds: float) -> None:
        """Adds a run without data."""
        self._checks += 1
        self._run = number_of_run
        if self._checks == 1:
            self._since_ms = now_ms()
            self._journal.tell("skipped", self._since_ms, run=self._run, seconds=round(seconds, 3), reason=NO_DATA)

    def end(self) -> None:
        """Writes how many runs there were, if no event has said so: another run begins, or there is none."""
        if self._checks > 1:
            since = quantities.clock(self._since_ms)
            self._journal.tell("skipped", now_ms(), run=self._run, reason=NO_DATA, checks=self._checks, since=since)
        self._checks = 0
