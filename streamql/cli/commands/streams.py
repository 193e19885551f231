"""The status of every stream: lag, backlog, staleness, who consumes it, its last consumption and its
last error.

Nothing is consumed, and no row is read: what is shown is in the logs of the sources, in the
ledger (streamql.consumptions), and, for topics, in the answers of their brokers.

  lag      versions of a table (v) or messages of a topic (m) since the offset, and the age of the
           oldest of them
  backlog  row images and bytes that reading it would touch, by the log; messages, by their offsets.
           Upper bounds
  state    stale, invalid (cannot be read), partial (a transaction stopped half way),
           busy (is being consumed), data, empty
  stale    when what it has still to read may be removed: by VACUUM and log cleanup, or by the
           topic's retention

--output json, csv, tsv and markdown show one record a stream, under these names: name, source,
mode, state, offset_version, lag_versions, lag_seconds, backlog_rows, backlog_bytes, has_data,
stale, stale_after, stale_soon, invalid_reason, consumed_by, consuming_since, last_consumption,
last_outcome, last_target, last_rows_written, last_error, last_error_at, offset_position,
latest_position. Times are UTC.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from streamql.cli.options import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPILOG = """\
examples:
  streamql streams                                       all of them
  streamql streams sales.orders_st '`my db`.s'           some
  streamql --database sales streams                      those of a database
  streamql streams --output json | jq -r 'select(.stale_soon) | .name'
  streamql streams --output csv > streams.csv

exit codes:
  0  shown, whatever state the streams are in (streamql doctor has an exit code for that)
  1  a stream that was named is not there, or the catalog cannot be read
  2  the command line is wrong, or there is no data directory
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Its own options."""
    parser.epilog = EPILOG
    parser.add_argument("names", nargs="*", metavar="STREAM", help="those to show (all, or all of --database)")


def run(spark: SparkSession, options: Options) -> int:
    """Prints the streams to stdout. Raises STREAM_NOT_FOUND, CATALOG_UNREADABLE."""
    from streamql.cli.commands.selection import selected
    from streamql.cli.render import grid, records, status_lines

    seen = selected(spark, options)
    if options.output != "table":
        rows = [tuple(status_lines.record(facts).values()) for facts in seen.streams]
        records.write(
            options.output, status_lines.RECORD, [name in status_lines.NUMERIC for name in status_lines.RECORD], rows
        )
        return 0
    if not seen.streams:
        records.say(["there are no streams here; CREATE STREAM s ON TABLE t makes one"])
        return 0
    lines = status_lines.lines(seen)
    records.write("table", status_lines.HEADER, [False] * len(status_lines.HEADER), [line.cells for line in lines])
    troubled = [f"{line.cells[0]}: {line.trouble}" for line in lines if line.trouble]
    records.say([status_lines.summary(seen), *map(grid.clean, troubled)])
    return 0
