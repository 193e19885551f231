"""Prints the streams on mirrors."""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

from streamql.console.options import Options


def arguments(parser: argparse.ArgumentParser) -> None:
    """Has none of its own."""
    parser.epilog = "examples:\n  streamql mirrors"


def run(spark: SparkSession, _: Options) -> int:
    """Prints their names."""
    for row in spark.sql("SHOW MIRROR STREAMS").collect():
        print(row["name"])
    return 0
