"""Ways to get the changes of an interval: ours, and the peers'. Each reads every column of every row it shows."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from bench.workloads import Built

Contender = Callable[[SparkSession, Built], DataFrame]


def streamql(spark: SparkSession, b: Built) -> DataFrame:
    """A change query of ours."""
    return spark.sql(
        f"SELECT * FROM {b.table} CHANGES (INFORMATION => DEFAULT) AT (VERSION => {b.after}) END (VERSION => {b.through})"
    )


def spark_net_changes(spark: SparkSession, b: Built) -> DataFrame:
    """Spark 4.2's own change query."""
    return spark.sql(
        f"SELECT * FROM {b.table} CHANGES FROM VERSION {b.after + 1} TO VERSION {b.through} "
        "WITH (deduplicationMode = 'netChanges', computeUpdates = 'true')"
    )


def two_snapshots(spark: SparkSession, b: Built) -> DataFrame:
    """The full join of both versions on Delta's row id."""
    tracked = f"SELECT *, _metadata.row_id AS rid, _metadata.row_commit_version AS rcv FROM {b.table} VERSION AS OF"
    return spark.sql(
        f"SELECT * FROM ({tracked} {b.after}) b FULL JOIN ({tracked} {b.through}) a ON b.rid = a.rid WHERE NOT (b.rcv <=> a.rcv)"
    )


def change_feed_by_key(spark: SparkSession, b: Built) -> DataFrame:
    """Delta's change data feed, netted by the key: needs a key, and costs every writer."""
    return spark.sql(f"""
        SELECT * FROM (
          SELECT *, row_number() OVER (PARTITION BY id ORDER BY _commit_version, _change_type = 'update_postimage') AS first,
                 row_number() OVER (PARTITION BY id ORDER BY _commit_version DESC, _change_type = 'update_preimage') AS last
          FROM table_changes('{b.table}', {b.after + 1}, {b.through}))
        WHERE (first = 1 AND _change_type IN ('update_preimage', 'delete')) OR (last = 1 AND _change_type IN ('update_postimage', 'insert'))
    """)


def whole_table(spark: SparkSession, b: Built) -> DataFrame:
    """A plain scan of the table, no change query at all."""
    return spark.sql(f"SELECT * FROM {b.table} VERSION AS OF {b.through}")


CONTENDERS: dict[str, Contender] = {
    "streamql": streamql,
    "Spark netChanges": spark_net_changes,
    "join of two snapshots": two_snapshots,
    "change feed netted by key": change_feed_by_key,
    "scan of the whole table": whole_table,
}
