"""Refreshes as a job: one run of `streamql refresh`, and those of the scheduler."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamql.console.jobs.schedule import code_of
from streamql.console.sql.named_objects import use_database
from streamql.console.sql.worker import Worker
from streamql.engine.work import PAUSE_SECONDS_MAX, Desk, Item, Look, Tell
from streamql.times import now_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.features.dynamic.refreshes.facts import DynamicFacts, Tried
    from streamql.features.dynamic.refreshes.run import Outcome
    from streamql.features.dynamic.source.table import DynamicTable

log = logging.getLogger("streamql")

PAUSE_SECONDS_MIN = 1.0
"""How soon the scheduler looks again, at the earliest."""

LOOK_SECONDS = 0.2
END_SECONDS_MAX = 60.0
"""How long a cancelled run is waited for: its refreshes release their claims."""


@dataclass(frozen=True)
class Run:
    """What one run did. `outcomes`: in the order of the DAG. `is_whole`: no table was left out, as after a signal."""

    outcomes: Sequence[Outcome]
    is_whole: bool


class Cancelled(Exception):
    """A second signal came, and the refreshes that ran were cancelled."""


@dataclass
class Refreshes:
    """Chooses what is to refresh, and refreshes it. What this process has tried is kept from run to run.

    All that asks the JVM does so in other threads than the main one: a signal in the middle of a question would leave its connection
    unusable. `names`: these tables; empty: all that are not suspended, of `database` if there is one. `only_due`: of them those that are
    due. `repeats`: this process tries failed ones again. `began`: when the last run began, by time.monotonic().
    """

    spark: SparkSession
    tell: Tell
    stops: Callable[[], bool]
    database: str | None
    names: Sequence[str]
    jobs: int
    only_due: bool
    repeats: bool = False
    tried: dict[str, Tried] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    ended: int = 0
    began: float = 0.0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._began: dict[str, int] = {}

    def run(self, progress: Callable[[Refreshes], None]) -> Run:
        """Does one run for a command. `progress`: called every LOOK_SECONDS. Raises `Cancelled`, DYNAMIC_TABLE_NOT_FOUND,
        CATALOG_UNREADABLE."""
        self.began = time.monotonic()
        task = Worker().start(self._run)
        try:
            while not task.wait(LOOK_SECONDS):
                progress(self)
            return task.result()
        except KeyboardInterrupt:
            deadline = time.monotonic() + END_SECONDS_MAX
            while not task.is_done and time.monotonic() < deadline:
                self.spark.sparkContext.cancelAllJobs()
                task.wait(1.0)
            raise Cancelled from None

    def _run(self) -> Run:
        use_database(self.spark, self.database)
        self.spark.catalog.currentDatabase()  # Spark opens its metastore with the first session that asks
        self.began = time.monotonic()
        return self.refresh(1, self.wanted())

    def refresh(self, number: int, wanted: Sequence[DynamicTable]) -> Run:
        """Refreshes tables, and the dynamic tables that they read. `number`: of the run, for its events."""
        from streamql.features.dynamic.refreshes.run import run_all

        def report(table: DynamicTable, outcome: Outcome | None) -> None:
            with self._lock:
                self._report(number, table, outcome)

        outcomes: list[Outcome] = []
        if wanted:
            outcomes = run_all(self.spark, wanted, jobs=self.jobs, report=report, stops=self.stops)
        done = {o.table.definition.uuid for o in outcomes}
        return Run(outcomes, all(t.definition.uuid in done for t in wanted))

    def _report(self, number: int, table: DynamicTable, outcome: Outcome | None) -> None:
        name = str(table.name)
        if outcome is None:
            self.running[name] = time.monotonic()
            self._began[table.definition.uuid] = now_ms()
            self.tell("refreshing", now_ms(), run=number, table=name)
            return
        self.running.pop(name, None)
        self.ended += 1
        self._remember(outcome)
        again = self._again(table) if outcome.word == "FAILED" else {}
        self.tell(outcome.word.lower(), now_ms(), run=number, **event_of(outcome), **again)

    def _again(self, table: DynamicTable) -> Mapping[str, object]:
        """Returns how many refreshes of a table have failed in a row, and the seconds until the loop tries it again."""
        try:
            found = self._facts([table])
        except Exception as e:  # the catalog cannot be read: the event says what the refresh said
            log.debug("it is not known when %s is due: %s", table.name, e)
            return {}
        due = found[0].due_ms if found and self.repeats else None
        seconds = None if due is None else max(0.0, round((due - now_ms()) / 1000, 3))
        return {"failures": found[0].failures if found else None, "next_seconds": seconds}

    def wanted(self) -> Sequence[DynamicTable]:
        """Returns the tables that a run is for."""
        return self.look()[0] if self.only_due else self._chosen()

    def look(self) -> tuple[Sequence[DynamicTable], float | None]:
        """Returns the tables that are due now, and in how many seconds the next one is; None: no schedule makes one due."""
        from streamql.features.dynamic.refreshes.due import next_due

        tables = self._chosen()
        facts, now = self._facts(tables), now_ms()
        due = {f.uuid for f in facts if f.is_due(now)}
        at = next_due(f.due_ms for f in facts)
        return [t for t in tables if t.definition.uuid in due], None if at is None else (at - now) / 1000

    def _facts(self, tables: Sequence[DynamicTable]) -> list[DynamicFacts]:
        from streamql.features.dynamic.refreshes.facts import dynamic_facts

        return dynamic_facts(self.spark, tables, tried=self.tried) if tables else []

    def _chosen(self) -> list[DynamicTable]:
        from streamql.delta.names import qualify
        from streamql.dialect import parse_name
        from streamql.features.dynamic.source.backing import need_dynamic
        from streamql.features.dynamic.source.table import all_dynamic

        if self.names:
            return [need_dynamic(self.spark, parse_name(name), is_view=None, where={}) for name in self.names]
        tables = [t for t in all_dynamic(self.spark) if not t.is_suspended]
        if self.database is None:
            return tables
        here = qualify(self.spark, (self.database, "_"))
        return [t for t in tables if t.name.is_in(here.catalog, here.schema)]

    def _remember(self, outcome: Outcome) -> None:
        from streamql.features.dynamic.refreshes.facts import Tried

        uid, now = outcome.table.definition.uuid, now_ms()
        before = self.tried.get(uid)
        failures = 0 if outcome.result is not None else 1 + (before.failures if before else 0)
        self.tried[uid] = Tried(self._began.pop(uid, now), now, failures)


class RefreshWork:
    """The refreshes that are due, for the scheduler. Those that are due at one time are one piece of work: they read their sources at the
    same versions."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._refreshes = Refreshes(
            desk.spark, desk.tell, desk.stops, desk.database, (), desk.jobs, only_due=True, repeats=True
        )
        self._next = 0.0
        self._runs = 0
        self._is_busy = False

    def look(self) -> Look:
        """See `Work`. The status of all tables takes a job, so it is read only when one may be due."""
        now = time.monotonic()
        if self._is_busy or now < self._next:
            return Look((), PAUSE_SECONDS_MAX if self._is_busy else self._next - now)
        due, seconds = self._refreshes.look()
        if due:
            return Look(
                [Item("dynamic tables", ", ".join(str(t.name) for t in due), lambda: self._run(due))], PAUSE_SECONDS_MIN
            )
        pause = min(PAUSE_SECONDS_MAX, max(PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX if seconds is None else seconds))
        self._next = now + pause
        return Look((), pause)

    def _run(self, due: Sequence[DynamicTable]) -> bool:
        self._runs += 1
        self._is_busy = True
        try:
            outcomes = self._refreshes.refresh(self._runs, due).outcomes
        finally:
            self._is_busy = False
        for outcome in outcomes:
            self._say(outcome)
        return all(o.word != "FAILED" for o in outcomes)

    def _say(self, outcome: Outcome) -> None:
        if outcome.word == "UNCHANGED":
            return
        what = f"refreshed in {outcome.duration_ms / 1000:.1f} s"
        if outcome.result is None:
            code, error, *_ = error_of(outcome)
            what = f"{outcome.word.lower()}: {f'[{code}] ' if code else ''}{error}"
        self._desk.say(f"{time.strftime('%H:%M:%S')} {outcome.table.name} {what}")

    def cancel(self) -> None:
        """See `Work`."""
        self._desk.spark.sparkContext.cancelAllJobs()


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
