"""`streamql refresh`: what it refreshes, in which order, and what it says."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamql.cli.main import main
from streamql.errors import StreamqlError
from streamql.features.dynamic.refreshes import run as runs
from streamql.features.dynamic.refreshes.facts import DynamicFacts, Tried, dynamic_facts
from streamql.features.dynamic.refreshes.refresh import Overtaken, Result, pinned_versions, refresh_table
from streamql.features.dynamic.source.table import DynamicTable, all_dynamic
from tests.consume.support import TRACKED, data_of, fresh_schema, in_threads, run

Call = Callable[..., tuple[int, list[dict[str, object]], list[dict[str, object]]]]


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """Table t; d1 and d2 read it, d3 reads both; none was filled."""
    name = fresh_schema(spark, "refreshing")
    run(spark, f"CREATE TABLE t (id BIGINT, v BIGINT) {TRACKED}")
    run(spark, "INSERT INTO t VALUES (1, 10), (2, 20)")
    run(spark, "CREATE DYNAMIC TABLE d1 TARGET_LAG = DOWNSTREAM INITIALIZE = ON_SCHEDULE AS SELECT id, v FROM t")
    run(spark, "CREATE DYNAMIC TABLE d2 INITIALIZE = ON_SCHEDULE AS SELECT id, 100 / v AS w FROM t")
    run(
        spark,
        "CREATE MATERIALIZED VIEW d3 BUILD DEFERRED REFRESH INTERVAL 1 HOUR AS "
        "SELECT d1.id, d1.v, d2.w FROM d1 JOIN d2 USING (id)",
    )
    yield name
    for table in ("MATERIALIZED VIEW d3", "DYNAMIC TABLE d2", "DYNAMIC TABLE d1"):
        run(spark, f"DROP {table}")
    spark.sql("USE default")


@pytest.fixture
def call(spark: SparkSession, schema: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs the command in this process: the exit code, the results, the events."""

    def called(*argv: str, command: str = "refresh") -> tuple[int, list[dict[str, object]], list[dict[str, object]]]:
        events = tmp_path / "events.jsonl"
        events.unlink(missing_ok=True)
        capsys.readouterr()
        code = main(
            [
                "--data",
                data_of(spark),
                "--database",
                schema,
                command,
                "--output",
                "json",
                "--events",
                str(events),
                *argv,
            ]
        )
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return code, rows, [json.loads(line) for line in events.read_text().splitlines()]

    return called


def outcomes(rows: list[dict[str, object]]) -> dict[str, object]:
    return {str(r["name"]).rpartition(".")[2]: r["outcome"] for r in rows}


def facts(spark: SparkSession, schema: str) -> dict[str, DynamicFacts]:
    """By name, of the tables of a schema."""
    return {f.name.rpartition(".")[2]: f for f in dynamic_facts(spark) if f.name.startswith(f"{schema}.")}


def test_all_in_the_order_of_the_dag(spark: SparkSession, schema: str, call: Call) -> None:
    assert {name: f.state for name, f in facts(spark, schema).items()} == dict.fromkeys(("d1", "d2", "d3"), "empty")
    code, rows, events = call("--jobs", "2")
    assert code == 0
    assert outcomes(rows) == dict.fromkeys(("d1", "d2", "d3"), "REFRESHED")
    assert [r["rows_inserted"] for r in rows] == [2, 2, 2]
    said = [(e["event"], str(e.get("table", "")).rpartition(".")[2]) for e in events]
    assert said[-1] == ("finished", "")
    assert said.index(("refreshing", "d3")) > max(said.index(("refreshed", d)) for d in ("d1", "d2"))
    assert events[-1]["refreshed"] == 3
    assert all(e["job"] == "refresh" and e["pid"] == os.getpid() for e in events)
    assert call()[:2] == (
        0,
        [
            r | {"outcome": "UNCHANGED", "mode": None, "rows_inserted": 0, "seconds": pytest.approx(0, abs=60)}
            for r in rows
        ],
    )
    assert {tuple(r) for r in run(spark, "SELECT * FROM d3")} == {(1, 10, 10.0), (2, 20, 5.0)}


def test_names_bring_what_they_read(schema: str, call: Call) -> None:
    code, rows, _ = call(f"{schema}.d2")
    assert (code, outcomes(rows)) == (0, {"d2": "REFRESHED"})
    code, rows, _ = call("d3")
    assert (code, outcomes(rows)) == (0, {"d1": "REFRESHED", "d2": "UNCHANGED", "d3": "REFRESHED"})


def test_a_failure_holds_up_only_what_depends_on_it(spark: SparkSession, schema: str, call: Call) -> None:
    call()
    run(spark, "INSERT INTO t VALUES (3, 0)")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    code, rows, events = call("--jobs", "2")
    assert code == 1
    assert outcomes(rows) == {"d1": "REFRESHED", "d2": "FAILED", "d3": "SKIPPED"}
    said = {str(r["name"]).rpartition(".")[2]: str(r["error"]) for r in rows}
    assert said["d2"].startswith("[DYNAMIC_TABLE_REFRESH_FAILED] ")
    assert "d2 cannot be computed: [DIVIDE_BY_ZERO]" in said["d2"]
    assert said["d3"] == f"{schema}.d2, which it reads, was not refreshed"
    failed = next(e for e in events if e["event"] == "failed")
    assert (failed["code"], failed["sqlstate"]) == ("DYNAMIC_TABLE_REFRESH_FAILED", "22000")
    assert (failed["failures"], failed.get("next_seconds")) == (1, None)
    seen = facts(spark, schema)
    assert (seen["d2"].state, seen["d2"].failures) == ("failed", 1)
    assert seen["d3"].state == "behind"
    run(spark, "DELETE FROM t WHERE v = 0")
    assert call()[0] == 0
    assert facts(spark, schema)["d2"].state == "current"


def test_suspended_tables(spark: SparkSession, schema: str, call: Call) -> None:
    call()
    run(spark, "ALTER DYNAMIC TABLE d1 SUSPEND")
    run(spark, "UPDATE t SET v = v + 1")
    code, rows, _ = call()
    assert (code, outcomes(rows)) == (0, {"d2": "REFRESHED", "d3": "SKIPPED"})
    seen = facts(spark, schema)
    assert (seen["d1"].state, seen["d3"].state, seen["d3"].held_by) == ("suspended", "held", f"{schema}.d1")
    assert call("d3")[0] == 1
    code, rows, _ = call("d1", "d3")  # those that are named are refreshed
    assert (code, outcomes(rows)) == (0, {"d1": "REFRESHED", "d2": "UNCHANGED", "d3": "REFRESHED"})


def test_due(spark: SparkSession, schema: str, call: Call) -> None:
    code, rows, _ = call("--due")
    assert (code, outcomes(rows)) == (0, dict.fromkeys(("d1", "d2", "d3"), "REFRESHED"))
    run(spark, "INSERT INTO t VALUES (5, 50)")
    code, rows, events = call("--due")
    assert (code, rows, [e["event"] for e in events]) == (0, [], ["finished"])  # the next tick is an hour away
    run(spark, "ALTER MATERIALIZED VIEW d3 SET TARGET_LAG = '1 second'")
    time.sleep(1.1)
    code, rows, _ = call("--due")
    assert outcomes(rows) == dict.fromkeys(("d1", "d2", "d3"), "REFRESHED")


def test_a_scheduler_refreshes_until_it_is_stopped(spark: SparkSession, schema: str, call: Call) -> None:
    def stop() -> None:
        deadline = time.monotonic() + 120
        while facts(spark, schema)["d3"].state != "current" and time.monotonic() < deadline:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop)
    thread.start()
    code, _, events = call(command="scheduler")
    thread.join()
    assert code == 0
    refreshed = {str(e["table"]).rpartition(".")[2] for e in events if e["event"] == "refreshed"}
    assert refreshed == {"d1", "d2", "d3"}
    assert not any(e["event"] == "cancelled" for e in events)
    assert (events[-1]["event"], events[-1]["signal"]) == ("stopped", 15)


def test_a_scheduler_waits_behind_a_failure(spark: SparkSession, schema: str, call: Call, tmp_path: Path) -> None:
    run(spark, "INSERT INTO t VALUES (3, 0)")
    run(spark, "ALTER DYNAMIC TABLE d2 SET TARGET_LAG = '1 second'")
    spark.conf.set("spark.sql.ansi.enabled", "true")

    def stop() -> None:
        deadline, events = time.monotonic() + 120, tmp_path / "events.jsonl"
        while not (events.exists() and '"failed"' in events.read_text()) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(2)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop, daemon=True).start()
    code, _, events = call(command="scheduler")
    assert code == 0
    (failed,) = [e for e in events if e["event"] == "failed" and str(e["table"]).endswith("d2")]
    assert failed["failures"] == 1
    assert 5 < float(str(failed["next_seconds"])) <= 10
    assert (events[-1]["event"], events[-1]["signal"]) == ("stopped", 15)
    run(spark, "DELETE FROM t WHERE v = 0")


def test_two_refreshers_share_the_work(spark: SparkSession, schema: str, call: Call) -> None:
    call()
    run(spark, "UPDATE t SET v = v + 1")
    tables = [t for t in all_dynamic(spark) if t.name.schema == schema]
    found: list[runs.Outcome] = []
    others = [lambda: found.extend(runs.run_all(spark, tables, jobs=2)) for _ in range(2)]
    assert in_threads(*others) == []
    assert [str(o.error) for o in found if o.error is not None] == []
    assert {o.word for o in found} <= {"REFRESHED", "UNCHANGED"}
    assert len(found) == 6
    for table in tables:
        refreshes = run(spark, f"SHOW {table.label} REFRESH HISTORY FOR {table.name}")
        assert [r["outcome"] for r in refreshes] == ["REFRESHED"] * 2, str(table.name)


def test_a_run_that_is_overtaken_begins_anew(spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [t for t in all_dynamic(spark) if t.name.schema == schema]
    asked: list[str] = []

    def refresh(own: SparkSession, table: DynamicTable, *known: Any) -> Result:
        asked.append(table.name.object)
        if table.name.object == "d3" and asked.count("d3") == 1:
            raise Overtaken
        return refresh_table(own, table, *known)

    monkeypatch.setattr(runs, "refresh_table", refresh)
    found = {o.table.name.object: o for o in runs.run_all(spark, tables)}
    assert sorted(asked) == sorted(["d1", "d2", "d3"] * 2)
    assert {n: o.word for n, o in found.items()} == dict.fromkeys(("d1", "d2", "d3"), "REFRESHED")
    result = found["d1"].result
    assert result is not None
    assert result.rows["inserted"] == 2  # of the first attempt


def test_a_table_that_another_process_drops(spark: SparkSession, schema: str) -> None:
    """A run has listed its tables when it looks at their sources."""
    run(spark, f"CREATE DYNAMIC TABLE {schema}.gone AS SELECT id FROM {schema}.d1")
    listed = [t for t in all_dynamic(spark) if t.name.schema == schema]
    run(spark, f"DROP DYNAMIC TABLE {schema}.gone")
    with pytest.raises(StreamqlError, match="another process dropped") as refused:
        pinned_versions(spark, listed, listed)
    assert refused.value.code == "DYNAMIC_TABLE_NOT_FOUND"


def test_what_this_process_has_tried_counts(spark: SparkSession, schema: str, call: Call) -> None:
    """A refresh that changed nothing writes no row into the ledger."""
    call()
    run(spark, "ALTER MATERIALIZED VIEW d3 SET TARGET_LAG = '1 second'")
    run(spark, "INSERT INTO t VALUES (6, 60)")
    (table,) = [t for t in all_dynamic(spark) if t.name.schema == schema and t.name.object == "d3"]
    now = int(time.time() * 1000) + 60_000
    uid = table.definition.uuid
    (plain,) = dynamic_facts(spark, [table])
    assert plain.is_due(now)
    (failed,) = dynamic_facts(spark, [table], tried={uid: Tried(now, now + 5, failures=1)})
    assert not failed.is_due(now)
    assert failed.failures == 1
    (seen,) = dynamic_facts(spark, [table], tried={uid: Tried(now, now + 5)})
    assert seen.due_ms is not None
    assert seen.due_ms >= now


def test_what_is_wrong_is_said(
    spark: SparkSession, schema: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["--data", data_of(spark), "refresh", "`d"]) == 2
    assert "is not a name" in capsys.readouterr().err
    assert main(["refresh", "--jobs", "0"]) == 2
    assert main(["--data", data_of(spark), "--database", schema, "refresh", "d4", "--events", str(tmp_path / "e")]) == 1
    assert "DYNAMIC_TABLE_NOT_FOUND" in capsys.readouterr().err
    assert main(["--data", data_of(spark), "refresh", "--events", str(tmp_path)]) == 2
    assert main(["--data", str(tmp_path / "none"), "refresh"]) == 2


def test_the_results_of_two_attempts() -> None:
    table: Any = SimpleNamespace(name="d")
    first = runs.Outcome(table, Result(table, "REFRESHED", "CHANGED", "FULL", 4, {"inserted": 2}, 10), duration_ms=10)
    same = runs.Outcome(table, Result(table, "UNCHANGED", None, None, 5, {}, 1), duration_ms=1)
    assert runs.together(first, same).word == "REFRESHED"
    results = [runs.together(earlier, first).result for earlier in (first, same)]
    assert [r and r.rows for r in results] == [{"inserted": 4}, {"inserted": 2}]
