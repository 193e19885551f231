"""Which log store a session uses on S3, and what it says of one that is safe for one driver only."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from streamql.delta.storage import SAFE_STORE
from tests.consume.support import fresh_schema, run, tracked_table
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
    use = spark._jvm.streamql.ConditionalLogStore.use  # type: ignore[union-attr]
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


def test_a_session_is_warned_once(s3: S3, store: Store, spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
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

    session = spark.newSession()
    assert warned(session, "remote") == []
    with naming(spark, **{S3A: SINGLE}):
        assert warned(session, "local") == []
        (warning,) = warned(session, "remote")
        assert warning.startswith(
            f"s3a://{bucket}/remote is on S3, and the log store that this session names ({SINGLE})"
        )
        assert f"{S3A} = {SAFE_STORE}" in warning
        assert warned(session, "remote") == []
        assert len(warned(spark.newSession(), "remote")) == 1
    assert run(spark, "SELECT count(*) AS n FROM remote")[0]["n"] == 14
