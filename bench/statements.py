"""The floor under every statement: an empty read, SHOW STREAMS, stream_has_data."""

from __future__ import annotations

from bench.context import Context
from bench.measuring import Benchmark, Case, Target

STREAMS = 500
TABLES = 20
SCHEMA = "bench_streams"


def collect(context: Context, sql: str) -> int:
    """Runs a query; how many rows it has."""
    return len(context.spark.sql(sql).collect())


def prepare(context: Context) -> None:
    """500 streams on 20 tables in a schema of their own; nothing new in any."""
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
        Case("streamql", lambda: _none(collect(context, f"SELECT * FROM {SCHEMA}.s1"))),
        Case("SELECT from the table", lambda: _none(collect(context, f"SELECT * FROM {SCHEMA}.t1"))),
    ]


def has_data(context: Context, rows: int) -> list[Case]:
    """SELECT stream_has_data('s'), beside SELECT 1."""
    prepare(context)
    return [
        Case("streamql", lambda: _none(collect(context, f"SELECT stream_has_data('{SCHEMA}.s1')"))),
        Case("SELECT 1", lambda: _none(collect(context, "SELECT 1"))),
    ]


def show_streams(context: Context, rows: int) -> list[Case]:
    """SHOW STREAMS over 500, beside SHOW TABLES over 20."""
    prepare(context)

    def show() -> None:
        found = collect(context, f"SHOW STREAMS IN {SCHEMA}")
        assert found == STREAMS, f"{found} streams"

    return [Case("streamql", show), Case("SHOW TABLES", lambda: _none(collect(context, f"SHOW TABLES IN {SCHEMA}")))]


def _none(_: object) -> None:
    return None


BENCHMARKS = (
    Benchmark("empty_read", "SELECT * FROM s, nothing new", empty_read, 0, (Target(0.06),)),
    Benchmark("has_data", "SELECT stream_has_data('s')", has_data, 0, (Target(0.03),)),
    Benchmark("show_streams", "SHOW STREAMS with 500 streams", show_streams, 0, (Target(1.0),)),
)
