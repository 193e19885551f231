"""Where a refresh finds the rows that it writes: by the places that it has read, by the files that the log's checksum names, or by keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamql.delta.command import Command
from streamql.delta.jvm import jvm
from tests.consume.support import path_of
from tests.dynamic.support import DynamicPlace

pytestmark = pytest.mark.usefixtures("quick")

GROUPS = "SELECT v, count(*) AS n, sum(id) AS s FROM t GROUP BY v"


def filled(place: DynamicPlace) -> None:
    """The groups are in two files; the first one has a deletion vector, because the refresh updated a group of it."""
    place.run("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30), (4, 40), (5, NULL)")
    place.create(GROUPS, clauses="REFRESH_MODE = INCREMENTAL")
    place.run("INSERT INTO t VALUES (6, 20), (7, 50)", "REFRESH DYNAMIC TABLE d")


def before_execution(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Does some work once, when the next statement that consumes has its claim and is about to run."""
    turns = [work]
    execute = Command.execute

    def late(self: Command, *arguments: Any) -> object:
        if turns:
            turns.pop()()
        return execute(self, *arguments)

    monkeypatch.setattr(Command, "execute", late)


def change(place: DynamicPlace) -> None:
    place.run(
        "UPDATE t SET v = 20 WHERE id = 1", "DELETE FROM t WHERE id = 3", "INSERT INTO t VALUES (8, NULL), (9, 60)"
    )


def test_rows_are_found_where_they_were_read(place: DynamicPlace) -> None:
    filled(place)
    change(place)
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 2, 2)}
    assert place.verify() == ("EQUAL", 5, 0, 0)


def test_rows_that_have_moved_are_found_by_their_keys(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPTIMIZE puts them into another file after the refresh has planned its reads, and before it writes."""
    filled(place)
    change(place)
    before_execution(monkeypatch, lambda: place.write("OPTIMIZE {d}"))
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 2, 2)}
    assert place.verify() == ("EQUAL", 5, 0, 0)
    place.run("UPDATE t SET v = 40 WHERE id = 2")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 0, 2, 0)}
    assert place.verify() == ("EQUAL", 5, 0, 0)


def test_a_row_that_another_writer_took_meanwhile(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refresh neither fails nor writes the row twice; the next one puts right what the other writer did."""
    filled(place)
    change(place)
    before_execution(monkeypatch, lambda: place.write("DELETE FROM {d} WHERE v = 20"))
    assert place.refresh()["d"][0] == "REFRESHED"
    assert place.refresh()["d"][:2] == ("REFRESHED", "another statement wrote into the table")
    assert place.verify() == ("EQUAL", 5, 0, 0)


def test_rows_keep_their_ids(place: DynamicPlace) -> None:
    """A stream on the dynamic table shows a changed group as an update."""
    filled(place)
    place.run("CREATE STREAM s ON DYNAMIC TABLE d")
    change(place)
    place.refresh()
    shown = place.run("SELECT __change_type AS c, v, n FROM s")
    assert sorted((r["c"], str(r["v"]), r["n"]) for r in shown) == [
        ("DELETE", "10", 1),
        ("DELETE", "30", 1),
        ("INSERT", "60", 1),
        ("UPDATE_AFTER", "20", 3),
        ("UPDATE_AFTER", "None", 2),
        ("UPDATE_BEFORE", "20", 2),
        ("UPDATE_BEFORE", "None", 1),
    ]


@pytest.mark.parametrize("mode", ["INCREMENTAL", "FULL"])
def test_a_table_all_of_whose_columns_are_its_key(place: DynamicPlace, mode: str) -> None:
    """Its rows come and go; none is updated."""
    place.run("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)", "INSERT INTO u VALUES (2, 0)")
    place.create("SELECT id FROM t EXCEPT SELECT id FROM u", clauses=f"REFRESH_MODE = {mode}")
    place.run("INSERT INTO t VALUES (4, 4), (5, 5)", "INSERT INTO u VALUES (1, 0)")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 2, 0, 1)}
    assert place.verify() == ("EQUAL", 3, 0, 0)


# -- statistics of files with deletion vectors


def newest_add(table: Path) -> str:
    """The add action of a table's newest commit, as its line."""
    commit = max((table / "_delta_log").glob("*.json"))
    (line,) = [x for x in commit.read_text().splitlines() if x.startswith('{"add"')]
    return line


@pytest.mark.parametrize("earlier", [(), ("id = 7", "id = 8")], ids=["no vector", "two vectors"])
def test_statistics_are_as_delta_writes_them(
    spark: SparkSession, place: DynamicPlace, earlier: tuple[str, ...]
) -> None:
    """Of numbers, texts, times, nested columns, and columns that are empty."""
    place.run(
        "CREATE TABLE k (id INT, d DECIMAL(20, 5), f DOUBLE, t STRING, at TIMESTAMP, day DATE, s STRUCT<a: INT, b: STRING>, "
        "none STRING, some INT, yes BOOLEAN) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "INSERT INTO k SELECT /*+ COALESCE(1) */ id, id * 1.10000, id / 7, concat('é', id), timestamp_seconds(id), "
        "date_from_unix_date(id), named_struct('a', NULL, 'b', 'x'), NULL, if(id < 3, NULL, id), true FROM range(10)",
        *(f"DELETE FROM k WHERE {where}" for where in earlier),
    )
    table = path_of(spark, f"{place.schema}.k")
    scala = jvm(spark).org.apache.spark.sql
    before = scala.delta.actions.Action.fromJson(newest_add(table))
    place.run("DELETE FROM k WHERE id = 5")
    delta = json.loads(json.loads(newest_add(table))["add"]["stats"])
    ours = json.loads(scala.streamql.changes.KnownFiles.wideBounds(before).get())
    assert ours == delta
    assert ours["tightBounds"] is False
    assert ours["nullCount"]["none"] == 10
