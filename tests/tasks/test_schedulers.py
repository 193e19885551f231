"""Two schedulers in processes of their own over one catalog, which are killed and started again: each run happens once, and no row is lost
or doubled."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.consume.support import fresh_schema
from tests.sample import amount
from tests.tasks.schedulers import assert_runs_happen_once, schedulers_over

KILLS = amount(2, 30)


def test_runs_happen_once_whatever_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    schema = fresh_schema(spark, "scheduled")
    with schedulers_over(spark, tmp_path / "events.jsonl", schema, {}) as schedulers:
        assert_runs_happen_once(spark, schedulers, KILLS, "streamql")
    spark.sql("USE default")
