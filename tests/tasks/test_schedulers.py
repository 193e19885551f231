"""Two schedulers in processes of their own over one catalog, which are killed and started again: each run happens once, and no row is lost
or doubled."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.features.tasks.runs.store import all_tasks
from tests.consume.support import ROOT, TRACKED, data_of, fresh_schema, run
from tests.sample import SEED, amount
from tests.small import INTERPRETED, SHORT_LIVED

KILLS = amount(2, 30)
END_SECONDS = 120
CONF = {**SHORT_LIVED, **dict(INTERPRETED), "spark.master": "local[1]"}


class Schedulers:
    """Processes of `streamql scheduler`, which share a file of events."""

    def __init__(self, spark: SparkSession, events: Path, schema: str) -> None:
        self.events = events
        arguments = [word for key, value in CONF.items() for word in ("--conf", f"{key}={value}")]
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


@pytest.fixture
def schedulers(spark: SparkSession, tmp_path: Path) -> Iterator[Schedulers]:
    schema = fresh_schema(spark, "scheduled")
    made = Schedulers(spark, tmp_path / "events.jsonl", schema)
    yield made
    for one in made.running:
        one.kill()
        one.wait()
    spark.sql("USE default")


def test_runs_happen_once_whatever_is_killed(spark: SparkSession, schedulers: Schedulers) -> None:
    run(spark, f"CREATE TABLE raw (id BIGINT) {TRACKED}")
    for table in ("copied", "noted", "totals"):
        run(spark, f"CREATE TABLE {table} (id BIGINT, word STRING)")
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
    for _ in range(KILLS):
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
    runs = run(spark, f"SELECT task, run_id, state, error FROM streamql.task_runs WHERE root = '{schema}.load'")
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
    ended = run(spark, f"SELECT outcome FROM streamql.consumptions WHERE stream = '{schema}.raw_st'")
    assert {r["outcome"] for r in ended} <= {"CONSUMED", "FAILED"}
