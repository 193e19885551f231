"""What statements cost Spark: jobs, which can be counted, where seconds could not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from streamql.catalog import store
from streamql.engine.ledger import newest
from tests.consume.support import fresh_schema, run, tracked_table


@pytest.fixture(scope="module")
def streams(spark: SparkSession) -> str:
    """Table t, the stream s, which shows its rows, and e, which shows nothing; a target with many commits."""
    name = fresh_schema(spark, "costs")
    tracked_table(spark, 1_000)
    run(spark, "CREATE STREAM e ON TABLE t")
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    for n in range(3):
        run(spark, f"INSERT INTO target VALUES ({n}, {n})")
    return name


def jobs(spark: SparkSession, work: Callable[[], object]) -> int:
    """How many jobs the work starts."""
    scheduler = spark._jsparkSession.sparkContext().dagScheduler()
    before = int(scheduler.numTotalJobs())
    work()
    return int(scheduler.numTotalJobs()) - before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {s}.e",
        "SELECT stream_has_data('{s}.s') AS a, stream_has_data('{s}.e') AS b",
        "SHOW STREAMS IN {s}",
        "DESCRIBE STREAM {s}.s",
    ],
)
def test_what_the_log_knows_needs_no_job(spark: SparkSession, streams: str, query: str) -> None:
    run(spark, query.format(s=streams))
    assert jobs(spark, lambda: run(spark, query.format(s=streams))) == 0


def test_the_name_of_a_column_is_the_call(spark: SparkSession, streams: str) -> None:
    (row,) = run(spark, f"SELECT stream_has_data('{streams}.s'), 1 AS one")
    assert row.asDict() == {f"stream_has_data('{streams}.s')": True, "one": 1}


def test_a_condition_on_a_stream_is_a_constant(spark: SparkSession, streams: str) -> None:
    query = f"SELECT count(*) AS n FROM {streams}.t WHERE stream_has_data('{streams}.{{0}}')"
    assert [run(spark, query.format(name))[0]["n"] for name in "se"] == [1_000, 0]


def test_consuming_starts_no_more_jobs_than_writing(spark: SparkSession, streams: str) -> None:
    """Neither the claim, nor Delta's own question after earlier numbers, reconstructs the state of a table."""
    plain = jobs(
        spark, lambda: run(spark, f"INSERT INTO {streams}.target SELECT id, v FROM {streams}.t WHERE id < 100")
    )
    consuming = jobs(spark, lambda: run(spark, f"INSERT INTO {streams}.target SELECT id, v FROM {streams}.s"))
    assert run(spark, f"SELECT count(*) AS n FROM {streams}.target")[0]["n"] == 3 + 100 + 1_000
    assert consuming <= plain


def test_an_answer_is_a_constant_wherever_one_is_asked_for(spark: SparkSession, streams: str) -> None:
    (row,) = run(spark, f"SELECT * FROM VALUES (stream_has_data('{streams}.e'), 7) AS x(has, n)")
    assert tuple(row) == (False, 7)
    assert len(run(spark, f"SELECT * FROM {streams}.target LIMIT IF(stream_has_data('{streams}.e'), 2, 1)")) == 1


def test_vectors_off_the_heap_are_read_as_well(spark: SparkSession, streams: str) -> None:
    run(spark, f"INSERT INTO {streams}.t VALUES (5000, 1), (5001, 2)")
    query = f"SELECT sum(id) AS n, count(__commit_version) AS c FROM {streams}.e"
    expected = run(spark, query)
    assert tuple(expected[0]) == (10_001, 2)
    spark.conf.set("spark.sql.columnVector.offheap.enabled", "true")
    try:
        assert run(spark, query) == expected
    finally:
        spark.conf.unset("spark.sql.columnVector.offheap.enabled")


def test_the_last_row_id_is_known_from_the_checksum(spark: SparkSession, streams: str) -> None:
    """Delta asks the state of the log for it, in each commit to a table that tracks its rows. No id is given twice."""
    run(spark, f"CREATE TABLE {streams}.tracking (id BIGINT) TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    run(spark, f"CREATE TABLE {streams}.u (id BIGINT, v BIGINT) TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    run(spark, f"CREATE STREAM {streams}.r ON TABLE {streams}.u")
    plain = jobs(spark, lambda: run(spark, f"INSERT INTO {streams}.tracking SELECT id FROM {streams}.t WHERE id < 10"))
    counts = []
    for n in range(3):
        run(spark, f"INSERT INTO {streams}.u VALUES ({9000 + n}, 1)")
        counts.append(jobs(spark, lambda: run(spark, f"INSERT INTO {streams}.tracking SELECT id FROM {streams}.r")))
        run(spark, f"INSERT INTO {streams}.tracking VALUES ({-n})")
    assert max(counts) < plain
    (found,) = run(spark, f"SELECT count(*) AS n, count(DISTINCT _metadata.row_id) AS ids FROM {streams}.tracking")
    assert found["n"] == found["ids"] == 10 + 3 + 3


def test_a_process_that_begins_reads_the_catalog_without_a_job(spark: SparkSession, streams: str) -> None:
    """More streams than Delta's own limits for checksums allow. A consumption is in the ledger, which lists its files."""
    run(spark, f"CREATE TABLE {streams}.seen (id BIGINT)")
    for n in range(8):
        run(spark, f"CREATE STREAM {streams}.s{n} ON TABLE {streams}.t")
    run(spark, f"INSERT INTO {streams}.t VALUES (8000, 1)")
    run(spark, f"INSERT INTO {streams}.seen SELECT id FROM {streams}.s0")
    expected = [(r["name"], r["has_data"]) for r in run(spark, f"SHOW STREAMS IN {streams}")]

    def begin() -> None:
        store._catalogs.clear()
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]

    begin()
    again: list[tuple[str, bool]] = []

    def look() -> None:
        again.extend((r["name"], r["has_data"]) for r in run(spark, f"SHOW STREAMS IN {streams}"))

    assert jobs(spark, look) == 0
    assert again == expected
    begin()
    assert jobs(spark, lambda: newest(spark)) == 1  # that of the query itself


def test_a_long_chain_of_unions(spark: SparkSession, streams: str) -> None:
    """Each part is looked at once: with each UNION ALL, there would be twice as many ways to the first one."""
    run(spark, f"CREATE TABLE {streams}.many (id BIGINT, v BIGINT)")
    run(spark, f"INSERT INTO {streams}.t VALUES (7000, 1)")
    chain = " UNION ALL ".join(f"SELECT {n}, 0" for n in range(60))
    run(spark, f"INSERT INTO {streams}.many SELECT id, v FROM {streams}.e WHERE id = 7000 UNION ALL {chain}")
    assert run(spark, f"SELECT count(*) AS n FROM {streams}.many")[0]["n"] == 61
    assert run(spark, f"SELECT stream_has_data('{streams}.e') AS has")[0]["has"] is False
