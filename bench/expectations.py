"""What expectations cost: DML from a stream that has some, with bad rows, against the same DML from a stream without them."""

from __future__ import annotations

from collections.abc import Callable

from bench.context import Context
from bench.measuring import Benchmark, Case, Target

SCHEMA = "bench_expectations"
WITHOUT = "without expectations"
BAD_EACH = 1_000
"""One row of so many is bad."""
COLUMNS = (
    "id, id % 1000 AS grp, concat('name-', id) AS name, "
    f"IF(id % {BAD_EACH} = 7, 'n/a', CAST(id * 0.5D AS STRING)) AS amount"
)
CLEAN = "id, grp, name, try_cast(amount AS DOUBLE) AS amount"


def prepare(context: Context, rows: int) -> str:
    """A table with so many INSERTs to show, two streams on it, of which one has expectations, and a target for each."""
    spark, n = context.spark, f"{SCHEMA}.c{rows}"
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    if not spark.catalog.tableExists(f"{n}_with"):
        spark.sql(
            f"CREATE OR REPLACE TABLE {n} TBLPROPERTIES ('delta.enableRowTracking' = 'true') AS SELECT {COLUMNS} FROM range(0, 0)"
        )
        spark.sql(f"CREATE OR REPLACE STREAM {n}_s_without ON TABLE {n}")
        spark.sql(
            f"CREATE OR REPLACE STREAM {n}_s_with ON TABLE {n} "
            "EXPECTATION is_number CHECK (CAST(amount AS DOUBLE) >= 0) ON VIOLATION QUARANTINE "
            "EXPECTATION has_name CHECK (name IS NOT NULL) ON VIOLATION DROP"
        )
        spark.sql(f"INSERT INTO {n} SELECT {COLUMNS} FROM range(0, {rows}, 1, 2)")
        for side in ("without", "with"):
            spark.sql(
                f"CREATE OR REPLACE TABLE {n}_{side} AS SELECT {CLEAN} FROM (SELECT {COLUMNS} FROM range(0, {rows}, 1, 4))"
            )
    return n


def again(context: Context, n: str, side: str) -> None:
    """Takes a stream back to where its rows are new."""
    row = context.spark.sql(f"DESCRIBE HISTORY {n} LIMIT 1").first()
    assert row is not None
    context.spark.sql(f"ALTER STREAM {n}_s_{side} SET OFFSET VERSION {int(row['version']) - 1}")


def beside(context: Context, n: str, run: Callable[[str], None]) -> list[Case]:
    """The same statement, given its side, from both streams."""
    return [
        Case("streamql", lambda: run("with"), lambda: again(context, n, "with")),
        Case(WITHOUT, lambda: run("without"), lambda: again(context, n, "without")),
    ]


def insert(context: Context, rows: int) -> list[Case]:
    """INSERT … SELECT."""
    n = prepare(context, rows)

    def run(side: str) -> None:
        context.spark.sql(f"INSERT INTO {n}_{side} SELECT {CLEAN} FROM {n}_s_{side}")

    return beside(context, n, run)


def merge(context: Context, rows: int) -> list[Case]:
    """MERGE INTO, with a clause for each type of change."""
    n = prepare(context, rows)

    def run(side: str) -> None:
        context.spark.sql(
            f"MERGE INTO {n}_{side} t USING (SELECT {CLEAN}, __change_type FROM {n}_s_{side}) s ON t.id = s.id "
            "WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE "
            "WHEN MATCHED AND s.__change_type IN ('INSERT', 'UPDATE_AFTER') THEN UPDATE SET t.amount = s.amount "
            "WHEN NOT MATCHED AND s.__change_type IN ('INSERT', 'UPDATE_AFTER') THEN "
            "INSERT (id, grp, name, amount) VALUES (s.id, s.grp, s.name, s.amount)"
        )

    return beside(context, n, run)


BENCHMARKS = tuple(
    Benchmark(
        f"expectations_{statement.__name__}_{rows}",
        f"{(statement.__doc__ or '').rstrip('.')}: {rows:,} changes, one of {BAD_EACH:,} is quarantined",
        statement,
        rows,
        (Target(1.3, WITHOUT),) if rows > BAD_EACH else (),
    )
    for statement in (insert, merge)
    for rows in (10, 1_000_000)
)
