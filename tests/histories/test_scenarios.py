"""Net changes by hand: one promise of the design a test, on small files and on one with many row groups.

Versions are counted from the state a scenario starts from: 1 is its first commit. Every read is checked against the
snapshots as well (`Table.net`).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow.parquet import ParquetFile
from pyspark.sql import SparkSession

from tests.sample import sample

from .tables import Table

ROWS_LARGE = 20_000
LAYOUTS = {
    "three files": (12, 3, "true"),
    "three files, no vectors": (12, 3, "false"),
    "one file, many row groups": (ROWS_LARGE, 1, "true"),
}


@pytest.fixture(scope="module", params=sample("layouts of scenarios", list(LAYOUTS), 1))
def made_once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Table:
    """k = 0 … rows - 1, v = 'v' || k, n = 0."""
    rows, files, vectors = LAYOUTS[request.param]
    made = Table(spark, str(tmp_path_factory.mktemp("layout") / "table"))
    made.create("k BIGINT, v STRING, n INT", properties=f"'delta.enableDeletionVectors' = '{vectors}'")
    made.fill(f"SELECT id, concat('v', id), 0 FROM range(0, {rows}, 1, {files})")
    assert made.rows == rows
    if rows == ROWS_LARGE:
        (file,) = Path(made.path).glob("*.parquet")
        assert ParquetFile(file).num_row_groups > 3
    return made


@pytest.fixture
def table(made_once: Table, table_path: str) -> Table:
    """A copy of its own for each test."""
    return made_once.copy(table_path)


def test_no_commit_is_no_change(table: Table) -> None:
    assert table.net() == []


def test_insert(table: Table) -> None:
    table.run("INSERT INTO {t} VALUES (-1, 'x', 1), (-2, NULL, NULL)")
    assert table.net() == [("INSERT", 1, -1, "x", 1), ("INSERT", 1, -2, None, None)]
    assert table.appended() == table.net()
    assert table.plan() in (None, "ADDED_ONLY")


def test_insert_then_delete_is_nothing_but_an_append(table: Table) -> None:
    table.run("INSERT INTO {t} VALUES (-1, 'x', 1)", "DELETE FROM {t} WHERE k = -1")
    assert table.net() == []
    assert table.appended() == [("INSERT", 1, -1, "x", 1)]
    assert table.plan() in (None, "NOTHING")


def test_insert_then_update_is_one_insert_of_the_final_values(table: Table) -> None:
    table.run(
        "INSERT INTO {t} VALUES (-1, 'x', 1)",
        "UPDATE {t} SET n = 2 WHERE k = -1",
        "UPDATE {t} SET v = 'y' WHERE k = -1",
    )
    assert table.net() == [("INSERT", 3, -1, "y", 2)]
    assert table.appended() == [("INSERT", 1, -1, "x", 1)]


def test_update(table: Table) -> None:
    table.run("UPDATE {t} SET n = 1 WHERE k = 5")
    assert table.net() == [("UPDATE_AFTER", 1, 5, "v5", 1), ("UPDATE_BEFORE", 0, 5, "v5", 0)]
    assert table.appended() == []
    assert table.plan() in (None, "MINIMIZE")


def test_update_twice_shows_the_first_before_and_the_last_after(table: Table) -> None:
    table.run("UPDATE {t} SET n = 1 WHERE k = 5", "UPDATE {t} SET n = 2 WHERE k = 5")
    assert table.net() == [("UPDATE_AFTER", 2, 5, "v5", 2), ("UPDATE_BEFORE", 0, 5, "v5", 0)]
    assert table.net(table.start + 1) == [("UPDATE_AFTER", 2, 5, "v5", 2), ("UPDATE_BEFORE", 1, 5, "v5", 1)]


def test_update_then_delete_is_a_delete_of_the_first_image(table: Table) -> None:
    table.run("UPDATE {t} SET n = 1 WHERE k = 5", "DELETE FROM {t} WHERE k = 5")
    assert table.net() == [("DELETE", 0, 5, "v5", 0)]


def test_delete(table: Table) -> None:
    table.run("DELETE FROM {t} WHERE k IN (2, 7)")
    assert table.net() == [("DELETE", 0, 2, "v2", 0), ("DELETE", 0, 7, "v7", 0)]
    assert table.appended() == []


def test_rows_added_beside_rows_deleted_are_not_compared(table: Table) -> None:
    table.run("INSERT INTO {t} VALUES (-1, 'x', 1)", "DELETE FROM {t} WHERE k = 1")
    assert table.net() == [("DELETE", 0, 1, "v1", 0), ("INSERT", 1, -1, "x", 1)]
    assert table.plan() in (None, "ADDED_AND_REMOVED", "MINIMIZE")  # MINIMIZE: without vectors the file is rewritten


def test_writing_equal_values_is_nothing(table: Table) -> None:
    table.run("UPDATE {t} SET v = v WHERE k < 6", "UPDATE {t} SET n = 0")
    assert table.net() == []
    assert table.appended() == []


def test_there_and_back_is_nothing(table: Table) -> None:
    table.run("UPDATE {t} SET v = 'B' WHERE k = 3", "UPDATE {t} SET v = 'v3' WHERE k = 3")
    assert table.net() == []
    assert table.net(table.start + 1) == [("UPDATE_AFTER", 2, 3, "v3", 0), ("UPDATE_BEFORE", 1, 3, "B", 0)]


def test_a_merge_writing_equal_values_is_nothing(table: Table) -> None:
    source = "(SELECT id k, concat('v', id) v, 0 n FROM range(8))"
    table.run(f"MERGE INTO {{t}} t USING {source} s ON t.k = s.k WHEN MATCHED THEN UPDATE SET *")
    assert table.net() == []


def test_a_merge_with_all_its_clauses(table: Table) -> None:
    source = "(SELECT * FROM VALUES (1L, 'one', 1), (2L, 'two', 2), (-7L, 'new', 7) AS s(k, v, n))"
    table.run(
        f"MERGE INTO {{t}} t USING {source} s ON t.k = s.k WHEN MATCHED AND s.k = 1 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        " WHEN NOT MATCHED BY SOURCE AND t.k = 4 THEN UPDATE SET v = 'four'"
        " WHEN NOT MATCHED BY SOURCE AND t.k = 5 THEN DELETE"
    )
    assert table.net() == [
        ("DELETE", 0, 1, "v1", 0),
        ("DELETE", 0, 5, "v5", 0),
        ("INSERT", 1, -7, "new", 7),
        ("UPDATE_AFTER", 1, 2, "two", 2),
        ("UPDATE_AFTER", 1, 4, "four", 0),
        ("UPDATE_BEFORE", 0, 2, "v2", 0),
        ("UPDATE_BEFORE", 0, 4, "v4", 0),
    ]
    assert table.appended() == [("INSERT", 1, -7, "new", 7)]


def test_delete_and_insert_of_one_key_are_two_rows(table: Table) -> None:
    table.run("DELETE FROM {t} WHERE k = 5", "INSERT INTO {t} VALUES (5, 'v5', 0)")
    assert table.net() == [("DELETE", 0, 5, "v5", 0), ("INSERT", 2, 5, "v5", 0)]
    assert table.appended() == [("INSERT", 2, 5, "v5", 0)]


@pytest.mark.parametrize("statement", ["TRUNCATE TABLE {t}", "DELETE FROM {t}", "DELETE FROM {t} WHERE k >= 0"])
def test_emptying_the_table_deletes_every_row(table: Table, statement: str) -> None:
    table.run(statement)
    assert table.counts() == {"DELETE": table.rows}
    assert table.plan() in (None, "REMOVED_ONLY")


def test_insert_overwrite_deletes_all_and_inserts_all(table: Table) -> None:
    table.run("INSERT OVERWRITE {t} SELECT * FROM {t}")
    assert table.counts() == {"DELETE": table.rows, "INSERT": table.rows}


def test_replace_where_leaves_the_other_rows_alone(table: Table) -> None:
    table.run("INSERT INTO {t} REPLACE WHERE k >= 3 AND k < 5 VALUES (3L, 'new', 9)")
    assert table.net() == [("DELETE", 0, 3, "v3", 0), ("DELETE", 0, 4, "v4", 0), ("INSERT", 1, 3, "new", 9)]
    assert table.appended() == [("INSERT", 1, 3, "new", 9)]


def test_maintenance_is_nothing(table: Table) -> None:
    start = table.run("DELETE FROM {t} WHERE k = 2")
    after = table.run("OPTIMIZE {t}", "OPTIMIZE {t} ZORDER BY (n)", "REORG TABLE {t} APPLY (PURGE)")
    assert after > start
    assert table.net(start) == []
    assert table.appended(start) == []
    assert table.net() == [("DELETE", 0, 2, "v2", 0)]


def test_update_optimize_update(table: Table) -> None:
    table.run("UPDATE {t} SET n = 1 WHERE k < 2", "OPTIMIZE {t} ZORDER BY (v)", "UPDATE {t} SET n = 2 WHERE k = 1")
    assert table.net() == [
        ("UPDATE_AFTER", 1, 0, "v0", 1),
        ("UPDATE_AFTER", 3, 1, "v1", 2),
        ("UPDATE_BEFORE", 0, 0, "v0", 0),
        ("UPDATE_BEFORE", 0, 1, "v1", 0),
    ]


def test_restore_shows_whatever_differs(table: Table) -> None:
    table.run("UPDATE {t} SET n = 1 WHERE k = 5", "DELETE FROM {t} WHERE k = 6", "INSERT INTO {t} VALUES (-1, 'x', 1)")
    restored = table.run(f"RESTORE TABLE {{t}} TO VERSION AS OF {table.start}")
    assert table.net() == []
    assert table.appended() == [("INSERT", 3, -1, "x", 1)]
    assert table.net(restored - 1) == [
        ("DELETE", 3, -1, "x", 1),
        ("INSERT", 0, 6, "v6", 0),
        ("UPDATE_AFTER", 0, 5, "v5", 0),
        ("UPDATE_BEFORE", 1, 5, "v5", 1),
    ]
    assert table.appended(restored - 1) == []


def test_optimize_then_restore_to_before_it_is_nothing(table: Table) -> None:
    compacted = table.run("OPTIMIZE {t} ZORDER BY (n)")
    table.run(f"RESTORE TABLE {{t}} TO VERSION AS OF {table.start}")
    assert table.net() == []
    assert table.net(compacted) == []
    assert table.appended() == []


def test_restore_to_between_deletes_around_an_optimize(table: Table) -> None:
    first = table.run("DELETE FROM {t} WHERE k = 1")
    second = table.run("DELETE FROM {t} WHERE k = 2")
    table.run(
        "OPTIMIZE {t} ZORDER BY (n)", "DELETE FROM {t} WHERE k = 3", f"RESTORE TABLE {{t}} TO VERSION AS OF {first}"
    )
    assert table.net() == [("DELETE", 0, 1, "v1", 0)]
    assert table.net(first) == []
    assert table.net(second) == [("INSERT", 0, 2, "v2", 0)]
    assert table.appended() == []


def test_restore_then_the_deleted_file_again(table: Table) -> None:
    """A file that goes and comes: removed, restored with its vector of then, grown again."""
    one = table.run("DELETE FROM {t} WHERE k = 1")
    table.run("DELETE FROM {t}", f"RESTORE TABLE {{t}} TO VERSION AS OF {one}", "DELETE FROM {t} WHERE k = 2")
    assert table.net() == [("DELETE", 0, 1, "v1", 0), ("DELETE", 0, 2, "v2", 0)]
    assert table.net(one) == [("DELETE", 0, 2, "v2", 0)]


def test_a_row_inserted_deleted_and_restored_is_appended_once(table: Table) -> None:
    inserted = table.run("INSERT INTO {t} VALUES (-1, 'x', 1)")
    deleted = table.run("DELETE FROM {t} WHERE k = -1")
    table.run(f"RESTORE TABLE {{t}} TO VERSION AS OF {inserted}")
    assert table.net() == table.appended() == [("INSERT", 1, -1, "x", 1)]
    assert table.net(deleted) == [("INSERT", 1, -1, "x", 1)]
    assert table.appended(deleted) == []


def test_rows_appended_beside_updates_and_a_compaction(table: Table) -> None:
    """New rows may share a file with moved ones, and their file may be gone by the end."""
    source = "(SELECT id k, 'm' v, 1 n FROM range(-3, 3))"
    clauses = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    table.run(f"MERGE INTO {{t}} t USING {source} s ON t.k = s.k {clauses}")
    table.run("OPTIMIZE {t} ZORDER BY (n)", "UPDATE {t} SET v = 'late' WHERE k = -1", "DELETE FROM {t} WHERE k = -2")
    assert table.appended() == [("INSERT", 1, k, "m", 1) for k in (-1, -2, -3)]


def test_vectors_switched_within_the_interval(table: Table) -> None:
    table.run("DELETE FROM {t} WHERE k = 1")
    for on in ("false", "true"):
        table.run(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{on}')")
        table.run(f"UPDATE {{t}} SET v = '{on}' WHERE k IN (2, 3)", "DELETE FROM {t} WHERE k = 3")
    changed = {(row[0], row[2], row[3]) for row in table.net()}
    assert changed == {
        ("DELETE", 1, "v1"),
        ("DELETE", 3, "v3"),
        ("UPDATE_BEFORE", 2, "v2"),
        ("UPDATE_AFTER", 2, "true"),
    }


def test_identical_rows_are_told_apart(table: Table) -> None:
    table.run("INSERT INTO {t} VALUES (-1, 'x', 1), (-1, 'x', 1), (-1, 'x', 1)")
    start = table.version
    table.run("INSERT INTO {t} VALUES (-1, 'x', 1)", "UPDATE {t} SET n = 2 WHERE k = -1")
    assert [row[0] for row in table.net(start)] == ["INSERT"] + ["UPDATE_AFTER"] * 3 + ["UPDATE_BEFORE"] * 3
