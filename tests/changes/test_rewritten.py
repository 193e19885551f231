"""A copy-on-write table: of the rows that an UPDATE writes anew, only those that it changed are read. Real Delta."""

from __future__ import annotations

import uuid

from pyspark.sql import DataFrame, SparkSession

from streamql.changes.plan import PlanType, plan_changes
from streamql.delta.table import DeltaTable
from streamql.model import StreamMode, Versions

ROWS, EACH = 400_000, 8_000


def scanned_rows(df: DataFrame) -> list[int]:
    """Returns how many rows each scan of a plan has returned. The plan is not adaptive, and has run."""
    leaves = df._jdf.queryExecution().executedPlan().collectLeaves()
    return [leaves.apply(i).metrics().apply("numOutputRows").value() for i in range(leaves.size())]


def test_only_changed_rows_of_rewritten_files_are_read(spark: SparkSession) -> None:
    name = f"rewritten_{uuid.uuid4().hex[:8]}"
    spark.sql(f"""
        CREATE TABLE {name} TBLPROPERTIES ('change_tracking' = 'true', 'delta.enableDeletionVectors' = 'false')
        AS SELECT id, CAST(rand() AS STRING) AS v FROM range(0, {ROWS}, 1, 3)""")
    spark.sql(f"CREATE TABLE STREAM s_{name} ON TABLE {name}")
    spark.sql(f"UPDATE {name} SET v = 'new' WHERE id % {EACH} = 7")
    spark.sql(f"DELETE FROM {name} WHERE id % {EACH} = 8")  # the ids are in the files now

    table = DeltaTable(spark, spark.sql(f"DESCRIBE DETAIL {name}").first()["location"])
    latest = table.latest()
    interval = Versions(latest.version - 2, latest.version)
    plan = plan_changes(table.commits(latest, interval.after, interval.through), interval, StreamMode.STANDARD)
    assert plan.type is PlanType.MINIMIZE_CARRIED

    changes = spark.sql(f"SELECT * FROM s_{name}")
    changed = ROWS // EACH
    kinds = [row["__change_type"] for row in changes.collect()]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "UPDATE_BEFORE": changed,
        "UPDATE_AFTER": changed,
        "DELETE": changed,
    }
    assert sorted(scanned_rows(changes)) == [changed, 2 * changed]
    assert spark.sql(f"SELECT count(*) FROM s_{name} WHERE v = 'new'").first()[0] == changed
