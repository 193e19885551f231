"""What the ledger costs once it is long: a consumption, and a query of it, after 100,000 consumptions and after none."""

from __future__ import annotations

import json
from pathlib import Path

from bench.context import Context
from bench.measuring import Benchmark, Case, Target
from streamql.delta.jvm import jvm
from streamql.delta.neutral import neutral_clone

SCHEMA = "bench_ledger"
NEW = "a new catalog"
COMMITS_A_CONSUMPTION = 2
"""A claim and its end."""
DAYS = 10
"""In which so many consumptions were made; the log keeps commits for a day, and until the end of the next."""
DAYS_KEPT = 2


def prepare(context: Context, consumptions: int) -> None:
    """Two catalogs, each with a stream on a table of its own and a target: one new, one with so many consumptions behind it."""
    spark = context.spark
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    for size in ("new", "long"):
        spark.conf.set("spark.streamql.catalog", f"{SCHEMA}_{size}")
        if spark.catalog.tableExists(f"{SCHEMA}.target_{size}"):
            continue
        spark.sql(f"CREATE OR REPLACE TABLE {SCHEMA}.t_{size} (id BIGINT)")
        spark.sql(f"ALTER TABLE {SCHEMA}.t_{size} SET PROPERTIES ('change_tracking' = 'true')")
        spark.sql(f"CREATE OR REPLACE STREAM {SCHEMA}.s_{size} ON TABLE {SCHEMA}.t_{size}")
        if size == "long":
            lengthen(context, f"{SCHEMA}_{size}", consumptions)
        spark.sql(f"CREATE OR REPLACE TABLE {SCHEMA}.target_{size} (id BIGINT)")
    spark.conf.unset("spark.streamql.catalog")


def lengthen(context: Context, catalog: str, consumptions: int) -> None:
    """Gives a catalog a past: rows in its ledger, as upkeep compacts them, and the commits of two days in its log, which keeps no more.

    Running them would take a day. The table's own newest commits get the numbers that they would have; those before are files that are
    listed, and never read, since a checkpoint stands between.
    """
    spark = neutral_clone(context.spark)  # it may write the catalog
    row = spark.sql(f"SELECT * FROM {catalog}.events WHERE event = 'created' LIMIT 1")
    past = row.selectExpr("*").drop("event", "sequence", "outcome", "statement", "ended_at", "rows_written", "changes")
    columns = spark.table(f"{catalog}.events").columns
    spark.range(consumptions).crossJoin(past).selectExpr(
        "*",
        "'consumed' AS event",
        "-id AS sequence",
        "'CONSUMED' AS outcome",
        "concat('INSERT INTO target SELECT * FROM s -- ', id) AS statement",
        "current_timestamp() - make_dt_interval(0, 0, 0, id) AS ended_at",
        "id % 1000 AS rows_written",
        "to_json(map('INSERT', id % 1000)) AS changes",
    ).select(*columns).repartition(1).writeTo(f"{catalog}.events").append()
    location = spark.sql(f"DESCRIBE DETAIL {catalog}.events").first()
    assert location is not None
    path = str(location["location"])
    checkpoint(context, path)
    renumber(Path(path.removeprefix("file:")), COMMITS_A_CONSUMPTION * consumptions)
    spark.sql(f"ALTER TABLE {catalog}.events SET TBLPROPERTIES ('streamql.bench' = 'long')")
    checkpoint(context, path)


def checkpoint(context: Context, path: str) -> None:
    """Has Delta write a checkpoint of the newest version, of which it remembers nothing."""
    log = jvm(context.spark).org.apache.spark.sql.delta.DeltaLog
    log.clearCache()
    log.forTable(context.spark._jsparkSession, path).checkpoint()
    log.clearCache()


def renumber(table: Path, version: int) -> None:
    """Moves a table's log to a high version, with a commit file for each one before."""
    log = table / "_delta_log"
    newest = max(log.glob("*.json"))
    for name in (newest.name, newest.with_suffix(".checkpoint.parquet").name):
        (log / name).rename(log / f"{version:020}{name[20:]}")
    for other in log.iterdir():
        if other.is_file() and not other.name.startswith(f"{version:020}"):
            other.unlink()
    filler = json.dumps({"commitInfo": {"operation": "WRITE", "inCommitTimestamp": 0}}).encode()
    for v in range(version - version * DAYS_KEPT // DAYS, version):
        (log / f"{v:020}.json").write_bytes(filler)


def consume(context: Context, consumptions: int) -> list[Case]:
    """INSERT … SELECT of a few rows."""
    prepare(context, consumptions)
    spark = context.spark

    def run(size: str) -> None:
        spark.conf.set("spark.streamql.catalog", f"{SCHEMA}_{size}")
        spark.sql(f"INSERT INTO {SCHEMA}.target_{size} SELECT id FROM {SCHEMA}.s_{size}")
        spark.conf.unset("spark.streamql.catalog")

    def more(size: str) -> None:
        spark.sql(f"INSERT INTO {SCHEMA}.t_{size} SELECT id FROM range(10)")

    return [
        Case("streamql", lambda: run("long"), lambda: more("long")),
        Case(NEW, lambda: run("new"), lambda: more("new")),
    ]


def query(context: Context, consumptions: int) -> list[Case]:
    """The ten newest entries."""
    prepare(context, consumptions)

    def run(size: str) -> None:
        newest = f"SELECT * FROM {SCHEMA}_{size}.consumptions ORDER BY ended_at DESC LIMIT 10"
        context.spark.sql(newest).collect()

    return [Case("streamql", lambda: run("long")), Case(NEW, lambda: run("new"))]


BENCHMARKS = tuple(
    Benchmark(f"ledger_{case.__name__}", f"{what} after 100,000 consumptions", case, 100_000, (target,))
    for case, what, target in (
        (consume, "a consumption of 10 rows", Target(1.25, NEW)),
        (query, "the ten newest entries of the ledger", Target(1.0)),
    )
)
