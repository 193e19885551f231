"""`streamql run`: in this process where that shows the same, in real second ones where they must get in each other's way."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.cli.main import main
from streamql.console.jobs.script_tables import databases_used, names_read, names_written
from streamql.console.sql.embedded import EmbeddedSession
from tests.consume.support import ROOT, assert_ledger_tiles, data_of, fresh_schema, run, tracked_table
from tests.histories.recording import conf
from tests.small import SHORT_LIVED_ARGUMENTS

SECONDS_MAX = 300
SLOW = "coalesce(try_cast(reflect('java.lang.Thread', 'sleep', CAST({} AS BIGINT)) AS BIGINT), 0)"
"""0, after so many milliseconds."""


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """A schema with a tracked table t of 100 rows, its stream s, and an empty target."""
    name = fresh_schema(spark, "running")
    tracked_table(spark, 100)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    yield name
    spark.sql("USE default")


def call(spark: SparkSession, schema: str, tmp_path: Path, sql: str, *argv: str) -> tuple[int, list[dict[str, object]]]:
    """Runs a script in this process: the exit code, and the events."""
    script, events = tmp_path / "job.sql", tmp_path / "events.jsonl"
    script.write_text(sql)
    events.unlink(missing_ok=True)
    before = signal.getsignal(signal.SIGTERM)
    code = main(["--data", data_of(spark), "--database", schema, "run", str(script), "--events", str(events), *argv])
    assert signal.getsignal(signal.SIGTERM) is before
    return code, told(events)


def told(events: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in events.read_text().splitlines()]


def test_when_it_has_data(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    sql = "INSERT INTO target SELECT id, v FROM s"
    argv = ("--every", "100ms", "--runs", "3", "--when-has-data", "s")
    code, events = call(spark, schema, tmp_path, sql, *argv)
    assert code == 0
    assert [e["event"] for e in events] == ["started", "finished", "skipped", "skipped"]
    assert (events[1]["rows_written"], events[1]["statements"], events[1]["run"]) == (100, 1, 1)
    assert [(e["reason"], e["run"], e.get("checks")) for e in events[2:]] == [("NO_DATA", 2, None), ("NO_DATA", 3, 2)]
    assert events[3]["since"] == events[2]["at"]
    assert all(e["job"] == str(tmp_path / "job.sql") and e["pid"] == os.getpid() for e in events)
    assert run(spark, "SELECT count(*) AS n FROM target")[0]["n"] == 100


def test_runs_without_data_are_counted_until_there_is_some(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    """A signal in the pause behind them ends the series with an event."""
    events = tmp_path / "events.jsonl"

    def play() -> None:
        other = spark.newSession()
        for wanted in ("skipped", "finished", "stop"):
            deadline = time.monotonic() + SECONDS_MAX
            while wanted not in (seen := events.read_text() if events.exists() else "") and wanted != "stop":
                assert time.monotonic() < deadline, seen
                time.sleep(0.1)
            time.sleep(1)  # some more runs
            if wanted == "skipped":
                run(other, f"INSERT INTO {schema}.t VALUES (-1, -1)")
        os.kill(os.getpid(), signal.SIGTERM)

    run(spark, "INSERT INTO target SELECT id, v FROM s")
    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    sql = "INSERT INTO target SELECT id, v FROM s"
    code, found = call(spark, schema, tmp_path, sql, "--every", "50ms", "--when-has-data", "s")
    thread.join()
    assert (code, [e["event"] for e in found]) == (
        0,
        ["skipped", "skipped", "started", "finished", "skipped", "skipped", "stopped"],
    )
    for first, last in (found[:2], found[4:6]):
        assert (first["reason"], last["reason"], last["since"]) == ("NO_DATA", "NO_DATA", first["at"])
        assert last["checks"] == int(str(last["run"])) - int(str(first["run"])) + 1
    assert found[2]["run"] == int(str(found[1]["run"])) + 1
    assert (found[-1]["run"], found[-1]["signal"], "seconds" in found[-1]) == (found[-2]["run"], 15, False)


def test_streams_of_a_script() -> None:
    texts = (
        "USE Sales",
        "-- FROM commented\nINSERT INTO a SELECT x, f(y), 'FROM said' FROM `my s` JOIN db.t USING (id)",
        "MERGE INTO target USING (SELECT * FROM (m)) s ON true WHEN MATCHED THEN DELETE",
        "USE DATABASE two; ",
        "EXECUTE IMMEDIATE 'INSERT INTO b SELECT * FROM hidden'",
        "BEGIN INSERT INTO c TABLE one, spark_catalog.db.three; END",
    )
    names = names_read(texts)
    for name in (("my s",), ("db", "t"), ("m",), ("hidden",), ("one",), ("spark_catalog", "db", "three")):
        assert name in names, name
    assert not {("commented",), ("said",), ("target",), ("s",), ("a",), ("b",), ("c",)} & set(names)
    assert databases_used(texts) == ["sales", "two"]


def test_names_that_are_written() -> None:
    texts = (
        "BEGIN INSERT INTO TABLE a SELECT * FROM s; INSERT OVERWRITE b TABLE s; DELETE FROM db.c; UPDATE `d e` SET x = 1; END",
        "AUTO CDC WITH SCHEMA EVOLUTION INTO f FROM STREAM s KEYS (id)",
        "REFRESH MATERIALIZED VIEW g; CREATE OR REPLACE TABLE h AS SELECT 'INTO i' FROM s -- INTO k",
    )
    expected = [("a",), ("b",), ("db", "c"), ("d e",), ("f",), ("g",), ("h",)]
    assert [n for n in names_written(texts) if n != ("table",)] == expected


def test_when_its_streams_have_data(
    spark: SparkSession, schema: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stream that no --when-has-data names is warned of; without a name, it is the script's streams."""
    run(spark, "CREATE STREAM other ON TABLE t")
    sql = f"USE {schema}; INSERT INTO target SELECT id, v FROM s; INSERT INTO target SELECT id, v FROM other"
    code, events = call(spark, schema, tmp_path, sql, "--when-has-data", "other", "--every", "10ms", "--runs", "2")
    assert (code, [e.get("checks") for e in events]) == (0, [None, 2])
    message = f"warning: the script reads {schema}.s, which --when-has-data does not name: its changes start no run\n"
    assert capsys.readouterr().err == message
    code, events = call(spark, schema, tmp_path, sql, "--when-has-data", "--every", "10ms", "--runs", "2")
    assert (code, [e["event"] for e in events]) == (0, ["started", "finished", "skipped"])
    assert "warning" not in capsys.readouterr().err
    code, events = call(spark, schema, tmp_path, "SELECT 1", "--when-has-data")
    assert (code, [e["event"] for e in events]) == (0, ["started", "finished"])
    assert "finds no stream" in capsys.readouterr().err


def test_a_failing_job_backs_off(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    sql = "SELECT 1;\nINSERT INTO target SELECT id, CAST(raise_error('no such luck') AS BIGINT) FROM s;\nSELECT 2"
    began = time.monotonic()
    code, events = call(
        spark, schema, tmp_path, sql, "--every", "200ms", "--max-failures", "4", "--backoff-max", "500ms"
    )
    assert code == 1
    failed = [e for e in events if e["event"] == "failed"]
    assert [(e["failures"], e.get("next_seconds")) for e in failed] == [(1, 0.2), (2, 0.4), (3, 0.5), (4, None)]
    assert time.monotonic() - began > 1.1
    assert (failed[0]["code"], failed[0]["statement"], failed[0]["line"]) == ("USER_RAISED_EXCEPTION", 2, 2)
    assert "no such luck" in str(failed[0]["error"])
    assert failed[0]["statements"] == 1
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == 100  # nothing moved


def test_another_consumer_is_no_failure(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    other = spark.newSession()
    run(other, f"USE {schema}")
    run(other, "BEGIN TRANSACTION")
    run(other, "INSERT INTO target SELECT id, v FROM s")
    session, waits = EmbeddedSession(spark), [""]
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.01):
            waits.append(session.waiting())

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        with conf(
            spark, (("spark.streamql.busyTimeout", "90s"),)
        ):  # put back afterwards: --conf sets it in the shared session
            code, events = call(
                spark,
                schema,
                tmp_path,
                "INSERT INTO target SELECT id, v FROM s",
                "--conf",
                "spark.streamql.busyTimeout=500ms",
            )
    finally:
        over.set()
        looking.join()
        run(other, "COMMIT")
    shown = (
        rf"waiting for process {os.getpid()} of .*@.*, which consumes {schema}.s since .*: INSERT INTO target SELECT"
    )
    assert any(re.match(shown, text) for text in waits), set(waits)
    assert session.waiting() == ""
    assert (code, [e["event"] for e in events]) == (0, ["started", "skipped"])
    assert (events[1]["reason"], events[1]["statement"]) == ("STREAM_BUSY", 1)
    assert run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM target")[0] == (100, 100)


def test_a_transaction_left_half_way_is_resumed(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    """The first run writes one target and fails at the other; the same script, run again, writes the other alone."""
    run(spark, "CREATE TABLE second (id BIGINT, v BIGINT)")
    run(spark, "CREATE TABLE gate (open BOOLEAN)")
    gated = "CASE WHEN (SELECT count(*) FROM gate) = 0 THEN CAST(raise_error('shut') AS BIGINT) ELSE v END"
    sql = f"""BEGIN TRANSACTION; INSERT INTO target SELECT id, v FROM s;
        INSERT INTO second SELECT id, {gated} FROM s; COMMIT"""
    code, events = call(spark, schema, tmp_path, sql)
    assert (code, events[-1]["event"], events[-1]["statement"]) == (1, "failed", 3)
    assert run(spark, "SELECT count(*) AS n FROM target")[0]["n"] == 100
    run(spark, "INSERT INTO gate VALUES (true)")
    code, events = call(spark, schema, tmp_path, sql)
    assert (code, events[-1]["event"], events[-1]["statements"]) == (0, "finished", 4)
    for target in ("target", "second"):
        assert run(spark, f"SELECT count(*) AS n, count(DISTINCT id) AS d FROM {target}")[0] == (100, 100)
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == 0


def after(seconds: float, count: int = 1) -> None:
    """Sends this process SIGTERM, `count` times."""

    def kill() -> None:
        for _ in range(count):
            time.sleep(seconds)
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=kill, daemon=True).start()


def test_a_signal_lets_the_statement_end(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    slow = f"INSERT INTO target SELECT id, {SLOW.format(4000)} FROM s WHERE id = 7"
    after(2.5)
    code, events = call(spark, schema, tmp_path, f"{slow}; INSERT INTO target VALUES (-1, -1)", "--every", "1s")
    assert (code, [e["event"] for e in events]) == (143, ["started", "stopped"])
    assert events[1]["statements"] == 1
    assert [r["id"] for r in run(spark, "SELECT id FROM target")] == [7]
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == 0


def test_a_signal_lets_a_transaction_end(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    slow = f"INSERT INTO target SELECT id, {SLOW.format(4000)} FROM s WHERE id = 7"
    after(2.5)
    sql = f"BEGIN TRANSACTION; {slow}; INSERT INTO target SELECT id, 2 FROM s WHERE id = 8; COMMIT; SELECT 1"
    code, events = call(spark, schema, tmp_path, sql, "--every", "1s")
    assert (code, events[-1]["event"], events[-1]["statements"]) == (143, "stopped", 4)
    assert sorted(r["id"] for r in run(spark, "SELECT id FROM target")) == [7, 8]
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == 0


def test_a_second_signal_cancels(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    after(2.5, count=2)
    slow = f"INSERT INTO target SELECT id, {SLOW.format(60_000)} FROM s WHERE id = 7"
    began = time.monotonic()
    code, events = call(spark, schema, tmp_path, slow, "--every", "1s")
    assert (code, [e["event"] for e in events]) == (143, ["started", "cancelled"])
    assert time.monotonic() - began < 50
    assert run(spark, "SELECT count(*) AS n FROM target")[0]["n"] == 0
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == 100


def test_what_is_wrong_is_told_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "open.sql").write_text("SELECT 'never closed")
    (tmp_path / "nothing.sql").write_text("-- nothing")
    for argv, said in (
        ([str(tmp_path / "gone.sql")], "cannot read"),
        ([str(tmp_path / "open.sql")], "never closed"),
        ([str(tmp_path / "nothing.sql")], "holds no statement"),
        ([str(tmp_path / "open.sql"), "--runs", "3"], "--runs needs --every"),
        ([str(tmp_path / "open.sql"), "--every", "soon"], "is not a duration"),
        ([str(tmp_path / "open.sql"), "--every", "0s"], "longer than nothing"),
    ):
        assert main(["--data", str(tmp_path / "lake"), "run", *argv]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "lake").exists()


def start(spark: SparkSession, script: Path, events: Path) -> subprocess.Popen[str]:
    """A runner of its own process, on the same data directory and the same file of events."""
    argv = [sys.executable, "-m", "streamql", "--data", data_of(spark), *SHORT_LIVED_ARGUMENTS]
    argv += ["--conf", "spark.master=local[1]"]
    argv += ["run", str(script), "--every", "200ms", "--events", str(events)]
    return subprocess.Popen(
        argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )


def wait_for(events: Path, process_ids: set[int], event: str, count: int = 1) -> None:
    """Until each process has told of `count` such events."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        seen = [e["pid"] for e in told(events) if e["event"] == event] if events.exists() else []
        if all(seen.count(pid) >= count for pid in process_ids):
            return
        time.sleep(0.2)
    raise AssertionError(f"no {event} of {process_ids}: {events.read_text() if events.exists() else 'nothing'}")


@pytest.mark.spark
def test_two_runners_at_once(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    """Each row arrives once, and SIGTERM in the middle of a statement leaves nothing half done."""
    script, events = tmp_path / "job.sql", tmp_path / "events.jsonl"
    value = f"CASE WHEN v < 0 THEN {SLOW.format(4000)} ELSE v END"
    script.write_text(f"INSERT INTO {schema}.target SELECT id, {value} FROM {schema}.s")
    first = run(
        spark, "SELECT offset_version AS v FROM streamql.streams WHERE name LIKE '%.s' ORDER BY changed_at DESC"
    )
    runners = [start(spark, script, events) for _ in range(2)]
    try:
        wait_for(events, {r.pid for r in runners}, "finished")
        for i in range(4):
            run(spark, f"INSERT INTO t SELECT id, id FROM range({1000 * (i + 1)}, {1000 * (i + 1) + 250})")
            time.sleep(1)
        run(spark, "INSERT INTO t VALUES (9999, -1)")
        time.sleep(2)
        for r in runners:
            r.terminate()
        outputs = [r.communicate(timeout=SECONDS_MAX) for r in runners]
    finally:
        for r in runners:
            r.kill()
    # A signal that comes behind the beginning of a run and before its statement cuts it short, with nothing done.
    stopped = {e["pid"]: e["statements"] for e in told(events) if e["event"] == "stopped" and "statements" in e}
    assert set(stopped.values()) <= {0}
    assert [r.returncode for r in runners] == [143 if r.pid in stopped else 0 for r in runners], outputs
    assert {e["event"] for e in told(events)} <= {"started", "finished", "skipped", "stopped"}
    run(spark, "INSERT INTO target SELECT id, v FROM s")  # what neither came to
    assert run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM target")[0] == (1101, 1101)
    assert_ledger_tiles(spark, f"{schema}.s", first[0]["v"])


def test_seconds_are_those_of_the_statements(
    spark: SparkSession, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first session of a process opens Spark's metastore: that is Spark's start, and no run's own time."""
    from streamql.console.jobs.job import Job

    start = Job._session

    def slow(job: Job) -> SparkSession:
        time.sleep(3)
        return start(job)

    monkeypatch.setattr(Job, "_session", slow)
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    code, events = call(spark, schema, tmp_path, "SELECT 1", "--when-has-data", "s")
    assert (code, events[-1]["event"]) == (0, "skipped")
    assert float(str(events[-1]["seconds"])) < 3
