"""TableStore streams: tuples of commits against a plain scan of their files, many small commits against a large one, and exports."""

from __future__ import annotations

import json
import shutil

from bench.context import Context
from bench.measuring import Benchmark, Case, Target
from bench.tables import NARROW, Built
from streamql.features.tablestore.export import export
from streamql.features.tablestore.jobs.job import parse_job
from streamql.features.tablestore.jobs.windows import TIME_MAX_MS
from streamql.features.tablestore.records.rows import records_of_commits, tuples
from streamql.features.tablestore.records.streams import open_stream
from streamql.features.tablestore.records.tuples import slices

SCHEMA = "bench_tablestore"
COMMITS, ROWS_PER_COMMIT = 1000, 100
HISTORY, NEWEST = 9_998, 10
SCAN, ONE_COMMIT, FIRST = "scan and explode", "one commit", "the first export"
KEYED = "ALTER TABLE {t} SET TBLPROPERTIES ('tablestore.primary_key' = 'id')"


def named(context: Context, built: Built, name: str) -> str:
    """Gives a table a name, by which streams are opened."""
    context.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    context.spark.sql(f"CREATE TABLE IF NOT EXISTS {SCHEMA}.{name} USING delta LOCATION '{built.path}'")
    return f"{SCHEMA}.{name}"


def read(context: Context, table: str) -> None:
    """Computes all tuples of a table's history."""
    stream = open_stream(context.spark, table)
    section = stream.section(max(1, stream.tree.first), stream.latest.version)
    found = tuples(
        records_of_commits(context.spark, section, stream.tree, table, slices(section.commits)), sequence_info=False
    )
    assert found is not None
    found.write.format("noop").mode("overwrite").save()


def one_commit(context: Context, rows: int) -> tuple[str, Built]:
    """A table whose rows came by one commit."""
    built = context.tables.after(context.tables.base(rows), f"keyed_{rows}", [KEYED])
    return named(context, built, f"one_{rows}"), built


def many_commits(context: Context) -> tuple[str, Built]:
    """A table whose rows came by many commits, which hold the same keys."""
    base = context.tables.base(ROWS_PER_COMMIT)
    built = context.tables.by_hand(base, "keyed_commits", COMMITS, 1, [KEYED])
    return named(context, built, "many"), built


def against_scan(context: Context, rows: int) -> list[Case]:
    """Tuples of one commit, against what any reader has to do: to read the files, and to make a row of each value."""
    table, built = one_commit(context, rows)
    columns = ", ".join(
        f"struct('{f.name}' AS name, CAST({f.name} AS STRING) AS value)" for f in built.schema_of() if f.name != "id"
    )

    def scan() -> None:
        frame = context.spark.read.parquet(built.path).selectExpr("id", f"inline(array({columns}))")
        frame.write.format("noop").mode("overwrite").save()

    return [Case("streamql", lambda: read(context, table)), Case(SCAN, scan)]


def against_one(context: Context, _: int) -> list[Case]:
    """Many small commits, against one commit of as many rows."""
    many, one = many_commits(context)[0], one_commit(context, COMMITS * ROWS_PER_COMMIT)[0]
    return [Case("streamql", lambda: read(context, many)), Case(ONE_COMMIT, lambda: read(context, one))]


def long_history(context: Context) -> tuple[str, Built]:
    """A table with a long history, whose newest commits Delta wrote. The one that declares the key makes version 10,000, at which Delta
    writes a checkpoint."""
    base = context.tables.base(ROWS_PER_COMMIT)
    inserted = f"INSERT INTO {{t}} SELECT {NARROW} FROM range({ROWS_PER_COMMIT})"
    built = context.tables.by_hand(base, "keyed_history", HISTORY, 1, [KEYED, *[inserted] * NEWEST])
    return named(context, built, "history"), built


def second_export(context: Context, _: int) -> list[Case]:
    """An export of the newest commits, after an export of all before has finished, against that one."""
    table, built = long_history(context)
    cut = open_stream(context.spark, table).commits(built.through - NEWEST, built.through)[0].time_ms
    directory = context.directory.absolute() / "exports"
    status = f"{SCHEMA}.status"

    def run(start: int, end: int) -> None:
        reader = {
            "dataTable": table,
            "statusTable": status,
            "startTimestampMillis": start,
            "endTimestampMillis": end,
        }
        job = {
            "reader": {"name": "otsstreamreader", "parameter": reader},
            "writer": {"name": "jsonl", "parameter": {"path": str(directory / f"{start}.jsonl")}},
        }
        export(context.spark, parse_job(json.dumps(job)))

    def fresh(*, after_first: bool) -> None:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        if context.spark.catalog.tableExists(status):
            context.spark.sql(f"DELETE FROM {status}")
        if after_first:
            run(0, cut)

    return [
        Case("streamql", lambda: run(cut, TIME_MAX_MS), lambda: fresh(after_first=True)),
        Case(FIRST, lambda: run(0, cut), lambda: fresh(after_first=False)),
    ]


BENCHMARKS = (
    Benchmark("tablestore_scan", "6-tuples of a commit", against_scan, 1_000_000, (Target(2.0, SCAN),)),
    Benchmark(
        "tablestore_commits", "6-tuples of 1,000 commits of 100 rows", against_one, 0, (Target(3.0, ONE_COMMIT),)
    ),
    Benchmark(
        "tablestore_export",
        "the second export of a history of 10,000 commits",
        second_export,
        0,
        (Target(0.2, FIRST),),
    ),
)
