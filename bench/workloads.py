"""Tables with a history to measure on: made once from a seed, then read only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

FILES = 16
COLUMNS = (
    "id, id % 1000 AS grp, concat('name-', id) AS name, id * 0.5D AS amount, timestamp_seconds(1700000000 + id) AS at"
)
PROPERTIES = (
    "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true', 'delta.enableInCommitTimestamps' = 'true', "
    "'delta.enableChangeDataFeed' = 'true'"
)


@dataclass(frozen=True)
class Workload:
    """A table, and the interval (after, through] of its history that is measured."""

    name: str
    summary: str
    changes: Callable[[SparkSession, str, int], None]


@dataclass(frozen=True)
class Built:
    """A workload's table as it was made."""

    table: str
    after: int
    through: int


def build(spark: SparkSession, workload: Workload, rows: int) -> Built:
    """Makes the table of a workload, unless the data directory has it already."""
    table = f"bench_{workload.name}_{rows}"
    if not spark.catalog.tableExists(table):
        making = f"{table}_making"
        spark.sql(f"DROP TABLE IF EXISTS {making}")
        spark.sql(
            f"CREATE TABLE {making} (id BIGINT, grp BIGINT, name STRING, amount DOUBLE, at TIMESTAMP) "
            f"USING delta TBLPROPERTIES ({PROPERTIES})"
        )
        spark.sql(f"INSERT INTO {making} SELECT {COLUMNS} FROM range(0, {rows}, 1, {FILES})")
        after = version(spark, making)
        workload.changes(spark, making, rows)
        spark.sql(
            f"ALTER TABLE {making} SET TBLPROPERTIES ('bench.after' = '{after}', 'bench.through' = '{version(spark, making)}')"
        )
        spark.sql(f"ALTER TABLE {making} RENAME TO {table}")
    properties = {r["key"]: r["value"] for r in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    return Built(table, int(properties["bench.after"]), int(properties["bench.through"]))


def version(spark: SparkSession, table: str) -> int:
    """The newest version of a table."""
    row = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()
    assert row is not None
    return int(row["version"])


def _insert(spark: SparkSession, table: str, rows: int) -> None:
    count = rows // 100
    spark.sql(f"INSERT INTO {table} SELECT {COLUMNS} FROM range({rows}, {rows + count}, 1, 4)")


def _scattered(spark: SparkSession, table: str, rows: int) -> None:
    for n in range(2):
        spark.sql(f"UPDATE {table} SET amount = amount + 1 WHERE id % 300 = {n}")
        spark.sql(f"DELETE FROM {table} WHERE id % 600 = {n + 10}")
        spark.sql(
            f"MERGE INTO {table} t USING (SELECT {COLUMNS} FROM range({n + 20}, {rows + 1000}, 600)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET t.name = 'merged' WHEN NOT MATCHED THEN INSERT *"
        )


def _compacted(spark: SparkSession, table: str, rows: int) -> None:
    _scattered(spark, table, rows)
    spark.sql(f"OPTIMIZE {table}")


def _one_lost_row(spark: SparkSession, table: str, rows: int) -> None:
    count = rows // 100
    for n in range(4):
        first = rows + n * count
        spark.sql(f"INSERT INTO {table} SELECT {COLUMNS} FROM range({first}, {first + count}, 1, 25)")
    spark.sql(f"DELETE FROM {table} WHERE id = {rows // 2}")


WORKLOADS = (
    Workload("insert_only", "1 % inserted by one commit", _insert),
    Workload("scattered", "1 % by 2 x (UPDATE, DELETE, MERGE), scattered over all files", _scattered),
    Workload("compacted", "the same, then OPTIMIZE of the whole table", _compacted),
    Workload("one_lost_row", "100 files added, one file loses one row", _one_lost_row),
)
