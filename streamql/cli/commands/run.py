"""Runs a script: once, every so often, or when a stream has data. For cron, Airflow, systemd or a
terminal; no service is needed.

Safe to run twice at once. A stream's changes reach their target once, whichever runner consumes
them: of two runners one takes them, the other waits (spark.streamql.busyTimeout, 90s) and gets what
is left, which may be nothing, or gets STREAM_BUSY: then its run is skipped, which is not a failure.
A transaction that a runner left half way is resumed by the next run of the same script, in
whichever process.

If a runner dies, the next run on its host takes over its claim at once. On other hosts, and in
other containers, a run first watches the claim for a lease (spark.streamql.lease, 60s). If
busyTimeout is not longer than that, single runs are skipped, and never take over. Then use --every
or streamql doctor --fix.

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
  skipped    run, seconds, reason: NO_DATA (without started), STREAM_BUSY, STREAM_MOVED
             with the last two also error, sqlstate, hint, statements, statement, line
             of runs in a row with NO_DATA only the first; at their end, run, reason, checks, since:
             how many there were, and when the first was
  failed     run, seconds, code, error, sqlstate, hint, statements, statement, line, failures,
             next_seconds
  stopped    run, seconds, statements: a signal came between two statements
             run, signal: a signal ended --every behind a whole run; run is the last one
  cancelled  run, seconds, signal: a second signal came
  warning    message: something that a statement did otherwise than its text suggests
All have at, event, job, host, pid. Rows of queries go to stdout, as those of streamql -f do.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.console import data_directory
from streamql.console.argument_types import number, seconds
from streamql.console.jobs.events import warnings_as_events
from streamql.console.jobs.job import OF_SCRIPT, Job, is_for_people, opened_journal, run_series
from streamql.console.jobs.schedule import Plan
from streamql.console.jobs.stop_signals import Stop
from streamql.console.options import Input, Options, path_text
from streamql.console.usage import Parser

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.console.sql.script import Statement

log = logging.getLogger("streamql")

USAGE = 2
BACKOFF_MAX_DEFAULT = "10min"

EPILOG = """\
examples:
  streamql run nightly.sql --events runs.jsonl                   one run, from cron
  streamql run merge.sql --when-has-data sales.orders_st         one run, unless nothing is to do
  streamql run merge.sql --when-has-data                         the same, of the streams it reads
  streamql run merge.sql --every 30s --when-has-data orders_st   until it is stopped
  streamql run merge.sql --max-failures 5                        one run, tried five times
  streamql run merge.sql --every 5min --runs 12                  an hour of them
  streamql run merge.sql --conf spark.streamql.busyTimeout=0s    is skipped if another one consumes

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
    """Adds its own options."""
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


def run(spark: SparkSession, options: Options) -> int:
    """Runs the script as often as was asked; the exit code. Raises OutputClosedError."""
    given = options.arguments
    found, problem = _read(given.script)
    if problem is not None:
        return _usage(problem)
    journal = opened_journal(options, given.script, shows_people=False)
    if journal is None:
        return USAGE
    single = given.every is None
    plan = Plan(given.every, given.runs, given.max_failures or (1 if single else None), given.backoff_max)
    with Stop() as stop, warnings_as_events(journal, for_people=is_for_people(options)):
        if options.is_new:
            log.warning("%s", data_directory.made(options.data))
        return run_series(Job(spark, options, found, journal, stop), plan, journal, stop)


def check(options: Options) -> str | None:
    """Says what is wrong with the command line or the script, before Spark starts."""
    given = options.arguments
    if given.runs is not None and given.every is None:
        return "--runs needs --every: without it there is one run"
    return None if given.script == "-" else _read(given.script)[1]


def _read(script: str) -> tuple[list[Statement], str | None]:
    """Returns the script's statements, or what is wrong with it."""
    from streamql.console.problems import describe
    from streamql.console.sql.inputs import UsageError, read
    from streamql.console.sql.script import open_end, statements

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
