"""A script as a job of `streamql run`: one run of it, and the series of its runs."""

from __future__ import annotations

import io
import logging
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.console.jobs.events import Journal
from streamql.console.jobs.idle import NO_DATA, Idle
from streamql.console.jobs.schedule import Ending, Plan, code_of, ending_of
from streamql.console.jobs.stop_signals import Stop
from streamql.console.options import Options
from streamql.console.sql.named_objects import streams_named, use_database
from streamql.times import now_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.catalog.states import StreamState
    from streamql.console.sql.script import Statement
    from streamql.console.sql.statement_runner import Runner

log = logging.getLogger("streamql")

FAILED = 1
OF_SCRIPT = ""
"""Stands for the streams that the script reads, where --when-has-data names none."""


@dataclass(frozen=True)
class Result:
    """What became of a run. `facts`: those of its event; `is_fatal`: there can be no other in this process.

    `seconds`: how long it took since its `started`; of a run that did not start, how long the look for data took.
    """

    ending: Ending
    facts: dict[str, object]
    is_fatal: bool = False
    seconds: float = 0.0


def is_for_people(options: Options) -> bool:
    """Returns whether stderr is looked at; else it is read by a program, and has events and nothing else."""
    return options.arguments.events is not None or sys.stderr.isatty()


def opened_journal(options: Options, job: str, *, shows_people: bool) -> Journal | None:
    """Opens where the events of a job go. None: it cannot be written, which the user is told. `shows_people`: at a terminal the job shows
    in words what its events say, so that without --events they go nowhere."""
    from streamql.catalog.identity import host_name
    from streamql.console.render.screen import Screen

    path = options.arguments.events
    try:
        journal = Journal(path, {"job": job, "host": host_name(), "pid": os.getpid()})
    except OSError as e:
        Screen().error(f"error: cannot write {path}: {e.strerror}")
        return None
    return Journal(Path(os.devnull), {}) if shows_people and path is None and is_for_people(options) else journal


def run_series(job: Job, plan: Plan, journal: Journal, stop: Stop) -> int:
    """Run the job as often as the plan says, and write the events; return the exit code. Raises BrokenPipeError."""
    runs = failures = 0
    idle = Idle(journal)
    while True:
        began = time.monotonic()
        runs += 1
        result = job.once(runs, idle)
        whole = time.monotonic() - began
        if result.ending != "skipped":
            failures = failures + 1 if result.ending == "failed" else 0
        is_last = result.is_fatal or not plan.goes_on(result.ending, runs, failures)
        goes_on = not is_last and not stop.is_asked
        pause = plan.pause(failures, whole)
        facts = dict(result.facts)
        if result.ending == "failed":
            facts |= {"failures": failures, "next_seconds": round(pause, 3) if goes_on else None}
        if facts.get("reason") == NO_DATA:
            idle.note(runs, result.seconds)
        else:
            idle.end()
            journal.tell(result.ending, now_ms(), run=runs, seconds=round(result.seconds, 3), **facts)
        if result.ending in ("stopped", "cancelled"):
            return stop.exit_code
        if goes_on and not stop.wait(pause):
            continue
        idle.end()
        if not is_last:
            journal.tell("stopped", now_ms(), run=runs, signal=stop.signal)
        return FAILED if result.ending == "failed" and not goes_on else 0


class Job:
    """A script, run in a session of its own each time."""

    def __init__(
        self, spark: SparkSession, options: Options, found: Sequence[Statement], journal: Journal, stop: Stop
    ) -> None:
        self._spark = spark
        self._options = options
        self._statements = found
        self._journal = journal
        self._stop = stop
        self._has_warned = False
        self._began = 0.0

    def once(self, number_of_run: int, idle: Idle) -> Result:
        """Does one run: waits for nothing but consumers of its streams. `idle`: the runs without data before it. Never raises but for a
        reader of the output that went away."""
        try:
            own = self._session()
        except KeyboardInterrupt:
            return Result("cancelled", {"signal": self._stop.signal})
        except Exception as e:
            return _failed(e)
        self._began = time.monotonic()
        result = self._once(own, number_of_run, idle)
        return replace(result, seconds=time.monotonic() - self._began)

    def _once(self, own: SparkSession, number_of_run: int, idle: Idle) -> Result:
        from streamql.console.render.output import OutputClosedError

        try:
            if not self._has_data(own):
                return Result("skipped", {"reason": NO_DATA})
            idle.end()
            self._journal.tell("started", now_ms(), run=number_of_run)
            self._began = time.monotonic()  # in a new process, the first look for data takes seconds
            return self._run(own)
        except KeyboardInterrupt:
            return Result("cancelled", {"signal": self._stop.signal})
        except OutputClosedError as e:
            raise BrokenPipeError from e
        except Exception as e:
            return _failed(e)

    def _session(self) -> SparkSession:
        from streamql import bridge

        own = self._spark.newSession()
        bridge.install(own)
        for key, value in self._options.conf.items():
            if own.conf.isModifiable(key):
                own.conf.set(key, value)
        use_database(own, self._options.database)
        own.catalog.currentDatabase()  # Spark opens its metastore with the first session that asks
        return own

    def _has_data(self, own: SparkSession) -> bool:
        """Returns whether there is something to do: from the log alone, never a false no."""
        from streamql.console.jobs.script_tables import streams_read
        from streamql.reading import has_data

        given = self._options.arguments.when_has_data
        if not given:
            return True
        states: list[StreamState] = streams_named(own, [name for name in given if name != OF_SCRIPT])
        read = streams_read(own, [statement.text for statement in self._statements])
        if OF_SCRIPT in given:
            states += read
            problem = "" if states else "--when-has-data finds no stream that the script reads, so the script runs"
        else:
            named = {state.stream.uuid for state in states}
            left = ", ".join(str(state.name) for state in read if state.stream.uuid not in named)
            problem = f"the script reads {left}, which --when-has-data does not name: its changes start no run"
            problem = problem if left else ""
        if problem and not self._has_warned:
            self._has_warned = True
            log.warning("%s", problem)
        return not states or any(has_data(own, state) for state in states)

    def _run(self, own: SparkSession) -> Result:
        from streamql.catalog.identity import host_name
        from streamql.console.render.output import Display
        from streamql.console.render.screen import Screen
        from streamql.console.sql.embedded import EmbeddedSession
        from streamql.console.sql.statement_runner import Runner
        from streamql.engine.ledger import rows_written_by

        began_ms = now_ms()
        for_people = is_for_people(self._options)
        screen = Screen(silent=self._options.silent) if for_people else Screen(io.StringIO(), silent=True)
        display = Display(self._options.output, self._options.max_rows)
        runner = Runner(EmbeddedSession(own), display, screen, verbose=self._options.verbose)
        runner.run_script(self._statements, stops=lambda: self._stop.is_asked)
        codes = [code_of(f.problem.message)[0] for f in runner.failures]
        ending = ending_of(codes, runner.done == len(self._statements))
        facts: dict[str, object] = {"statements": runner.done}
        if ending == "finished":
            return Result(ending, facts | {"rows_written": rows_written_by(own, host_name(), os.getpid(), began_ms)})
        return Result(ending, facts | _failure(runner, ending), any(f.problem.is_fatal for f in runner.failures))


def _failed(e: Exception) -> Result:
    """Returns a run that did not come to its statements."""
    from streamql.bridge import as_streamql_error
    from streamql.console.problems import from_exception

    problem = from_exception(as_streamql_error(e) or e)
    code, error = code_of(problem.message)
    facts: dict[str, object] = {
        "code": code,
        "error": error,
        "sqlstate": problem.sqlstate,
        "hint": problem.hint or None,
    }
    return Result("failed", facts, problem.is_fatal)


def _failure(runner: Runner, ending: Ending) -> dict[str, object]:
    """Of the first statement that failed: its place, code and error."""
    if not runner.failures:
        return {}
    statement, problem = runner.failures[0].statement, runner.failures[0].problem
    code, error = code_of(problem.message)
    facts: dict[str, object] = {"reason" if ending == "skipped" else "code": code, "error": error}
    facts |= {"sqlstate": problem.sqlstate, "hint": problem.hint or None}
    if statement is not None:
        facts |= {"statement": statement.number, "line": statement.line + (problem.line or 1) - 1}
    return facts
