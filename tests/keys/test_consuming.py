"""Streams by key are consumed as others are: exactly once, also if the table is replaced under a claim, and with all that a stream has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.engine.doctor import examine
from streamql.errors import StreamqlError
from tests.consume.support import assert_ledger_tiles, fresh_schema, in_threads, killed, offset_of, run
from tests.sample import sample

TRACKED = "TBLPROPERTIES ('change_tracking' = 'true')"
ROWS = 500
CHANGED = "__change_type, __commit_version, id, v"
POINTS = ["after:claim", "after:execute", "before:end"]

REBUILDS = (
    "INSERT OVERWRITE t {rows}",
    "CREATE OR REPLACE TABLE t AS {rows}",
    "CREATE OR REPLACE TABLE t " + TRACKED + " AS {rows}",
)


def rebuilt(night: int) -> str:
    """The rows of a night: a tenth has other values, and each night brings some and takes some."""
    first = night * 20
    return f"SELECT id, IF(id % 10 = {night}, {night}, 0) AS v FROM range({first}, {first + ROWS})"


def keyed_table(spark: SparkSession, prefix: str) -> str:
    """A schema with the table t, its stream s by key, and a copy of t."""
    schema = fresh_schema(spark, prefix)
    run(spark, f"CREATE TABLE t (id BIGINT PRIMARY KEY RELY, v INT) {TRACKED}")
    run(spark, f"INSERT INTO t {rebuilt(0)}")
    run(spark, "CREATE STREAM s ON TABLE t IDENTITY = KEY")
    run(spark, "CREATE TABLE copy AS SELECT id, v FROM t")
    return schema


def newest_of_table(spark: SparkSession) -> int:
    """The newest version of t."""
    return int(run(spark, "DESCRIBE HISTORY t LIMIT 1")[0]["version"])


def merge(schema: str, target: str = "copy", options: str = "") -> str:
    return (
        f"MERGE INTO {schema}.{target} c USING (SELECT * FROM {schema}.s{options} WHERE __change_type <> 'UPDATE_BEFORE') s ON c.id = s.id "
        "WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED AND s.__change_type <> 'DELETE' THEN INSERT (id, v) VALUES (s.id, s.v)"
    )


def assert_equal(spark: SparkSession, target: str = "copy") -> None:
    for one, other in (("t", target), (target, "t")):
        assert run(spark, f"SELECT id, v FROM {one} EXCEPT ALL SELECT id, v FROM {other}") == []


@pytest.mark.parametrize("point", sample("kills of a merge by key", POINTS, 1))
def test_a_consumer_is_killed_and_the_table_is_rebuilt_before_the_next_one(spark: SparkSession, point: str) -> None:
    schema = keyed_table(spark, "nights")
    first = offset_of(spark, f"{schema}.s")
    for night, rebuild in enumerate(REBUILDS, 1):
        run(spark, rebuild.format(rows=rebuilt(night)))
        killed(spark, point, merge(schema))
        run(spark, rebuild.format(rows=rebuilt(night + 5)))
        run(spark, merge(schema))  # resumes, or reads both rebuilds as one
        run(spark, merge(schema))
        assert_equal(spark)
        assert run(spark, "SELECT * FROM s") == []
    assert_ledger_tiles(spark, f"{schema}.s", first)


def test_batches_and_transactions_go_over_a_replacement(spark: SparkSession) -> None:
    schema = keyed_table(spark, "parts")
    run(spark, "UPDATE t SET v = 7 WHERE id < 10")
    run(spark, f"CREATE OR REPLACE TABLE t AS {rebuilt(1)}")
    run(spark, f"INSERT OVERWRITE t {rebuilt(2)}")
    batches = 0
    while run(spark, "SELECT 1 FROM s LIMIT 1"):
        run(spark, merge(schema, options=" WITH (MAX_BATCH_SIZE = 10)"))
        batches += 1
        if batches == 1:  # the stream knows the table as it is now, and stands before its replacement
            with pytest.raises(StreamqlError, match=r"INVALID_POINT_IN_TIME.* was replaced after version 2, at which "):
                run(spark, "CREATE STREAM by_row_id ON TABLE t AT (STREAM => 's')")
    assert batches == 3, "a commit each"
    assert_equal(spark)
    run(spark, f"CREATE OR REPLACE TABLE t {TRACKED} AS {rebuilt(3)}")
    run(spark, "CREATE TABLE other AS SELECT * FROM copy")
    run(spark, "BEGIN TRANSACTION")
    run(spark, merge(schema))
    spark.newSession().sql(f"INSERT OVERWRITE {schema}.t {rebuilt(4)}")
    run(spark, merge(schema, "other"))
    run(spark, "COMMIT")
    assert run(spark, "SELECT * FROM copy EXCEPT ALL SELECT * FROM other") == []
    run(spark, merge(schema))
    assert_equal(spark)


def test_what_else_a_stream_has(spark: SparkSession) -> None:
    """Tables at its begin and end, initial rows, the guard of VACUUM, and a copy of its offset."""
    schema = keyed_table(spark, "more")
    run(spark, "CREATE TABLE old AS SELECT * FROM t")
    run(spark, f"CREATE OR REPLACE TABLE t AS {rebuilt(1)}")
    assert run(spark, "SELECT id, v FROM t AT (STREAM => 's') EXCEPT ALL SELECT * FROM old") == []
    assert run(spark, "SELECT id, v FROM t END (STREAM => 's') EXCEPT ALL SELECT id, v FROM t") == []
    run(spark, "SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    with pytest.raises(StreamqlError, match="STREAM_NEEDS_FILES"):
        run(spark, "VACUUM t RETAIN 0 HOURS")
    run(spark, "ALTER TABLE t ADD PRIMARY KEY (id) RELY")
    with pytest.raises(StreamqlError, match=r"STREAM_SOURCE_REPLACED.*are of one table"):
        run(spark, "SELECT * FROM tablestore_records('s')")
    run(spark, "CREATE STREAM other ON TABLE t AT (STREAM => 's') IDENTITY = KEY")
    assert run(spark, "SELECT * FROM other EXCEPT ALL SELECT * FROM s") == []
    run(spark, "CREATE STREAM initial ON TABLE t IDENTITY = KEY SHOW_INITIAL_ROWS = TRUE")
    run(spark, "CREATE TABLE filled AS SELECT id, v FROM initial")
    assert_equal(spark, "filled")
    run(spark, merge(schema))
    run(spark, "DROP STREAM other")
    run(spark, "VACUUM t RETAIN 0 HOURS")
    assert_equal(spark)


def test_two_consumers_at_once(spark: SparkSession) -> None:
    """Each of two threads takes what the other one leaves, a commit at a time. Each changed row arrives once, in one of their targets."""
    schema = keyed_table(spark, "crowd")
    first = offset_of(spark, f"{schema}.s")
    nights = [REBUILDS[0], REBUILDS[1], REBUILDS[0], REBUILDS[0]]
    for night, rebuild in enumerate(nights, 1):
        run(spark, rebuild.format(rows=rebuilt(night)))
        if rebuild is not REBUILDS[0]:
            run(spark, "ALTER TABLE t ADD PRIMARY KEY (id) RELY")
    expected: Counter[tuple[object, ...]] = Counter()
    for version in range(first, newest_of_table(spark)):
        points = f"AT (VERSION => {version}) END (VERSION => {version + 1})"
        rows = run(spark, f"SELECT {CHANGED} FROM t CHANGES (INFORMATION => DEFAULT, IDENTITY => KEY) {points}")
        expected.update(tuple(r) for r in rows)
    assert len(expected) == expected.total() > 4 * ROWS / 10

    def consume(target: str) -> None:
        own = spark.newSession()
        while run(own, f"SELECT 1 FROM {schema}.s LIMIT 1"):
            run(own, f"INSERT INTO {target} SELECT {CHANGED} FROM {schema}.s WITH (MAX_BATCH_SIZE = 10)")

    targets = [f"{schema}.taken_{i}" for i in range(2)]
    for target in targets:
        run(spark, f"CREATE TABLE {target} (__change_type STRING, __commit_version BIGINT, id BIGINT, v INT)")
    assert in_threads(*[lambda t=t: consume(t) for t in targets]) == []
    taken = run(spark, " UNION ALL ".join(f"SELECT * FROM {target}" for target in targets))
    assert Counter(tuple(r) for r in taken) == expected
    assert_ledger_tiles(spark, f"{schema}.s", first)


def test_vacuum_asks_a_stream_by_key_what_it_needs(spark: SparkSession) -> None:
    """Row ids would tell nothing here, because the table has lost them."""
    keyed_table(spark, "guarded")
    files = [Path(r[0].removeprefix("file:")) for r in run(spark, "SELECT DISTINCT _metadata.file_path FROM t")]
    run(spark, "CREATE OR REPLACE TABLE t (PRIMARY KEY (id) RELY) AS SELECT id, v FROM t WHERE id > 9")
    run(spark, "ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')")
    run(spark, "SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    with pytest.raises(StreamqlError, match="STREAM_NEEDS_FILES"):
        run(spark, "VACUUM t RETAIN 0 HOURS")
    for file in files:
        file.unlink()
    with pytest.raises(StreamqlError, match="STREAM_STALE"):
        run(spark, "SELECT * FROM s")
    run(spark, "VACUUM t RETAIN 0 HOURS")
    run(spark, "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')")
    run(spark, "CREATE OR REPLACE STREAM s ON TABLE t IDENTITY = KEY AT (VERSION => 2)")
    run(spark, "DROP TABLE t")
    run(spark, f"CREATE TABLE t (id BIGINT PRIMARY KEY RELY, v INT) {TRACKED}")
    for night in range(3):
        run(spark, f"INSERT OVERWRITE t {rebuilt(night)}")
    for identity, error in (("KEY", "STREAM_SOURCE_REPLACED"), ("ROW_ID", "INVALID_POINT_IN_TIME.*means nothing in")):
        with pytest.raises(StreamqlError, match=error):
            run(spark, f"CREATE STREAM other ON TABLE t AT (STREAM => 's') IDENTITY = {identity}")
    run(spark, "VACUUM t RETAIN 0 HOURS")  # of another log


def test_a_key_that_lies_moves_nothing_and_is_counted(spark: SparkSession) -> None:
    schema = keyed_table(spark, "lies")
    run(spark, f"INSERT OVERWRITE t {rebuilt(1)} UNION ALL SELECT 30, 1 UNION ALL SELECT 30, 2 UNION ALL SELECT 31, 1")
    before = offset_of(spark, f"{schema}.s")
    with pytest.raises(StreamqlError, match=r"KEY_NOT_UNIQUE.*rows of version 2 of .*have the key \(id = 3[01]\)"):
        run(spark, merge(schema))
    assert offset_of(spark, f"{schema}.s") == before
    found = [f for f in examine(spark, deep=True) if f.subject == f"{schema}.s"]
    assert [(f.code, f.severity) for f in found] == [("KEY_NOT_UNIQUE", "error")]
    assert "2 keys of" in found[0].what
    assert "3 rows have (id = 30)" in found[0].what
    run(spark, f"INSERT OVERWRITE t {rebuilt(1)}")
    run(spark, merge(schema))
    assert_equal(spark)


def test_null_is_the_same_value_and_the_same_key_as_null(spark: SparkSession) -> None:
    """In two files of the begin, whose rows meet one file of the end."""
    fresh_schema(spark, "nulls")
    run(spark, f"CREATE TABLE t (id INT PRIMARY KEY RELY, v STRING) {TRACKED}")
    run(spark, "INSERT INTO t VALUES (NULL, 'a'), (1, NULL)")
    run(spark, "INSERT INTO t VALUES (2, NULL), (3, 'c')")
    for stream, appended in (("s", "FALSE"), ("a", "TRUE")):
        run(spark, f"CREATE STREAM {stream} ON TABLE t IDENTITY = KEY APPEND_ONLY = {appended}")
    run(spark, "INSERT OVERWRITE t VALUES (NULL, 'a'), (1, NULL), (2, 'b'), (3, NULL), (4, NULL)")
    rows = [tuple(r) for r in run(spark, "SELECT __change_type, id, v FROM s")]
    assert Counter(rows) == Counter(
        [
            ("UPDATE_BEFORE", 2, None),
            ("UPDATE_AFTER", 2, "b"),
            ("UPDATE_BEFORE", 3, "c"),
            ("UPDATE_AFTER", 3, None),
            ("INSERT", 4, None),
        ]
    )
    assert [tuple(r) for r in run(spark, "SELECT __change_type, id, v FROM a")] == [("INSERT", 4, None)]


def test_change_tracking_is_switched_on_again(spark: SparkSession) -> None:
    schema = keyed_table(spark, "tracking")
    run(spark, f"CREATE OR REPLACE TABLE t AS {rebuilt(1)}")
    run(
        spark, "ALTER TABLE t UNSET TBLPROPERTIES ('delta.enableRowTracking')"
    )  # what a replacement does before Delta Lake 4.2
    run(spark, "UPDATE t SET v = 5 WHERE id % 50 = 0")
    run(spark, merge(schema))
    shown = {r["key"]: r["value"] for r in run(spark, "SHOW TBLPROPERTIES t")}
    assert shown["delta.enableRowTracking"] == "true"
    assert run(spark, "SELECT * FROM s") == [], "switching it on changes no row"
    run(spark, "UPDATE t SET v = 6 WHERE id = 100")
    assert [tuple(r) for r in run(spark, "SELECT __change_type, id, v FROM s ORDER BY v")] == [
        ("UPDATE_BEFORE", 100, 5),
        ("UPDATE_AFTER", 100, 6),
    ]
    run(spark, merge(schema))
    assert_equal(spark)


def test_a_replaced_table_is_renamed(spark: SparkSession) -> None:
    """Neither its id nor its path nor its name is as the stream saw it. VACUUM knows it nevertheless."""
    schema = keyed_table(spark, "renamed")
    run(spark, f"CREATE OR REPLACE TABLE t AS {rebuilt(1)}")
    pending = run(spark, "SELECT id, v FROM s ORDER BY id, v")
    assert pending
    run(spark, "ALTER TABLE t RENAME TO moved")
    run(spark, "SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    with pytest.raises(StreamqlError, match="STREAM_NEEDS_FILES"):
        run(spark, "VACUUM moved RETAIN 0 HOURS")
    run(spark, "CREATE TABLE t (id INT)")
    assert run(spark, "SELECT id, v FROM s ORDER BY id, v") == pending
    run(spark, merge(schema))
    assert run(spark, "SELECT id, v FROM moved EXCEPT ALL SELECT id, v FROM copy") == []


def test_columns_of_the_key_are_renamed(spark: SparkSession) -> None:
    fresh_schema(spark, "columns")
    run(spark, "CREATE TABLE t (id INT PRIMARY KEY RELY, v INT) TBLPROPERTIES "
        "('change_tracking' = 'true', 'delta.columnMapping.mode' = 'name')")  # fmt: skip
    run(spark, "INSERT INTO t VALUES (1, 10), (2, 20)")
    run(spark, "CREATE STREAM s ON TABLE t IDENTITY = KEY")
    run(spark, "ALTER TABLE t RENAME COLUMN id TO x")
    run(spark, "ALTER TABLE t RENAME COLUMN v TO id")
    run(spark, "UPDATE t SET id = 11 WHERE x = 1")
    assert {r[0] for r in run(spark, "SELECT * FROM s")} == {"UPDATE_BEFORE", "UPDATE_AFTER"}
    run(spark, "CREATE OR REPLACE TABLE t AS SELECT x, 0 AS part, id AS v FROM t")
    run(spark, "ALTER TABLE t ADD PRIMARY KEY (x, part) RELY")
    with pytest.raises(
        StreamqlError, match=r"INCOMPATIBLE_SCHEMA_CHANGE.*version 1 of .* lacks the column x of the key"
    ):
        run(spark, "ALTER STREAM s SET IDENTITY = KEY")


def test_a_batch_goes_on_to_the_commit_that_corrects_a_key(spark: SparkSession) -> None:
    schema = keyed_table(spark, "batches")
    run(spark, "INSERT INTO t VALUES (9001, 1)")
    run(spark, "INSERT INTO t VALUES (9002, 1), (9002, 2)")
    run(spark, "DELETE FROM t WHERE id = 9002 AND v = 2")
    run(spark, "INSERT INTO t VALUES (9003, 1)")
    for count in (1, 2, 3):
        run(spark, merge(schema, options=" WITH (MAX_BATCH_SIZE = 1)"))
        assert run(spark, "SELECT count(*) AS n FROM copy WHERE id > 9000")[0]["n"] == count
    assert_equal(spark)
