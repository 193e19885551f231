"""The tables of TPC-H in Delta Lake, and writes that change a share of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

SCHEMA = "tpch"
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
TRACKED = (
    "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableInCommitTimestamps' = 'true', "
    "'delta.enableDeletionVectors' = 'true')"
)
KEYS_MAX = 1 << 40
"""Keys of orders are below this; those of inserted orders are above it."""


def load(spark: SparkSession, scale: float, directory: Path) -> None:
    """Generates the tables and loads them into Delta, if the schema has none of this scale."""
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA} COMMENT 'scale {scale:g}'")
    spark.sql(f"USE {SCHEMA}")
    done = spark.sql(f"SHOW TABLES IN {SCHEMA}").where("tableName = 'loaded'").count()
    if done and spark.table("loaded").first() == (scale,):
        return
    files = directory / f"tpch-{scale:g}"
    command = Path(sys.executable).parent / "tpchgen-cli"
    if not command.exists():
        raise SystemExit("the scoreboard needs tpchgen-cli: pip install streamql[bench]")
    subprocess.run([command, "parquet", "-s", f"{scale:g}", "--output-dir", files], check=True)
    for name in TABLES:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(f"CREATE TABLE {name} {TRACKED} AS SELECT * FROM parquet.`{files / name}.parquet`")
    spark.sql(f"CREATE OR REPLACE TABLE loaded AS SELECT CAST({scale} AS DOUBLE) AS scale")
    shutil.rmtree(files)


def change(spark: SparkSession, share: float, number: int, *, with_dimensions: bool) -> None:
    """Changes a share of the rows. Of orders with their lines a third each is inserted (copies under new keys), deleted (those with the
    least keys), and updated (neighbours by key), as the refresh functions of TPC-H and an update do. With dimensions, so large a share of
    customers and of parts' suppliers is updated. `number`: of the change, so that each touches other rows."""
    per = round(3 / share)
    first = (number % 1_000_000 + 1) * KEYS_MAX
    for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
        spark.sql(
            f"INSERT INTO {table} SELECT {key} + {first}, t.* EXCEPT ({key}) FROM {table} t "
            f"WHERE pmod(hash({key}, {number}), {per}) = 0 AND {key} < {KEYS_MAX}"
        )
    place = (number * 7919 % 1000) / 1000 * (1 - 2 * share)  # of the neighbours, among all
    oldest, low, high = _keys(spark, "orders", "o_orderkey", share / 3, place, place + share / 3)
    for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
        spark.sql(f"DELETE FROM {table} WHERE {key} <= {oldest}")
    spark.sql(
        "UPDATE lineitem SET l_quantity = l_quantity % 50 + 1, l_discount = 0.10 - l_discount "
        f"WHERE l_orderkey BETWEEN {low} AND {high}"
    )
    spark.sql(f"UPDATE orders SET o_orderpriority = '1-URGENT' WHERE o_orderkey BETWEEN {low} AND {high}")
    if not with_dimensions:
        return
    low, high = _keys(spark, "customer", "c_custkey", place, place + share)
    spark.sql(f"UPDATE customer SET c_acctbal = c_acctbal + 1 WHERE c_custkey BETWEEN {low} AND {high}")
    low, high = _keys(spark, "partsupp", "ps_partkey", place, place + share)
    spark.sql(
        "UPDATE partsupp SET ps_availqty = ps_availqty + 1, ps_supplycost = ps_supplycost + 1 "
        f"WHERE ps_partkey BETWEEN {low} AND {high}"
    )


def _keys(spark: SparkSession, table: str, key: str, *shares: float) -> list[int]:
    """The keys below which so large shares of a table's rows are."""
    numbers = ", ".join(map(str, shares))
    row = spark.sql(f"SELECT percentile_approx({key}, array({numbers}), 100000) FROM {table}").first()
    assert row is not None
    return list(row[0])
