"""Streams on Kafka topics against Spark's own batch read, with a real broker of one node."""

from __future__ import annotations

import atexit
import json
from functools import cache

from bench.context import Context
from bench.measuring import Benchmark, Case, Target
from bench.statements import repeated
from tests.kafka import topics
from tests.kafka.broker import Broker

SCHEMA = "bench_kafka"
CONNECTION = "bench_kafka"
PARTITIONS = 4
SPARK = "Spark's batch read"
STREAMS, TOPICS = 50, 10


@cache
def broker() -> Broker:
    """The broker of the process, stopped at its end."""
    started = Broker("secret").start()
    atexit.register(started.close)
    return started


def connected(context: Context) -> str:
    """The broker's address, which the storage connection of the benchmarks names."""
    bootstrap = broker().bootstrap
    context.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    context.spark.sql(
        f"CREATE OR REPLACE STORAGE CONNECTION {CONNECTION} TYPE KAFKA BOOTSTRAP_SERVERS = ['{bootstrap}'] "
        "SECURITY_PROTOCOL = 'PLAINTEXT'"
    )
    return bootstrap


def table(context: Context, name: str, topic: str) -> None:
    """An external table on a topic of the broker, anew: the broker's topics are gone with it."""
    context.spark.sql(
        f"CREATE OR REPLACE EXTERNAL TABLE {SCHEMA}.{name} USING KAFKA OPTIONS ('group_id' = 'bench', 'topics' = '{topic}') "
        f"CONNECTION {CONNECTION}"
    )


def insert(context: Context, rows: int) -> list[Case]:
    """INSERT … SELECT of parsed messages, beside Spark's kafka source over the same offsets into a table of the same columns."""
    spark, bootstrap, topic = context.spark, connected(context), f"insert_{rows}"
    topics.create(bootstrap, topic, partitions=PARTITIONS)
    topics.bulk(bootstrap, topic, rows)
    table(context, topic, topic)
    spark.sql(
        f"CREATE OR REPLACE STREAM {SCHEMA}.{topic}_s ON EXTERNAL TABLE {SCHEMA}.{topic} WITH (TABLE_STREAM_MODE = APPEND_ONLY, "
        "SHOW_INITIAL_ROWS = TRUE)"
    )
    for side in ("ours", "theirs"):
        spark.sql(
            f"CREATE OR REPLACE TABLE {SCHEMA}.{topic}_{side} (part INT, off BIGINT, at TIMESTAMP, key STRING, value STRING)"
        )
    columns = "partition, offset, timestamp, CAST(key AS STRING), CAST(value AS STRING)"
    ends = {p: last for p, (_, last) in topics.offsets(bootstrap, topic).items()}
    beginning = json.dumps(dict.fromkeys(map(str, ends), 0))

    def ours() -> None:
        spark.sql(f"INSERT INTO {SCHEMA}.{topic}_ours SELECT {columns} FROM {SCHEMA}.{topic}_s")

    def theirs() -> None:
        read = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        read = read.option("assign", json.dumps({topic: list(ends)}))
        read = read.option("startingOffsets", f'{{"{topic}": {beginning}}}').option(
            "endingOffsets", json.dumps({topic: ends})
        )
        read.load().createOrReplaceTempView("bench_kafka_window")
        spark.sql(f"INSERT INTO {SCHEMA}.{topic}_theirs SELECT {columns} FROM bench_kafka_window")

    return [
        Case("streamql", ours, lambda: spark.sql(f"ALTER STREAM {SCHEMA}.{topic}_s SET OFFSET '{beginning}'")),
        Case(SPARK, theirs),
    ]


def has_data(context: Context, rows: int) -> list[Case]:
    """stream_has_data of a stream on a topic, beside SELECT 1."""
    bootstrap, topic = connected(context), "has_data"
    topics.create(bootstrap, topic, partitions=PARTITIONS)
    topics.bulk(bootstrap, topic, rows)
    table(context, topic, topic)
    context.spark.sql(
        f"CREATE OR REPLACE STREAM {SCHEMA}.{topic}_s ON EXTERNAL TABLE {SCHEMA}.{topic} WITH (SHOW_INITIAL_ROWS = TRUE)"
    )
    return [
        repeated(context, "streamql", f"SELECT stream_has_data('{SCHEMA}.{topic}_s')"),
        repeated(context, "SELECT 1", "SELECT 1"),
    ]


def show_streams(context: Context, rows: int) -> list[Case]:
    """SHOW STREAMS over 50 streams with messages to read on 10 topics of one broker, beside SHOW STREAMS over one."""
    bootstrap = connected(context)
    for schema, streams in ((f"{SCHEMA}_many", STREAMS), (f"{SCHEMA}_one", 1)):
        context.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        for n in range(streams):
            topic = f"{schema}_{n % TOPICS}"
            if n < TOPICS:
                topics.create(bootstrap, topic, partitions=PARTITIONS)
                topics.bulk(bootstrap, topic, rows)
                table(context, topic, topic)
            context.spark.sql(
                f"CREATE OR REPLACE STREAM {schema}.s{n} ON EXTERNAL TABLE {SCHEMA}.{topic} WITH (SHOW_INITIAL_ROWS = TRUE)"
            )
    return [
        repeated(context, "streamql", f"SHOW STREAMS IN {SCHEMA}_many", 3),
        repeated(context, "one stream", f"SHOW STREAMS IN {SCHEMA}_one", 3),
    ]


BENCHMARKS = (
    Benchmark("kafka_insert", "INSERT of a million messages of a topic", insert, 1_000_000, (Target(1.25, SPARK),)),
    Benchmark("kafka_has_data", "stream_has_data of a stream on a topic", has_data, 1000, (Target(0.2),)),
    Benchmark("kafka_show_streams", "SHOW STREAMS with 50 streams on one broker", show_streams, 100, (Target(1.0),)),
)
