"""The driver's memory: live heap while a change set is read, by its size. Reading runs in this process's JVM, which is driver and executor
in one, so what is looked at is what stays after a collection: plans, file lists, positions."""

from __future__ import annotations

from bench.changes import ours, read
from bench.context import Context
from bench.measuring import Benchmark, Case, Target
from bench.tables import Built


def live_megabytes(context: Context) -> float:
    """The heap in use after a collection."""
    jvm = context.spark.sparkContext._jvm
    assert jvm is not None
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / (1 << 20)


def heap(context: Context, table: Built) -> float:
    """Megabytes live after reading a change set, its plan still held."""
    df = ours(table)
    read(df)
    return live_megabytes(context)


def flat(context: Context, rows: int) -> list[Case]:
    """All rows of a table updated: a change set of twice its rows; against one of a hundredth."""
    base = {n: context.tables.base(n) for n in (rows, rows // 100)}
    every = {n: context.tables.after(b, "all", ["UPDATE {t} SET amount = amount + 1"]) for n, b in base.items()}
    return [
        Case("streamql", lambda: heap(context, every[rows])),
        Case("a hundredth of the rows", lambda: heap(context, every[rows // 100])),
    ]


BENCHMARKS = (
    Benchmark(
        "driver_heap",
        "live MB (not seconds) with every row updated",
        flat,
        5_000_000,
        (Target(1.25, "a hundredth of the rows"),),
    ),
)
