"""Two schedulers over tables and a catalog on S3, of which one is killed: each run happens once, though some answers are lost."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.consume.support import fresh_schema
from tests.s3.support import IMPATIENT, S3, Store
from tests.sample import SEED, amount
from tests.tasks.schedulers import assert_runs_happen_once, schedulers_over

KILLS = amount(1, 10)
CHAOS = 0.02


def test_two_schedulers_share_the_runs(s3: S3, store: Store, spark: SparkSession, tmp_path: Path) -> None:
    bucket = s3.bucket(store.hadoop, **IMPATIENT)
    session = spark.newSession()
    schema = fresh_schema(session, "scheduled_on_s3")
    catalog = f"catalog_{schema}"
    conf = {"spark.streamql.catalog": catalog, "spark.streamql.catalogLocation": f"s3a://{bucket}/catalog"}
    for key, value in conf.items():
        session.conf.set(key, value)
    conf |= s3.child_conf(bucket, IMPATIENT)
    with schedulers_over(session, tmp_path / "events.jsonl", schema, conf) as schedulers, s3.proxy.chaos(SEED, CHAOS):
        assert_runs_happen_once(session, schedulers, KILLS, catalog, f"s3a://{bucket}/lake")
