"""What exactly once costs: DML from a stream against the same DML from a plain table of the same rows."""

from __future__ import annotations

from collections.abc import Callable

from bench.context import Context
from bench.measuring import Benchmark, Case, Target

SCHEMA = "bench_consuming"
PLAIN = "plain table"
COLUMNS = "id, id % 1000 AS grp, concat('name-', id) AS name, id * 0.5D AS amount"


def prepare(context: Context, rows: int) -> str:
    """A stream with so many INSERTs to show, a plain table of the same rows, and a target for each."""
    spark, n = context.spark, f"{SCHEMA}.c{rows}"
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    if not spark.catalog.tableExists(f"{n}_plain"):
        spark.sql(
            f"CREATE OR REPLACE TABLE {n} TBLPROPERTIES ('delta.enableRowTracking' = 'true') AS SELECT {COLUMNS} FROM range(0, 0)"
        )
        spark.sql(f"CREATE OR REPLACE TABLE STREAM {n}_s ON TABLE {n}")
        spark.sql(f"INSERT INTO {n} SELECT {COLUMNS} FROM range(0, {rows}, 1, 2)")
        for side in ("ours", "theirs"):
            spark.sql(
                f"CREATE OR REPLACE TABLE {n}_{side} AS SELECT {COLUMNS} FROM range(0, {max(rows, 100_000)}, 1, 4)"
            )
        changes = f"{n} CHANGES (INFORMATION => DEFAULT) AT (STREAM => '{n}_s')"
        spark.sql(f"CREATE OR REPLACE TABLE {n}_plain AS SELECT * FROM {changes}")
    return n


def again(context: Context, n: str) -> None:
    """Takes the stream back to where its rows are new."""
    row = context.spark.sql(f"DESCRIBE HISTORY {n} LIMIT 1").first()
    assert row is not None
    context.spark.sql(f"ALTER TABLE STREAM {n}_s SET OFFSET VERSION {int(row['version']) - 1}")


def beside(context: Context, n: str, run: Callable[[str, str], None]) -> list[Case]:
    """The same statement, given its target and source, from the stream and from the plain table."""
    return [
        Case("streamql", lambda: run("ours", "s"), lambda: again(context, n)),
        Case(PLAIN, lambda: run("theirs", "plain")),
    ]


def insert(context: Context, rows: int) -> list[Case]:
    """INSERT … SELECT."""
    n = prepare(context, rows)

    def run(target: str, source: str) -> None:
        context.spark.sql(
            f"INSERT INTO {n}_{target} SELECT id, grp, name, amount FROM {n}_{source} WHERE __change_type = 'INSERT'"
        )

    return beside(context, n, run)


def merge(context: Context, rows: int) -> list[Case]:
    """MERGE INTO, with a clause for each type of change."""
    n = prepare(context, rows)

    def run(target: str, source: str) -> None:
        context.spark.sql(
            f"MERGE INTO {n}_{target} t USING {n}_{source} s ON t.id = s.id "
            "WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE "
            "WHEN MATCHED AND s.__change_type IN ('INSERT', 'UPDATE_AFTER') THEN UPDATE SET t.amount = s.amount "
            "WHEN NOT MATCHED AND s.__change_type IN ('INSERT', 'UPDATE_AFTER') THEN "
            "INSERT (id, grp, name, amount) VALUES (s.id, s.grp, s.name, s.amount)"
        )

    return beside(context, n, run)


BENCHMARKS = tuple(
    Benchmark(
        f"{statement.__name__}_{rows}",
        f"{(statement.__doc__ or '').rstrip('.')}: {rows:,} changes",
        statement,
        rows,
        (Target(1.5, PLAIN),) if rows > 10 else (),
    )
    for statement in (insert, merge)
    for rows in (10, 10_000, 1_000_000)
)
