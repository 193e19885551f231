"""A consumer in a process of its own, which is killed while its transaction is half done."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

import streamql
from examples.flights.problems import DemoError

SECONDS_MAX = 300
POLL_SECONDS = 0.1


def killed_consumer(spark: SparkSession, directory: Path, script: Path, target: str) -> str:
    """Runs a script by `streamql run`, and kills the process when the first statement, which writes `target`, has committed. Says what was
    done. Raises DemoError if the process ends by itself before."""
    before = _version(spark, target)
    command = [sys.executable, "-m", "streamql", "--data", str(directory), "--with", "kafka", "run", str(script)]
    log = directory / "killed.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=dict(os.environ), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while _version(spark, target) == before:
            if process.poll() is not None or time.monotonic() > deadline:
                raise DemoError(f"the consumer did not consume:\n{log.read_text(encoding='utf-8')[-2000:]}")
            time.sleep(POLL_SECONDS)
    finally:
        process.kill()
        process.wait()
    return f"killed (process {process.pid}) after its first write"


def _version(spark: SparkSession, target: str) -> int:
    return int(streamql.sql(f"DESCRIBE HISTORY {target} LIMIT 1", spark).collect()[0].version)
