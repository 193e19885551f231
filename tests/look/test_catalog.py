"""A real catalog with streams in every state, looked at by each command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.cli.main import main
from streamql.cli.status.overview import Overview, overview
from streamql.console.commands import commands
from streamql.delta.jvm import jvm
from streamql.engine import doctor
from streamql.engine.ledger import by_consumption, first_ms, history, newest, rows_written_by, summed
from streamql.engine.stream_facts import StreamFacts
from streamql.errors import StreamqlError
from tests.consume.support import ROOT, data_of, fresh_schema, run
from tests.look.test_page import read

Call = Callable[..., tuple[int, str, str]]


def made(spark: SparkSession, table: str) -> None:
    run(spark, f"CREATE TABLE {table} (id BIGINT, v BIGINT)")
    run(spark, f"ALTER TABLE {table} SET PROPERTIES ('change_tracking' = 'true')")


@pytest.fixture(scope="module")
def schema(spark: SparkSession) -> Iterator[str]:
    """Streams on t: of each state one, named for it."""
    name = fresh_schema(spark, "look")
    for table in ("t", "lost", "gone"):
        made(spark, table)
    for stream in ("data", "empty", "busy", "failed", "half"):
        run(spark, f"CREATE STREAM {stream} ON TABLE t")
    run(spark, "CREATE STREAM stale ON TABLE lost")
    run(spark, "CREATE STREAM `in<b>valid` ON TABLE gone")
    for target in ("one", "two", "three"):
        run(spark, f"CREATE TABLE {target} (id BIGINT, v BIGINT)")
    run(spark, "INSERT INTO t SELECT id, id FROM range(100)")
    run(spark, "INSERT INTO one SELECT id, v FROM data")
    run(spark, "UPDATE t SET v = -v WHERE id < 10")
    run(spark, "INSERT INTO one SELECT id, v FROM empty")
    _break(spark, name)
    with pytest.raises(Exception, match="boom"):
        run(spark, "INSERT INTO one SELECT id, CAST(raise_error('<script>boom') AS BIGINT) FROM failed")
    _leave_half(spark, name)
    other = spark.newSession()
    for sql in (f"USE {name}", "BEGIN TRANSACTION", "INSERT INTO two SELECT id, v FROM busy"):
        run(other, sql)
    yield name
    run(other, "COMMIT")
    spark.sql("USE default")


def _break(spark: SparkSession, schema: str) -> None:
    """The source of `stale` loses a commit behind a checkpoint; that of the invalid one goes."""
    path = run(spark, "DESCRIBE DETAIL lost")[0]["location"].removeprefix("file:")
    offset = run(spark, "SHOW STREAMS LIKE 'stale'")[0]["offset_version"]
    for _ in range(3):
        run(spark, "INSERT INTO lost VALUES (1, 1)")
    log = jvm(spark).org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    log.checkpoint()
    for version in range(offset + 2):
        Path(path, "_delta_log", f"{version:020}.json").unlink()
    run(spark, "DROP TABLE gone")


def _leave_half(spark: SparkSession, schema: str) -> None:
    """A block of which the first statement is done."""
    other = spark.newSession()
    for sql in (f"USE {schema}", "BEGIN TRANSACTION", "INSERT INTO three SELECT id, v FROM half"):
        run(other, sql)
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(other, "ROLLBACK")


@pytest.fixture
def call(spark: SparkSession, schema: str, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command over the tests' data directory, in the schema: exit code, stdout, stderr."""

    def called(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        database = [] if "database" in commands()[argv[0]].refuses else ["--database", schema]
        code = main(["--data", data_of(spark), *database, *argv])
        out, err = capsys.readouterr()
        return code, out, err

    return called


def here(seen: Overview, schema: str) -> dict[str, StreamFacts]:
    return {s.name.split(".", 1)[1].strip("`"): s for s in seen.streams if s.name.startswith(f"{schema}.")}


def test_each_state(spark: SparkSession, schema: str) -> None:
    found = here(overview(spark), schema)
    assert {name: s.state for name, s in found.items()} == {
        "data": "data", "empty": "empty", "busy": "busy", "failed": "data", "half": "partial", "stale": "stale",
        "in<b>valid": "invalid",
    }  # fmt: skip
    data = found["data"]
    assert data.last is not None
    assert (data.status.lag_versions, data.last.targets) == (1, (f"{schema}.one",))
    assert data.status.backlog is not None
    assert (data.status.backlog.rows_added, data.status.backlog.rows_removed) == (10, 10)
    assert data.status.lag_seconds is not None
    assert data.status.stale_after_ms is not None
    assert (data.last.rows_written, data.last.outcome) == (100, "CONSUMED")
    assert found["empty"].status.lag_versions == 0
    failed = found["failed"]
    assert failed.failure == failed.last
    assert "<script>boom" in (failed.error or "")
    assert found["busy"].consumer is not None
    assert found["busy"].consumer.abandoned is None
    assert found["half"].last is None


def test_the_ledger_in_sums(spark: SparkSession, schema: str) -> None:
    found = here(overview(spark), schema)
    until = max(s.last.ended_ms for s in found.values() if s.last is not None) + 1
    since = min(s.last.ended_ms for s in found.values() if s.last is not None) - 1
    parts = history(spark, since, until, 10)
    (data,), (failed,) = parts[found["data"].uuid], parts[found["failed"].uuid]
    assert (data.number, data.consumed, data.failed, data.lag_versions_max) == (0, 1, 0, 1)
    assert data.rows_other + sum(data.changes.values()) == 100
    assert (failed.consumed, failed.failed, failed.rows_other) == (0, 1, 0)
    assert "boom" in (failed.error or "")
    assert history(spark, since - 10, since - 1, 10) == {}
    ledger = newest(spark)
    for facts in found.values():  # what their entries have is what the ledger has
        said = ledger.get(facts.uuid)
        assert (facts.last, facts.failure) == ((said.consumption, said.failure) if said else (None, None))
    assert ledger[found["failed"].uuid].failure is not None
    assert rows_written_by(spark, "no such host", os.getpid(), 0) is None
    first, of_all = first_ms(spark, [found["data"].uuid]), first_ms(spark, list(newest(spark)))
    assert first is not None
    assert of_all is not None
    assert of_all <= first <= until
    assert first_ms(spark, ["no such stream"]) is None


LEDGER = """
    SELECT stream_id, consumption_id, timestamp_millis(at) AS started_at, timestamp_millis(at + 5) AS ended_at, outcome,
      'spark_catalog.db.t' AS target, 7L AS rows_written, error, 3L AS from_version, 5L AS through_version, json AS changes
    FROM VALUES ('s', 'a', 1000, 'CONSUMED', NULL, '{"INSERT": 5, "DELETE": 2}'), ('s', 'a', 1000, 'CONSUMED', NULL, NULL),
      ('s', 'b', 1100, 'CONSUMED', NULL, '{"INSERT": 10, "UPDATE_BEFORE": 1, "UPDATE_AFTER": 1}'),
      ('s', 'c', 1990, 'CONSUMED', NULL, NULL), ('s', 'd', 1991, 'FAILED', 'boom', NULL)
      AS v (stream_id, consumption_id, at, outcome, error, json)
"""


def test_sums_by_change_type(spark: SparkSession) -> None:
    """Where they are not known, rows written are all that is."""
    rows = by_consumption(spark.sql(LEDGER))
    early, late = summed(rows, 1000, 2000, 2)["s"]
    assert (early.number, early.consumed, early.failed, early.lag_versions_max, late.number) == (0, 2, 0, 2, 1)
    assert early.changes == {"INSERT": 15, "UPDATE_BEFORE": 1, "UPDATE_AFTER": 1, "DELETE": 2}
    assert early.rows_other == 0
    assert (late.consumed, late.failed, late.error, late.rows_other) == (1, 1, "boom", 7)


def test_streams(call: Call, schema: str) -> None:
    code, out, err = call("streams")
    assert (code, err) == (0, "")
    assert "7 streams: 1 invalid, 1 stale, 1 partial, 1 busy, 2 with data, 1 empty" in out
    assert f"{schema}.failed: its last consumption failed: [USER_RAISED_EXCEPTION] <script>boom" in out
    code, out, _ = call("streams", "--output", "json", "data", "failed")
    one, two = map(json.loads, out.splitlines())
    assert (one["name"], one["has_data"], one["backlog_rows"], one["last_outcome"]) == (
        f"{schema}.data",
        True,
        20,
        "CONSUMED",
    )
    assert (two["last_outcome"], "boom" in two["last_error"]) == ("FAILED", True)
    assert call("streams", "--output", "csv")[1].startswith("name,source,mode,state,")
    assert len(call("streams", "--output", "tsv")[1].splitlines()) == 8
    assert call("streams", "--output", "markdown", "data")[1].startswith("| name |")
    code, _, err = call("streams", "dat")
    assert code == 1
    assert "STREAM_NOT_FOUND" in err
    assert "did you mean data?" in err


def test_has_data(call: Call, schema: str) -> None:
    assert call("has-data", "data") == (0, f"{schema}.data: has data\n", "")
    assert call("has-data", "empty") == (1, f"{schema}.empty: no data\n", "")
    assert call("has-data", "-q", "empty", "data") == (0, "", "")
    code, out, _ = call("has-data", "empty", "--output", "json")
    assert (code, json.loads(out)) == (1, {"name": f"{schema}.empty", "has_data": False})
    for name, said in (
        ("nobody", "STREAM_NOT_FOUND"),
        ("stale", "STREAM_STALE"),
        ("`in<b>valid`", "STREAM_SOURCE_MISSING"),
        ("a b", ""),
    ):
        code, out, err = call("has-data", name)
        assert (code, out) == (2, ""), name
        assert said in err


def test_watch_where_there_is_no_terminal(call: Call, schema: str) -> None:
    code, out, _ = call("watch", "--every", "100ms", "--times", "2")
    assert code == 0
    assert out.count("7 streams: 1 invalid") == 2
    assert f"  {schema}.data  data  lag 1 v" in out
    code, out, _ = call("watch", "--every", "100ms", "--times", "2", "--output", "csv", "empty")
    assert [line.split(",")[1] for line in out.splitlines()] == ["name", f"{schema}.empty", f"{schema}.empty"]


def test_report(call: Call, schema: str, tmp_path: Path) -> None:
    page = tmp_path / "streams.html"
    code, out, err = call("report", str(page))
    assert (code, out) == (0, "")
    assert "7 streams" in err
    reader = read(page.read_text())
    assert "script" not in reader.seen
    for said in (
        f"{schema}.data",
        "in<b>valid",
        "<script>boom",
        f"{schema}.one",
        "CONSUMPTION_PARTIALLY_COMMITTED",
        "STREAM_STALE",
    ):
        assert said in reader.text
    assert [p.name for p in tmp_path.iterdir()] == ["streams.html"]
    code, _, err = call("report", str(tmp_path / "no" / "such.html"))
    assert (code, "there is no directory" in err) == (2, True)
    code, _, err = call("report", str(tmp_path))
    assert (code, "is a directory" in err) == (2, True)


def test_doctor_in_every_format(call: Call, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    examine, found_once = doctor.examine, list[doctor.Finding]()

    def once(
        spark: SparkSession, *, fix: bool, deep: bool
    ) -> list[doctor.Finding]:  # of what all tests before have left
        found_once.extend([] if found_once else examine(spark, fix=fix, deep=deep))
        return found_once

    monkeypatch.setattr(doctor, "examine", once)
    code, out, _ = call("doctor")
    assert code == 1
    assert f"error: {schema}.stale [STREAM_STALE]" in out
    code, out, _ = call("doctor", "--output", "json")
    found = {f["subject"]: f["code"] for f in map(json.loads, out.splitlines())}
    assert (code, found[f"{schema}.half"]) == (1, "CONSUMPTION_PARTIALLY_COMMITTED")
    assert call("doctor", "--output", "csv")[1].startswith("subject,severity,code,what,remedy,is_fixed\n")
    assert call("doctor", "--output", "tsv")[1].startswith("subject\tseverity")
    assert call("doctor", "--output", "markdown")[1].startswith("| subject | severity |")


@pytest.mark.parametrize(
    "argv",
    [["doctor"], ["streams"], ["has-data", "s"], ["watch"], ["report", "f.html"], ["refresh"], ["export", "j.json"]],
)
def test_looking_makes_no_directory(argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typo = tmp_path / "typo"
    assert main(["--data", str(typo), *argv]) == 2
    assert f"{typo} does not exist" in capsys.readouterr().err
    assert not typo.exists()
    assert main(["--data", str(tmp_path), *argv]) == 2
    assert f"{tmp_path} is not a data directory" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_help_teaches() -> None:
    for name in ("streams", "has-data", "watch", "report", "run", "refresh", "doctor", "export"):
        argv = [sys.executable, "-m", "streamql", name, "--help"]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
        assert "examples:" in done.stdout
        assert "exit codes:" in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 100
