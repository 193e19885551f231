"""What counts as a changed value, type by type, and rows across schema changes."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import VariantVal

from streamql.errors import StreamqlError
from tests.lines import UPDATES_CHAR

from .recording import conf
from .tables import Table

MAPPED = "'delta.columnMapping.mode' = 'name'"


def mixed(value: str) -> str:
    """A variant: an array of things of several types, of which Spark's schema_of_variant says no more than VARIANT."""
    return f"to_variant_object(array(CAST({value} AS VARIANT), parse_json('true'), parse_json('{{\"a\": 1}}')))"


EQUAL = {
    "NaN": ("DOUBLE", "CAST('NaN' AS DOUBLE)", "sqrt(-1)"),
    "zero's sign": ("DOUBLE", "CAST('-0.0' AS DOUBLE)", "0.0D"),
    "null": ("STRING", "NULL", "NULL"),
    "map in another order": ("MAP<STRING, INT>", "map('x', 1, 'y', NULL)", "map('y', NULL, 'x', 1)"),
    "map in a struct": (
        "STRUCT<m: MAP<STRING, DOUBLE>>",
        "named_struct('m', map('x', 1, 'y', 2))",
        "named_struct('m', map('y', 2, 'x', 1))",
    ),
    "struct of nulls": ("STRUCT<x: INT, y: INT>", "named_struct('x', NULL, 'y', 1)", "named_struct('x', NULL, 'y', 1)"),
    "array with NaN": ("ARRAY<DOUBLE>", "array('NaN', NULL)", "array(CAST('NaN' AS DOUBLE), NULL)"),
    "binary": ("BINARY", "X'00FF'", "unhex('00ff')"),
    "variant": ("VARIANT", """parse_json('{"a": 1, "b": [2]}')""", """parse_json('{"b":[2],"a":1}')"""),
    "decimal": ("DECIMAL(10, 2)", "1.5", "1.50"),
    "variant with a decimal of another scale": (
        "VARIANT",
        mixed("CAST(1.5 AS DECIMAL(4, 1))"),
        mixed("CAST(1.5 AS DECIMAL(20, 7))"),
    ),
    "variant with NaN": ("VARIANT", mixed("CAST('NaN' AS DOUBLE)"), mixed("sqrt(-1)")),
    "variant in a map in another order": (
        "MAP<STRING, ARRAY<VARIANT>>",
        f"map('x', array({mixed('date_from_unix_date(1)')}), 'y', NULL)",
        f"map('y', NULL, 'x', array({mixed('date_from_unix_date(1)')}))",
    ),
    "map in a map in another order": (
        "MAP<INT, MAP<DOUBLE, INT>>",
        "map(1, map(CAST('NaN' AS DOUBLE), 1, 2, 2), 3, map())",
        "map(3, map(), 1, map(2, 2, CAST('NaN' AS DOUBLE), 1))",
    ),
    "map with collated keys in another order": (
        "MAP<STRING COLLATE UTF8_LCASE, INT>",
        "map('B' COLLATE UTF8_LCASE, 1, 'a' COLLATE UTF8_LCASE, 2)",
        "map('a' COLLATE UTF8_LCASE, 2, 'B' COLLATE UTF8_LCASE, 1)",
    ),
    "zero's sign in a map": ("MAP<INT, DOUBLE>", "map(1, CAST('-0.0' AS DOUBLE))", "map(1, 0.0D)"),
    "interval": ("INTERVAL DAY TO SECOND", "INTERVAL '1' DAY", "INTERVAL '24' HOUR"),
}

DIFFERENT = {
    "null and not": ("STRING", "NULL", "''"),
    "letter case": ("STRING", "'a'", "'A'"),
    "letter case in a collation without": ("STRING COLLATE UTF8_LCASE", "'a'", "'A'"),
    "letter case in a collated array": ("ARRAY<STRING COLLATE UTF8_LCASE>", "array('a')", "array('A')"),
    "letter case in a collated struct": (
        "STRUCT<s: STRING COLLATE UTF8_LCASE>",
        "named_struct('s', 'a')",
        "named_struct('s', 'A')",
    ),
    "accent in a collation without": ("STRING COLLATE UNICODE_CI_AI", "'a'", "'ä'"),
    "trailing space": ("STRING", "'a'", "'a '"),
    **({"char": ("CHAR(4)", "'a'", "'b'")} if UPDATES_CHAR else {}),
    "varchar": ("VARCHAR(4)", "'a'", "'A'"),
    "NaN and null": ("DOUBLE", "CAST('NaN' AS DOUBLE)", "NULL"),
    "empty map and null": ("MAP<STRING, INT>", "map()", "NULL"),
    "a map's value": ("MAP<STRING, INT>", "map('x', 1)", "map('x', 2)"),
    "a map's null value": ("MAP<STRING, INT>", "map('x', NULL)", "map('y', NULL)"),
    "struct of nulls and null": ("STRUCT<x: INT>", "named_struct('x', NULL)", "NULL"),
    "deep in a struct": (
        "STRUCT<a: ARRAY<MAP<STRING, INT>>>",
        "named_struct('a', array(map('x', 1)))",
        "named_struct('a', array(map('x', 2)))",
    ),
    "array order": ("ARRAY<INT>", "array(1, 2)", "array(2, 1)"),
    "empty array and array of null": ("ARRAY<INT>", "array()", "array(NULL)"),
    "binary length": ("BINARY", "X'00'", "X'0000'"),
    "variant": ("VARIANT", """parse_json('{"a": 1}')""", """parse_json('{"a": "1"}')"""),
    "variant null and null": ("VARIANT", "parse_json('null')", "NULL"),
    "variant with a date and a string": ("VARIANT", mixed("DATE'2024-01-01'"), mixed("'2024-01-01'")),
    "variant with a local time and a string": (
        "VARIANT",
        mixed("TIMESTAMP_NTZ'2024-01-01 00:00:00'"),
        mixed("'2024-01-01 00:00:00'"),
    ),
    "variant with a local time and an instant": (
        "VARIANT",
        mixed("TIMESTAMP_NTZ'2024-01-01 00:00:00'"),
        mixed("TIMESTAMP'2024-01-01 00:00:00 UTC'"),
    ),
    "variant with a double and a decimal": ("VARIANT", mixed("1.5D"), mixed("1.5BD")),
    "variant that is a float and a double": ("VARIANT", "CAST(1.5F AS VARIANT)", "CAST(1.5D AS VARIANT)"),
    "variant with an integer and a decimal": ("VARIANT", mixed("1"), mixed("1.0BD")),
    "variant with binary and a string": ("VARIANT", mixed("X'00FF'"), mixed("base64(X'00FF')")),
    "variant in a struct": (
        "STRUCT<v: VARIANT>",
        f"named_struct('v', {mixed('1')})",
        f"named_struct('v', {mixed('true')})",
    ),
    "variant in a map": ("MAP<INT, VARIANT>", f"map(1, {mixed('1.5D')})", f"map(1, {mixed('1.5BD')})"),
    "letter case in a map's collated keys": (
        "MAP<STRING COLLATE UTF8_LCASE, INT>",
        "map('a' COLLATE UTF8_LCASE, 1)",
        "map('A' COLLATE UTF8_LCASE, 1)",
    ),
    "a nested map's value": ("MAP<INT, MAP<INT, INT>>", "map(1, map(1, 1, 2, 2))", "map(1, map(2, 1, 1, 1))"),
    "one microsecond": ("TIMESTAMP", "TIMESTAMP'2024-01-01 00:00:00'", "TIMESTAMP'2024-01-01 00:00:00.000001'"),
}


UNCHECKED = (("spark.databricks.delta.schema.typeCheck.enabled", "false"),)
"""Delta 4.4 takes collated columns only with its check of types off."""


def cases_in_one_table(spark: SparkSession, path: str, cases: dict[str, tuple[str, str, str]]) -> Table:
    """A table with a column v0, v1 … for each case; row k = i then gets the other value of case i, and no more."""
    table = Table(spark, path)
    columns = ", ".join(f"v{i} {sql_type}" for i, (sql_type, _, _) in enumerate(cases.values()))
    olds = ", ".join(f"CAST({old} AS {sql_type})" for sql_type, old, _ in cases.values())
    with conf(spark, UNCHECKED):
        table.create(f"k BIGINT, {columns}")
        table.fill(f"SELECT id, {olds} FROM range(0, {len(cases) + 2}, 1, 1)")
        news = ", ".join(
            f"v{i} = IF(k = {i}, CAST({new} AS {sql_type}), v{i})"
            for i, (sql_type, _, new) in enumerate(cases.values())
        )
        table.run(f"UPDATE {{t}} SET {news}")
    return table


def changed_cases(table: Table, cases: dict[str, tuple[str, str, str]]) -> list[str]:
    """The cases whose row has an update, in order; there is nothing but updates."""
    rows = table.net()
    after = [row[2] for row in rows if row[:2] == ("UPDATE_AFTER", 1)]
    assert sorted(map(repr, after)) == sorted(repr(row[2]) for row in rows if row[:2] == ("UPDATE_BEFORE", 0))
    assert len(rows) == 2 * len(after)
    names = [*cases, "a row of no case", "another"]
    return [names[k] for k in range(len(names)) if k in after]


def test_equal_values_are_no_change(spark: SparkSession, table_path: str) -> None:
    table = cases_in_one_table(spark, table_path, EQUAL)
    assert changed_cases(table, EQUAL) == []


def test_different_values_are_an_update(spark: SparkSession, table_path: str) -> None:
    table = cases_in_one_table(spark, table_path, DIFFERENT)
    assert changed_cases(table, DIFFERENT) == list(DIFFERENT)


WIDE = VariantVal(
    bytes.fromhex(
        "1f 04000000 00000000 09000000 0f000000 21000000 2a000000"  # four elements, four bytes for each size and offset
        "18 0100000000000000"  # 1, in eight bytes
        "40 01000000 78"  # "x", a long string
        "28 02 96000000000000000000000000000000"  # 1.50, in sixteen bytes
        "02 02 02 01 00 02 04 0c 02 0c 03"  # {"a": 2, "b": 3}: keys 2 and 1 of the dictionary
    ),
    bytes.fromhex("01 03 00 01 02 03 7a 62 61"),  # the keys z, b and a, not in their order
)
"""A variant encoded as other writers do."""


def test_a_variant_encoded_in_another_way_is_no_change(spark: SparkSession, table_path: str) -> None:
    table = Table(spark, table_path)
    table.create("k BIGINT, v VARIANT")
    spark.createDataFrame([(k, WIDE) for k in range(3)], "k BIGINT, v VARIANT").coalesce(1).createOrReplaceTempView(
        "wide"
    )
    table.fill("SELECT * FROM wide")
    spark.catalog.dropTempView("wide")
    narrow = "parse_json('1'), parse_json('\"x\"'), CAST(1.5BD AS VARIANT), parse_json('{{\"b\": {b}, \"a\": 2}}')"
    same, other = (f"to_variant_object(array({narrow.format(b=b)}))" for b in (3, 4))
    table.run(f"UPDATE {{t}} SET v = {same} WHERE k = 1", f"UPDATE {{t}} SET v = {other} WHERE k = 2")
    assert [row[:3] for row in table.net()] == [("UPDATE_AFTER", 2, 2), ("UPDATE_BEFORE", 0, 2)]


@pytest.fixture
def mapped(spark: SparkSession, table_path: str) -> Table:
    """k, a, b with column mapping by name: 6 rows in two files."""
    table = Table(spark, table_path)
    table.create("k BIGINT, a INT, b STRING", properties=f"{MAPPED}, 'delta.enableTypeWidening' = 'true'")
    table.fill("SELECT id, CAST(id AS INT), concat('b', id) FROM range(0, 6, 1, 2)")
    return table


def test_an_added_column_is_null_before(mapped: Table) -> None:
    mapped.run("ALTER TABLE {t} ADD COLUMN c INT")
    assert mapped.net() == []
    mapped.run("UPDATE {t} SET c = 1 WHERE k = 2", "DELETE FROM {t} WHERE k = 3")
    assert mapped.net() == [
        ("DELETE", 0, 3, 3, "b3", None),
        ("UPDATE_AFTER", 2, 2, 2, "b2", 1),
        ("UPDATE_BEFORE", 0, 2, 2, "b2", None),
    ]


def test_a_dropped_column_is_gone_and_its_changes_with_it(mapped: Table) -> None:
    mapped.run(
        "UPDATE {t} SET a = 99 WHERE k = 1", "UPDATE {t} SET b = 'x' WHERE k = 2", "ALTER TABLE {t} DROP COLUMN a"
    )
    assert mapped.net() == [("UPDATE_AFTER", 2, 2, "x"), ("UPDATE_BEFORE", 0, 2, "b2")]


def test_a_column_of_a_dropped_ones_name_is_another(mapped: Table) -> None:
    mapped.run("ALTER TABLE {t} DROP COLUMN a", "ALTER TABLE {t} ADD COLUMN a INT", "DELETE FROM {t} WHERE k = 1")
    assert mapped.net() == [("DELETE", 0, 1, "b1", None)]


def test_a_renamed_column_is_followed(mapped: Table) -> None:
    mapped.run("ALTER TABLE {t} RENAME COLUMN a TO z", "ALTER TABLE {t} RENAME COLUMN b TO a")
    assert mapped.net() == []
    mapped.run("ALTER TABLE {t} RENAME COLUMN z TO b", "UPDATE {t} SET b = 99 WHERE k = 1")
    assert mapped.net() == [("UPDATE_AFTER", 4, 1, 99, "b1"), ("UPDATE_BEFORE", 0, 1, 1, "b1")]


def test_reordered_columns_come_in_the_last_order(mapped: Table) -> None:
    mapped.run("ALTER TABLE {t} ALTER COLUMN b FIRST", "DELETE FROM {t} WHERE k = 1")
    assert mapped.net() == [("DELETE", 0, "b1", 1, 1)]


def test_a_widened_column_is_followed(mapped: Table) -> None:
    mapped.run("ALTER TABLE {t} ALTER COLUMN a TYPE BIGINT")
    assert mapped.net() == []
    mapped.run("UPDATE {t} SET a = 1099511627776 WHERE k = 1", "UPDATE {t} SET a = a WHERE k = 2")
    assert mapped.net() == [("UPDATE_AFTER", 2, 1, 1 << 40, "b1"), ("UPDATE_BEFORE", 0, 1, 1, "b1")]


def test_columns_that_come_back_by_restore(mapped: Table) -> None:
    mapped.run("ALTER TABLE {t} DROP COLUMN b", "INSERT INTO {t} VALUES (-1, -1)")
    assert mapped.net() == [("INSERT", 2, -1, -1)]
    mapped.run(f"RESTORE TABLE {{t}} TO VERSION AS OF {mapped.start}", "DELETE FROM {t} WHERE k = 5")
    assert mapped.net() == [("DELETE", 0, 5, 5, "b5")]
    assert mapped.appended() == [("INSERT", 2, -1, -1, None)]


def test_nested_fields_come_and_go(spark: SparkSession, table_path: str) -> None:
    table = Table(spark, table_path)
    table.create("k BIGINT, s STRUCT<x: INT, y: INT>", properties=MAPPED)
    table.fill("SELECT id, named_struct('x', 1, 'y', 2) FROM range(0, 4, 1, 2)")
    table.run("ALTER TABLE {t} ADD COLUMN s.z INT", "UPDATE {t} SET s.z = 3 WHERE k = 1", "DELETE FROM {t} WHERE k = 2")
    rows = table_rows(table)
    assert rows == [
        ("DELETE", 2, '{"x":1,"y":2}'),
        ("UPDATE_AFTER", 1, '{"x":1,"y":2,"z":3}'),
        ("UPDATE_BEFORE", 1, '{"x":1,"y":2}'),
    ]


def table_rows(table: Table) -> list[tuple[object, ...]]:
    """(type, k, s as JSON) of the change set since the start: for nested schema changes, of which the snapshots know nothing."""
    from streamql.model import StreamMode, Versions

    from . import subject

    rows = subject.shown(table.spark, table.path, Versions(table.start, table.version), StreamMode.STANDARD, ["k", "s"])
    assert rows is not None
    shown = rows.selectExpr("__change_type", "k", "to_json(s) AS s").collect()
    return sorted((tuple(row) for row in shown), key=repr)


def test_a_renamed_partition_column(spark: SparkSession, table_path: str) -> None:
    table = Table(spark, table_path)
    table.create("k BIGINT, p INT", clauses="PARTITIONED BY (p)", properties=MAPPED)
    table.fill("SELECT id, CAST(id % 2 AS INT) FROM range(0, 6, 1, 1)")
    table.run("ALTER TABLE {t} RENAME COLUMN p TO q", "DELETE FROM {t} WHERE k = 1", "UPDATE {t} SET q = 7 WHERE k = 2")
    assert table.net() == [("DELETE", 0, 1, 1), ("UPDATE_AFTER", 3, 2, 7), ("UPDATE_BEFORE", 0, 2, 0)]


def test_awkward_partition_values(spark: SparkSession, table_path: str) -> None:
    table = Table(spark, table_path)
    table.create("k BIGINT, p STRING, d TIMESTAMP", clauses="PARTITIONED BY (p, d)")
    values = "VALUES (1, 'a b', NULL), (2, '%20/=', TIMESTAMP'2024-01-01 00:00:00.5'), (3, NULL, NULL), (4, 'ü', NULL)"
    table.fill(values)
    table.run("DELETE FROM {t} WHERE k < 3", "UPDATE {t} SET p = '#?' WHERE k = 4")
    assert [row[:2] + row[2:4] for row in table.net()] == [
        ("DELETE", 0, 1, "a b"),
        ("DELETE", 0, 2, "%20/="),
        ("UPDATE_AFTER", 2, 4, "#?"),
        ("UPDATE_BEFORE", 0, 4, "ü"),
    ]


def test_awkward_column_names(spark: SparkSession, table_path: str) -> None:
    table = Table(spark, table_path)
    table.create("`a.b` BIGINT, `c ``d` INT, `ä;{}()=` INT", clauses="PARTITIONED BY (`c ``d`)", properties=MAPPED)
    table.fill("SELECT id, CAST(0 AS INT), CAST(0 AS INT) FROM range(0, 4, 1, 1)")
    table.run("UPDATE {t} SET `ä;{}()=` = 1 WHERE `a.b` = 1", "DELETE FROM {t} WHERE `a.b` = 2")
    assert table.net() == [("DELETE", 0, 2, 0, 0), ("UPDATE_AFTER", 1, 1, 0, 1), ("UPDATE_BEFORE", 0, 1, 0, 0)]


def test_a_narrowing_restore_is_right_or_refused(mapped: Table) -> None:
    mapped.run("ALTER TABLE {t} ALTER COLUMN a TYPE BIGINT", "INSERT INTO {t} VALUES (-1, 1099511627776, 'x')")
    wide = mapped.version
    try:
        mapped.run(f"RESTORE TABLE {{t}} TO VERSION AS OF {mapped.start}")
    except Exception as error:
        pytest.skip(f"Delta refuses it: {str(error)[:100]}")
    assert mapped.net() == []
    with pytest.raises(StreamqlError) as raised:
        mapped.net(wide)
    assert raised.value.code == "INCOMPATIBLE_SCHEMA_CHANGE"


def test_a_restore_across_partitionings(spark: SparkSession, table_path: str) -> None:
    """Files come back from before the interval, partitioned as they were then: their own values tell how to read them."""
    table = Table(spark, table_path)
    table.create("k BIGINT, p INT")
    table.fill("SELECT id, CAST(id AS INT) FROM range(0, 4, 1, 1)")
    frame = spark.sql("SELECT id + 10 AS k, 20 AS p FROM range(2)")
    partitioned = frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy("p")
    partitioned.save(table_path)
    after = table.version
    table.run(f"RESTORE TABLE {{t}} TO VERSION AS OF {table.start}")
    back = [("INSERT", 0, k, k) for k in range(4)]
    assert table.net(after) == [("DELETE", 1, 10, 20), ("DELETE", 1, 11, 20), *back]


def test_partition_values_that_are_null_say_nothing_of_the_partitioning(spark: SparkSession, table_path: str) -> None:
    """The log leaves them out of what it says of a removed file: when it was written is what tells how to read it."""
    table = Table(spark, table_path)
    table.create("k BIGINT, p INT, q INT", clauses="PARTITIONED BY (p)")
    table.fill("SELECT id, CAST(NULL AS INT), 5 FROM range(0, 2, 1, 1)")
    table.run("INSERT INTO {t} VALUES (10, 1, 6)")
    after = table.version
    frame = spark.sql("SELECT CAST(20 AS BIGINT) AS k, CAST(NULL AS INT) AS p, CAST(NULL AS INT) AS q")
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy("q").save(table_path)
    gone = [("DELETE", 0, 0, None, 5), ("DELETE", 0, 1, None, 5), ("DELETE", 1, 10, 1, 6)]
    assert table.net(after) == [*gone, ("INSERT", 2, 20, None, None)]
    table.run("INSERT INTO {t} VALUES (21, 2, NULL)")
    before_last = table.version
    table.run("DELETE FROM {t} WHERE k >= 20")
    assert [(sql_type, *values) for sql_type, _, *values in table.net(before_last)] == [
        ("DELETE", 20, None, None),
        ("DELETE", 21, 2, None),
    ]
    assert [sql_type for sql_type, *_ in table.net(after)] == ["DELETE"] * 3


def test_column_mapping_switched_off(spark: SparkSession, table_path: str) -> None:
    """Old files call their columns by other names than the new metadata: refused, never shown as NULL."""
    table = Table(spark, table_path)
    table.create("k BIGINT, v STRING", properties="'delta.columnMapping.mode' = 'name'")
    table.fill("SELECT id, 'v' FROM range(0, 4, 1, 1)")
    table.run(
        "UPDATE {t} SET v = 'w' WHERE k = 1", "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')"
    )
    with pytest.raises(StreamqlError) as raised:
        table.net()
    assert raised.value.code == "INCOMPATIBLE_SCHEMA_CHANGE"
    table.run("UPDATE {t} SET v = 'x' WHERE k = 2")
    assert table.net(table.version - 1) == [("UPDATE_AFTER", 3, 2, "x"), ("UPDATE_BEFORE", 0, 2, "v")]


def test_nested_fields_of_initial_rows(spark: SparkSession, table_path: str) -> None:
    """Fields of structs are followed by name, where a cast would go by position."""
    from streamql.model import StreamMode, Versions

    from . import subject

    if not subject.HAS_INITIAL:
        pytest.skip("the subject knows no initial rows")
    table = Table(spark, table_path)
    table.create(
        "k BIGINT, s STRUCT<a: INT, b: INT>, l ARRAY<STRUCT<a: INT, b: INT>>, m MAP<INT, STRUCT<a: INT, b: INT>>"
    )
    one = "named_struct('a', 1, 'b', 2)"
    table.fill(f"SELECT id, {one}, array({one}), map(7, {one}) FROM range(0, 1, 1, 1)")
    table.run("ALTER TABLE {t} ALTER COLUMN s.b FIRST", "ALTER TABLE {t} ADD COLUMN s.c INT")
    for part in ("l.element", "m.value"):
        table.run(f"ALTER TABLE {{t}} ALTER COLUMN {part}.b FIRST")
    table.run("INSERT INTO {t} SELECT 9, NULL, NULL, NULL")
    interval = Versions(table.start, table.version, initial=True)
    rows = subject.shown(spark, table_path, interval, StreamMode.APPEND_ONLY, ["k", "s", "l", "m"])
    shown = rows.selectExpr("k", "s.a", "s.b", "s.c", "l[0].a", "m[7].b").orderBy("k").collect()
    assert [tuple(row) for row in shown] == [(0, 1, 2, None, 1, 2), (9, None, None, None, None, None)]
