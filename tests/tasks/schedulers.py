"""Processes of `streamql scheduler` over one catalog, and a graph of tasks that they run while they are killed and started again."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from streamql.features.tasks.runs.store import all_tasks
from tests.consume.support import ROOT, TRACKED, data_of, run
from tests.sample import SEED
from tests.small import INTERPRETED, SHORT_LIVED

END_SECONDS = 300
CONF = {**SHORT_LIVED, **dict(INTERPRETED), "spark.master": "local[1]"}


class Schedulers:
    """Processes of `streamql scheduler`, which share a file of events."""

    def __init__(self, spark: SparkSession, events: Path, schema: str, conf: Mapping[str, str]) -> None:
        self.events = events
        arguments = [word for key, value in {**CONF, **conf}.items() for word in ("--conf", f"{key}={value}")]
        self._command = [
            *(sys.executable, "-m", "streamql", "--data", data_of(spark), "--database", schema, *arguments),
            *("scheduler", "--events", str(events)),
        ]
        self.running: list[subprocess.Popen[str]] = []

    def start(self) -> None:
        """Starts one."""
        self.running.append(
            subprocess.Popen(self._command, cwd=ROOT, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )

    def kill(self, index: int) -> None:
        """Kills one, at once."""
        one = self.running.pop(index)
        one.kill()
        one.wait()

    def said(self, event: str) -> list[dict[str, object]]:
        """The events of a type up to now."""
        lines = self.events.read_text().splitlines() if self.events.exists() else []
        return [e for line in lines if (e := json.loads(line))["event"] == event]

    def wait_for(self, event: str, count: int) -> None:
        """Waits until there are so many events of a type."""
        deadline = time.monotonic() + END_SECONDS
        while len(self.said(event)) < count:
            assert time.monotonic() < deadline, self.events.read_text()[-3000:]
            time.sleep(0.1)


@contextmanager
def schedulers_over(spark: SparkSession, events: Path, schema: str, conf: Mapping[str, str]) -> Iterator[Schedulers]:
    """Processes over the catalog of a session, which are killed in the end. `conf`: settings beside those of small data."""
    made = Schedulers(spark, events, schema, conf)
    try:
        yield made
    finally:
        for one in made.running:
            one.kill()
            one.wait()


def _at(location: str, table: str) -> str:
    return f" LOCATION '{location}/{table}'" if location else ""


def assert_runs_happen_once(
    spark: SparkSession, schedulers: Schedulers, kills: int, catalog: str, location: str = ""
) -> None:
    """Lets two schedulers run a graph of three tasks, kills one of them so many times, and looks at each row. `catalog`: that of the
    session. `location`: a directory for its tables; empty: they are in the warehouse."""
    run(spark, f"CREATE TABLE raw (id BIGINT) {TRACKED}{_at(location, 'raw')}")
    for table in ("copied", "noted", "totals"):
        run(spark, f"CREATE TABLE {table} (id BIGINT, word STRING){_at(location, table)}")
    run(spark, "CREATE STREAM raw_st ON TABLE raw")
    run(spark, "CREATE TASK load SCHEDULE = '1 second' AS INSERT INTO copied SELECT id, 'load' FROM raw_st")
    # Statements that read no stream: a run that is taken over must not write them a second time.
    run(
        spark,
        "CREATE TASK note AFTER load AS BEGIN INSERT INTO noted VALUES (1, 'one'); INSERT INTO noted VALUES (2, 'two'); END",
    )
    run(spark, "CREATE TASK count AFTER load AS INSERT INTO totals SELECT count(*), 'count' FROM copied")
    for task in ("note", "count", "load"):
        run(spark, f"ALTER TASK {task} RESUME")
    rng = random.Random(SEED)
    schedulers.start()
    schedulers.start()
    written = 0
    schedulers.wait_for("finished", 1)
    for _ in range(kills):
        for _ in range(3):
            run(spark, f"INSERT INTO raw SELECT id FROM range({written}, {written + 10})")
            written += 10
        schedulers.wait_for("started", len(schedulers.said("started")) + 1)
        time.sleep(rng.uniform(0, 2))
        schedulers.kill(rng.randrange(len(schedulers.running)))
        schedulers.start()
    schedulers.wait_for("finished", len(schedulers.said("finished")) + 6)
    run(spark, "ALTER TASK load SUSPEND")
    deadline = time.monotonic() + END_SECONDS
    while any(t.runs for t in all_tasks(spark)):
        assert time.monotonic() < deadline, [t.runs for t in all_tasks(spark)]
        time.sleep(0.5)
    for one in schedulers.running:
        one.send_signal(signal.SIGTERM)
    assert [one.wait(END_SECONDS) for one in schedulers.running] == [0, 0]
    schema = spark.catalog.currentDatabase()
    runs = run(spark, f"SELECT task, run_id, state, error FROM {catalog}.task_runs WHERE root = '{schema}.load'")
    assert {r["state"] for r in runs} == {"SUCCEEDED"}, runs
    by_run = Counter((r["run_id"], r["task"]) for r in runs)
    assert set(by_run.values()) == {1}
    graph_runs = len({run_id for run_id, _ in by_run})
    assert len(by_run) == 3 * graph_runs  # each run has all of its tasks
    rest = run(spark, "SELECT id FROM raw_st")
    copied = sorted(r["id"] for r in run(spark, "SELECT id FROM copied"))
    assert sorted([*copied, *(r["id"] for r in rest)]) == list(range(written))
    words = Counter(r["word"] for r in run(spark, "SELECT word FROM noted"))
    assert words == {"one": graph_runs, "two": graph_runs}
    assert len(run(spark, "SELECT * FROM totals")) == graph_runs
    ended = run(spark, f"SELECT outcome FROM {catalog}.consumptions WHERE stream = '{schema}.raw_st'")
    assert {r["outcome"] for r in ended} <= {"CONSUMED", "FAILED"}
