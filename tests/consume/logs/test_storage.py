"""Which log stores give a version to one writer, which do not, and of which nothing is known."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streamql.delta.jvm import jvm, scala
from streamql.delta.storage import SAFE_STORE, unsafe_store

SINGLE = "io.delta.storage.S3SingleDriverLogStore"
DYNAMO = "io.delta.storage.S3DynamoDBLogStore"
DELEGATING = "org.apache.spark.sql.delta.storage.DelegatingLogStore"
S3A = "delta.logStore.s3a.impl"
CLASS = "delta.logStore.class"


HDFS = "io.delta.storage.HDFSLogStore"
FOREIGN = "com.example.LockingStore"
LOCAL = "org.apache.spark.sql.streamql.storage.LocalFilesLogStore"

SAFE = [
    ("s3a://bucket/t", {f"spark.{S3A}": SAFE_STORE}),
    ("s3a://bucket/t", {S3A: SAFE_STORE}),
    ("s3a://bucket/t", {f"spark.{S3A}": DYNAMO}),
    ("s3a://bucket/t", {f"spark.{CLASS}": DYNAMO}),
    ("s3a://bucket/t", {f"spark.{CLASS}": DELEGATING, S3A: SAFE_STORE}),
    ("abfss://box@account/t", {}),
    ("gs://bucket/t", {}),
    ("hdfs://name/t", {}),
    ("file:/data/s3/t", {}),
    ("file:/data/t", {"spark.delta.logStore.file.impl": LOCAL}),
    ("/data/s3a/t", {}),
    ("", {}),
]

UNSAFE = [
    ("s3a://bucket/t", {}, SINGLE),
    ("s3://bucket/t", {}, SINGLE),
    ("S3N://bucket/t", {}, SINGLE),
    ("s3a://bucket/t", {"spark.delta.logStore.s3.impl": SAFE_STORE}, SINGLE),
    ("s3a://bucket/t", {f"spark.{S3A}": HDFS}, HDFS),
    ("s3a://bucket/t", {CLASS: SINGLE}, SINGLE),
    ("s3a://bucket/t", {f"spark.{CLASS}": DELEGATING}, SINGLE),
    ("gs://bucket/t", {"spark.delta.logStore.gs.impl": SINGLE}, SINGLE),
]

UNKNOWN = [
    ("s3a://bucket/t", {f"spark.{S3A}": FOREIGN}, FOREIGN),
    ("hdfs://name/t", {"spark.delta.logStore.hdfs.impl": FOREIGN}, FOREIGN),
    ("oss://bucket/t", {}, HDFS),
    ("viewfs://cluster/t", {}, HDFS),
]


@pytest.mark.parametrize(("path", "conf"), SAFE)
def test_stores_for_several_drivers(path: str, conf: dict[str, str]) -> None:
    assert unsafe_store(path, conf.get) is None


@pytest.mark.parametrize(("path", "conf", "store"), UNSAFE)
def test_stores_for_one_driver(path: str, conf: dict[str, str], store: str) -> None:
    unsafe = unsafe_store(path, conf.get)
    assert unsafe is not None
    assert (unsafe.store, unsafe.is_known) == (store, True)
    assert f"lets only one driver commit at a time ({store})" in unsafe.what


@pytest.mark.parametrize(("path", "conf", "store"), UNKNOWN)
def test_stores_of_which_nothing_is_known(path: str, conf: dict[str, str], store: str) -> None:
    unsafe = unsafe_store(path, conf.get)
    assert unsafe is not None
    assert (unsafe.store, unsafe.is_known) == (store, False)
    assert f"streamql does not know whether several drivers can write {path}, whose log store is {store}" in unsafe.what


def test_what_to_do() -> None:
    on_s3, elsewhere = unsafe_store("s3://b/t", {}.get), unsafe_store("oss://b/t", {}.get)
    assert on_s3 is not None
    assert elsewhere is not None
    assert on_s3.remedy.endswith(f"spark.delta.logStore.s3.impl = {SAFE_STORE}")
    assert elsewhere.remedy.startswith("let one driver write, or put the table on")


def test_local_files_of_a_cluster() -> None:
    """The extension's file system is for applications of one process."""
    assert unsafe_store("file:/data/t", {}.get) is None
    unsafe = unsafe_store("file:/data/t", {}.get, is_local=False)
    assert unsafe is not None
    assert (unsafe.is_known, unsafe.what) == (
        True,
        "file:/data/t is on a local file system of a cluster, where only one driver can commit at a time",
    )


def test_a_log_of_local_files_is_listed_as_by_delta(spark: SparkSession, tmp_path: Path) -> None:
    """From each name on: names, sizes, times."""
    name = f"listed_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT)")
    for n in range(3):
        spark.sql(f"INSERT INTO {name} VALUES ({n})")
    spark.sql(f"OPTIMIZE {name}")
    location = spark.sql(f"DESCRIBE DETAIL {name}").first()["location"]
    view = jvm(spark)
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    assert spark.sparkContext._jsc.sc().conf().get("spark.delta.logStore.file.impl") == LOCAL
    ours, deltas = scala(spark).storage.LocalFilesLogStore(conf), view.io.delta.storage.HDFSLogStore(conf)

    def listed(store: object, path: str) -> list[tuple[str, int, int]]:
        found = store.listFrom(view.org.apache.hadoop.fs.Path(path), conf)  # type: ignore[attr-defined]
        rows = []
        while found.hasNext():
            file = found.next()
            rows.append((file.getPath().toString(), file.getLen(), file.getModificationTime()))
        return rows

    directory = f"{location}/_delta_log"
    names = sorted(p.name for p in Path(location.removeprefix("file:"), "_delta_log").iterdir())
    assert any(n.endswith(".crc") for n in names)
    for first in ["0", *names, "1", ".a"]:
        assert listed(ours, f"{directory}/{first}") == listed(deltas, f"{directory}/{first}")
    for store in (ours, deltas):
        with pytest.raises(Py4JJavaError, match="FileNotFoundException"):
            listed(store, f"file:{tmp_path}/none/_delta_log/0")
