"""Exports of real tables: what is written, what the status table says, and what is refused."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamql.cli.main import main
from streamql.delta.jvm import jvm
from streamql.errors import StreamqlError
from streamql.features.tablestore.jobs.windows import TIME_MAX_MS
from streamql.features.tablestore.records.streams import open_stream
from tests.tablestore.shop import Shop, Tuple


def short(tuples: list[Tuple]) -> list[tuple[Any, ...]]:
    return [(t["id"], t["columnName"], t["columnValue"], t["opType"]) for t in tuples]


def test_the_tuples_of_a_table(shop: Shop) -> None:
    shop.orders()
    shop.run(
        "INSERT INTO {s}.orders VALUES (1, 'Bonn', 1.5), (2, '', NULL)",
        "UPDATE {s}.orders SET city = NULL, amount = 2 WHERE id = 1",
        "DELETE FROM {s}.orders WHERE id = 2",
        "UPDATE {s}.orders SET id = 3",
    )
    done = shop.job()
    assert done.counts == {"U": 5, "DA": 1, "DR": 5}
    assert short(shop.lines()) == [
        (1, None, None, "DR"),
        (1, "city", "Bonn", "U"),
        (1, "amount", "1.50", "U"),
        (2, None, None, "DR"),
        (2, "city", "", "U"),
        (1, "city", None, "DA"),
        (1, "amount", "2.00", "U"),
        (2, None, None, "DR"),
        (1, None, None, "DR"),
        (3, None, None, "DR"),
        (3, "amount", "2.00", "U"),
    ]
    assert [t["timestamp"] for t in shop.lines()[:2]] == [None, shop.time_ms(1)]
    assert "11 tuples (5 U, 1 DA, 5 DR) of versions 0 to" in done.text
    assert [p.name for p in shop.directory.iterdir()] == [f"0-{TIME_MAX_MS}.jsonl"]


def test_a_chain_of_jobs_exports_each_commit_once(shop: Shop) -> None:
    shop.orders(shards=2)
    shop.run(*(f"INSERT INTO {{s}}.orders VALUES ({i}, 'c', {i})" for i in range(6)))
    times = [shop.time_ms(v) for v in range(1, 7)]
    first = shop.job(0, times[2])
    second = shop.job(times[2], times[4])
    assert {t["id"] for t in shop.lines(0, times[2])} == {0, 1}
    assert {t["id"] for t in shop.lines(times[2], times[4])} == {2, 3}
    assert second.job.resumed
    assert second.job.versions.first == first.job.versions.next
    before = (shop.directory / f"{times[2]}-{times[4]}.jsonl").read_bytes()
    shop.run(
        "UPDATE {s}.orders SET city = 'x'", "ALTER TABLE {s}.orders SET TBLPROPERTIES ('tablestore.shard_count' = '5')"
    )
    (shop.directory / f"{times[2]}-{times[4]}.jsonl").unlink()
    again = shop.job(times[2], times[4])
    assert again.counts == second.counts
    assert (shop.directory / f"{times[2]}-{times[4]}.jsonl").read_bytes() == before
    shop.job(times[2], times[4])  # the output is there
    assert shop.said[0].startswith("exporting again 2 commits (versions 3 to 4)")
    rest = shop.job(times[4], isExportSequenceInfo=True)
    assert not rest.job.versions.reached_end
    info = [t["sequenceInfo"] for t in shop.lines(times[4])]
    assert len(set(info)) == len(info)
    assert {text.split("_")[3].split(":")[0][:4] for text in info} == {"0000"}, (
        "the commit of the reshard itself has no rows"
    )


@pytest.mark.parametrize("writer", ["csv", "parquet", "delta"])
def test_other_writers_write_the_same(shop: Shop, writer: str) -> None:
    shop.orders(shards=3)
    shop.run(
        "INSERT INTO {s}.orders SELECT CAST(id AS INT), concat('a,\"', id, '\\n'), id FROM range(50)",
        "UPDATE {s}.orders SET city = '' WHERE id < 5",
    )
    shop.job(isExportSequenceInfo=True)
    expected = shop.lines()
    other = {"statusTable": f"{shop.schema}.other_status", "isExportSequenceInfo": True}
    parameter = {"path": None, "table": f"{shop.schema}.out"} if writer == "delta" else {}
    done = shop.job(writer=writer, parameter=parameter, **other)
    assert sum(done.counts.values()) == len(expected)
    path = shop.directory / f"0-{TIME_MAX_MS}.{writer}"
    if writer == "csv":
        with path.open(newline="") as file:
            found: list[Any] = list(csv.DictReader(file))
        assert found == [{k: "" if v is None else str(v) for k, v in t.items()} for t in expected]
        shop.job(writer=writer, **other)
        return
    again = shop.job(writer=writer, parameter=parameter, **other)
    assert again.counts == done.counts
    frame = shop.spark.table(f"{shop.schema}.out") if writer == "delta" else shop.spark.read.parquet(str(path))
    rows = [row.asDict() for row in frame.orderBy("sequenceInfo").collect()]
    assert rows == sorted(expected, key=lambda t: t["sequenceInfo"])
    if writer == "parquet":
        (path / "_streamql_export.json").write_text("{}")
        with pytest.raises(StreamqlError, match="is not the output of this job"):
            shop.job(writer=writer, **other)


def test_nothing_is_written_of_no_commits(shop: Shop) -> None:
    shop.orders()
    done = shop.job(1, 2)
    assert done.counts == {}
    assert (shop.directory / "1-2.jsonl").read_bytes() == b""
    shop.job(1, 2, writer="parquet")
    assert shop.spark.read.parquet(str(shop.directory / "1-2.parquet")).columns == [
        "id",
        "columnName",
        "timestamp",
        "columnValue",
        "opType",
    ]
    shop.run("INSERT INTO {s}.orders VALUES (1, 'a', 1)", "UPDATE {s}.orders SET city = 'a'")
    later = open_stream(shop.spark, f"{shop.schema}.orders").latest.time_ms
    assert shop.job(later).counts == {}, "an update that changed nothing"


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs `streamql export` over the data directory of the tests' session."""
    data = str(Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")).parent)

    def run(*argv: str) -> tuple[int, str, str]:
        code = main(["--data", data, *argv])
        out, err = capsys.readouterr()
        return code, out, err

    return run


TEMPLATE = """
{
    "reader": {
        "name" : "otsstreamreader",
        "parameter" : {
            "endpoint" : "",
            "accessId" : "id",
            "accessKey" : "secret",
            "instanceName" : "",
            //dataTable即需要导出数据的表。
            "dataTable" : "orders",
            "statusTable" : "TableStoreStreamReaderStatusTable",
            "startTimestampMillis" : "",
            "endTimestampMillis" : "",
            "date": "DAY",
            "isExportSequenceInfo": true,
            "maxRetries" : 30
        }
    },
    "writer": {"name": "jsonl", "parameter": {"path": "PATH"}}
}
"""


def test_the_command_runs_a_job_of_datax(shop: Shop, call: Call) -> None:
    shop.orders()
    shop.run("INSERT INTO {s}.orders VALUES (1, 'Bonn', 1.5)")
    day = datetime.fromtimestamp(open_stream(shop.spark, f"{shop.schema}.orders").latest.time_ms / 1000, timezone.utc)
    target, file = shop.directory / "out", shop.directory / "job.json"
    file.write_text(TEMPLATE.replace("DAY", f"{day:%Y%m%d}").replace("PATH", str(target)), encoding="utf-8")
    try:
        code, out, err = call("--database", shop.schema, "export", str(file))
        assert code == 0, err
        assert out.startswith("3 tuples (2 U, 1 DR) of versions 0 to 3 in 1 shard, from ")
        assert err.startswith("not used: accessId, accessKey.")
        assert "secret" not in out + err
        assert "exporting 4 commits (versions 0 to 3) of " in err
        assert len(target.read_text().splitlines()) == 3
        code, out, _ = call("--database", shop.schema, "-S", "export", str(file), "--output", "json")
        assert (code, json.loads(out)["U"], json.loads(out)["target"]) == (0, 2, str(target))
        target.write_text("mine")
        code, out, err = call("--database", shop.schema, "-S", "export", str(file))
        assert (code, out) == (1, "")
        assert "[OUTPUT_EXISTS]" in err
        assert "Traceback" not in err
        assert target.read_text() == "mine"
    finally:
        shop.run("USE default")


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "[INVALID_JOB]"), ('{"reader": {}, "writer": {}}', "(line 1, column 12)"), (None, "cannot be read")],
)
def test_a_wrong_job_file_is_an_error_of_the_command_line(
    shop: Shop, call: Call, text: str | None, message: str
) -> None:
    file = shop.directory / "job.json"
    if text is not None:
        file.write_text(text)
    code, out, err = call("export", str(file))
    assert (code, out) == (2, "")
    assert message in err


def refused(shop: Shop, code: str, *args: Any, **more: Any) -> str:
    before = sorted(p.name for p in shop.directory.iterdir())
    with pytest.raises(StreamqlError) as e:
        shop.job(*args, **more)
    assert e.value.code == code, e.value
    assert sorted(p.name for p in shop.directory.iterdir()) == before
    return str(e.value)


def test_what_is_refused(shop: Shop) -> None:
    refused(shop, "TABLE_NOT_FOUND")
    shop.run("CREATE TABLE {s}.orders (id INT, v INT) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'false')")
    assert "change_tracking" in refused(shop, "CHANGE_TRACKING_DISABLED")
    shop.run("ALTER TABLE {s}.orders SET PROPERTIES ('change_tracking' = 'true')")
    assert "ADD PRIMARY KEY" in refused(shop, "PRIMARY_KEY_NOT_DECLARED")
    shop.run("ALTER TABLE {s}.orders SET TBLPROPERTIES ('tablestore.primary_key' = 'idd')")
    refused(shop, "INVALID_PROPERTY")
    shop.run(
        "ALTER TABLE {s}.orders SET TBLPROPERTIES ('tablestore.primary_key' = 'id')",
        "INSERT INTO {s}.orders VALUES (1, 1), (1, 2)",
    )
    shop.run("CREATE TABLE {s}.other (a INT) USING delta", "CREATE VIEW {s}.v AS SELECT 1 AS a")
    refused(shop, "STATUS_TABLE_INVALID", statusTable=f"{shop.schema}.other")
    refused(shop, "STATUS_TABLE_INVALID", statusTable=f"{shop.schema}.v")
    refused(shop, "SCHEMA_NOT_FOUND", statusTable="no_schema_here.status")
    refused(shop, "OUTPUT_NOT_WRITABLE", parameter={"path": str(shop.directory / "none" / "out")})
    text = refused(shop, "PRIMARY_KEY_VIOLATED")
    assert "two rows with the primary key (id = 1)" in text
    assert text == refused(shop, "PRIMARY_KEY_VIOLATED"), "the job is free again"
    (shop.directory / "there").write_text("x")
    refused(shop, "OUTPUT_EXISTS", 5, parameter={"path": str(shop.directory / "there")})


def test_a_commit_that_violates_the_key_is_left_out_by_two_jobs(shop: Shop) -> None:
    shop.orders()
    shop.run("INSERT INTO {s}.orders VALUES (1, 'a', 1)", "INSERT INTO {s}.orders VALUES (2, 'b', 1), (2, 'c', 1)")
    hint = refused(shop, "PRIMARY_KEY_VIOLATED")
    shop.run("DELETE FROM {s}.orders WHERE city = 'c'")
    assert refused(shop, "PRIMARY_KEY_VIOLATED") == hint, "the job exports the same versions"
    version = open_stream(shop.spark, f"{shop.schema}.orders").latest.version
    corrected = shop.time_ms(version) + 1
    shop.run("UPDATE {s}.orders SET city = 'd'")
    found = re.search(r'"endTimestampMillis": (\d+)', hint)
    assert found is not None
    end = int(found.group(1))
    shop.job(0, end)
    assert [t[:1] for t in short(shop.lines(0, end))] == [(1,)] * 3
    shop.job(corrected)
    assert [t[:3] for t in short(shop.lines(corrected))] == [(1, "city", "d"), (2, "city", "d")]


def test_a_key_that_is_renamed_is_exported_by_two_jobs(shop: Shop) -> None:
    shop.orders()
    shop.run(
        "ALTER TABLE {s}.orders SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "INSERT INTO {s}.orders VALUES (1, 'a', 1)",
        "ALTER TABLE {s}.orders RENAME COLUMN id TO nr",
    )
    assert "SET TBLPROPERTIES ('tablestore.primary_key' = '…')" in refused(shop, "INVALID_PROPERTY")
    shop.run(
        "ALTER TABLE {s}.orders SET TBLPROPERTIES ('tablestore.primary_key' = 'nr')",
        "INSERT INTO {s}.orders VALUES (2, 'b', 2)",
    )
    found = re.search(r'"endTimestampMillis": (\d+).*"startTimestampMillis": \1$', refused(shop, "INVALID_PROPERTY"))
    assert found is not None
    cut = int(found.group(1))
    shop.job(0, cut)
    assert {t["id"] for t in shop.lines(0, cut)} == {1}
    shop.job(cut)
    assert {t["nr"] for t in shop.lines(cut)} == {2}


def test_a_window_before_the_history_is_named(shop: Shop, spark: SparkSession) -> None:
    shop.orders()
    shop.run(*(f"INSERT INTO {{s}}.orders VALUES ({i}, 'a', 1)" for i in range(12)))
    stream = open_stream(spark, f"{shop.schema}.orders")
    log = Path(stream.table.path.removeprefix("file:"), "_delta_log")
    for version in range(10):
        (log / f"{version:020d}.json").unlink()
        (log / f".{version:020d}.json.crc").unlink(missing_ok=True)
    jvm(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
    earliest = shop.time_ms(10)
    assert str(earliest) in refused(shop, "STREAM_STALE")
    done = shop.job(earliest)
    assert done.job.versions.first == 10
    assert stream.stream_id == done.job.stream_id
