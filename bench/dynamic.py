"""Refreshes of dynamic tables: the difference that a refresh writes, against INSERT OVERWRITE of the same query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from bench.changes import MILLION, read
from bench.context import Context
from bench.measuring import OURS, Benchmark, Case, Target
from bench.statements import repeated

SCHEMA = "bench_dynamic"
OVERWRITE = "INSERT OVERWRITE"
FULL, AUTO = "REFRESH_MODE = FULL", "REFRESH_MODE = AUTO"
QUERY, REPLACE = "the query alone", "CREATE OR REPLACE TABLE"
GROUPS = 20_000


def source(context: Context, rows: int, customer: str = "") -> str:
    """A tracked table of so many rows, anew. `customer`: an expression; without it, ten rows have one customer."""
    spark, name = context.spark, f"{SCHEMA}.facts_{rows}"
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(
        f"CREATE TABLE {name} TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableInCommitTimestamps' = 'true', "
        f"'delta.enableDeletionVectors' = 'true') AS SELECT id, {customer or f'id % {max(1, rows // 10)}'} AS customer, "
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


def _written(context: Context, name: str) -> Callable[[], object]:
    """Updates a third of a thousandth of the rows, scattered, others each time. Each of the three modes runs it before its refresh, so each
    refresh finds a thousandth."""
    rounds = count()
    return lambda: context.spark.sql(
        f"UPDATE {name} SET amount = amount + 1 WHERE id % 3000 = {next(rounds) * 7 % 3000}"
    )


def _against_replacement(context: Context, rows: int, title: str, query: Callable[[str], str]) -> list[Case]:
    """All modes, against the query alone, and against a table that is made anew with it."""
    spark, name = context.spark, source(context, rows, customer=f"pmod(hash(id), {GROUPS})")
    for mode in ("INCREMENTAL", "FULL", "AUTO"):
        spark.sql(
            f"CREATE OR REPLACE DYNAMIC TABLE {SCHEMA}.{title}_{mode.lower()} REFRESH_MODE = {mode} AS {query(name)}"
        )

    def refresh(mode: str) -> Callable[[], None]:
        return lambda: _run(context, f"REFRESH DYNAMIC TABLE {SCHEMA}.{title}_{mode.lower()}")

    write = _written(context, name)
    return [
        Case("streamql", refresh("INCREMENTAL"), write),
        Case(FULL, refresh("FULL"), write),
        Case(AUTO, refresh("AUTO"), write),
        Case(QUERY, lambda: read(spark.sql(query(name)))),
        Case(REPLACE, lambda: _run(context, f"CREATE OR REPLACE TABLE {SCHEMA}.{title}_plain AS {query(name)}")),
    ]


def refreshed_projection(context: Context, rows: int) -> list[Case]:
    """A filter and a projection."""
    return _against_replacement(context, rows, "rows", _projection)


def refreshed_aggregate(context: Context, rows: int) -> list[Case]:
    """Counts and sums by groups, which the refresh keeps."""
    return _against_replacement(context, rows, "sums", _aggregate)


def refreshed_extremes(context: Context, rows: int) -> list[Case]:
    """Least and greatest values by groups."""
    return _against_replacement(
        context,
        rows,
        "extremes",
        lambda t: f"SELECT customer, min(amount) AS least, max(amount) AS greatest FROM {t} GROUP BY customer",
    )


def refreshed_join(context: Context, rows: int) -> list[Case]:
    """Sums over a join with a table of customers, which has not changed."""
    customers = f"{SCHEMA}.customers_{rows}"
    context.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    context.spark.sql(f"DROP TABLE IF EXISTS {customers}")
    context.spark.sql(
        f"CREATE TABLE {customers} TBLPROPERTIES ('delta.enableRowTracking' = 'true') AS "
        f"SELECT id AS customer, id % 1000 AS region FROM range({GROUPS})"
    )
    return _against_replacement(
        context,
        rows,
        "joined",
        lambda t: (
            f"SELECT region, count(*) AS n, sum(amount) AS amount FROM {t} JOIN {customers} USING (customer) GROUP BY region"
        ),
    )


def _refresh(
    name: str, summary: str, prepare: Callable[[Context, int], Sequence[Case]], rows: int, *targets: Target
) -> Benchmark:
    return Benchmark(
        name,
        f"incremental REFRESH of {summary}, 0.1 % of the rows updated",
        prepare,
        rows,
        (*targets, Target(1.2, case=AUTO, against=OURS)),
    )


BENCHMARKS = (
    Benchmark(
        "dynamic_projected", "REFRESH, 1 % of the result changed", projected, 10_000_000, (Target(1.5, OVERWRITE),)
    ),
    Benchmark("dynamic_full", "the same with REFRESH_MODE = FULL", full, 10_000_000),
    Benchmark("dynamic_aggregated", "REFRESH of an aggregate, 10 % of the groups changed", aggregated, 10_000_000),
    _refresh("refresh_rows", "a projection", refreshed_projection, 10 * MILLION, Target(1 / 3, REPLACE)),
    _refresh("refresh_sums", "an aggregate", refreshed_aggregate, 10 * MILLION, Target(1 / 6, REPLACE)),
    _refresh("refresh_extremes", "min and max", refreshed_extremes, 10 * MILLION),
    _refresh("refresh_joined", "an aggregate over a join", refreshed_join, 10 * MILLION, Target(1 / 4, REPLACE)),
    _refresh("refresh_small", "an aggregate", refreshed_aggregate, 2 * MILLION, Target(1, QUERY), Target(0.4)),
    Benchmark("dynamic_unchanged", "REFRESH with nothing to do", unchanged, 100_000, (Target(0.5),)),
)
