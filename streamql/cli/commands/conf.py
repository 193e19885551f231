"""`streamql conf`: the settings that give any Spark the extension, as lines for its spark-defaults.conf.

  streamql conf >> $SPARK_HOME/conf/spark-defaults.conf       bin/spark-sql, spark-submit, servers, notebooks
  eval "bin/spark-sql $(streamql conf --arguments | tr '\\n' ' ')"      the same for one start, as --conf arguments
  streamql conf --spark 4.0.2 --delta 4.0.0                   for a Spark of a platform, which has its Delta Lake already

The jars are named by path: nothing is downloaded when Spark starts. spark.streamql.python is the Python that answers for streamql
where Spark was not started from Python; it must have streamql, and the pyspark that this Spark is. Where the cluster's executors
are other machines, spark.jars takes the jars there. What the spark-defaults.conf of this Spark names already, such as jars and
extensions, stays, before ours; a Delta Lake among it is the one that is used.

--small adds settings that make statements on tables of up to some million rows quicker, for the number of cores of this machine:
spark.sql.shuffle.partitions and spark.databricks.delta.snapshotPartitions, whose defaults (200 and 50) are for large ones.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from streamql.console.options import Options


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    parser.add_argument("--small", action="store_true", help="add settings that are quicker on small tables")
    parser.add_argument("--spark", metavar="VERSION", help="the version of the other Spark (this Python's)")
    parser.add_argument("--delta", metavar="VERSION", help="that Spark has this Delta Lake among its jars already")
    parser.add_argument("--arguments", action="store_true", help="print --conf arguments, quoted for a shell")


def run(options: Options) -> int:
    """Prints the lines; raises JAVA_NOT_FOUND, JAR_BUILD_FAILED, SPARK_NOT_SUPPORTED, INVALID_ARGUMENT for an unknown connector."""
    from streamql.extension.settings import conf_lines, joined, lists_of_spark, small_tables
    from streamql.settings import CONNECTORS

    own = options.arguments
    given = {} if own.spark or own.delta else lists_of_spark()
    lines = {
        key: joined(key, given.get(key), value)
        for key, value in conf_lines(options.conf.get(CONNECTORS.key, ""), given, own.spark, own.delta).items()
    }
    if own.small:
        lines |= small_tables(os.cpu_count() or 1)
    for key, value in lines.items():
        print(f"--conf {shlex.quote(f'{key}={value}')}" if own.arguments else f"{key} {value}")
    sys.stdout.flush()
    return 0
