"""Changes by key: a table that was overwritten, against the join that one writes by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame

from bench.changes import case, read
from bench.context import Context
from bench.measuring import Benchmark, Case, Target
from bench.memory import live_megabytes
from bench.tables import Built

BY_HAND = "join of two snapshots"
SAME = ("grp", "name", "amount", "at")
DECLARE = "ALTER TABLE {t} ADD PRIMARY KEY (id) RELY"
REBUILD = "INSERT OVERWRITE {t} SELECT id, grp, name, IF(id % 1000 = 7, amount + 1, amount) AS amount, at FROM {t}"


def by_key(b: Built) -> DataFrame:
    """A change query by key."""
    return b.spark.sql(
        f"SELECT * FROM {b.name} CHANGES (INFORMATION => DEFAULT, IDENTITY => KEY) AT (VERSION => {b.through - 1})"
    )


def by_hand(b: Built) -> DataFrame:
    """The full join of both versions on the key, with the rows that differ."""
    same = " AND ".join(f"b.{c} <=> a.{c}" for c in ("id", *SAME))
    version = f"SELECT * FROM {b.name} VERSION AS OF"
    return b.spark.sql(
        f"SELECT * FROM ({version} {b.through - 1}) b FULL JOIN ({version} {b.through}) a ON b.id <=> a.id WHERE NOT ({same})"
    )


def rebuilt(
    context: Context, rows: int, name: str = "rebuilt", statements: Sequence[str] = (DECLARE, REBUILD)
) -> Built:
    """A table of so many rows that declares its key. By default, it was then overwritten, with 0.1 % of the rows changed."""
    return context.tables.after(context.tables.base(rows), name, statements)


def overwritten(context: Context, rows: int) -> list[Case]:
    """All rows written anew."""
    table = rebuilt(context, rows)
    found = by_key(table).count(), by_hand(table).count()
    assert found == (2 * (rows // 1000), rows // 1000), found
    return [case("streamql", by_key, table), case(BY_HAND, by_hand, table)]


PARTS = 1000
PARTITIONED = (
    "CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (part) "
    "TBLPROPERTIES ('change_tracking' = 'true', 'tablestore.primary_key' = 'id') "
    f"AS SELECT /*+ REPARTITION(8, part) */ *, CAST(id % {PARTS} AS INT) AS part FROM {{t}}"
)
SOME = (
    "INSERT OVERWRITE {t} PARTITION (part = 7) "
    "SELECT id, grp, name, IF(id % 100000 = 7, amount + 1, amount), at FROM {t} WHERE part = 7"
)


def partitions(context: Context, rows: int) -> list[Case]:
    """One partition of a thousand overwritten, against a table of that partition's rows that was overwritten."""
    whole = rebuilt(context, rows, "parts", (PARTITIONED, SOME))
    one = rebuilt(context, rows // PARTS)
    return [case("streamql", by_key, whole), case("a table of one partition", by_key, one)]


def heap(context: Context, table: Built) -> float:
    """Megabytes live after reading a change set, its plan still held."""
    df = by_key(table)
    read(df)
    return live_megabytes(context)


def flat(context: Context, rows: int) -> list[Case]:
    """The driver's heap, against that of a tenth of the rows."""
    many, few = rebuilt(context, rows), rebuilt(context, rows // 10)
    return [
        Case("streamql", partial(heap, context, many)),
        Case("a tenth of the rows", partial(heap, context, few)),
    ]


BENCHMARKS = (
    Benchmark(
        "keys_overwritten",
        "all rows written anew, 0.1 % of them changed, by key",
        overwritten,
        10_000_000,
        (Target(1.0, BY_HAND),),
    ),
    Benchmark(
        "keys_partitions",
        "one of 1,000 partitions overwritten, by key",
        partitions,
        1_000_000,
        (Target(2.0, "a table of one partition"),),
    ),
    Benchmark(
        "keys_heap",
        "live MB (not seconds) with all rows written anew",
        flat,
        10_000_000,
        (Target(1.25, "a tenth of the rows"),),
    ),
)
