"""What the doctor finds of dynamic tables, and what the commands on streams show of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.cli.main import main
from streamql.delta.neutral import dynamic_session
from streamql.engine.doctor import Finding, examine
from streamql.features.dynamic import checks
from streamql.features.dynamic.source.table import DynamicTable, all_dynamic
from streamql.features.dynamic.statements import ddl
from tests.consume.support import TRACKED, data_of, fresh_schema, run
from tests.look.test_page import read


@pytest.fixture(scope="module")
def schema(spark: SparkSession) -> Iterator[str]:
    """Table t; d reads it, and m reads d. Each test leaves them healthy, and the last ones take them apart."""
    name = fresh_schema(spark, "dynamic_doctor")
    run(spark, f"CREATE TABLE t (id BIGINT, v BIGINT) {TRACKED}")
    run(spark, "INSERT INTO t VALUES (1, 10), (2, 20)")
    run(spark, "CREATE DYNAMIC TABLE d TARGET_LAG = DOWNSTREAM AS SELECT id, v FROM t")
    run(spark, "CREATE MATERIALIZED VIEW m REFRESH INTERVAL 1 HOUR AS SELECT sum(v) AS s FROM d")
    yield name
    for table in [t for t in all_dynamic(spark) if t.name.schema == name]:
        run(spark, f"DROP {table.label} {table.name}")
    spark.sql("USE default")


def found(spark: SparkSession, schema: str, *, fix: bool = False) -> dict[tuple[str, str], Finding]:
    """(name, code) → finding, of what is in a schema."""
    findings = [f for f in examine(spark, fix=fix) if f.subject.startswith(f"{schema}.")]
    return {(f.subject.rpartition(".")[2], f.code): f for f in findings}


def table(spark: SparkSession, schema: str, name: str) -> DynamicTable:
    return next(t for t in all_dynamic(spark) if (t.name.schema, t.name.object) == (schema, name))


def test_what_is_as_it_should_be_is_no_finding(spark: SparkSession, schema: str) -> None:
    assert found(spark, schema) == {}


def test_a_suspended_table_holds_up_what_reads_it(spark: SparkSession, schema: str) -> None:
    run(spark, "ALTER DYNAMIC TABLE d SUSPEND")
    held = found(spark, schema)["m", "DYNAMIC_TABLE_SUSPENDED"]
    assert held.severity == "warning"
    assert held.what == f"no run can refresh it: {schema}.d, which it reads, is suspended"
    run(spark, "ALTER DYNAMIC TABLE d RESUME")


def test_a_query_that_cannot_be_analysed(spark: SparkSession, schema: str) -> None:
    run(spark, "DROP TABLE t")
    missing = found(spark, schema)
    assert missing["d", "STREAM_SOURCE_MISSING"].severity == "error"
    run(spark, f"CREATE TABLE t (id BIGINT, v BIGINT) {TRACKED}")
    assert found(spark, schema)["d", "STREAM_SOURCE_REPLACED"].remedy == f"REFRESH DYNAMIC TABLE {schema}.d"
    run(spark, "INSERT INTO t VALUES (1, 10), (2, 20)")
    run(spark, "REFRESH MATERIALIZED VIEW m")
    assert found(spark, schema) == {}


def test_a_view_that_is_missing_is_made_again(spark: SparkSession, schema: str) -> None:
    dynamic_session(spark).sql(f"DROP VIEW {schema}.d")
    assert found(spark, schema)["d", "DYNAMIC_TABLE_HIDDEN"].severity == "error"
    assert found(spark, schema, fix=True)["d", "DYNAMIC_TABLE_HIDDEN"].is_fixed
    assert [tuple(r) for r in run(spark, "SELECT sum(v) FROM d")] == [(30,)]
    assert found(spark, schema) == {}


def test_rows_that_others_wrote(spark: SparkSession, schema: str) -> None:
    dynamic_session(spark).sql(f"DELETE FROM {table(spark, schema, 'd').backing.name.sql} WHERE id = 1")
    assert found(spark, schema)["d", "DYNAMIC_TABLE_WRITTEN"].remedy == f"REFRESH DYNAMIC TABLE {schema}.d"
    run(spark, "REFRESH DYNAMIC TABLE d")
    assert ("d", "DYNAMIC_TABLE_WRITTEN") not in found(spark, schema)


def test_a_table_that_is_late(spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run(spark, "INSERT INTO t VALUES (3, 30)")
    run(spark, "ALTER MATERIALIZED VIEW m SET TARGET_LAG = '1 second'")
    monkeypatch.setattr(checks, "LATE_TIMES", 0)
    late = found(spark, schema)
    assert {name for name, code in late if code == "DYNAMIC_TABLE_LATE"} == {"d", "m"}
    assert "its target is 1 second" in late["m", "DYNAMIC_TABLE_LATE"].what
    run(spark, "ALTER MATERIALIZED VIEW m SET TARGET_LAG = '1 hour'")
    run(spark, "DELETE FROM t WHERE id = 3")


def test_a_table_whose_refreshes_fail(spark: SparkSession, schema: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With and without a schedule. What failed is put right by a change that cancels out: the next refresh finds nothing to do."""
    run(spark, "CREATE DYNAMIC TABLE plain AS SELECT id, 100 / v AS w FROM t")
    run(spark, "CREATE DYNAMIC TABLE lagging TARGET_LAG = '1 hour' AS SELECT id, 200 / v AS w FROM t")
    run(spark, "CREATE DYNAMIC TABLE above AS SELECT count(*) AS n FROM plain")
    run(spark, "INSERT INTO t VALUES (3, 0)")
    for name in ("plain", "lagging", "lagging", "above"):
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            run(spark, f"REFRESH DYNAMIC TABLE {name}")
    failed = found(spark, schema)
    assert {(name, f.severity) for (name, code), f in failed.items() if code == "DYNAMIC_TABLE_FAILED"} == {
        ("plain", "error"),
        ("lagging", "error"),
        ("above", "warning"),
    }
    lagging = failed["lagging", "DYNAMIC_TABLE_FAILED"]
    assert re.match(r"its last 2 refreshes failed, the first at 20\d\d-\d\d-\d\d .*Z: \[DIVIDE_BY_ZERO", lagging.what)
    assert f"REFRESH DYNAMIC TABLE {schema}.lagging" in lagging.remedy
    assert "refreshes of " + f"{schema}.plain fail" in failed["above", "DYNAMIC_TABLE_FAILED"].what
    options = ["--data", data_of(spark), "--database", schema]
    capsys.readouterr()
    assert main([*options[:2], "doctor"]) == 1
    assert "every stream and dynamic table can be read" not in capsys.readouterr().out
    assert main([*options, "streams"]) == 0
    assert "2 failed" in capsys.readouterr().out
    run(spark, "DELETE FROM t WHERE id = 3")
    for name in ("plain", "lagging"):
        for _ in range(2):  # the second one leaves no row
            assert run(spark, f"REFRESH DYNAMIC TABLE {name}")[-1]["outcome"] == "UNCHANGED"
        facts = {row[0]: row[1] for row in run(spark, f"DESC DYNAMIC TABLE {name}")}
        assert (facts["last_outcome"], facts["last_error"]) == ("UNCHANGED", None)
        history = run(spark, f"SHOW DYNAMIC TABLE REFRESH HISTORY FOR {name}")
        assert [r["outcome"] for r in history][:2] == ["UNCHANGED", "FAILED"]
    assert found(spark, schema) == {}
    for name in ("above", "plain", "lagging"):
        run(spark, f"DROP DYNAMIC TABLE {name}")


def test_rows_that_may_be_those_of_another_catalog_are_left(
    spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "BEING_MADE_MS", 0)
    monkeypatch.setattr(checks, "_is_defined", lambda *_: False)
    name = table(spark, schema, "d").backing.name.object
    left = found(spark, schema, fix=True)[name, "DYNAMIC_TABLE_LEFT_OVER"]
    assert not left.is_fixed
    assert "another catalog" in left.remedy
    assert spark.table(f"{schema}.{name}").count() == 2


def test_the_commands_show_them(
    spark: SparkSession, schema: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(spark, "INSERT INTO t VALUES (3, 30)")
    run(spark, "ALTER MATERIALIZED VIEW m SET TARGET_LAG = '1 second'")
    options = ["--data", data_of(spark), "--database", schema]
    capsys.readouterr()
    assert main([*options, "streams"]) == 0
    shown = capsys.readouterr().out
    assert "downstream (1 second)" in shown
    assert shown.splitlines()[-1].startswith(("2 dynamic tables", f"{schema}."))
    assert main([*options, "streams", "--dynamic", "--output", "json", f"{schema}.m"]) == 0
    (record,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (record["name"], record["type"], record["reads"]) == (f"{schema}.m", "MATERIALIZED VIEW", f"{schema}.d")
    assert main([*options, "watch", "--times", "1"]) == 0
    assert f"  {schema}.d  " in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert main([*options, "report", str(page)]) == 0
    seen = read(page.read_text())
    assert "Lineage" in seen.text
    assert f"{schema}.t" in seen.text
    assert main([*options, "streams", "nothing"]) == 1
    assert "STREAM_NOT_FOUND" in capsys.readouterr().err


def test_what_a_crash_left_is_dropped(spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    d = table(spark, schema, "d")
    run(spark, f"DROP MATERIALIZED VIEW {schema}.m")

    def dies(*_: object, **__: object) -> None:
        raise SystemExit("killed")

    with monkeypatch.context() as patch:
        patch.setattr(ddl, "drop_parts", dies)
        with pytest.raises(SystemExit):
            ddl.drop(spark, d, "DROP DYNAMIC TABLE d", follows_renames=True)
    assert found(spark, schema) == {}  # it may belong to a statement that is under way
    monkeypatch.setattr(checks, "BEING_MADE_MS", 0)
    name = d.backing.name.object
    assert found(spark, schema)[name, "DYNAMIC_TABLE_LEFT_OVER"].remedy == "streamql doctor --fix drops it"
    assert found(spark, schema, fix=True)[name, "DYNAMIC_TABLE_LEFT_OVER"].is_fixed
    assert found(spark, schema) == {}
