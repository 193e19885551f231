"""Refreshes dynamic tables and materialized views: all, some, or those that are due; once, or as a
scheduler. For cron, systemd or a terminal; no service is needed.

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
  --loop  runs --due until it is stopped. Between runs it sleeps until the next table is due, at
          most 30 s. After a failure it waits 10 s, then 20 s, 40 s … 10 min, before it tries the
          table again.

SIGTERM or Ctrl-C lets the running refreshes end, then the command ends; a second one cancels them:
each has then either committed, or done nothing.

Events are JSON, a line each, on stderr or appended to --events FILE, which several processes may
share:
  refreshing  run, table
  refreshed   run, table, seconds, mode, reason, why_not_incremental, version, rows_inserted,
              rows_updated, rows_deleted
  unchanged   run, table, seconds, version
  failed      run, table, seconds, code, error, sqlstate, hint, failures (in a row), next_seconds
              (with --loop, until it is due again); of a run of --loop that cannot read the catalog:
              run, seconds, error, failures, next_seconds
  skipped     run, table, seconds; reason HELD_UP and held_by: the table that it reads failed or is
              suspended; or code STREAM_BUSY, error, hint, sqlstate: another process refreshes it
  finished    run, seconds, refreshed, unchanged, failed, skipped, next_seconds (with --loop)
  stopped     run, seconds: a signal came between two refreshes
              run, signal: a signal ended --loop behind a whole run; run is the last one
  cancelled   run, seconds, signal: a second signal came
  warning     message
All have at, event, job, host, pid. The results go to stdout: name, outcome, mode, rows_inserted,
rows_updated, rows_deleted, seconds, error; of a run of --loop only if a table was due.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.console.argument_types import number
from streamql.console.jobs.events import Journal, warnings_as_events
from streamql.console.jobs.job import is_for_people
from streamql.console.jobs.stop_signals import Stop
from streamql.console.options import Options, path_text
from streamql.console.usage import Parser
from streamql.features.dynamic.refresh_jobs import Cancelled, Refreshes, Run, error_of
from streamql.times import now_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.console.render.screen import Screen
    from streamql.features.dynamic.refreshes.run import Outcome

FAILED, USAGE = 1, 2
FAILURE_PAUSE_SECONDS = 10.0
"""The pause of a loop in which the catalog could not be read."""

HEADER = ("name", "outcome", "mode", "rows_inserted", "rows_updated", "rows_deleted", "seconds", "error")
NUMERIC = (False, False, False, True, True, True, True, False)

EPILOG = """\
examples:
  streamql refresh                                 all but suspended ones, in the order of the DAG
  streamql refresh sales.daily sales.weekly        two, and the dynamic tables that they read
  streamql refresh --jobs 4                        up to four at once
  streamql refresh --due --events refresh.jsonl    what is due, from cron
  streamql refresh --loop                          a scheduler, until it is stopped
  streamql --database sales refresh --loop         of one database
  streamql refresh --output json | jq -r 'select(.error) | .name'

exit codes:
  0    all were refreshed or unchanged, or nothing was due; also after a signal between two runs
  1    a refresh failed, a table that was named was held up, or Spark did not start (--loop: in the
       last run, if the signal came during that)
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
    add("--loop", action="store_true", help="--due again and again, until it is stopped")
    add("--jobs", metavar="N", type=number, default=1, help="how many tables refresh at once (%(default)s)")
    add("--events", metavar="FILE", type=lambda text: Path(path_text(text)), help="where events are appended (stderr)")


def check(options: Options) -> str | None:
    """Says what is wrong with the names, before Spark starts."""
    from streamql.dialect import parse_name
    from streamql.errors import StreamqlError

    for name in options.arguments.names:
        try:
            parse_name(name)
        except StreamqlError as e:
            return f"{name!r} is not a name: {e.message}"
    return None


def run(spark: SparkSession, options: Options) -> int:
    """Refreshes once, or until it is stopped. Raises DYNAMIC_TABLE_NOT_FOUND, CATALOG_UNREADABLE, BrokenPipeError."""
    from streamql.catalog.identity import host_name
    from streamql.console.render.screen import Screen

    given = options.arguments
    for_people = is_for_people(options)
    try:
        journal = Journal(given.events, {"job": "refresh", "host": host_name(), "pid": os.getpid()})
    except OSError as e:
        print(f"error: cannot write {given.events}: {e.strerror}", file=sys.stderr, flush=True)
        return USAGE
    if for_people and given.events is None:
        journal = Journal(Path(os.devnull), {})
    screen = Screen(silent=options.silent or not for_people)
    with Stop() as stop, warnings_as_events(journal, for_people=for_people):
        refreshes = Refreshes(spark, options, journal, stop, lambda seen: _progress(screen, seen))
        return _series(refreshes, _Results(options, screen), screen)


def _series(refreshes: Refreshes, results: _Results, screen: Screen) -> int:
    """Returns the runs; the exit code."""
    given, stop, journal = refreshes.options.arguments, refreshes.stop, refreshes.journal
    runs = failures = 0
    while True:
        runs += 1
        try:
            done = refreshes.run(runs)
        except Cancelled:
            journal.tell("cancelled", now_ms(), **_about(runs, refreshes.began), signal=stop.signal)
            return stop.exit_code
        except Exception as e:
            if runs == 1 or _is_fatal(e):
                raise
            failures += 1
            about = {**_about(runs, refreshes.began), "failures": failures, "next_seconds": FAILURE_PAUSE_SECONDS}
            journal.tell("failed", now_ms(), error=str(e), **about)
            screen.error(f"error: {e}")
            if stop.wait(FAILURE_PAUSE_SECONDS):
                journal.tell("stopped", now_ms(), run=runs, signal=stop.signal)
                return 0
            continue
        failures = 0
        screen.mute(False)
        results.show(done)
        if not done.is_whole:
            journal.tell("stopped", now_ms(), **_about(runs, refreshes.began))
            return stop.exit_code
        goes_on = given.loop and not stop.is_asked
        pause = round(done.pause_seconds, 3) if goes_on else None
        journal.tell("finished", now_ms(), **_about(runs, refreshes.began), **_counts(done), next_seconds=pause)
        if goes_on and not stop.wait(done.pause_seconds):
            continue
        if given.loop:
            journal.tell("stopped", now_ms(), run=runs, signal=stop.signal)
        return 0 if goes_on else _exit_code(done.outcomes, given.names)


def _about(runs: int, began: float) -> dict[str, object]:
    return {"run": runs, "seconds": round(time.monotonic() - began, 3)}


def _counts(done: Run) -> dict[str, object]:
    words = [o.word for o in done.outcomes]
    return {word.lower(): words.count(word) for word in ("REFRESHED", "UNCHANGED", "FAILED", "SKIPPED")}


def _exit_code(outcomes: Sequence[Outcome], names: Sequence[str]) -> int:
    """1: one failed; or one was held up, if tables were named."""
    held = bool(names) and any(o.held_by is not None for o in outcomes)
    return FAILED if held or any(o.word == "FAILED" for o in outcomes) else 0


def _is_fatal(e: Exception) -> bool:
    from streamql.console.problems import from_exception

    return isinstance(e, BrokenPipeError) or from_exception(e).is_fatal


def _progress(screen: Screen, seen: Refreshes) -> None:
    """Shows one line while refreshes run: how many have ended, what runs for how long, and for whom one waits."""
    from streamql.console.render.waits import waiting_text
    from streamql.consume.claims.waiting import waited_for

    now = time.monotonic()
    running = [f"{name} ({now - since:.0f} s)" for name, since in sorted(seen.running.items())]
    if running:
        waiting = waiting_text(waited_for(), now_ms())
        screen.progress(f"{seen.ended} done; refreshing {', '.join(running)}{waiting and f'; {waiting}'}")


class _Results:
    """Shows what each run did on stdout, and hints on a terminal."""

    def __init__(self, options: Options, screen: Screen) -> None:
        self._output = options.output
        self._loops: bool = options.arguments.loop
        self._is_due_only: bool = options.arguments.due or options.arguments.loop
        self._screen = screen
        self._is_first = True

    def show(self, done: Run) -> None:
        """Prints the table of a run; the header of csv, tsv and markdown once."""
        from streamql.console.render import records

        if not done.outcomes:
            if not self._loops:
                said = "no dynamic table is due" if self._is_due_only else "there is no dynamic table to refresh here"
                self._screen.note(said)
            return
        records.write(self._output, HEADER, NUMERIC, [_row(o) for o in done.outcomes], header=self._is_first)
        self._is_first = False
        for outcome in done.outcomes:
            hint = error_of(outcome)[2]
            if hint:
                self._screen.note(f"hint for {outcome.table.name}: {hint}")


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
