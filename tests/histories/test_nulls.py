"""NULLs in columns that are NOT NULL where the interval ends: rows of before show what they held."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from streamql.model import StreamMode, Versions

from . import subject
from .tables import Table

STRICT = (
    "k BIGINT, n INT NOT NULL, b BOOLEAN NOT NULL, d DATE NOT NULL, x DOUBLE NOT NULL, c STRING NOT NULL, "
    "s STRUCT<i: INT NOT NULL, c: STRING NOT NULL> NOT NULL, p INT NOT NULL"
)
ROWS = (
    "VALUES (1, NULL, NULL, NULL, NULL, NULL, NULL, NULL), "
    "(2, NULL, NULL, NULL, NULL, NULL, named_struct('i', CAST(NULL AS INT), 'c', CAST(NULL AS STRING)), NULL)"
)


def test_rows_of_a_time_when_the_columns_could_be_null(spark: SparkSession, table_path: str) -> None:
    table = Table(spark, table_path)
    table.create(STRICT, clauses="PARTITIONED BY (p)")
    none = spark.createDataFrame([], STRICT.replace(" NOT NULL", ""))
    loose = none.write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy("p")
    loose.save(table_path)
    created = table.version
    table.fill(ROWS)
    table.run("RESTORE TABLE {t} TO VERSION AS OF 0")
    assert table.net() == [
        ("DELETE", 0, 1, None, None, None, None, None, None, None),
        ("DELETE", 0, 2, None, None, None, None, None, ("struct", (None, None)), None),
    ]
    assert [row[:3] for row in table.appended(created)] == [("INSERT", 0, 1), ("INSERT", 0, 2)]
    rows = subject.change_set(spark, table_path, Versions(table.start, table.version), StreamMode.STANDARD)
    assert rows.where("n IS NULL AND b IS NULL AND c IS NULL AND p IS NULL AND s.i IS NULL").count() == 2
    assert rows.where("n IS NOT NULL OR s.i IS NOT NULL").count() == 0


def test_updates_that_a_restore_takes_back(spark: SparkSession, table_path: str) -> None:
    table = Table(spark, table_path)
    table.create("k BIGINT, n INT NOT NULL, s STRUCT<i: INT NOT NULL, c: STRING>")
    table.fill("SELECT id, CAST(10 * id AS INT), named_struct('i', 5, 'c', 'c') FROM range(1, 4, 1, 1)")
    table.run("ALTER TABLE {t} ALTER COLUMN n DROP NOT NULL", "ALTER TABLE {t} ALTER COLUMN s.i DROP NOT NULL")
    table.run("UPDATE {t} SET n = NULL, s = named_struct('i', CAST(NULL AS INT), 'c', 'c') WHERE k = 1")
    updated = table.run("INSERT INTO {t} VALUES (9, NULL, NULL)")
    old, null = ("struct", (5, "c")), ("struct", (None, "c"))
    table.run("OPTIMIZE {t}", f"RESTORE TABLE {{t}} TO VERSION AS OF {table.start}")
    assert table.net(updated) == [
        ("DELETE", 4, 9, None, None),
        ("UPDATE_AFTER", 0, 1, 10, old),
        ("UPDATE_BEFORE", 3, 1, None, null),
    ]
    assert table.appended() == [("INSERT", 4, 9, None, None)]
    assert table.net() == []


def test_not_null_inside_of_a_type_is_claimed_if_it_always_was(spark: SparkSession, table_path: str) -> None:
    """Delta's MERGE into a type with NOT NULL in it takes no other."""
    table = Table(spark, table_path)
    table.create("k BIGINT, n INT NOT NULL, s STRUCT<i: INT NOT NULL, c: STRING>")
    table.fill("SELECT id, CAST(id AS INT), named_struct('i', 5, 'c', 'c') FROM range(0, 3, 1, 1)")

    def claims() -> list[bool]:
        interval = Versions(table.start, table.version)
        made = subject.change_set(spark, table_path, interval, StreamMode.STANDARD).schema
        return [made["n"].nullable, made["s"].nullable, made["s"].dataType["i"].nullable]

    table.run("UPDATE {t} SET n = 7 WHERE k = 1", "ALTER TABLE {t} ALTER COLUMN n COMMENT 'a number'")
    assert claims() == [True, True, False]
    table.run("ALTER TABLE {t} ALTER COLUMN s.i DROP NOT NULL")
    assert claims() == [True, True, True]


def test_a_struct_with_not_null_that_got_a_field(spark: SparkSession, table_path: str) -> None:
    if not subject.HAS_INITIAL:
        pytest.skip("the subject knows no initial rows")
    table = Table(spark, table_path)
    table.create("k BIGINT, s STRUCT<i: INT NOT NULL, c: STRING>")
    table.fill("SELECT id, named_struct('i', 5, 'c', 'c') FROM range(0, 1, 1, 1)")
    table.run(
        "ALTER TABLE {t} ADD COLUMN s.z INT", "INSERT INTO {t} VALUES (1, named_struct('i', 6, 'c', 'd', 'z', 7))"
    )
    interval = Versions(table.start, table.version, initial=True)
    rows = subject.shown(spark, table_path, interval, StreamMode.APPEND_ONLY, ["k", "s"])
    assert sorted((row.k, tuple(row.s)) for row in rows.collect()) == [(0, (5, "c", None)), (1, (6, "d", 7))]
