"""Files that a filter needs, found on the driver: those that Delta finds by its own query over the statistics."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from streamql.delta.jvm import frame, scala
from streamql.delta.table import DeltaTable
from tests.consume.support import fresh_schema, path_of

FILTERS = (
    *("id = 250", "id < 120", "id BETWEEN 90 AND 110 OR id = 399", "id IN (1, 201, 900)", "id > 1000", "NOT id < 300"),
    *("text = 'row 250'", "text LIKE 'row 3%'", "text IS NULL", "text > 'row 39'"),
    *("price = 250.500", "price < 10", "score IS NULL", "score > 350.0", "isnan(score)"),
    *("day = DATE '1970-05-01'", "year(day) = 1970", "at > TIMESTAMP '1970-01-01 00:05:00.000001'"),
    *("inner.a = 250", "inner.b.c IS NULL", "inner.b.c > 340", "none IS NULL", "none = 1"),
    *("hundred = 2", "hundred = 2 AND id < 210", "hundred IN (0, 3) OR id = 250", "hundred > 1 AND text IS NOT NULL"),
    *("late = 7", "late IS NULL", "id + 0 = 250", "true", "false", "id = (SELECT max(id) FROM range(100))"),
)
COLUMNS = (
    "id BIGINT, text STRING, price DECIMAL(12, 3), score DOUBLE, day DATE, at TIMESTAMP, "
    "inner STRUCT<a: BIGINT, b: STRUCT<c: BIGINT>>, none INT, hundred BIGINT"
)
TABLES = {
    "plain": "",
    "partitioned": "PARTITIONED BY (hundred)",
    "clustered": "CLUSTER BY (id)",
    "renamed columns": "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
}


@pytest.fixture(params=TABLES, scope="module")
def table(request: pytest.FixtureRequest, spark: SparkSession) -> str:
    """A table of five files, some with deletion vectors, four without statistics of a column that came later."""
    name = f"{fresh_schema(spark, 'listed')}.t"
    spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING delta {TABLES[request.param]}")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    for hundred in range(4):
        spark.sql(
            f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, if(id % 50 = 0, NULL, concat('row ', id)), id * 1.002, "
            "if(id < 100, NULL, if(id = 399, double('NaN'), id)), date_from_unix_date(id), timestamp_micros(id * 1000000 + id), "
            f"named_struct('a', id, 'b', if(id < 200, NULL, named_struct('c', id))), NULL, {hundred} "
            f"FROM range({hundred * 100}, {hundred * 100 + 100})"
        )
    spark.sql(f"DELETE FROM {name} WHERE id IN (5, 99, 399)")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN late INT")
    spark.sql(f"INSERT INTO {name} (id, hundred, late) VALUES (500, 5, 7)")
    return name


def test_the_files_are_those_that_delta_finds(spark: SparkSession, table: str) -> None:
    path = str(path_of(spark, table))
    found = DeltaTable(spark, path)
    listed = scala(spark).changes.ListedSnapshot.of(found.latest().handle, 0)
    ours, delta = frame(spark, found.reader.image(listed)), spark.read.format("delta").load(path)
    for condition in FILTERS:
        assert sorted(ours.where(condition).inputFiles()) == sorted(delta.where(condition).inputFiles()), condition
    assert sorted(map(str, ours.collect())) == sorted(map(str, delta.collect()))


def test_it_takes_no_job(spark: SparkSession, table: str) -> None:
    """Neither to find the files, nor for the state of the log."""
    path = str(path_of(spark, table))
    spark.sql(f"UPDATE {table} SET price = 0 WHERE id = 500")  # a version whose state nothing has computed
    found = DeltaTable(spark, path)
    listed = scala(spark).changes.ListedSnapshot.of(found.latest().handle, 0)
    spark.sparkContext.setJobGroup("listed", "")
    try:
        ours = frame(spark, found.reader.image(listed)).where("id < 120 AND hundred < 3")
        assert 0 < len(ours.inputFiles()) < 5
        assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("listed")) == 0
    finally:
        spark.sparkContext._jsc.clearJobGroup()


def test_files_that_the_checksum_does_not_name_are_collected(spark: SparkSession) -> None:
    """Delta leaves them out of the checksum if a table has more than 50 files, or statistics of more than 32 columns, as here."""
    name = f"{fresh_schema(spark, 'listed')}.t"
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING delta TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '40')")
    for first in (0, 100, 200):
        spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id FROM range({first}, {first + 100})")
    path = str(path_of(spark, name))
    found = DeltaTable(spark, path)
    handle = found.latest().handle
    assert scala(spark).changes.KnownFiles.of(handle).isEmpty()
    ours, delta = (
        frame(spark, found.reader.image(scala(spark).changes.ListedSnapshot.of(handle, 0))),
        spark.read.format("delta").load(path),
    )
    for condition, files in (("id = 150", 1), ("id > 150", 2), ("id > 900", 0), ("true", 3)):
        assert sorted(ours.where(condition).inputFiles()) == sorted(delta.where(condition).inputFiles())
        assert len(ours.where(condition).inputFiles()) == files
