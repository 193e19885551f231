"""Runs a script: once, every so often, or when a stream has data. For cron, Airflow, systemd or a
terminal; no service is needed.

Safe to run twice at once. A stream's changes reach their target once, whoever consumes them: of
two runners one takes them, the other waits (spark.streamql.busyTimeout, 90s) and gets what is
left, which may be nothing, or is told STREAM_BUSY: its run is skipped, and no failure. A
transaction that a runner left half way is gone on with by the next run of the same script, in
whichever process.

--when-has-data without a name takes the streams that the script reads: those that its text names
behind FROM, JOIN, USING, TABLE, a comma or a parenthesis. It does not see a stream behind a view.
With names, a stream that the script reads besides them is warned of.

The script is read once, at the start. Each run has a session of its own: temporary views,
variables and USE do not outlive it.

After a failure the next run waits: as long as --every says, then twice, four times … as long, at
most --backoff-max. SIGTERM or Ctrl-C lets the running statement end (a transaction: up to its
COMMIT or ROLLBACK), then the command ends; a second one cancels the statement, which then has
either committed and moved its streams, or done neither.

Events are JSON, a line each, on stderr or appended to --events FILE, which several runners may
share:
  started    run
  finished   run, seconds, statements, rows_written (by consumptions)
  skipped    run, seconds, reason: NO_DATA, STREAM_BUSY, STREAM_MOVED
             of a stream that is busy or moved also error, sqlstate, hint, statement, line
  failed     run, seconds, code, error, sqlstate, hint, statements, statement, line, failures,
             next_seconds
  stopped    run, seconds, statements: a signal came between two statements
  cancelled  run, seconds, signal: a second signal came
  warning    message: something that a statement did otherwise than one may think
All have at, event, job, host, pid. Rows of queries go to stdout, as those of streamql -f do.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.cli import listing
from streamql.cli.journal import Journal, Stop
from streamql.cli.options import Input, Options, path_text
from streamql.cli.schedule import Ending, Plan, code_of, ending_of
from streamql.cli.usage import Parser
from streamql.cli.watch import number, seconds
from streamql.times import now_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.catalog.states import StreamState
    from streamql.cli.runner import Runner
    from streamql.cli.script import Statement

log = logging.getLogger("streamql")

USAGE, FAILED = 2, 1
BACKOFF_MAX_DEFAULT = "10min"
OF_SCRIPT = ""
"""Stands for the streams that the script reads, where --when-has-data names none."""

EPILOG = """\
examples:
  streamql run nightly.sql --events runs.jsonl                   one run, from cron
  streamql run merge.sql --when-has-data sales.orders_st         one run, unless nothing is to do
  streamql run merge.sql --when-has-data                         the same, of the streams it reads
  streamql run merge.sql --every 30s --when-has-data orders_st   until somebody stops it
  streamql run merge.sql --max-failures 5                        one run, tried five times
  streamql run merge.sql --every 5min --runs 12                  an hour of them
  streamql run merge.sql --conf spark.streamql.busyTimeout=0s    skips where another one consumes

exit codes:
  0    the last run finished or was skipped; also after a signal between two runs
  1    the last run failed, or Spark did not start
  2    the command line or the script is wrong; nothing was run
  130  a run was cut short by Ctrl-C        143  by SIGTERM
  141  the reader of the output went away (| head)

under systemd: KillMode=mixed, so that SIGTERM reaches this command, and not Spark's Java process
beside it.
"""


def arguments(parser: Parser) -> None:
    """Its own options."""
    parser.epilog = EPILOG
    parser.on_missing = " (it stands before a --when-has-data that names no stream)"
    add = parser.add_argument
    add("script", metavar="FILE", help="SQL statements; - is stdin")
    add("--every", metavar="TIME", type=seconds, help="run again and again, this far apart: 30s, 5min, 1h")
    add("--runs", metavar="N", type=number, help="end after N runs, skipped ones among them (with --every)")
    add(
        "--when-has-data",
        metavar="STREAM",
        nargs="?",
        const=OF_SCRIPT,
        action="append",
        default=[],
        help="skip runs while none of these has data; may be repeated; without a name: the streams that the script reads",
    )
    add("--max-failures", metavar="N", type=number, help="end after N failures in a row (1; with --every: never)")
    add(
        "--backoff-max",
        metavar="TIME",
        type=seconds,
        default=BACKOFF_MAX_DEFAULT,
        help="longest pause after failures (%(default)s)",
    )
    add("--events", metavar="FILE", type=lambda text: Path(path_text(text)), help="where events are appended (stderr)")


@dataclass(frozen=True)
class Result:
    """What became of a run. `facts`: those of its event; `is_fatal`: there can be no other in this process.

    `seconds`: how long it took, without the start of its session, in which a process's first run waits for Spark.
    """

    ending: Ending
    facts: dict[str, object]
    is_fatal: bool = False
    seconds: float = 0.0


def run(spark: SparkSession, options: Options) -> int:
    """Runs the script as often as was asked; the exit code. Raises OutputClosedError."""
    from streamql.catalog.store import host_name

    given = options.arguments
    found, problem = _read(given.script)
    if problem is not None:
        return _usage(problem)
    try:
        journal = Journal(given.events, {"job": given.script, "host": host_name(), "pid": os.getpid()})
    except OSError as e:
        return _usage(f"cannot write {given.events}: {e.strerror}")
    single = given.every is None
    plan = Plan(given.every, given.runs, given.max_failures or (1 if single else None), given.backoff_max)
    with Stop() as stop, _warnings(journal, for_people=_is_for_people(options)):
        if options.is_new:
            log.warning("%s", listing.made(options.data))
        return _series(Job(spark, options, found, journal, stop), plan, journal, stop)


def _is_for_people(options: Options) -> bool:
    """Whether stderr is looked at; else it is read by a program, and has events and nothing else."""
    return options.arguments.events is not None or sys.stderr.isatty()


class _Warnings(logging.Handler):
    """streamql's warnings as events."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.WARNING)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        """Tells one."""
        self._journal.tell("warning", now_ms(), message=record.getMessage())


@contextlib.contextmanager
def _warnings(journal: Journal, *, for_people: bool) -> Iterator[None]:
    """Warnings go where events go, while stderr is not for people."""
    logger, own = logging.getLogger("streamql"), _Warnings(journal)
    before = list(logger.handlers)
    if not for_people:
        logger.handlers[:] = [own]
    try:
        yield
    finally:
        logger.handlers[:] = before


def _series(job: Job, plan: Plan, journal: Journal, stop: Stop) -> int:
    runs = failures = 0
    while True:
        began = time.monotonic()
        runs += 1
        result = job.once(runs)
        whole = time.monotonic() - began
        if result.ending != "skipped":
            failures = failures + 1 if result.ending == "failed" else 0
        goes_on = not result.is_fatal and not stop.is_asked and plan.goes_on(result.ending, runs, failures)
        pause = plan.pause(failures, whole)
        facts = dict(result.facts)
        if result.ending == "failed":
            facts |= {"failures": failures, "next_seconds": round(pause, 3) if goes_on else None}
        journal.tell(result.ending, now_ms(), run=runs, seconds=round(result.seconds, 3), **facts)
        if result.ending in ("stopped", "cancelled"):
            return stop.exit_code
        if not goes_on or stop.wait(pause):
            return FAILED if result.ending == "failed" else 0


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

    def once(self, number_of_run: int) -> Result:
        """One run: waits for nothing but consumers of its streams. Never raises but for a reader of the output that went away."""
        try:
            own = self._session()
        except KeyboardInterrupt:
            return Result("cancelled", {"signal": self._stop.signal})
        except Exception as e:
            return _failed(e)
        began = time.monotonic()
        result = self._once(own, number_of_run)
        return replace(result, seconds=time.monotonic() - began)

    def _once(self, own: SparkSession, number_of_run: int) -> Result:
        from streamql.cli.output import OutputClosedError

        try:
            if not self._has_data(own):
                return Result("skipped", {"reason": "NO_DATA"})
            self._journal.tell("started", now_ms(), run=number_of_run)
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
            if key.startswith("spark.streamql.") or own.conf.isModifiable(
                key
            ):  # Spark says no of keys that it does not know
                own.conf.set(key, value)
        listing.use(own, self._options.database)
        own.catalog.currentDatabase()  # Spark opens its metastore with the first session that asks
        return own

    def _has_data(self, own: SparkSession) -> bool:
        """Whether there is something to do: from the log alone, never a false no."""
        from streamql.cli.script_streams import streams_read
        from streamql.reading import has_data

        given = self._options.arguments.when_has_data
        if not given:
            return True
        states: list[StreamState] = listing.streams_named(own, [name for name in given if name != OF_SCRIPT])
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
        from streamql.catalog.store import host_name
        from streamql.cli.embedded import EmbeddedSession
        from streamql.cli.output import Display
        from streamql.cli.runner import Runner
        from streamql.cli.screen import Screen
        from streamql.engine.ledger import rows_written_by

        began_ms = now_ms()
        for_people = _is_for_people(self._options)
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
    """A run that did not come to its statements."""
    from streamql.bridge import as_streamql_error
    from streamql.cli.problems import from_exception

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


def check(options: Options) -> str | None:
    """What is wrong with the command line or the script, told before Spark starts."""
    given = options.arguments
    if given.runs is not None and given.every is None:
        return "--runs needs --every: without it there is one run"
    return None if given.script == "-" else _read(given.script)[1]


def _read(script: str) -> tuple[list[Statement], str | None]:
    """The script's statements, or what is wrong with it."""
    from streamql.cli.inputs import UsageError, read
    from streamql.cli.problems import describe
    from streamql.cli.script import open_end, statements

    try:
        found = statements(read([Input("stdin") if script == "-" else Input("file", script)]))
    except UsageError as e:
        return [], str(e)
    for statement in found:
        problem = open_end(statement)
        if problem is not None:
            return [], describe(problem, statement.place(problem.line), statement.line, statement.text).removeprefix(
                "error in "
            )
    return found, None if found else f"{script} holds no statement"


def _usage(problem: str) -> int:
    print(f"error: {problem}", file=sys.stderr, flush=True)
    return USAGE
