"""Refreshes as a job of `streamql refresh`: one run of them, and the runs of a scheduler."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamql.console.jobs.events import Journal
from streamql.console.jobs.schedule import code_of
from streamql.console.jobs.stop_signals import Stop
from streamql.console.options import Options
from streamql.console.sql.named_objects import use_database
from streamql.console.sql.worker import Worker
from streamql.times import now_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.features.dynamic.refreshes.facts import DynamicFacts, Tried
    from streamql.features.dynamic.refreshes.run import Outcome
    from streamql.features.dynamic.source.table import DynamicTable

log = logging.getLogger("streamql")

PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 1.0, 30.0
"""How long a scheduler sleeps. New tables and altered schedules are seen after the longest pause."""

LOOK_SECONDS = 0.2
END_SECONDS_MAX = 60.0
"""How long a cancelled run is waited for: its refreshes release their claims."""


@dataclass(frozen=True)
class Run:
    """What one run did. `outcomes`: in the order of the DAG. `is_whole`: no table was left out, as after a signal. `pause_seconds`: until
    the next table is due."""

    outcomes: Sequence[Outcome]
    is_whole: bool
    pause_seconds: float


class Cancelled(Exception):
    """A second signal came, and the refreshes that ran were cancelled."""


@dataclass
class Refreshes:
    """Chooses what is to refresh, and refreshes it. What this process has tried is kept from run to run.

    All that asks the JVM does so in one other thread, or in those of the refreshes: a signal in the middle of a question would leave its
    connection unusable. `progress` is called every LOOK_SECONDS during a run. `began`: when the last run began, by time.monotonic(): not
    before its session was there.
    """

    spark: SparkSession
    options: Options
    journal: Journal
    stop: Stop
    progress: Callable[[Refreshes], None]
    tried: dict[str, Tried] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    ended: int = 0
    began: float = 0.0

    def __post_init__(self) -> None:
        self._worker = Worker()
        self._lock = threading.Lock()
        self._began: dict[str, int] = {}

    def run(self, number: int) -> Run:
        """Does one run. Raises `Cancelled`, DYNAMIC_TABLE_NOT_FOUND, CATALOG_UNREADABLE."""
        self.running.clear()
        self.ended = 0
        self.began = time.monotonic()
        task = self._worker.start(lambda: self._run(number))
        try:
            while not task.wait(LOOK_SECONDS):
                self.progress(self)
            return task.result()
        except KeyboardInterrupt:
            deadline = time.monotonic() + END_SECONDS_MAX
            while not task.is_done and time.monotonic() < deadline:
                self.spark.sparkContext.cancelAllJobs()
                task.wait(1.0)
            raise Cancelled from None

    def _run(self, number: int) -> Run:
        from streamql.features.dynamic.refreshes.run import run_all

        use_database(self.spark, self.options.database)
        self.spark.catalog.currentDatabase()  # Spark opens its metastore with the first session that asks
        self.began = time.monotonic()
        chosen = self._chosen()
        wanted = self._due(chosen)

        def report(table: DynamicTable, outcome: Outcome | None) -> None:
            with self._lock:
                self._report(number, table, outcome)

        outcomes: list[Outcome] = []
        if wanted:
            jobs: int = self.options.arguments.jobs
            outcomes = run_all(self.spark, wanted, jobs=jobs, report=report, stops=lambda: self.stop.is_asked)
        done = {o.table.definition.uuid for o in outcomes}
        is_whole = all(t.definition.uuid in done for t in wanted)
        return Run(outcomes, is_whole, self._pause(chosen))

    def _report(self, number: int, table: DynamicTable, outcome: Outcome | None) -> None:
        name = str(table.name)
        if outcome is None:
            self.running[name] = time.monotonic()
            self._began[table.definition.uuid] = now_ms()
            self.journal.tell("refreshing", now_ms(), run=number, table=name)
            return
        self.running.pop(name, None)
        self.ended += 1
        self._remember(outcome)
        again = self._again(table) if outcome.word == "FAILED" else {}
        self.journal.tell(outcome.word.lower(), now_ms(), run=number, **event_of(outcome), **again)

    def _again(self, table: DynamicTable) -> Mapping[str, object]:
        """Returns how many refreshes of a table have failed in a row, and the seconds until the loop tries it again."""
        try:
            found = self._facts([table])
        except Exception as e:  # the catalog cannot be read: the event says what the refresh said
            log.debug("it is not known when %s is due: %s", table.name, e)
            return {}
        due = found[0].due_ms if found and self.options.arguments.loop else None
        seconds = None if due is None else max(0.0, round((due - now_ms()) / 1000, 3))
        return {"failures": found[0].failures if found else None, "next_seconds": seconds}

    def _due(self, tables: Sequence[DynamicTable]) -> Sequence[DynamicTable]:
        """Of tables those that a run is for."""
        given = self.options.arguments
        if not (given.due or given.loop):
            return tables
        now = now_ms()
        due = {f.uuid for f in self._facts(tables) if f.is_due(now)}
        return [t for t in tables if t.definition.uuid in due]

    def _facts(self, tables: Sequence[DynamicTable]) -> list[DynamicFacts]:
        from streamql.features.dynamic.refreshes.facts import dynamic_facts

        return dynamic_facts(self.spark, tables, tried=self.tried) if tables else []

    def _pause(self, chosen: Sequence[DynamicTable]) -> float:
        from streamql.features.dynamic.refreshes.due import next_due

        if not self.options.arguments.loop:
            return 0.0
        at = next_due(f.due_ms for f in self._facts(chosen))
        seconds = PAUSE_SECONDS_MAX if at is None else (at - now_ms()) / 1000
        return min(PAUSE_SECONDS_MAX, max(PAUSE_SECONDS_MIN, seconds))

    def _chosen(self) -> list[DynamicTable]:
        from streamql.delta.names import qualify
        from streamql.dialect import parse_name
        from streamql.features.dynamic.source.backing import need_dynamic
        from streamql.features.dynamic.source.table import all_dynamic

        names: list[str] = self.options.arguments.names
        if names:
            return [need_dynamic(self.spark, parse_name(name), is_view=None, where={}) for name in names]
        tables = [t for t in all_dynamic(self.spark) if not t.is_suspended]
        if self.options.database is None:
            return tables
        here = qualify(self.spark, ("_",))
        return [t for t in tables if t.name.is_in(here.catalog, here.schema)]

    def _remember(self, outcome: Outcome) -> None:
        from streamql.features.dynamic.refreshes.facts import Tried

        uid, now = outcome.table.definition.uuid, now_ms()
        before = self.tried.get(uid)
        failures = 0 if outcome.result is not None else 1 + (before.failures if before else 0)
        self.tried[uid] = Tried(self._began.pop(uid, now), now, failures)


def event_of(outcome: Outcome) -> Mapping[str, object]:
    """Returns the facts of an outcome's event: table, seconds, and what it wrote, or why it did not."""
    facts: dict[str, object] = {"table": str(outcome.table.name), "seconds": round(outcome.duration_ms / 1000, 3)}
    if outcome.result is not None:
        done = outcome.result
        how = {"mode": done.mode, "reason": done.reason, "why_not_incremental": done.why_full, "version": done.version}
        return facts | how | {f"rows_{name}": n for name, n in done.rows.items()}
    if outcome.held_by is not None:
        return facts | {"reason": "HELD_UP", "held_by": str(outcome.held_by.name)}
    code, error, hint, sqlstate = error_of(outcome)
    return facts | {"code": code, "error": error, "hint": hint, "sqlstate": sqlstate}


def error_of(outcome: Outcome) -> tuple[str | None, str, str | None, str | None]:
    """Of an outcome without a result: the error's code, what it says on one line, its hint and SQLSTATE."""
    from streamql.bridge import as_streamql_error
    from streamql.console.problems import from_exception

    if outcome.held_by is not None:
        why = "is suspended" if outcome.held_by.is_suspended else "was not refreshed"
        return None, f"{outcome.held_by.name}, which it reads, {why}", None, None
    if outcome.error is None:
        return None, "", None, None
    problem = from_exception(as_streamql_error(outcome.error) or outcome.error)
    code, error = code_of(problem.message)
    return code, error, problem.hint or None, problem.sqlstate
