"""Databend's engine on tables of its own, with the same rows and the same changes."""

from __future__ import annotations

from collections.abc import Sequence

from bench.changes import built, case, ours
from bench.context import Context
from bench.databend.process import VERSION, Engine, Unavailable, python_with_databend
from bench.measuring import Benchmark, Case, Target

THEIRS = "Databend CHANGES"


def engine(context: Context) -> Engine:
    """The context's engine, started at the first use. Raises Unavailable."""
    if context.databend is None:
        directory = context.directory.absolute()
        context.databend = Engine(python_with_databend(directory), directory / "databend")
    return context.databend


COLUMNS = (
    "{n} AS id, {n} % 1000 AS grp, concat('name-', ({n})::STRING) AS name, "
    "({n}) * 0.5 AS amount, to_timestamp(1700000000 + {n}) AS at"
)


def statements(change: str, rows: int) -> list[str]:
    """The changes of bench.changes.statements in Databend's words."""
    some, half = rows // 100, rows // 2
    if change == "insert":
        return [f"INSERT INTO t SELECT {COLUMNS.format(n=f'number + {rows}')} FROM numbers({some})"]
    if change == "clustered":
        return [f"UPDATE t SET amount = amount + 1 WHERE id >= {half} AND id < {half + some}"]
    if change == "update":
        return ["UPDATE t SET amount = amount + 1 WHERE id % 100 = 7"]
    mixed = []
    for n in range(2):
        keys = COLUMNS.format(n=f"number * 600 + {n + 20}")
        mixed += [
            f"UPDATE t SET amount = amount + 1 WHERE id % 300 = {n}",
            f"DELETE FROM t WHERE id % 600 = {n + 10}",
            (
                f"MERGE INTO t USING (SELECT {keys} FROM numbers({-(-(rows + 980 - n) // 600)})) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET t.name = 'merged' WHEN NOT MATCHED THEN INSERT *"
            ),
        ]
    return [*mixed, "OPTIMIZE TABLE t COMPACT"] if change == "optimized" else mixed


def make(e: Engine, change: str, rows: int) -> str:
    """The table t with its changes; the snapshot from before them."""
    e.sql("DROP TABLE IF EXISTS t")
    e.sql(
        "CREATE TABLE t (id BIGINT, grp BIGINT, name STRING, amount DOUBLE, at TIMESTAMP) row_per_page=1000000 change_tracking=true"
    )
    e.sql(f"INSERT INTO t SELECT {COLUMNS.format(n='number')} FROM numbers({rows})")
    _, snapshots = e.sql("SELECT snapshot_id FROM fuse_snapshot('default', 't')")
    for statement in statements(change, rows):
        e.sql(statement)
    return str(snapshots[0][0])


READ = (
    "SELECT count(*), sum(siphash64(name) % 1000), sum(amount), max(at), sum(grp), sum(id), max(change$action), max(change$is_update) "
    "FROM t CHANGES (INFORMATION => DEFAULT) AT (SNAPSHOT => '{snapshot}')"
)


def cases(context: Context, rows: int, change: str) -> list[Case]:
    """Ours and theirs; none where Databend cannot be had."""
    try:
        e = engine(context)
    except Unavailable as why:
        context.notes.append(f"Databend was not measured: {why}.")
        return []
    snapshot = make(e, change, rows)
    table = built(context, change, rows)
    query = READ.format(snapshot=snapshot)
    counted, count = int(e.sql(query)[1][0][0]), ours(table).count()
    if counted != count:
        context.notes.append(f"databend_{change}: Databend shows {counted:,} changes, streamql {count:,}.")
    return [case("streamql", ours, table), Case(THEIRS, lambda: e.sql(query)[0])]


def benchmark(change: str, summary: str, targets: Sequence[Target]) -> Benchmark:
    """A type of change in both engines."""
    return Benchmark(
        f"databend_{change}",
        f"{summary}, against Databend {VERSION}",
        lambda c, n: cases(c, n, change),
        4_000_000,
        tuple(targets),
    )


BENCHMARKS = (
    benchmark("update", "1 % by one UPDATE, scattered", [Target(0.5, THEIRS)]),
    benchmark("mixed", "1 % by 2 x (UPDATE, DELETE, MERGE), scattered", [Target(0.5, THEIRS)]),
    benchmark("optimized", "the same, then compaction", [Target(0.5, THEIRS)]),
    benchmark("clustered", "1 % in one place updated", [Target(0.5)]),
    benchmark("insert", "1 % inserted", [Target(0.2)]),
)
