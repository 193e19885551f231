"""Change sets: ours against every peer that can tell the changes of an interval, reading every column of every row shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pyspark.sql import DataFrame

from bench.context import Context
from bench.measuring import Benchmark, Case, Target
from bench.tables import NARROW, WIDE, Built

Reader = Callable[[Built], DataFrame]


def ours(b: Built) -> DataFrame:
    """A change query of ours."""
    return b.spark.sql(
        f"SELECT * FROM {b.name} CHANGES (INFORMATION => DEFAULT) AT (VERSION => {b.after}) END (VERSION => {b.through})"
    )


def spark_net_changes(b: Built) -> DataFrame:
    """Spark 4.2's own change query."""
    return b.spark.sql(
        f"SELECT * FROM {b.name} CHANGES FROM VERSION {b.after + 1} TO VERSION {b.through} "
        "WITH (deduplicationMode = 'netChanges', computeUpdates = 'true')"
    )


def two_snapshots(b: Built) -> DataFrame:
    """The full join of both versions on Delta's row id."""
    tracked = f"SELECT *, _metadata.row_id AS rid, _metadata.row_commit_version AS rcv FROM {b.name} VERSION AS OF"
    return b.spark.sql(
        f"SELECT * FROM ({tracked} {b.after}) b FULL JOIN ({tracked} {b.through}) a ON b.rid = a.rid WHERE NOT (b.rcv <=> a.rcv)"
    )


def change_feed_by_key(b: Built) -> DataFrame:
    """Delta's change data feed, netted by the key: needs a key, and costs every writer."""
    return b.spark.sql(f"""
        SELECT * FROM (
          SELECT *, row_number() OVER (PARTITION BY id ORDER BY _commit_version, _change_type = 'update_postimage') AS first,
                 row_number() OVER (PARTITION BY id ORDER BY _commit_version DESC, _change_type = 'update_preimage') AS last
          FROM table_changes_by_path('{b.path}', {b.after + 1}, {b.through}))
        WHERE (first = 1 AND _change_type IN ('update_preimage', 'delete')) OR (last = 1 AND _change_type IN ('update_postimage', 'insert'))
    """)


def touched_files(b: Built) -> DataFrame:
    """A plain scan of all files that the interval's commits name, as Parquet, with no identity of rows."""
    return b.spark.read.schema(b.schema_of()).parquet(*b.touched_files())


def whole_table(b: Built) -> DataFrame:
    """A plain scan of the table at the interval's end."""
    return b.spark.sql(f"SELECT * FROM {b.name} VERSION AS OF {b.through}")


NET, JOIN, FEED, TOUCHED, WHOLE = (
    "Spark netChanges",
    "join of two snapshots",
    "change feed netted by key",
    "scan of touched files",
    "scan of the table",
)
PEERS: dict[str, Reader] = {
    NET: spark_net_changes,
    JOIN: two_snapshots,
    FEED: change_feed_by_key,
    TOUCHED: touched_files,
    WHOLE: whole_table,
}


def read(df: DataFrame) -> None:
    """Computes every column of every row."""
    df.selectExpr("bit_xor(xxhash64(*))").collect()


def case(name: str, reader: Reader, built: Built) -> Case:
    """Reading a change set from the statement to the last row."""
    return Case(name, lambda: read(reader(built)))


def against(built: Built, *peers: str) -> list[Case]:
    """Ours, and the peers."""
    return [case("streamql", ours, built), *(case(p, PEERS[p], built) for p in peers)]


# -- one type of change each, and all over six commits

UPDATE = "UPDATE {t} SET amount = amount + 1 WHERE id % 100 = 7"
CLUSTERED = "UPDATE {{t}} SET amount = amount + 1 WHERE id >= {half} AND id < {half} + {some}"
DELETE = "DELETE FROM {t} WHERE id % 100 = 13"
INSERT = "INSERT INTO {{t}} SELECT {columns} FROM range({rows}, {rows} + {some}, 1, 4)"
MERGE = (
    "MERGE INTO {{t}} t USING (SELECT {columns} FROM range(20, {rows} + {some}, 100)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET t.name = 'merged' WHEN NOT MATCHED THEN INSERT *"
)


def statements(change: str, rows: int, columns: str = NARROW) -> list[str]:
    """The statements of a type of change: each touches 1 % of the rows; `mixed` does so with six commits."""
    facts = {"rows": rows, "half": rows // 2, "some": rows // 100, "columns": columns}
    one = {"update": UPDATE, "clustered": CLUSTERED.format(**facts), "delete": DELETE, "insert": INSERT.format(**facts)}
    one["merge"] = MERGE.format(**facts)
    if change in one:
        return [one[change]]
    mixed = []
    for n in range(2):
        mixed += [
            f"UPDATE {{t}} SET amount = amount + 1 WHERE id % 300 = {n}",
            f"DELETE FROM {{t}} WHERE id % 600 = {n + 10}",
            (
                f"MERGE INTO {{t}} t USING (SELECT {columns} FROM range({n + 20}, {rows + 1000}, 600)) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET t.name = 'merged' WHEN NOT MATCHED THEN INSERT *"
            ),
        ]
    return [*mixed, "OPTIMIZE {t}"] if change == "optimized" else mixed


def built(context: Context, change: str, rows: int, *, vectors: bool = True, wide: bool = False) -> Built:
    """The table of a type of change."""
    base = context.tables.base(rows, vectors=vectors, wide=wide)
    return context.tables.after(base, change, statements(change, rows, WIDE if wide else NARROW))


def workload(
    name: str, summary: str, rows: int, change: str, peers: Sequence[str], targets: Sequence[Target], **table: bool
) -> Benchmark:
    """A benchmark of one type of change."""
    return Benchmark(name, summary, lambda c, n: against(built(c, change, n, **table), *peers), rows, tuple(targets))


def optimized(context: Context, rows: int) -> list[Case]:
    """The same six commits, with OPTIMIZE of the whole table behind them, and without."""
    return [
        case("streamql", ours, built(context, "optimized", rows)),
        case("without OPTIMIZE", ours, built(context, "mixed", rows)),
    ]


def pruned(context: Context, rows: int, change: str) -> list[Case]:
    """Fewer columns, fewer rows, of one change set."""
    table = built(context, change, rows, wide=True)
    return [
        Case("streamql", lambda: read(ours(table))),
        Case("SELECT id", lambda: read(ours(table).select("id"))),
        Case("count(*)", lambda: read(ours(table).groupBy().count())),
        Case("WHERE grp = 5", lambda: read(ours(table).where("grp = 5"))),
    ]


def added_files(context: Context, rows: int, files: int) -> list[Case]:
    """Files added, and nothing else; against scans of them: as Parquet files, and as a table that has four more."""
    base = context.tables.base(4000)
    return against(context.tables.by_hand(base, f"added_{files}", 1, files), TOUCHED, WHOLE)


def lost_row(context: Context, rows: int, files: int) -> list[Case]:
    """One row of one file lost while files are added; against the files alone."""
    base = context.tables.base(4000)
    alone = context.tables.by_hand(base, f"added_{files}", 1, files)
    lost = context.tables.by_hand(base, f"added_{files}_one_lost", 1, files, ["DELETE FROM {t} WHERE id = 3999"])
    return [case("streamql", ours, lost), case("without the lost row", ours, alone)]


MILLION = 1_000_000
BENCHMARKS = (
    workload(
        "mixed",
        "1 % by 2 x (UPDATE, DELETE, MERGE), scattered",
        10 * MILLION,
        "mixed",
        (JOIN, FEED, TOUCHED, WHOLE),
        [Target(1 / 3, JOIN), Target(1.0, FEED), Target(1.5, TOUCHED)],
    ),
    workload(
        "mixed_net", "the same against Spark's own change query", 10 * MILLION, "mixed", (NET,), [Target(1 / 15, NET)]
    ),
    Benchmark(
        "optimized",
        "the same six commits, then OPTIMIZE of the whole table",
        optimized,
        10 * MILLION,
        (Target(1.05, "without OPTIMIZE"),),
    ),
    workload(
        "clustered",
        "1 % in one place updated",
        10 * MILLION,
        "clustered",
        (JOIN, FEED, TOUCHED, WHOLE),
        [Target(0.5), Target(1.5, TOUCHED)],
    ),
    workload(
        "insert",
        "1 % inserted",
        10 * MILLION,
        "insert",
        (JOIN, FEED, TOUCHED, WHOLE),
        [Target(0.2), Target(1.1, TOUCHED)],
    ),
    *(
        workload(
            f"{change}_1m",
            f"1 % by one {change.upper()}, scattered",
            MILLION,
            change,
            (NET, JOIN, FEED, TOUCHED),
            [Target(1 / 3, JOIN)],
        )
        for change in ("update", "delete", "merge")
    ),
    workload(
        "wide",
        "60 columns, six commits",
        MILLION,
        "mixed",
        (JOIN, FEED, TOUCHED),
        [Target(1 / 3, JOIN), Target(1.5, TOUCHED)],
        wide=True,
    ),
    workload(
        "copies",
        "six commits without deletion vectors: files are rewritten",
        10 * MILLION,
        "mixed",
        (JOIN, FEED, TOUCHED),
        [Target(4.0), Target(1 / 3, JOIN), Target(1.0, TOUCHED)],
        vectors=False,
    ),
    Benchmark(
        "pruned_insert", "60 columns, 1 % inserted: less asked for", lambda c, n: pruned(c, n, "insert"), MILLION
    ),
    Benchmark("pruned_mixed", "60 columns, six commits: less asked for", lambda c, n: pruned(c, n, "mixed"), MILLION),
    *(
        Benchmark(
            f"added_{n}",
            f"{n:,} files of 1,000 rows added",
            partial(added_files, files=n),
            0,
            (Target(1.1, TOUCHED), Target(1.1, WHOLE)),
        )
        for n in (1, 10, 100, 1000)
    ),
    *(
        Benchmark(
            f"lost_{n}",
            f"one row lost, {n:,} files added",
            partial(lost_row, files=n),
            0,
            (Target(1.5, "without the lost row"),),
        )
        for n in (1, 10, 100, 1000, 10_000)
    ),
)
