"""Runs tasks and refreshes dynamic tables when they are due, in one process, until it is stopped. For
systemd or a container; or --once from cron.

Several schedulers may run at once over one catalog, on one machine or several, also on S3. Each run of a
task, and each refresh, is claimed in the catalog, so that one of them does it. If a scheduler dies,
another one takes its tasks over: at once on the same host, after the lease elsewhere
(spark.streamql.lease, 60s). A task that begins again loses and doubles nothing: its statements that read
streams are consumptions, and its other INSERT, UPDATE, DELETE and MERGE into Delta tables that have
committed are passed over.

A schedule that came due several times while no scheduler ran makes one run. New and altered tasks are
seen after 5 s at most, dynamic tables after 30 s.

SIGTERM or Ctrl-C lets the running statements and refreshes end, gives tasks that are not through back to
other schedulers, and ends; a second one cancels: each statement has then either committed, or done
nothing.

Events are JSON, a line each, on stderr or appended to --events FILE, which several processes may share:
  started     task, run_id, root, scheduled_at, attempt, taken_over_from (of a dead scheduler)
  finished    task, run_id, root, seconds
  failed      task, run_id, root, seconds, code, error, hint
  skipped     task, run_id, root, reason: WHEN is false (of a root only once in a row), or why not
  returned    task, run_id, root, seconds, reason: it was given back, or another one has taken it over
  suspended   task, failures: after SUSPEND_TASK_AFTER_NUM_FAILURES
  refreshing, refreshed, unchanged, failed, skipped: of a dynamic table, as those of streamql refresh
  failed      error, next_seconds: the catalog could not be read
  stopped     signal, seconds: a signal came, and all that ran has ended
  cancelled   signal, seconds: a second signal came
  warning     message
All have at, event, job, host, pid.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.console.argument_types import number
from streamql.console.jobs.events import warnings_as_events
from streamql.console.jobs.job import is_for_people, opened_journal
from streamql.console.jobs.stop_signals import ENDS_FIRST, Stop
from streamql.console.options import Options, path_text
from streamql.console.usage import Parser
from streamql.times import now_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.console.render.screen import Screen

FAILED, USAGE = 1, 2
JOBS = 4

EPILOG = """\
examples:
  streamql scheduler                                  until it is stopped
  streamql scheduler --events scheduler.jsonl         with its events in a file
  streamql --database sales scheduler --jobs 8        of one schema, up to eight pieces of work at once
  streamql scheduler --once                           what is due now, from cron

exit codes:
  0    it was stopped by a signal; --once: all that was due went well
  1    --once: a task or a refresh failed; or Spark did not start
  2    the command line is wrong, or there is no data directory
  130  what ran was cancelled by a second Ctrl-C        143  by SIGTERM

under systemd: KillMode=mixed, so that SIGTERM reaches this command, and not Spark's Java process
beside it.
"""


def arguments(parser: Parser) -> None:
    """Adds its own options."""
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--once", action="store_true", help="run what is due now, with the tasks behind it, and end")
    add("--jobs", metavar="N", type=number, default=JOBS, help="how many tasks and refreshes run at once (%(default)s)")
    add("--events", metavar="FILE", type=lambda text: Path(path_text(text)), help="where events are appended (stderr)")


def run(spark: SparkSession, options: Options) -> int:
    """Runs until it is stopped. Raises CATALOG_UNREADABLE at the first look."""
    from streamql.console.render.screen import Screen
    from streamql.console.scheduler.loop import Cancelled, Scheduler
    from streamql.engine.work import Desk, works

    given = options.arguments
    for_people = is_for_people(options)
    journal = opened_journal(options, "scheduler", shows_people=True)
    if journal is None:
        return USAGE
    screen = Screen(silent=options.silent or not for_people)
    began = time.monotonic()
    with Stop(ENDS_FIRST) as stop, warnings_as_events(journal, for_people=for_people):
        desk = Desk(spark, journal.tell, screen.note, lambda: stop.is_asked, options.database, given.jobs)
        scheduler = Scheduler(desk, stop, works(desk), partial(_progress, screen), only_once=given.once)
        if not given.once:
            screen.note("scheduling tasks and dynamic tables; Ctrl-C ends it")
        try:
            scheduler.run()
        except Cancelled:
            journal.tell("cancelled", now_ms(), signal=stop.signal, seconds=_since(began))
            return stop.exit_code
        if stop.is_asked:
            journal.tell("stopped", now_ms(), signal=stop.signal, seconds=_since(began))
            return 0
        return FAILED if scheduler.failures else 0


def _since(began: float) -> float:
    return round(time.monotonic() - began, 3)


def _progress(screen: Screen, seen: Sequence[tuple[str, float]]) -> None:
    if seen:
        screen.progress("; ".join(f"{label} ({seconds:.0f} s)" for label, seconds in seen))
    else:
        screen.progress("waiting for what is due next")
