"""Only refreshes write the rows of a dynamic table: other statements are refused, and other engines' commits are noticed and corrected."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamql.delta.jvm import jvm
from streamql.delta.table import DeltaTable
from streamql.errors import StreamqlError
from streamql.features.dynamic.refreshes import refresh as refreshes
from streamql.features.dynamic.refreshes import written
from streamql.features.dynamic.source.refresh import ModeChoice
from streamql.model import Parts
from tests.consume.support import findings, path_of
from tests.dynamic.support import DynamicPlace

WRITTEN = "another statement wrote into the table"


def filled(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
    place.create("SELECT id, v FROM t")


def test_statements_are_refused(spark: SparkSession, place: DynamicPlace) -> None:
    filled(place)
    b = place.backing()
    place.run("UPDATE t SET v = 11 WHERE id = 1", "REFRESH DYNAMIC TABLE d")
    for text in (
        f"INSERT INTO {b} VALUES (9, 9, 9)",
        f"INSERT OVERWRITE {b} SELECT * FROM {b}",
        f"INSERT INTO {b} REPLACE WHERE id = 1 SELECT * FROM {b} WHERE id = 1",
        f"UPDATE {b} SET v = 0",
        f"DELETE FROM {b}",
        f"DELETE FROM {b} WHERE id = 1",
        f"MERGE INTO {b} x USING t ON x.id = t.id WHEN MATCHED THEN DELETE",
        f"TRUNCATE TABLE {b}",
        f"RESTORE TABLE {b} TO VERSION AS OF 1",
    ):
        refused = place.refused(text)
        assert (refused.code, "which only its refreshes may write" in refused.message) == (
            "UNSUPPORTED_TARGET",
            True,
        ), text
    rows = spark.table(b)
    location = str(path_of(spark, b))
    writes: list[Callable[[], object]] = [
        lambda: rows.writeTo(b).append(),
        lambda: rows.write.insertInto(b),
        lambda: rows.write.mode("append").saveAsTable(b),
        lambda: rows.write.mode("overwrite").saveAsTable(b),
        lambda: rows.write.format("delta").mode("append").save(location),
        lambda: rows.write.format("delta").mode("overwrite").save(location),
    ]
    for write in writes:
        with pytest.raises((StreamqlError, PySparkException)) as found:
            write()
        assert "which only its refreshes may write" in str(found.value) or "holds the rows of" in str(found.value)
    for text in ("INSERT INTO d VALUES (9, 9)", "UPDATE d SET v = 0", "DELETE FROM d", "TRUNCATE TABLE d"):
        with pytest.raises((StreamqlError, PySparkException)):
            place.run(text)
    assert place.verify() == ("EQUAL", 3, 0, 0)
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}


def test_maintenance_is_not_refused(place: DynamicPlace) -> None:
    filled(place)
    place.run("INSERT INTO t VALUES (4, 40)", "REFRESH DYNAMIC TABLE d", f"OPTIMIZE {place.backing()}")
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
    place.run("INSERT INTO t VALUES (5, 50)")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 0, 0)}
    assert place.verify() == ("EQUAL", 5, 0, 0)


@pytest.mark.parametrize(
    ("text", "verdict", "corrected"),
    [
        ("UPDATE {d} SET v = 0 WHERE id = 1", (3, 1, 1), (0, 1, 0)),
        ("DELETE FROM {d} WHERE id = 1", (2, 1, 0), (1, 0, 0)),
        ("DELETE FROM {d}", (0, 3, 0), (3, 0, 0)),
        ("INSERT INTO {d} SELECT 9, 9, 999", (4, 0, 1), (0, 0, 1)),
    ],
)
def test_others_are_noticed_and_corrected(
    place: DynamicPlace, text: str, verdict: tuple[int, int, int], corrected: tuple[int, int, int]
) -> None:
    filled(place)
    place.write(text)
    assert place.verify() == ("DIFFERENT", *verdict)
    assert [f.code for f in findings(place.spark, f"{place.schema}.d")] == ["DYNAMIC_TABLE_WRITTEN"]
    assert place.refresh() == {"d": ("REFRESHED", WRITTEN, *corrected)}
    assert place.verify() == ("EQUAL", 3, 0, 0)
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}


def test_a_row_that_is_there_twice(place: DynamicPlace) -> None:
    """With its key: a MERGE cannot tell the two apart."""
    filled(place)
    place.write("INSERT INTO {d} SELECT * FROM {d} WHERE id = 1")
    assert place.verify() == ("DIFFERENT", 4, 0, 1)
    assert place.refresh()["d"][:2] == ("REFRESHED", WRITTEN)
    assert place.verify() == ("EQUAL", 3, 0, 0)


def test_a_commit_written_by_hand(spark: SparkSession, place: DynamicPlace) -> None:
    """As an engine writes it that knows nothing of Spark: a file is removed."""
    filled(place)
    path = path_of(spark, place.backing())
    remove_first_file(path, place.latest(place.backing()) + 1)
    assert place.verify()[0] == "DIFFERENT"
    assert place.refresh()["d"][:2] == ("REFRESHED", WRITTEN)
    assert place.verify() == ("EQUAL", 3, 0, 0)


def remove_first_file(path: Path, version: int) -> None:
    log = path / "_delta_log"
    entries = [json.loads(line) for commit in sorted(log.glob("*.json")) for line in commit.read_text().splitlines()]
    added = next(e["add"] for e in entries if "add" in e)
    info = next(e["commitInfo"] for e in reversed(entries) if "commitInfo" in e)
    time = info["inCommitTimestamp"] + 1
    actions = [
        {
            "commitInfo": {
                "timestamp": time,
                "inCommitTimestamp": time,
                "operation": "DELETE",
                "operationParameters": {},
            }
        },
        {
            "remove": {
                "path": added["path"],
                "deletionTimestamp": time,
                "dataChange": True,
                "partitionValues": {},
                "size": added["size"],
            }
        },
    ]
    (log / f"{version:020}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))


def test_others_between_comparison_and_commit(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written after a refresh has compared the rows, and before it commits, the next refresh corrects."""
    filled(place)
    place.run("INSERT INTO t VALUES (4, 40)")
    note = written.note

    def noted(version: int, through: Parts) -> str:
        place.write("DELETE FROM {d} WHERE id = 1")
        return note(version, through)

    monkeypatch.setattr(refreshes, "note", noted)
    assert place.refresh()["d"][0] == "REFRESHED"
    monkeypatch.undo()
    assert place.refresh()["d"][:2] == ("REFRESHED", WRITTEN)
    assert place.verify() == ("EQUAL", 4, 0, 0)


def test_others_before_an_incremental_refresh_plans(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """An incremental refresh does not compare rows, so it has not seen what others wrote since it looked for their commits."""
    filled(place)
    place.run("INSERT INTO t VALUES (4, 40)")
    choose = refreshes.choose_mode

    def late(*arguments: Any) -> ModeChoice:
        place.write("DELETE FROM {d} WHERE id = 1")
        return choose(*arguments)

    monkeypatch.setattr(refreshes, "choose_mode", late)
    assert place.refresh()["d"][0] == "REFRESHED"
    monkeypatch.undo()
    assert place.history()[0]["mode"] == "INCREMENTAL"
    assert place.refresh()["d"][:2] == ("REFRESHED", WRITTEN)
    assert place.verify() == ("EQUAL", 4, 0, 0)


def test_rows_that_are_put_back_from_a_copy(spark: SparkSession, place: DynamicPlace, tmp_path: Path) -> None:
    """The copy's last commit is a refresh, but not the last one."""
    filled(place)
    path = path_of(spark, place.backing())
    shutil.copytree(path, tmp_path / "copy")
    place.run("INSERT INTO t VALUES (4, 40)")
    place.refresh()
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "copy", path)
    jvm(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert place.refresh()["d"] == ("REFRESHED", WRITTEN, 1, 0, 0)
    assert place.verify() == ("EQUAL", 4, 0, 0)
    assert place.refresh()["d"][0] == "UNCHANGED"


def test_others_below_the_mark_of_a_process_that_died(spark: SparkSession, place: DynamicPlace) -> None:
    """A claim that is fenced leaves a commit with the number of the refresh, which is no refresh."""
    filled(place)
    place.write("DELETE FROM {d} WHERE id = 1")
    backing = DeltaTable(spark, place.found().backing.path)
    (app_id,) = {a for c in backing.commits(backing.latest(), 0, backing.latest().version) for a in c.transactions}
    scala = jvm(spark).org.apache.spark.sql.streamql
    assert scala.consume.Txns.fence(spark._jsparkSession, place.found().backing.path, app_id, 99, 99) == 99
    assert place.refresh()["d"][:2] == ("REFRESHED", WRITTEN)
    assert place.verify() == ("EQUAL", 3, 0, 0)


def test_a_table_filled_by_another_refresher_meanwhile(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first refresh inserts: it must not insert the difference to rows that another one has written before it."""
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)")
    place.create("SELECT id, v FROM t", clauses="INITIALIZE = ON_SCHEDULE")
    insert = refreshes.write_statement
    turns = [lambda: (place.refresh(), place.run("UPDATE t SET v = 11 WHERE id = 1", "DELETE FROM t WHERE id = 2"))]

    def late(*arguments: Any) -> str:
        text = insert(*arguments)
        if turns:
            turns.pop()()
        return text

    monkeypatch.setattr(refreshes, "write_statement", late)
    assert place.refresh()["d"][0] == "REFRESHED"
    assert place.verify() == ("EQUAL", 1, 0, 0)
