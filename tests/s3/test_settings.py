"""Which log store a session uses on S3, and what it says of one that is safe for one driver only."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from streamql.catalog.store import catalog_of
from streamql.delta.jvm import jvm, scala
from streamql.delta.storage import SAFE_STORE
from streamql.engine.doctor.storage import Storage
from tests.consume.support import TRACKED, fresh_schema, run, tracked_table
from tests.s3.support import S3, Store

SINGLE = "io.delta.storage.S3SingleDriverLogStore"
S3A = "spark.delta.logStore.s3a.impl"


@contextmanager
def naming(spark: SparkSession, **settings: str | None) -> Iterator[None]:
    """The application's settings with others; None: without one. As if it had been started so."""
    conf = spark.sparkContext._jsc.sc().conf()
    before = {key: conf.get(key, None) for key in settings}

    def put(values: dict[str, str | None]) -> None:
        for key, value in values.items():
            if value is None:
                conf.remove(key)
            else:
                conf.set(key, value)

    put(settings)
    try:
        yield
    finally:
        put(before)


def test_a_session_uses_it_unless_it_names_another(spark: SparkSession) -> None:
    use = scala(spark).storage.LogStores.use
    conf = spark.sparkContext._jsc.sc().conf()
    keys = [S3A, S3A.replace("s3a", "s3")]
    assert [conf.get(key) for key in keys] == [SAFE_STORE, SAFE_STORE]
    with naming(spark, **{S3A: SINGLE}):
        use()
        assert [conf.get(key) for key in keys] == [SINGLE, SAFE_STORE]
    with naming(spark, **dict.fromkeys(keys), **{S3A.removeprefix("spark."): SINGLE}):
        use()
        assert [conf.get(key, None) for key in keys] == [None, SAFE_STORE]
    with naming(spark, **dict.fromkeys(keys), **{"spark.delta.logStore.class": SINGLE}):
        use()
        assert [conf.get(key, None) for key in keys] == [None, None]


def test_a_session_is_warned_once_and_the_ledger_says_so(
    s3: S3, store: Store, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    bucket = s3.bucket(store.hadoop)
    schema = fresh_schema(spark, "storage")
    tracked_table(spark, 10)
    run(spark, "CREATE TABLE local (id BIGINT)")
    run(spark, f"CREATE TABLE remote (id BIGINT) LOCATION 's3a://{bucket}/remote'")

    def warned(session: SparkSession, table: str) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING, "streamql"):
            run(session, f"INSERT INTO {schema}.t SELECT max(id) + 1, 0 FROM {schema}.t")
            run(session, f"INSERT INTO {schema}.{table} SELECT id FROM {schema}.s")
        return [r.getMessage() for r in caplog.records if "log store" in r.getMessage()]

    def guarantees() -> list[str]:
        ledger = spark.table("streamql.consumptions").where(f"stream = '{schema}.s'").orderBy("sequence")
        return [row["guarantee"] for row in ledger.collect()]

    session = spark.newSession()
    assert warned(session, "remote") == []
    assert guarantees() == ["exactly_once"]
    with naming(spark, **{S3A: SINGLE}):
        assert warned(session, "local") == []
        (warning,) = warned(session, "remote")
        assert warning.startswith(
            f"s3a://{bucket}/remote has a log store that lets only one driver commit at a time ({SINGLE})"
        )
        assert f"{S3A} = {SAFE_STORE}" in warning
        assert warned(session, "remote") == []
        assert len(warned(spark.newSession(), "remote")) == 1
    by_one = "exactly_once_by_one_driver"
    assert guarantees() == ["exactly_once", "exactly_once", by_one, by_one, by_one]
    assert run(spark, "SELECT count(*) AS n FROM remote")[0]["n"] == 14


def test_the_doctor_names_tables_that_lose_commits(s3: S3, store: Store, spark: SparkSession) -> None:
    bucket = s3.bucket(store.hadoop)
    schema = fresh_schema(spark, "storage")
    source, target = f"s3a://{bucket}/t", f"s3a://{bucket}/sink"
    run(spark, f"CREATE TABLE t (id BIGINT) {TRACKED} LOCATION '{source}'")
    run(spark, f"CREATE TABLE sink (id BIGINT) LOCATION '{target}'")
    run(spark, "CREATE STREAM s ON TABLE t")
    run(spark, "INSERT INTO t VALUES (1)")
    run(spark, "INSERT INTO sink SELECT id FROM s")

    def found() -> list[tuple[str, str]]:
        findings = [p.finding for p in Storage().examine(spark, catalog_of(spark).all(spark))]
        return [(f.what, f.remedy) for f in findings if f.code == "UNSAFE_STORAGE" and schema in f.subject]

    assert found() == []
    with naming(spark, **{S3A: SINGLE}):
        assert sorted(what for what, _ in found()) == [
            f"{path} has a log store that lets only one driver commit at a time ({SINGLE}): of two drivers that commit at the same time, "
            "one commit may be lost"
            for path in (target, source)
        ]
        plain = spark.newSession()  # a driver that has another store
        jvm(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
        run(plain, f"INSERT INTO delta.`{source}` VALUES (2)")
    jvm(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
    ((what, remedy),) = found()
    assert what.startswith(f"version 2 of {source} was committed by a writer without conditional writes (Apache-Spark/")
    assert remedy.endswith(f"{S3A} = {SAFE_STORE}")
