"""The status of every stream and dynamic table. Of streams: lag, backlog, staleness, who consumes
it, its last consumption and its last error. Of dynamic tables and materialized views: lag against
the target, the next refresh, and the last one.

Nothing is consumed, and no row is read: what is shown is in the logs of the sources, in the
catalog, and, for topics, in the answers of their brokers.

  lag      versions of a table (v) or messages of a topic (m) since the offset, and the age of the
           oldest of them
  backlog  row images and bytes that reading it would touch, by the log; messages, by their offsets.
           Upper bounds
  state    stale, invalid (cannot be read), partial (a transaction stopped half way),
           busy (is being consumed), data, empty
  stale    when what it has still to read may be removed: by VACUUM and log cleanup, or by the
           topic's retention

Of dynamic tables:
  lag      the age of the oldest change that the table does not show; (late): above the target
  target   TARGET_LAG; "every": REFRESH INTERVAL; "downstream": with the tables that read it; empty:
           only statements refresh it
  state    failed, late, held (it reads a suspended table), empty (never filled), refreshing,
           behind, suspended, current
  last     the last refresh: rows inserted (+), updated (~) and deleted (-)

--output json, csv, tsv and markdown show one record a stream, under these names: name, source,
mode, state, offset_version, lag_versions, lag_seconds, backlog_rows, backlog_bytes, has_data,
stale, stale_after, stale_soon, invalid_reason, consumed_by, consuming_since, last_consumption,
last_outcome, last_target, last_rows_written, last_error, last_error_at, offset_position,
latest_position. With --dynamic they show one a dynamic table: name, type, state, schedule,
lag_seconds, target_seconds, is_late, next_refresh, reads, sources, held_by, last_refresh,
last_outcome, last_reason, last_rows_inserted, last_rows_updated, last_rows_deleted, last_seconds,
last_error, failures. Times are UTC.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from streamql.cli.commands.selection import names_arguments
from streamql.console.options import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPILOG = """\
examples:
  streamql streams                                       all of them
  streamql streams sales.orders_st '`my db`.s'           some
  streamql --database sales streams                      those of a database
  streamql streams --output json | jq -r 'select(.stale_soon) | .name'
  streamql streams --output csv > streams.csv
  streamql streams --dynamic --output json | jq -r 'select(.is_late) | .name'

exit codes:
  0  shown, whatever state they are in (streamql doctor has an exit code for that)
  1  what was named is not there, or the catalog cannot be read
  2  the command line is wrong, or there is no data directory
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    parser.epilog = EPILOG
    names_arguments(parser, "show")


def run(spark: SparkSession, options: Options) -> int:
    """Prints the streams and dynamic tables to stdout. Raises STREAM_NOT_FOUND, CATALOG_UNREADABLE."""
    from streamql.cli.commands.selection import chosen_listing, selected
    from streamql.console.render import grid, records

    seen = selected(spark, options)
    if options.output != "table" or options.arguments.dynamic:
        records.write(options.output, *chosen_listing(seen, options).records())
        return 0
    if not seen.listings:
        records.say(["there are no streams here; CREATE STREAM s ON TABLE t makes one"])
        return 0
    for listing in seen.listings:
        header = list(listing.subject.header.values())
        records.write("table", header, [False] * len(header), [line.cells for line in listing.lines])
    troubled = [line for listing in seen.listings for line in listing.lines if line.trouble]
    records.say([seen.summary, *(grid.clean(f"{line.name}: {line.trouble}") for line in troubled)])
    return 0
