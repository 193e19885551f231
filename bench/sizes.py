"""What grows with size: rows of a table, commits behind a stream, streams of a catalog. Each beside a tenth of it: ten times as much should
take at most twelve times as long, and no more memory of the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.changes import case, ours
from bench.context import Context
from bench.ledger import checkpoint
from bench.measuring import Benchmark, Case, Target
from bench.memory import heap
from bench.statements import repeated
from bench.tables import Built
from streamql.changes import explain
from streamql.model import StreamMode, Versions

TENTH = "a tenth"
ROWS_PER_FILE = 100_000
COMMITS = 10
STREAMS_PER_TABLE = 10


def updated(context: Context, rows: int) -> Built:
    """A table, and ten commits that each update a thousandth of its rows, scattered."""
    base = context.tables.base(rows, files=max(4, rows // ROWS_PER_FILE))
    changes = [f"UPDATE {{t}} SET amount = amount + 1 WHERE id % 1000 = {n}" for n in range(COMMITS)]
    return context.tables.after(base, "ten_updates", changes)


def rows_read(context: Context, rows: int) -> list[Case]:
    """Reading ten commits."""
    return [case("streamql", ours, updated(context, rows)), case(TENTH, ours, updated(context, rows // 10))]


def rows_held(context: Context, rows: int) -> list[Case]:
    """The live heap after reading them."""
    tables = updated(context, rows), updated(context, rows // 10)
    return [Case("streamql", lambda: heap(context, tables[0])), Case(TENTH, lambda: heap(context, tables[1]))]


def behind(context: Context, commits: int) -> Built:
    """A table, and commits that each add a file. Delta has made a checkpoint behind them."""
    built = context.tables.by_hand(context.tables.base(4000), f"commits_{commits}", commits, 1, real=False)
    if not any(Path(built.path, "_delta_log").glob("*.checkpoint*.parquet")):
        checkpoint(context, built.path)
    return built


def commits_read(context: Context, commits: int) -> list[Case]:
    """Reading the log of an interval, and planning how to read its changes."""

    def plan(built: Built) -> None:
        explain(context.spark, built.path, Versions(built.after, built.through), StreamMode.STANDARD)

    many, few = behind(context, commits), behind(context, commits // 10)
    return [Case("streamql", lambda: plan(many)), Case(TENTH, lambda: plan(few))]


def shown(context: Context, streams: int) -> list[Case]:
    """SHOW STREAMS."""
    return [
        repeated(context, name, f"SHOW STREAMS IN {_schema(context, n)}", 3)
        for name, n in (("streamql", streams), (TENTH, streams // 10))
    ]


def _schema(context: Context, streams: int) -> str:
    """A schema with so many streams, ten on each table. Nothing is new in any."""
    spark, schema = context.spark, f"bench_{streams}_streams"
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    have = spark.sql(f"SHOW STREAMS IN {schema}").count()
    for n in range(have, streams):
        table = f"{schema}.t{n // STREAMS_PER_TABLE}"
        if n % STREAMS_PER_TABLE == 0:
            spark.sql(f"CREATE TABLE {table} (id BIGINT, v STRING) TBLPROPERTIES ('change_tracking' = 'true')")
        spark.sql(f"CREATE TABLE STREAM {schema}.s{n} ON TABLE {table}")
    return schema


def _sized(
    name: str, summary: str, prepare: Callable[[Context, int], Sequence[Case]], size: int, at_most: float = 12
) -> Benchmark:
    return Benchmark(name, f"{summary}, beside a tenth", prepare, size, (Target(at_most, TENTH),))


BENCHMARKS = (
    _sized("size_rows", "1 % of the rows by ten commits, read", rows_read, 100_000_000),
    _sized("size_heap", "live MB (not seconds) with them", rows_held, 100_000_000, 1.2),
    _sized("size_commits", "an interval of so many commits, planned", commits_read, 100_000),
    _sized("size_streams", "SHOW STREAMS of so many streams", shown, 1000),
)
