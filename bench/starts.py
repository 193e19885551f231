"""Starts: commands as users type them, each a process of its own, against SELECT 1 of plain PySpark."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

from bench.context import Context
from bench.measuring import Benchmark, Case, Target

PLAIN = "PySpark"
SELECT = "from pyspark.sql import SparkSession; SparkSession.builder.getOrCreate().sql('SELECT 1').show()"


def _ran(words: list[str]) -> None:
    subprocess.run(words, check=True, capture_output=True)


def commands(context: Context, rows: int) -> list[Case]:
    """Commands over a directory with a stream that has changes."""
    data = str(context.directory / "starts")
    streamql = [str(Path(sys.executable).with_name("streamql")), "--data", data]
    made = (
        "CREATE OR REPLACE TABLE t (id BIGINT) TBLPROPERTIES ('change_tracking' = 'true')",
        "CREATE OR REPLACE STREAM s ON TABLE t",
        "INSERT INTO t VALUES (1)",
    )
    _ran([*streamql, *(word for statement in made for word in ("-e", statement))])
    return [
        Case("streamql", partial(_ran, [*streamql, "-e", "SELECT 1"])),
        Case("has-data", partial(_ran, [*streamql, "has-data", "s"])),
        Case("streams", partial(_ran, [*streamql, "streams"])),
        Case(PLAIN, partial(_ran, [sys.executable, "-c", SELECT])),
    ]


BENCHMARKS = (
    Benchmark(
        "starts",
        "commands as processes of their own: SELECT 1, has-data, streams",
        commands,
        0,
        (Target(0.45, PLAIN), Target(0.45, PLAIN, "has-data"), Target(0.45, PLAIN, "streams")),
    ),
)
