"""Refreshes of dynamic tables: the difference that a refresh writes, against INSERT OVERWRITE of the same query."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from bench.context import Context
from bench.measuring import Benchmark, Case, Target
from bench.statements import repeated

SCHEMA = "bench_dynamic"
OVERWRITE = "INSERT OVERWRITE"
FULL = "REFRESH_MODE = FULL"


def source(context: Context, rows: int) -> str:
    """A tracked table of so many rows, anew."""
    spark, name = context.spark, f"{SCHEMA}.facts_{rows}"
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(
        f"CREATE TABLE {name} TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableInCommitTimestamps' = 'true', "
        f"'delta.enableDeletionVectors' = 'true') AS SELECT id, id % {max(1, rows // 10)} AS customer, "
        f"CAST(id % 9973 AS DECIMAL(12, 2)) AS amount, concat('note ', id) AS note FROM range({rows})"
    )
    return name


def _changed(context: Context, name: str) -> Callable[[], object]:
    """Updates a hundredth of the rows, another one each time."""
    rounds = count()
    return lambda: context.spark.sql(f"UPDATE {name} SET amount = amount + 1 WHERE id % 100 = {next(rounds) % 100}")


def _against_overwrite(
    context: Context, rows: int, title: str, query: Callable[[str], str], mode: str = "AUTO"
) -> list[Case]:
    spark, name = context.spark, source(context, rows)
    spark.sql(f"CREATE OR REPLACE DYNAMIC TABLE {SCHEMA}.{title} REFRESH_MODE = {mode} AS {query(name)}")
    spark.sql(f"CREATE OR REPLACE TABLE {SCHEMA}.{title}_plain AS {query(name)}")
    return [
        Case("streamql", lambda: _run(context, f"REFRESH DYNAMIC TABLE {SCHEMA}.{title}"), _changed(context, name)),
        Case(OVERWRITE, lambda: _run(context, f"INSERT OVERWRITE {SCHEMA}.{title}_plain {query(name)}")),
    ]


def _run(context: Context, sql: str) -> None:
    context.spark.sql(sql).collect()


def projected(context: Context, rows: int) -> list[Case]:
    """A result with as many rows as its table, of which a hundredth has changed."""
    return _against_overwrite(context, rows, "projected", _projection)


def full(context: Context, rows: int) -> list[Case]:
    """The same, if the whole query is computed and compared."""
    return _against_overwrite(context, rows, "full", _projection, "FULL")


def _projection(table: str) -> str:
    return f"SELECT id, customer, amount * 2 AS amount, upper(note) AS note FROM {table} WHERE id % 1000 <> 0"


def aggregated(context: Context, rows: int) -> list[Case]:
    """A result with a tenth of its table's rows, of which a tenth has changed."""
    return _against_overwrite(context, rows, "aggregated", _aggregate)


def _aggregate(table: str) -> str:
    return f"SELECT customer, count(*) AS n, sum(amount) AS amount FROM {table} GROUP BY customer"


def unchanged(context: Context, rows: int) -> list[Case]:
    """REFRESH of a table whose source has not changed, beside SELECT 1."""
    name = source(context, rows)
    context.spark.sql(f"CREATE OR REPLACE DYNAMIC TABLE {SCHEMA}.unchanged AS SELECT id, amount FROM {name}")
    return [
        repeated(context, "streamql", f"REFRESH DYNAMIC TABLE {SCHEMA}.unchanged"),
        repeated(context, "SELECT 1", "SELECT 1"),
    ]


def _written(context: Context, name: str, rows: int) -> Callable[[], object]:
    """Changes a third of a thousandth of the rows, others each time: one half is inserted, the other updated, neighbours by id. Each of
    the three cases runs it, so each refresh finds a thousandth."""
    rounds, part = count(), rows // 6000

    def write() -> None:
        number = next(rounds)
        context.spark.sql(
            f"INSERT INTO {name} SELECT {rows} + {number * part} + id, id * 7 % {max(1, rows // 10)}, 5.00, 'new' FROM range({part})"
        )
        low = number * 31 * part % (rows - part)
        context.spark.sql(f"UPDATE {name} SET amount = amount + 1 WHERE id BETWEEN {low} AND {low + part - 1}")

    return write


def _against_full(context: Context, rows: int, title: str, query: Callable[[str], str]) -> list[Case]:
    spark, name = context.spark, source(context, rows)
    for mode in ("INCREMENTAL", "FULL", "AUTO"):
        spark.sql(
            f"CREATE OR REPLACE DYNAMIC TABLE {SCHEMA}.{title}_{mode.lower()} REFRESH_MODE = {mode} AS {query(name)}"
        )

    def refresh(mode: str) -> Callable[[], None]:
        return lambda: _run(context, f"REFRESH DYNAMIC TABLE {SCHEMA}.{title}_{mode.lower()}")

    write = _written(context, name, rows)
    return [
        Case("streamql", refresh("INCREMENTAL"), write),
        Case(FULL, refresh("FULL"), write),
        Case("AUTO", refresh("AUTO"), write),
    ]


def refreshed_projection(context: Context, rows: int) -> list[Case]:
    """A filter and a projection."""
    return _against_full(context, rows, "rows", _projection)


def refreshed_aggregate(context: Context, rows: int) -> list[Case]:
    """Counts and sums by groups of ten rows, which the refresh keeps."""
    return _against_full(context, rows, "sums", _aggregate)


def refreshed_join(context: Context, rows: int) -> list[Case]:
    """Sums over a join with a table of a tenth of the rows, which has not changed."""
    customers = f"{SCHEMA}.customers_{rows}"
    context.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    context.spark.sql(f"DROP TABLE IF EXISTS {customers}")
    context.spark.sql(
        f"CREATE TABLE {customers} TBLPROPERTIES ('delta.enableRowTracking' = 'true') AS "
        f"SELECT id AS customer, id % 1000 AS region FROM range({max(1, rows // 10)})"
    )
    return _against_full(
        context,
        rows,
        "joined",
        lambda t: (
            f"SELECT region, count(*) AS n, sum(amount) AS amount FROM {t} JOIN {customers} USING (customer) GROUP BY region"
        ),
    )


BENCHMARKS = (
    Benchmark(
        "dynamic_projected", "REFRESH, 1 % of the result changed", projected, 10_000_000, (Target(1.5, OVERWRITE),)
    ),
    Benchmark("dynamic_full", "the same with REFRESH_MODE = FULL", full, 10_000_000),
    Benchmark("dynamic_aggregated", "REFRESH of an aggregate, 10 % of the groups changed", aggregated, 10_000_000),
    Benchmark(
        "refresh_rows",
        "incremental REFRESH of a projection, 0.1 % of the rows changed",
        refreshed_projection,
        10_000_000,
        (Target(0.2, FULL),),
    ),
    Benchmark(
        "refresh_sums",
        "incremental REFRESH of an aggregate, 0.1 % of the rows changed",
        refreshed_aggregate,
        10_000_000,
        (Target(0.2, FULL),),
    ),
    Benchmark(
        "refresh_joined",
        "incremental REFRESH of an aggregate over a join, 0.1 % of the rows changed",
        refreshed_join,
        10_000_000,
        (Target(1 / 3, FULL),),
    ),
    Benchmark("dynamic_unchanged", "REFRESH with nothing to do", unchanged, 100_000, (Target(0.5),)),
)
