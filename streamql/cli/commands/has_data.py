"""Whether a stream has data, as an exit code, for scripts. Asked of the log alone; nothing is
consumed.

The answer is never a false "no". It may be a false "yes" where changes cancel one another out,
which only reading them would tell. With several streams: whether any of them has data.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from streamql.console.options import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HAS_DATA, HAS_NONE = 0, 1

EPILOG = """\
examples:
  streamql has-data sales.orders_st && spark-submit job.py
  streamql --database sales has-data orders_st refunds_st      either of them
  streamql has-data s --output json                            {"name": "sales.s", "has_data": true}

exit codes:
  0    it has data
  1    it has none
  2    an error: no such stream or data directory, a stream that cannot be read, or a wrong option
  130  cancelled with Ctrl-C

A script that must tell "none" from an error:
  streamql has-data s; case $? in 0) run_job;; 1) ;; *) exit 1;; esac
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    parser.epilog = EPILOG
    parser.add_argument("names", nargs="+", metavar="STREAM", help="whose changes are asked for")
    parser.add_argument("-q", "--quiet", action="store_true", help="no word on stdout, the exit code alone")


def run(spark: SparkSession, options: Options) -> int:
    """Prints yes or no a stream, HAS_DATA or HAS_NONE. Raises STREAM_NOT_FOUND, and what reading the stream raises."""
    from streamql.console.render import records
    from streamql.console.sql.named_objects import streams_named, use_database
    from streamql.reading import has_data

    use_database(spark, options.database)
    states = streams_named(spark, options.arguments.names)
    answers = [(str(state.name), has_data(spark, state)) for state in states]
    if not (options.arguments.quiet or options.silent):
        if options.output == "table":
            records.say(f"{name}: {'has data' if answer else 'no data'}" for name, answer in answers)
        else:
            records.write(options.output, ["name", "has_data"], [False, False], answers)
    return HAS_DATA if any(answer for _, answer in answers) else HAS_NONE
