"""Records that Spark computes, against those that `streamql.features.tablestore.formats.records` defines, on real tables."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from streamql.changes import key_ranges, read_commits
from streamql.changes.commit_rows import AFTER, BEFORE, History, changes_by_commit
from streamql.delta.table import DeltaTable
from streamql.delta.uses import SLICE, TIME, VERSION
from streamql.errors import StreamqlError
from streamql.features.tablestore.formats import records as definition
from streamql.features.tablestore.formats.expressions import padded_sql
from streamql.features.tablestore.formats.values import float_text, text_sql
from streamql.features.tablestore.jobs.shards import ShardTree, follow
from streamql.features.tablestore.records import entries as record_entries
from streamql.features.tablestore.records import rows as record_rows
from streamql.features.tablestore.records.entries import ROW, SHARD
from streamql.features.tablestore.records.rows import records_of_commits
from streamql.model import Versions
from tests.histories.tables import Table

TYPES = {
    "b": "BOOLEAN", "i": "INT", "l": "BIGINT", "d": "DOUBLE", "dec": "DECIMAL(20, 9)", "s": "STRING", "bin": "BINARY", "day": "DATE",
    "t": "TIMESTAMP", "n": "TIMESTAMP_NTZ",
}  # fmt: skip
VALUES = (
    (
        "(1, 'a', true, 1, 2, 1.5, 0.0000001, 'x', X'00FF', DATE '2024-02-29', TIMESTAMP '2024-01-02 03:04:05.12Z', "
        "TIMESTAMP_NTZ '0001-01-01 00:00:00')"
    ),
    "(2, 'ä', NULL, -1, NULL, double('NaN'), 12345678901.5, '', X'', DATE '0001-01-01', TIMESTAMP '1582-01-02 03:04:05Z', NULL)",
    (
        "(2, 'b', false, NULL, 9223372036854775807, double('-Infinity'), NULL, 'q\"\\\\\\n,', NULL, NULL, NULL, "
        "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999')"
    ),
    "(3, '', NULL, NULL, NULL, 1e10, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(4, 'z', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(5, 'z', NULL, NULL, NULL, -0.0D, NULL, NULL, NULL, NULL, NULL, NULL)",
)


def keyed(table: Table, key: str, shards: int = 1) -> None:
    table.run(
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ('tablestore.primary_key' = '{key}', 'tablestore.shard_count' = '{shards}')"
    )


def history_of(
    spark: SparkSession, path: str, after: int = -1, through: int | None = None
) -> tuple[History, ShardTree]:
    table = DeltaTable(spark, path)
    latest = table.latest()
    commits = read_commits(table, latest, Versions(-1, latest.version))
    changes = [(c.version, c.metadata) for c in commits[1:] if c.metadata is not None]
    assert commits[0].metadata is not None
    tree = follow(0, commits[0].metadata, changes, "t")
    assert tree is not None
    chosen = [c for c in commits if after < c.version <= (latest.version if through is None else through)]
    return History(table, latest, chosen, None if after < 0 else table.at(after).metadata), tree


def value_of(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def expected(spark: SparkSession, history: History, tree: ShardTree) -> list[definition.Record]:
    """By the definition, from row changes."""
    found = []
    for run in changes_by_commit(spark, history, cuts=[g.first for g in tree.generations]):
        assert run.rows is not None
        stamps = {f.name for f in run.rows.schema[BEFORE].dataType.fields if f.dataType.typeName() == "timestamp"}  # type: ignore[attr-defined]  # it is a struct
        by_version: dict[int, list[Row]] = {}
        for row in run.rows.collect():
            by_version.setdefault(row[VERSION], []).append(row)
        for version, rows in sorted(by_version.items()):
            names = tree.generation_at(version).key

            def image(
                row: Row | None, names: tuple[str, ...] = names, stamps: set[str] = stamps
            ) -> definition.Image | None:
                if row is None:
                    return None
                values = {k: value_of(v) for k, v in row.asDict().items()}
                values |= {k: v.astimezone(dt.timezone.utc) for k, v in values.items() if k in stamps and v is not None}
                return definition.Image(
                    tuple(values[k] for k in names), {k: v for k, v in values.items() if k not in names}
                )

            changes = [definition.RowChange(image(r[BEFORE]), image(r[AFTER])) for r in rows]
            commit = definition.Commit(version, rows[0][TIME], names, lambda key, v=version: tree.shard_of(key, v))
            found += definition.records_of(changes, commit)
    return found


def computed(
    spark: SparkSession, history: History, tree: ShardTree
) -> tuple[list[definition.Record], list[tuple[Any, ...]]]:
    """By Spark: records, and tuples with sequence info."""
    slices = {c.version: c.version // 3 for c in history.commits}
    found = records_of_commits(spark, history, tree, "t", slices)
    assert found.rows is not None
    rows = found.rows.selectExpr("*", f"{record_entries.SHARD_SQL} AS shard").collect()
    records = []
    for row in rows:
        cells = tuple(definition.Cell(c["column"], c["value"]) for c in row[record_entries.OPS] if c["op"] != "DR")
        key = tuple(value_of(row[c]) for c in found.key.columns)
        kind = (definition.RecordType.DELETE, definition.RecordType.UPDATE, definition.RecordType.PUT)[
            row[record_entries.KIND]
        ]
        position = definition.Position(row[VERSION], row[record_entries.ROW])
        records.append(definition.Record(kind, key, cells, row["shard"], position, row[TIME]))
    frame = record_rows.tuples(found, sequence_info=True)
    assert frame is not None
    assert frame.columns == [*found.key.names, "columnName", "timestamp", "columnValue", "opType", "sequenceInfo"]
    return records, [tuple(map(value_of, row)) for row in frame.collect()]


def check(spark: SparkSession, history: History, tree: ShardTree) -> list[definition.Record]:
    by_definition = sorted(expected(spark, history, tree), key=lambda r: (r.shard, r.position))
    records, tuples = computed(spark, history, tree)
    assert sorted(records, key=lambda r: (r.shard, r.position)) == by_definition
    wanted = [t for r in by_definition for t in definition.tuples_of(r, sequence_info=True)]
    assert sorted(tuples, key=lambda t: t[-1]) == sorted(wanted, key=lambda t: t[-1])
    counts = {op: sum(t[-2] == op for t in wanted) for op in ("U", "DA", "DR")}
    rows = records_of_commits(spark, history, tree, "t").rows
    assert rows is not None
    counted = rows.selectExpr(*(f"{text} AS {op}" for op, text in record_rows.counts_sql().items())).collect()
    assert [row.asDict() for row in counted] == [counts]
    return by_definition


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, str(tmp_path / "a table"))


def test_records_of_all_types(spark: SparkSession, table: Table) -> None:
    columns = ", ".join(f"{name} {sql}" for name, sql in TYPES.items())
    properties = "'delta.enableDeletionVectors' = 'true', 'delta.feature.timestampNtz' = 'supported'"
    table.create(f"id INT, k STRING, {columns}", properties=properties)
    keyed(table, "id, k", shards=3)
    table.run(f"INSERT INTO {{t}} VALUES {', '.join(VALUES)}")
    table.run(
        "UPDATE {t} SET l = 7, bin = NULL, s = s WHERE id < 3",
        "UPDATE {t} SET s = s",
        "DELETE FROM {t} WHERE id = 3",
        "INSERT INTO {t} (id, k, i) VALUES (3, '', 1)",
        "UPDATE {t} SET k = concat(k, '!') WHERE id = 2",
        "UPDATE {t} SET d = 0.0D WHERE id = 5",
        "MERGE INTO {t} USING (SELECT explode(array(1, 4, 9)) AS nn) ON id = nn WHEN MATCHED AND nn = 1 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET t = TIMESTAMP '2024-05-05 00:00:00Z' WHEN NOT MATCHED THEN INSERT (id, k) VALUES (nn, 'new')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('tablestore.shard_count' = '7')",
        "INSERT OVERWRITE {t} (id, k, i) SELECT id, 'o', id FROM range(5)",
        "RESTORE TABLE {t} TO VERSION AS OF 6",
        "ALTER TABLE {t} ADD COLUMN later INT",
        "UPDATE {t} SET later = id",
    )
    history, tree = history_of(spark, table.path)
    records = check(spark, history, tree)
    assert len(tree.generations) >= 2
    assert len({r.shard for r in records}) > 3
    check(spark, *history_of(spark, table.path, after=4, through=9))


def test_each_type_can_be_a_key(spark: SparkSession, table: Table) -> None:
    columns = ", ".join(f"{name} {sql}" for name, sql in TYPES.items() if name not in ("d", "t"))
    table.create(f"id INT, {columns}", properties="'delta.feature.timestampNtz' = 'supported'")
    keyed(table, "id, b, i, l, dec, s, bin, day, n", shards=1000)
    key = (
        "id, true, 7, 1L << 40, 1.5BD * id, repeat('ä', id), unhex('00FF'), DATE '2024-01-01' + id, "
        "TIMESTAMP_NTZ '2024-01-01 00:00:00.123456'"
    )
    table.run(
        f"INSERT INTO {{t}} SELECT {key} FROM (SELECT CAST(id AS INT) AS id FROM range(100))".replace(
            "1L << 40", "shiftleft(1L, 40)"
        )
    )
    records = check(spark, *history_of(spark, table.path))
    assert len({r.shard for r in records}) > 50


def test_nested_values_are_json_and_floats_are_short(spark: SparkSession, table: Table) -> None:
    table.create(
        "id INT, f FLOAT, a ARRAY<STRUCT<x: INT, y: STRING>>, m MAP<STRING, INT>, v VARIANT",
        properties="'delta.feature.variantType' = 'supported'",
    )
    keyed(table, "id")
    table.run(
        "INSERT INTO {t} SELECT 1, FLOAT('0.1'), array(named_struct('x', 1, 'y', NULL)), map('b', 1, 'a', NULL), parse_json('{\"z\": 1}')",
        "UPDATE {t} SET m = map('a', NULL, 'b', 1), v = parse_json('{\"z\":  1}')",
        "UPDATE {t} SET m = map('a', 2), v = parse_json('[1, null]')",
    )
    history, tree = history_of(spark, table.path)
    found = records_of_commits(spark, history, tree, "t")
    frame = record_rows.tuples(found, sequence_info=False)
    assert frame is not None
    assert [(r.columnName, r.columnValue) for r in frame.collect()] == [
        (None, None),
        ("f", float_text(0.1)),
        ("a", '[{"x":1,"y":null}]'),
        ("m", '{"b":1,"a":null}'),
        ("v", '{"z":1}'),
        ("m", '{"a":2}'),
        ("v", "[1,null]"),
    ]


def sequenced(records: record_rows.Records) -> list[tuple[Any, ...]]:
    """The tuples by shard and sequence."""
    frame = record_rows.tuples(records, sequence_info=True)
    assert frame is not None
    return sorted(map(tuple, frame.collect()), key=lambda t: (t[-1].split("_")[3].partition(":")[0], t[-1]))


@pytest.mark.parametrize(("key", "shards"), [("id", 1), ("id", 3), ("k, id", 1), ("day, id", 2), ("t, id", 1)])
def test_large_commits_are_divided_into_ranges_of_keys(
    spark: SparkSession, table: Table, monkeypatch: pytest.MonkeyPatch, key: str, shards: int
) -> None:
    table.create("id BIGINT, k STRING, day DATE, t TIMESTAMP, v INT")
    keyed(table, key, shards)
    row = "id, concat('k', id DIV 40), DATE '2024-01-01' + CAST(id AS INT), timestamp_seconds(id * 86400), id % 5"
    files = f"SELECT {row} FROM range(0, 120, 1, 3)"
    table.run(
        f"INSERT INTO {{t}} {files}",
        "UPDATE {t} SET v = v + 1 WHERE id % 3 = 0",
        "DELETE FROM {t} WHERE id BETWEEN 30 AND 60",
        f"INSERT OVERWRITE {{t}} {files}",
        "UPDATE {t} SET id = id + 20, day = day + 20, t = t + INTERVAL 20 DAYS WHERE id > 60",
    )
    history, tree = history_of(spark, table.path)
    slices = {c.version: c.version for c in history.commits}
    whole = sequenced(records_of_commits(spark, history, tree, "t", slices))
    monkeypatch.setattr(key_ranges, "RANGE_ROWS", 10)
    records = records_of_commits(spark, history, tree, "t", slices)
    assert sequenced(records) == whole
    if key == "id":
        check(spark, history, tree)
    frame = record_rows.tuples(records, sequence_info=False, places=True)
    assert frame is not None
    places = frame.select(VERSION, SLICE).distinct().collect()
    assert max(Counter(row[0] for row in places).values()) > 2
    order = [SHARD, SLICE, VERSION, ROW, record_rows.NUMBER]
    assert [tuple(row) for row in frame.orderBy(order).drop(*order).collect()] == [row[:-1] for row in whole]


def test_times_are_written_as_spark_writes_those_without_a_zone(spark: SparkSession) -> None:
    micros = [
        0,
        -1,
        1,
        10**6,
        951782400 * 10**6,
        -62135596800 * 10**6,
        253402300799999999,
        253402300800000000,
        -62135596800000001,
    ]
    micros += [random.Random(n).randrange(-(10**17), 10**18) // 10 ** (n % 8) for n in range(500)]
    frame = spark.createDataFrame([(m,) for m in micros], "m BIGINT")
    text = text_sql("timestamp_micros(m)", "timestamp")
    wall = "CAST(timestampadd(MICROSECOND, m, TIMESTAMP_NTZ '1970-01-01 00:00:00') AS STRING)"
    for rows in (frame, frame.coalesce(1).limit(1000)):
        assert rows.where(f"NOT {text} <=> concat({wall}, 'Z')").collect() == []
    assert frame.where(f"{text.replace('timestamp_micros(m)', 'CAST(NULL AS TIMESTAMP)')} IS NOT NULL").collect() == []


def test_numbers_are_padded_as_python_does(spark: SparkSession) -> None:
    numbers = [0, 7, 1234, 12345, 2**63 - 1, -1, -123456]
    frame = spark.createDataFrame([(n,) for n in numbers], "n BIGINT")
    for width in (1, 4, 10, 20):
        texts = [row[0] for row in frame.selectExpr(padded_sql("n", width)).collect()]
        assert texts == [f"%0{width}d" % n for n in numbers]


def violation(spark: SparkSession, table: Table) -> StreamqlError:
    history, tree = history_of(spark, table.path)
    rows = records_of_commits(spark, history, tree, "t").rows
    assert rows is not None
    with pytest.raises(Exception, match="PRIMARY_KEY_VIOLATED") as raised:
        rows.collect()
    found = record_rows.explained(raised.value)
    assert found is not None
    assert found.code == "PRIMARY_KEY_VIOLATED"
    return found


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["INSERT INTO {t} VALUES (1, 'a', 1), (1, 'a', 2)"], "version 2 has two rows with the primary key (id = 1, k = a)"),
        (["INSERT INTO {t} VALUES (1, NULL, 1)"], "version 2 has a row with the primary key (id = 1, k = NULL)"),
        (
            ["INSERT INTO {t} VALUES (1, 'a', 1), (2, 'a', 1)", "UPDATE {t} SET id = 1 WHERE id = 2", "UPDATE {t} SET v = 2"],
            "version 4 has two rows with the primary key (id = 1, k = a)",
        ),
    ],
)  # fmt: skip
def test_rows_that_break_the_key_are_named(
    spark: SparkSession, table: Table, statements: list[str], message: str
) -> None:
    table.create("id INT, k STRING, v INT")
    keyed(table, "id, k", 2)
    table.run(*statements)
    assert violation(spark, table).message == message


def test_two_keys_do_not_fit_into_one_table(spark: SparkSession, table: Table) -> None:
    table.create("id INT, k STRING, v INT")
    keyed(table, "id")
    table.run("INSERT INTO {t} VALUES (1, 'a', 1)")
    keyed(table, "id, k")
    table.run("INSERT INTO {t} VALUES (1, 'b', 1)")
    with pytest.raises(StreamqlError) as raised:
        records_of_commits(spark, *history_of(spark, table.path), "t")
    assert raised.value.code == "INVALID_PROPERTY"
    check(spark, *history_of(spark, table.path, after=3))
