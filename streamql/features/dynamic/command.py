"""Refreshes dynamic tables and materialized views once: all, some, or those that are due. For cron or
a terminal. `streamql scheduler` refreshes them whenever they are due.

A refresh of a table first refreshes the dynamic tables that it reads. A run reads each source table
at one version, so that the tables that it refreshes are consistent with each other. If a table
fails, the run skips only the tables that read it.

Safe to run twice at once. A refresh is one commit, made once. A table that another process
refreshes is waited for (spark.streamql.busyTimeout, 90s), and what that process did is not done
again. If that process read newer versions, this run starts again with newer versions.

  --due   refreshes the tables that are due by their schedules:
            TARGET_LAG = '10 minutes'   the oldest change that the table does not show will be older
                                        than the target when a refresh has ended: its age, and what
                                        the last refreshes took
            REFRESH INTERVAL 5 MINUTE   a tick has come since the last refresh, and a change before
                                        it
            TARGET_LAG = DOWNSTREAM     a table that reads it is due
          Tables without a schedule, suspended ones, and those that read a suspended one are not
          due. A table that was never filled is due at once.

SIGTERM or Ctrl-C lets the running refreshes end, then the command ends; a second one cancels them:
each has then either committed, or done nothing.

Events are JSON, a line each, on stderr or appended to --events FILE, which several processes may
share:
  refreshing  run, table
  refreshed   run, table, seconds, mode, reason, why_not_incremental, version, rows_inserted,
              rows_updated, rows_deleted
  unchanged   run, table, seconds, version
  failed      run, table, seconds, code, error, sqlstate, hint, failures (in a row), next_seconds
              (of a scheduler, until it is due again)
  skipped     run, table, seconds; reason HELD_UP and held_by: the table that it reads failed or is
              suspended; or code STREAM_BUSY, error, hint, sqlstate: another process refreshes it
  finished    run, seconds, refreshed, unchanged, failed, skipped
  stopped     run, seconds: a signal came between two refreshes
  cancelled   run, seconds, signal: a second signal came
  warning     message
All have at, event, job, host, pid. The results go to stdout: name, outcome, mode, rows_inserted,
rows_updated, rows_deleted, seconds, error.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.console.argument_types import number
from streamql.console.jobs.events import Journal, warnings_as_events
from streamql.console.jobs.job import is_for_people, opened_journal
from streamql.console.jobs.stop_signals import ENDS_FIRST, Stop
from streamql.console.options import Options, path_text
from streamql.console.usage import Parser
from streamql.features.dynamic.refresh_jobs import Cancelled, Refreshes, Run, error_of
from streamql.times import now_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.console.render.screen import Screen
    from streamql.features.dynamic.refreshes.run import Outcome

FAILED, USAGE = 1, 2
HEADER = ("name", "outcome", "mode", "rows_inserted", "rows_updated", "rows_deleted", "seconds", "error")
NUMERIC = (False, False, False, True, True, True, True, False)

EPILOG = """\
examples:
  streamql refresh                                 all but suspended ones, in the order of the DAG
  streamql refresh sales.daily sales.weekly        two, and the dynamic tables that they read
  streamql refresh --jobs 4                        up to four at once
  streamql refresh --due --events refresh.jsonl    what is due, from cron
  streamql --database sales refresh --due          of one database
  streamql refresh --output json | jq -r 'select(.error) | .name'

exit codes:
  0    all were refreshed or unchanged, or nothing was due
  1    a refresh failed, a table that was named was held up, or Spark did not start
  2    the command line is wrong, or there is no data directory
  130  a run was cut short by Ctrl-C        143  by SIGTERM
  141  the reader of the output went away (| head)

under systemd: KillMode=mixed, so that SIGTERM reaches this command, and not Spark's Java process
beside it.
"""


def arguments(parser: Parser) -> None:
    """Adds its own options."""
    parser.epilog = EPILOG
    add = parser.add_argument
    add(
        "names",
        nargs="*",
        metavar="NAME",
        help="tables to refresh (all that are not suspended; of --database, if given)",
    )
    add("--due", action="store_true", help="only the tables that are due now")
    add("--loop", action="store_true", help=argparse.SUPPRESS)
    add("--jobs", metavar="N", type=number, default=1, help="how many tables refresh at once (%(default)s)")
    add("--events", metavar="FILE", type=lambda text: Path(path_text(text)), help="where events are appended (stderr)")


def check(options: Options) -> str | None:
    """Says what is wrong with the command line, before Spark starts."""
    if options.arguments.loop:
        return "--loop is a command of its own now: streamql scheduler"
    from streamql.dialect import parse_name
    from streamql.errors import StreamqlError

    for name in options.arguments.names:
        try:
            parse_name(name)
        except StreamqlError as e:
            return f"{name!r} is not a name: {e.message}"
    return None


def run(spark: SparkSession, options: Options) -> int:
    """Refreshes once. Raises DYNAMIC_TABLE_NOT_FOUND, CATALOG_UNREADABLE, BrokenPipeError."""
    from streamql.console.render.screen import Screen

    given = options.arguments
    for_people = is_for_people(options)
    journal = opened_journal(options, "refresh", shows_people=True)
    if journal is None:
        return USAGE
    screen = Screen(silent=options.silent or not for_people)
    with Stop(ENDS_FIRST) as stop, warnings_as_events(journal, for_people=for_people):
        refreshes = Refreshes(
            spark, journal.tell, lambda: stop.is_asked, options.database, given.names, given.jobs, only_due=given.due
        )
        return _run(refreshes, options, journal, stop, screen)


def _run(refreshes: Refreshes, options: Options, journal: Journal, stop: Stop, screen: Screen) -> int:
    """Does the run, and returns the exit code."""
    try:
        done = refreshes.run(lambda seen: _progress(screen, seen))
    except Cancelled:
        journal.tell("cancelled", now_ms(), **_about(refreshes.began), signal=stop.signal)
        return stop.exit_code
    screen.mute(False)
    _show(done, options, screen)
    if not done.is_whole:
        journal.tell("stopped", now_ms(), **_about(refreshes.began))
        return stop.exit_code
    journal.tell("finished", now_ms(), **_about(refreshes.began), **_counts(done))
    return _exit_code(done.outcomes, options.arguments.names)


def _about(began: float) -> dict[str, object]:
    return {"run": 1, "seconds": round(time.monotonic() - began, 3)}


def _counts(done: Run) -> dict[str, object]:
    words = [o.word for o in done.outcomes]
    return {word.lower(): words.count(word) for word in ("REFRESHED", "UNCHANGED", "FAILED", "SKIPPED")}


def _exit_code(outcomes: Sequence[Outcome], names: Sequence[str]) -> int:
    """1: one failed; or one was held up, if tables were named."""
    held = bool(names) and any(o.held_by is not None for o in outcomes)
    return FAILED if held or any(o.word == "FAILED" for o in outcomes) else 0


def _progress(screen: Screen, seen: Refreshes) -> None:
    """Shows one line while refreshes run: how many have ended, what runs for how long, and for whom one waits."""
    from streamql.console.render.waits import waiting_text
    from streamql.consume.claims.waiting import waited_for

    now = time.monotonic()
    running = [f"{name} ({now - since:.0f} s)" for name, since in sorted(seen.running.items())]
    if running:
        waiting = waiting_text(waited_for(), now_ms())
        screen.progress(f"{seen.ended} done; refreshing {', '.join(running)}{waiting and f'; {waiting}'}")


def _show(done: Run, options: Options, screen: Screen) -> None:
    """Shows what the run did on stdout, and hints on a terminal."""
    from streamql.console.render import records

    if not done.outcomes:
        said = "no dynamic table is due" if options.arguments.due else "there is no dynamic table to refresh here"
        screen.note(said)
        return
    records.write(options.output, HEADER, NUMERIC, [_row(o) for o in done.outcomes])
    for outcome in done.outcomes:
        hint = error_of(outcome)[2]
        if hint:
            screen.note(f"hint for {outcome.table.name}: {hint}")


def _row(outcome: Outcome) -> tuple[object, ...]:
    rows: Sequence[int | None] = (
        [None] * 3
        if outcome.result is None
        else [outcome.result.rows.get(n, 0) for n in ("inserted", "updated", "deleted")]
    )
    code, error, *_ = error_of(outcome)
    said = f"[{code}] {error}" if code else error or None
    mode = None if outcome.result is None else outcome.result.mode
    return (str(outcome.table.name), outcome.word, mode, *rows, round(outcome.duration_ms / 1000, 3), said)
