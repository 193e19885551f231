"""Exports the changes of a table, commit by commit, as 6-tuples: for key-value stores, search indexes
and caches. Takes job files of DataX's otsstreamreader; docs/tablestore.md compares the two.

The table needs change tracking and a primary key:
  ALTER TABLE shop.orders SET PROPERTIES ('change_tracking' = 'true')
  ALTER TABLE shop.orders SET TBLPROPERTIES ('tablestore.primary_key' = 'id')

A job file, in which // comments and "" for unset entries are allowed:
  {"reader": {"name": "otsstreamreader", "parameter": {
     "dataTable": "shop.orders",           the table to export
     "statusTable": "shop.export_status",  remembers exports; is made by the first one
     "date": "20251111",                   a day; or startTimestampMillis and endTimestampMillis
     "isExportSequenceInfo": true,         a seventh column, by which tuples sort
     "maxRetries": 30}},                   how often a read that failed is repeated
   "writer": {"name": "jsonl", "parameter": {"path": "orders.jsonl"}}}
Writers: jsonl and csv (one local file), parquet (a local directory), delta (path or table).

The output appears whole or not at all. A job that is run again exports the same commits, so it is
safe to repeat after a crash. A job whose start is the end of a finished job continues where that
one ended: a chain of jobs exports each commit once.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.console.options import Options, path_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.features.tablestore.export import Exported

EPILOG = """\
examples:
  streamql export job.json                    what was done goes to stdout, progress to stderr
  streamql --database shop export job.json    names in the job without a schema are of shop
  streamql export job.json --output json      one object: tuples, versions, shards, target

exit codes:
  0    exported, or the job's output was there already
  1    the export failed; nothing is at the target that was not there before
  2    the command line or the job file is wrong, or there is no data directory
  130  cut short by Ctrl-C: run the job again
"""

_HEADER = ("tuples", "U", "DO", "DA", "DR", "shards", "first_version", "last_version", "start_ms", "end_ms", "target")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    parser.epilog = EPILOG
    parser.add_argument("job", metavar="JOB.json", type=path_text, help="the job file")


def check(options: Options) -> str | None:
    """Says what is wrong with the job file, before Spark starts."""
    from streamql.errors import StreamqlError
    from streamql.features.tablestore.jobs.job import load_job

    try:
        load_job(Path(options.arguments.job))
    except StreamqlError as e:
        return str(e)
    return None


def run(spark: SparkSession, options: Options) -> int:
    """Runs the job, and prints what was exported. Raises what `export` raises."""
    from streamql.console.render import records
    from streamql.console.render.screen import Screen
    from streamql.console.sql.embedded import EmbeddedSession
    from streamql.console.sql.named_objects import use_database
    from streamql.console.sql.progress import Progress
    from streamql.features.tablestore.export import export
    from streamql.features.tablestore.jobs.job import load_job

    job = load_job(Path(options.arguments.job))
    screen = Screen(silent=options.silent)
    if job.note is not None:
        screen.note(job.note)
    use_database(spark, options.database)
    with Progress(EmbeddedSession(spark), screen).of_statement():
        done = export(spark, job, screen.note)
    if options.output == "table":
        print(done.text)
    else:
        records.write(options.output, _HEADER, [True] * (len(_HEADER) - 1) + [False], [_row(done)])
    sys.stdout.flush()
    return 0


def _row(done: Exported) -> tuple[object, ...]:
    versions, window = done.job.versions, done.job.window
    bounds = (None, None) if versions.is_empty else (versions.first, versions.next - 1)
    counts = [done.counts.get(op, 0) for op in ("U", "DO", "DA", "DR")]
    return (sum(counts), *counts, done.shards, *bounds, window.start_ms, window.end_ms, done.target)
