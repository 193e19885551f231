"""`streamql conf`: the settings that give any Spark the extension, as lines for its spark-defaults.conf.

  streamql conf >> $SPARK_HOME/conf/spark-defaults.conf       bin/spark-sql, spark-submit, servers, notebooks
  eval "bin/spark-sql $(streamql conf --arguments | tr '\\n' ' ')"      the same for one start, as --conf arguments

The jars are named by path: nothing is downloaded when Spark starts. spark.streamql.python is the Python that answers for streamql
where Spark was not started from Python; it must have streamql, and the pyspark that this Spark is. Where the cluster's executors
are other machines, spark.jars takes the jars there.
"""

from __future__ import annotations

import argparse
import shlex
import sys

from streamql.cli.options import Options


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    parser.add_argument("--arguments", action="store_true", help="print --conf arguments, quoted for a shell")


def run(options: Options) -> int:
    """Prints the lines; raises JAVA_NOT_FOUND, JAR_BUILD_FAILED, INVALID_ARGUMENT for an unknown connector."""
    from streamql import conf_lines
    from streamql.settings import CONNECTORS

    for key, value in conf_lines(options.conf.get(CONNECTORS.key, "")).items():
        print(f"--conf {shlex.quote(f'{key}={value}')}" if options.arguments.arguments else f"{key} {value}")
    sys.stdout.flush()
    return 0
