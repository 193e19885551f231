"""AUTO CDC INTO against the MERGE that one writes by hand (docs/copies-and-histories.md), both from a stream, into 10M rows."""

from __future__ import annotations

from functools import partial

from bench.context import Context
from bench.measuring import Benchmark, Case, Target

SCHEMA = "bench_auto_cdc"
BY_HAND = "MERGE by hand"
ROWS = 10_000_000
COLUMNS = "id, id % 1000 AS grp, concat('name-', id) AS name, id * 0.5D AS amount"
TYPES = "id BIGINT, grp BIGINT, name STRING, amount DOUBLE"
SIDES = ("ours", "theirs")

COPY = """MERGE INTO {n}_copy_theirs t
USING (SELECT * FROM (
         SELECT *, __change_type IN ('DELETE', 'UPDATE_BEFORE') AS is_old,
                row_number() OVER (PARTITION BY id ORDER BY __change_type IN ('DELETE', 'UPDATE_BEFORE')) AS nth
         FROM {n}_s) WHERE nth = 1) s
ON t.id <=> s.id
WHEN MATCHED AND is_old THEN DELETE
WHEN MATCHED THEN UPDATE SET grp = s.grp, name = s.name, amount = s.amount
WHEN NOT MATCHED AND NOT is_old THEN INSERT (id, grp, name, amount) VALUES (s.id, s.grp, s.name, s.amount)"""

HISTORY = """MERGE INTO {n}_history_theirs t
USING (SELECT * FROM (
         SELECT *, __change_type IN ('DELETE', 'UPDATE_BEFORE') AS is_end, count(*) OVER (PARTITION BY id, grp, name, amount) AS equal,
                coalesce(lead(__commit_timestamp) OVER (PARTITION BY METADATA$ROW_ID ORDER BY __change_type IN ('INSERT', 'UPDATE_AFTER')),
                         lead(__commit_timestamp) OVER (PARTITION BY id ORDER BY __change_type IN ('INSERT', 'UPDATE_AFTER')),
                         current_timestamp()) AS next_from
         FROM {n}_s)
       WHERE equal = 1) s
ON s.is_end AND t.id <=> s.id AND t.__END_AT IS NULL
WHEN MATCHED THEN UPDATE SET __END_AT = greatest(t.__START_AT, s.next_from)
WHEN NOT MATCHED AND NOT s.is_end THEN
  INSERT (id, grp, name, amount, __START_AT, __END_AT)
  VALUES (s.id, s.grp, s.name, s.amount, coalesce(s.__commit_timestamp, current_timestamp()), NULL)"""


def prepare(context: Context, changes: int) -> str:
    """A stream that shows so many updates, and a tenth as many deletes and inserts, and two targets of each type."""
    spark, n = context.spark, f"{SCHEMA}.c{changes}"
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    if not spark.catalog.tableExists(f"{n}_done"):
        spark.sql(f"CREATE OR REPLACE TABLE {n} ({TYPES}) TBLPROPERTIES ('change_tracking' = 'true')")
        spark.sql(f"INSERT INTO {n} SELECT {COLUMNS} FROM range(0, {ROWS}, 1, 8)")
        times = "TIMESTAMP'2026-01-01 00:00:00' AS __START_AT, CAST(NULL AS TIMESTAMP) AS __END_AT"
        for side in SIDES:
            spark.sql(f"CREATE OR REPLACE TABLE {n}_copy_{side} AS SELECT * FROM {n}")
            spark.sql(f"CREATE OR REPLACE TABLE {n}_history_{side} AS SELECT *, {times} FROM {n}")
        spark.sql(f"CREATE OR REPLACE STREAM {n}_s ON TABLE {n}")
        step = ROWS // changes
        spark.sql(f"UPDATE {n} SET amount = amount + 1 WHERE id % {step} = 0")
        spark.sql(f"DELETE FROM {n} WHERE id % {step * 10} = 1")
        spark.sql(f"INSERT INTO {n} SELECT {COLUMNS} FROM range({ROWS}, {ROWS + changes // 10}, 1, 1)")
        spark.sql(f"CREATE TABLE {n}_done (id INT)")
    return n


def again(context: Context, n: str, target: str) -> None:
    """Takes the stream and a target back to where the changes are new."""
    row = context.spark.sql(f"DESCRIBE HISTORY {n} LIMIT 1").first()
    assert row is not None
    context.spark.sql(f"ALTER TABLE STREAM {n}_s SET OFFSET VERSION {int(row['version']) - 3}")
    context.spark.sql(f"RESTORE TABLE {target} TO VERSION AS OF 0")


def applied(context: Context, changes: int, kind: str, by_hand: str, clause: str) -> list[Case]:
    """The changes of the stream, into a target of a kind."""
    n = prepare(context, changes)

    def run(statement: str) -> None:
        context.spark.sql(statement)

    ours, theirs = (f"{n}_{kind}_{side}" for side in SIDES)
    return [
        Case(
            "streamql",
            lambda: run(f"AUTO CDC INTO {ours} FROM STREAM {n}_s KEYS (id) {clause}"),
            lambda: again(context, n, ours),
        ),
        Case(BY_HAND, lambda: run(by_hand.format(n=n)), lambda: again(context, n, theirs)),
    ]


BENCHMARKS = tuple(
    Benchmark(
        f"cdc_{kind}_{changes}",
        f"AUTO CDC INTO a {kind} of 10M rows: {changes:,} updates, a tenth as many deletes and inserts",
        partial(applied, kind=kind, by_hand=by_hand, clause=clause),
        changes,
        (Target(1.1, BY_HAND),),
    )
    for kind, by_hand, clause in (("copy", COPY, ""), ("history", HISTORY, "STORED AS SCD TYPE 2"))
    for changes in (10_000, 1_000_000)
)
