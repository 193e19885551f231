"""What statements cost on S3: requests, and seconds if each request takes 30 ms. The server is a real one on loopback, in memory."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import cache

from pyspark.sql import SparkSession

from bench.context import Context
from bench.measuring import Benchmark, Case, Target
from tests.s3.proxy import Proxy
from tests.s3.server import Server
from tests.s3.support import S3

SCHEMA = "bench_s3"
PLAIN = "plain INSERT"
DELTA = "plain INSERT, Delta alone"
"""Without streamql's manager for the files of Delta's log, which saves requests of every commit."""

FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
SPARK_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
LATENCY_SECONDS = 0.03
STREAMS = 100


@cache
def s3() -> S3:
    """The server of the process, stopped at its end."""
    server = Server().__enter__()
    atexit.register(server.close)
    proxy = Proxy(server.port).__enter__()
    atexit.register(proxy.__exit__, None, None, None)
    return S3(server, proxy)


@cache
def bucket() -> str:
    """The bucket of the process: the metastore's client does not see the credentials of later ones."""
    context = SparkSession.active().sparkContext._jsc
    assert context is not None
    return s3().bucket(context.hadoopConfiguration())


def in_bucket(context: Context, name: str) -> SparkSession:
    """A session whose tables and catalog are in a directory of the bucket."""
    directory = f"s3a://{bucket()}/{name}"
    spark = context.spark.newSession()
    schema = f"{SCHEMA}_{name}"
    spark.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{directory}/{schema}'")
    spark.sql(f"USE {schema}")
    spark.conf.set("spark.streamql.catalog", f"{schema}_catalog")
    spark.conf.set("spark.streamql.catalogLocation", f"{directory}/catalog")
    spark.sql(f"DROP SCHEMA IF EXISTS {schema}_catalog CASCADE")
    return spark


def counted(run: Callable[[], object]) -> Callable[[], float]:
    """The work, which answers how many requests it made."""

    def requests() -> float:
        with s3().proxy.recording() as seen:
            run()
        return float(len(seen))

    return requests


def prepare(context: Context, name: str, rows: int) -> tuple[SparkSession, Callable[[], object], Callable[[], object]]:
    """A session, what puts so many changes into the stream `s`, and what consumes them."""
    spark = in_bucket(context, name)
    spark.sql("CREATE TABLE t (id BIGINT, v BIGINT) TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    for table in ("plain", "ours", "theirs"):
        spark.sql(f"CREATE TABLE {table} (id BIGINT, v BIGINT)")
    spark.sql(f"INSERT INTO plain SELECT id, id FROM range(0, {rows}, 1, 1)")
    spark.sql("CREATE STREAM s ON TABLE t")
    return (
        spark,
        lambda: spark.sql(f"INSERT INTO t SELECT id, id FROM range(0, {rows}, 1, 1)"),
        lambda: spark.sql("INSERT INTO ours SELECT id, v FROM s"),
    )


def requests(context: Context, rows: int) -> list[Case]:
    """A consumption by INSERT … SELECT, beside the plain one of as many rows."""
    spark, changes, consume = prepare(context, "requests", rows)

    def plain() -> None:
        spark.sql("INSERT INTO theirs SELECT id, v FROM plain")

    def alone() -> None:
        spark.conf.set(FILE_MANAGER, SPARK_MANAGER)
        try:
            plain()
        finally:
            spark.conf.unset(FILE_MANAGER)

    return [Case("streamql", counted(consume), changes), Case(PLAIN, counted(plain)), Case(DELTA, counted(alone))]


def delayed(context: Context, rows: int) -> list[Case]:
    """The same in seconds, where each request takes 30 ms."""
    spark, changes, consume = prepare(context, "delayed", rows)

    def slowly(run: Callable[[], object]) -> Callable[[], None]:
        def timed() -> None:
            with s3().proxy.latency(LATENCY_SECONDS):
                run()

        return timed

    return [
        Case("streamql", slowly(consume), changes),
        Case(PLAIN, slowly(lambda: spark.sql("INSERT INTO theirs SELECT id, v FROM plain"))),
    ]


def looks(context: Context, rows: int) -> list[Case]:
    """What is asked again and again: whether an empty stream has data, its rows, and SHOW STREAMS of 100 streams on 100 tables."""
    spark, _, _ = prepare(context, "looks", rows)
    for i in range(STREAMS - 1):
        spark.sql(f"CREATE TABLE t{i} (id BIGINT) TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
        spark.sql(f"CREATE STREAM s{i} ON TABLE t{i}")
    return [
        Case("has_data", counted(lambda: spark.sql("SELECT SYSTEM$STREAM_HAS_DATA('s')").collect())),
        Case("empty read", counted(lambda: spark.sql("SELECT * FROM s").collect())),
        Case("SHOW STREAMS", counted(lambda: spark.sql("SHOW STREAMS").collect())),
    ]


BENCHMARKS = (
    Benchmark(
        "s3_requests",
        "requests (not seconds) of a consumption of 10,000 changes, with its tables and the catalog on S3",
        requests,
        10_000,
        (Target(1.5, DELTA), Target(1.5, PLAIN)),
    ),
    Benchmark(
        "s3_delayed",
        "a consumption of 10,000 changes, where each request takes 30 ms",
        delayed,
        10_000,
        (Target(1.5, PLAIN),),
    ),
    Benchmark(
        "s3_looks",
        "requests (not seconds) that ask for the state of streams: one, none of whose tables changed; 100 on 100 tables",
        looks,
        10,
        (Target(2, None, "has_data"), Target(2, None, "empty read"), Target(STREAMS + 2, None, "SHOW STREAMS")),
    ),
)
