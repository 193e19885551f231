"""The status table of exports: what it holds after them, what becomes of rows that have expired, and what is noticed if it is gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

from streamql.errors import StreamqlError
from streamql.features.tablestore import status_table as module
from streamql.features.tablestore.export import _Run
from streamql.features.tablestore.jobs.job import parse_job
from streamql.features.tablestore.jobs.status import TTL_MS, StatusRow
from streamql.features.tablestore.jobs.windows import TIME_MAX_MS
from streamql.features.tablestore.status_table import find_status_table
from streamql.times import now_ms
from tests.tablestore.shop import Shop


def rows_of(shop: Shop) -> list[Row]:
    return shop.spark.table(f"{shop.schema}.status").orderBy("StatusType", "StatusValue").collect()


@pytest.fixture
def ready(shop: Shop) -> Shop:
    """A shop with two commits of orders."""
    shop.orders()
    shop.run("INSERT INTO {s}.orders VALUES (1, 'a', 1)", "UPDATE {s}.orders SET city = 'b'")
    return shop


def test_a_job_has_one_row_and_a_stream_one_tree(ready: Shop) -> None:
    first, second = ready.time_ms(2), TIME_MAX_MS
    ready.job(0, first)
    done = ready.job(first, second)
    ready.job(first, second)
    *jobs, tree = rows_of(ready)
    assert [row.StatusType for row in jobs] == ["DataxJobDesc"] * 2
    assert [row.StatusValue for row in jobs] == [f"{first:016d}\t{0:016d}", f"{second:016d}\t{first:016d}"]
    assert json.loads(jobs[1].Status)["counts"] == done.counts
    assert (tree.StatusType, tree.StreamId) == ("ShardTree", done.job.stream_id)


def test_no_spark_job_reads_or_writes_status_rows(ready: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ready.job()
    found = find_status_table(ready.spark, f"{ready.schema}.status")
    assert found is not None
    tracker, context = ready.spark.sparkContext.statusTracker(), ready.spark.sparkContext
    context.setJobGroup("status", "status")
    try:
        known = found.read()
        assert len(known.rows) == 2
        assert found.write(known, [StatusRow("s", "DataxJobDesc", "k", "{}", now_ms())], now_ms())
        assert len(found.read().rows) == 3
        assert tracker.getJobIdsForGroup("status") == []
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None removes it


def test_rows_that_a_user_changed_are_read_as_they_are(ready: Shop) -> None:
    """Spark writes other files than exports do, and deletion vectors if the table has them."""
    ready.job(0, ready.time_ms(2))
    ready.job(ready.time_ms(2))
    ready.run(
        "OPTIMIZE {s}.status",
        "ALTER TABLE {s}.status SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "DELETE FROM {s}.status WHERE StatusValue LIKE '%\t0000000000000000'",
        "INSERT INTO {s}.status (StreamId) VALUES ('mine')",
    )
    expected = [tuple(row) for row in rows_of(ready)]
    found = find_status_table(ready.spark, f"{ready.schema}.status")
    assert found is not None
    rows = found.read().rows
    assert sorted(
        (r.stream_id, r.status_type or None, r.status_value if r.status_type else None) for r in rows
    ) == sorted(row[:3] for row in expected)
    ready.job(5, writer="parquet")
    assert "mine" not in {row.StreamId for row in rows_of(ready)}, "a row without a time has expired"


def test_expired_rows_are_deleted_and_those_of_others_stay(ready: Shop) -> None:
    """Two exporters: the one that commits second sees what the first wrote."""
    now = now_ms()
    ready.job()
    ready.run(
        f"INSERT INTO {{s}}.status VALUES ('old', 'DataxJobDesc', 'a', '{{}}', {now - TTL_MS}), "
        f"('other', 'DataxJobDesc', 'b', '{{}}', {now}), ('other', 'DataxJobDesc', 'b', '{{}}', {now - 9})"
    )
    one, two = (find_status_table(ready.spark, f"{ready.schema}.status") for _ in range(2))
    assert one is not None
    assert two is not None
    seen = two.read()
    assert one.write(one.read(), [StatusRow("one", "DataxJobDesc", "c", "{}", now)], now)
    assert not two.write(seen, [StatusRow("two", "DataxJobDesc", "d", "{}", now)], now), "it has not seen one's row"
    assert two.write(two.read(), [StatusRow("two", "DataxJobDesc", "d", "{}", now)], now)
    found = [
        (row.StreamId, row.UpdatedMillis) for row in rows_of(ready) if row.StreamId in ("old", "other", "one", "two")
    ]
    assert sorted(found) == [("one", now), ("other", now), ("two", now)]
    assert len(rows_of(ready)) == 5, "the job's row and its stream's are there"


def test_a_status_table_whose_directory_is_taken(ready: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that makes the table has its directory first, and its name later; or it was killed in between."""
    ready.run("CREATE TABLE {s}.model (a INT) USING delta")
    location = ready.spark.sql(f"DESCRIBE DETAIL {ready.schema}.model").collect()[0]["location"]
    taken = Path(location.removeprefix("file:")).with_name("status") / "part"
    taken.parent.mkdir()
    taken.touch()
    monkeypatch.setattr(module, "CREATION_PAUSE_SECONDS", 0.01)
    with pytest.raises(StreamqlError, match="cannot be made: ") as e:
        ready.job()
    assert e.value.code == "STATUS_TABLE_INVALID"
    monkeypatch.setattr(module.time, "sleep", lambda _: taken.unlink(missing_ok=True))
    assert sum(ready.job().counts.values()) == 4


@pytest.mark.parametrize("what", ["DROP TABLE {s}.status", "CREATE OR REPLACE"])
def test_a_status_table_that_was_deleted_between_runs(ready: Shop, what: str) -> None:
    ready.job(0, ready.time_ms(2))
    if what.startswith("CREATE"):
        columns = "StreamId STRING, StatusType STRING, StatusValue STRING, Status STRING, UpdatedMillis BIGINT"
        what = f"CREATE OR REPLACE TABLE {{s}}.status ({columns}) USING delta"
    ready.run(what)
    latest = ready.spark.sql(f"DESCRIBE HISTORY {ready.schema}.orders").count()
    with pytest.raises(StreamqlError) as e:
        ready.job(ready.time_ms(2))
    assert e.value.code == "STATUS_TABLE_INVALID"
    assert "was dropped" in str(e.value)
    assert ready.spark.catalog.tableExists(f"{ready.schema}.status") == what.startswith("CREATE"), "none was made"
    assert ready.spark.sql(f"DESCRIBE HISTORY {ready.schema}.orders").count() == latest
    ready.job(ready.time_ms(2), statusTable=f"{ready.schema}.other")
    unset = e.value.hint.split(" lets ")[0]
    ready.run(unset)
    ready.job(3)


def test_a_second_export_follows_the_log_from_where_the_first_one_was(
    ready: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.run("ALTER TABLE {s}.orders SET TBLPROPERTIES ('tablestore.shard_count' = '3')")
    ready.run(*(f"INSERT INTO {{s}}.orders VALUES ({i}, 'c', 1)" for i in range(10, 14)))
    ready.job(0, ready.time_ms(2))
    ready.run("INSERT INTO {s}.orders VALUES (7, 'g', 7)", "INSERT INTO {s}.orders VALUES (8, 'h', 8)")
    known = json.loads(rows_of(ready)[-1].Status)["written"]
    job = parse_job(ready.job_text(ready.time_ms(2)))
    read: list[tuple[int, int]] = []
    commits = module.DeltaTable.commits

    def noting(self: Any, snapshot: Any, after: int, through: int, **more: Any) -> Any:
        read.append((after, through))
        return commits(self, snapshot, after, through, **more)

    monkeypatch.setattr(module.DeltaTable, "commits", noting)
    run = _Run(ready.spark, job, lambda _: None)
    long = [(after, through) for after, through in read if through > after + 1]
    assert long == [(known, known + 2)], "single commits tell times"
    assert [g.count for g in run.stream.tree.generations] == [1, 3]
