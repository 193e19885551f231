"""Storage where two drivers can lose a commit: which one it is, and the warning. S3 is a view of local files under its scheme."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.delta.storage import unsafe_store
from tests.consume.support import fresh_schema, run, tracked_table

SINGLE = "io.delta.storage.S3SingleDriverLogStore"
DYNAMO = "io.delta.storage.S3DynamoDBLogStore"
DELEGATING = "org.apache.spark.sql.delta.storage.DelegatingLogStore"
S3A = "delta.logStore.s3a.impl"
CLASS = "delta.logStore.class"


@pytest.mark.parametrize(
    ("path", "conf", "store"),
    [
        ("s3a://bucket/t", {}, SINGLE),
        ("s3://bucket/t", {}, SINGLE),
        ("S3N://bucket/t", {}, SINGLE),
        ("s3a://bucket/t", {"spark.delta.logStore.s3.impl": DYNAMO}, SINGLE),
        ("s3a://bucket/t", {f"spark.{S3A}": DYNAMO}, None),
        ("s3a://bucket/t", {S3A: DYNAMO}, None),
        ("s3a://bucket/t", {f"spark.{S3A}": "com.example.LockingStore"}, None),
        ("s3a://bucket/t", {f"spark.{S3A}": "io.delta.storage.HDFSLogStore"}, "io.delta.storage.HDFSLogStore"),
        ("s3a://bucket/t", {f"spark.{CLASS}": DYNAMO}, None),
        ("s3a://bucket/t", {CLASS: SINGLE}, SINGLE),
        ("s3a://bucket/t", {f"spark.{CLASS}": DELEGATING}, SINGLE),
        ("s3a://bucket/t", {f"spark.{CLASS}": DELEGATING, S3A: DYNAMO}, None),
        ("abfss://box@account/t", {}, None),
        ("gs://bucket/t", {}, None),
        ("hdfs://name/t", {}, None),
        ("file:/data/s3/t", {}, None),
        ("/data/s3a/t", {}, None),
        ("", {}, None),
    ],
)
def test_which_stores_are_unsafe_for_several_drivers(path: str, conf: dict[str, str], store: str | None) -> None:
    assert unsafe_store(path, conf.get) == store


def test_a_session_is_warned_once(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.s3a.impl", "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme")
    hadoop.set("fs.viewfs.mounttable.bucket.link./lake", tmp_path.as_uri())
    schema = fresh_schema(spark, "storage")
    tracked_table(spark, 10)
    run(spark, "CREATE TABLE local (id BIGINT)")
    run(spark, "CREATE TABLE remote (id BIGINT) LOCATION 's3a://bucket/lake/remote'")

    def warned(session: SparkSession, table: str) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING, "streamql"):
            run(session, f"INSERT INTO {schema}.t SELECT max(id) + 1, 0 FROM {schema}.t")
            run(session, f"INSERT INTO {schema}.{table} SELECT id FROM {schema}.s")
        return [r.getMessage() for r in caplog.records if "log store" in r.getMessage()]

    session = spark.newSession()
    assert warned(session, "local") == []
    (warning,) = warned(session, "remote")
    assert warning.startswith(f"s3a://bucket/lake/remote is on S3, and Delta's log store there ({SINGLE})")
    assert f"spark.{S3A} = {DYNAMO}" in warning
    assert warned(session, "remote") == []
    assert len(warned(spark.newSession(), "remote")) == 1
    assert run(spark, "SELECT count(*) AS n FROM remote")[0]["n"] == 3
