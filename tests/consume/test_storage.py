"""Storage where two drivers can lose a commit: which one it is."""

from __future__ import annotations

import pytest

from streamql.delta.storage import SAFE_STORE, unsafe_store

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
        ("s3a://bucket/t", {f"spark.{S3A}": SAFE_STORE}, None),
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
