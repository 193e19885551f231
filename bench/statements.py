"""The floor under every statement: an empty read, SHOW STREAMS, stream_has_data; and a look of `streamql metrics`."""

from __future__ import annotations

import time

from bench.context import Context
from bench.measuring import Benchmark, Case, Target

STREAMS = 500
TABLES = 100
SCHEMA = "bench_streams"


def repeated(context: Context, name: str, sql: str, times: int = 40) -> Case:
    """A statement, many times in a round: it is over too soon to be timed alone. Its seconds are those of one."""

    def run() -> float:
        start = time.perf_counter()
        for _ in range(times):
            context.spark.sql(sql).collect()
        return (time.perf_counter() - start) / times

    return Case(name, run)


def prepare(context: Context) -> None:
    """500 streams on 100 tables in a schema of their own; nothing new in any."""
    spark = context.spark
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    have = {r["name"] for r in spark.sql(f"SHOW STREAMS IN {SCHEMA}").collect()}
    for n in range(TABLES):
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {SCHEMA}.t{n} (id BIGINT, v STRING) TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
        )
    for n in range(STREAMS):
        if f"s{n}" not in have:
            spark.sql(f"CREATE TABLE STREAM {SCHEMA}.s{n} ON TABLE {SCHEMA}.t{n % TABLES}")


def empty_read(context: Context, rows: int) -> list[Case]:
    """SELECT * FROM a stream with nothing new, beside the same from its (empty) table."""
    prepare(context)
    return [
        repeated(context, "streamql", f"SELECT * FROM {SCHEMA}.s1"),
        repeated(context, "SELECT from the table", f"SELECT * FROM {SCHEMA}.t1"),
    ]


def has_data(context: Context, rows: int) -> list[Case]:
    """SELECT stream_has_data('s'), beside SELECT 1."""
    prepare(context)
    return [
        repeated(context, "streamql", f"SELECT stream_has_data('{SCHEMA}.s1')"),
        repeated(context, "SELECT 1", "SELECT 1"),
    ]


def show_streams(context: Context, rows: int) -> list[Case]:
    """SHOW STREAMS over 500, beside SHOW TABLES over their tables."""
    prepare(context)
    found = context.spark.sql(f"SHOW STREAMS IN {SCHEMA}").count()
    assert found == STREAMS, f"{found} streams"
    return [
        repeated(context, "streamql", f"SHOW STREAMS IN {SCHEMA}", 3),
        repeated(context, "SHOW TABLES", f"SHOW TABLES IN {SCHEMA}", 3),
    ]


def metrics_look(context: Context, rows: int) -> list[Case]:
    """A look of `streamql metrics` at 500 streams with its page, as a scrape makes them, beside SHOW STREAMS over them."""
    from streamql.features.metrics.exposition import text_of
    from streamql.features.metrics.looks import look

    prepare(context)

    def run() -> None:
        seen = look(context.spark)
        assert (seen.problem, seen.problems) == (None, {})
        text_of(seen)

    return [Case("streamql", run), repeated(context, "SHOW STREAMS", f"SHOW STREAMS IN {SCHEMA}", 3)]


BENCHMARKS = (
    Benchmark("empty_read", "SELECT * FROM s, nothing new", empty_read, 0, (Target(0.06),)),
    Benchmark("has_data", "SELECT stream_has_data('s')", has_data, 0, (Target(0.03),)),
    Benchmark("show_streams", "SHOW STREAMS with 500 streams", show_streams, 0, (Target(1.0),)),
    Benchmark("metrics_look", "a scrape of streamql metrics with 500 streams", metrics_look, 0, (Target(0.5),)),
)
