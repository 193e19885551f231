"""Statements of consumptions, run again into shadows of their targets."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.delta.names import qualify
from streamql.dialect import parse_name
from streamql.engine.reads import need_stream
from streamql.errors import StreamqlError
from streamql.features.replay.shadow import Replayed, entry_to_replay, replay
from tests.consume.support import fresh_schema, run

MERGE = (
    "MERGE INTO copy AS t USING (SELECT * FROM s WHERE __change_type <> 'UPDATE_BEFORE') AS c ON t.id = c.id "
    "WHEN MATCHED AND c.__change_type = 'DELETE' THEN DELETE WHEN MATCHED THEN UPDATE SET v = {} "
    "WHEN NOT MATCHED AND c.__change_type <> 'DELETE' THEN INSERT (id, v) VALUES (c.id, {})"
)


def _replayed(
    spark: SparkSession, into: str, number: int | None = None, text: str | None = None, target: str | None = None
) -> Replayed:
    state = need_stream(spark, parse_name("s"))
    return replay(spark, state, entry_to_replay(spark, state, number, target), qualify(spark, (into,)), text)


def _numbers(spark: SparkSession, schema: str) -> list[int]:
    consumed = (
        f"SELECT DISTINCT sequence FROM streamql.consumptions WHERE stream = '{schema}.s' AND outcome = 'CONSUMED'"
    )
    return [r[0] for r in run(spark, f"{consumed} ORDER BY 1")]


def test_each_consumption_gives_what_its_target_got(spark: SparkSession) -> None:
    """Also after the source, the target and the other streams have gone on. A corrected statement shows what it would have done."""
    schema = fresh_schema(spark, "replayed")
    run(spark, "CREATE TABLE src (id BIGINT, v BIGINT, m MAP<STRING, INT>) TBLPROPERTIES ('change_tracking' = 'true')")
    run(spark, "INSERT INTO src SELECT id, id, map('a', 1) FROM range(100)")
    run(spark, "CREATE STREAM s ON TABLE src SHOW_INITIAL_ROWS = TRUE")
    run(spark, "CREATE STREAM other ON TABLE src")
    run(spark, "CREATE TABLE copy AS SELECT id, v FROM s")
    run(spark, "UPDATE src SET v = v + 1 WHERE id < 20")
    run(spark, "DELETE FROM src WHERE id BETWEEN 90 AND 94")
    run(spark, "INSERT INTO src SELECT id, id, NULL FROM range(200, 210)")
    run(spark, MERGE.format("c.v", "c.v"))
    run(spark, "UPDATE src SET v = 0")
    run(spark, MERGE.format("t.v + c.v", "c.v * 2"))  # a target that reads its own rows
    run(spark, "INSERT INTO src VALUES (500, 1, NULL)")
    run(spark, "OPTIMIZE src")

    before = run(spark, "DESCRIBE HISTORY copy")
    first, second, third = _numbers(spark, schema)
    for i, (number, took) in enumerate(
        (
            (first, {"INSERT": 100}),
            (second, {"INSERT": 10, "DELETE": 5, "UPDATE_BEFORE": 20, "UPDATE_AFTER": 20}),
            (third, None),
        )
    ):
        done = _replayed(spark, f"shadow{i}", number)
        assert done.is_equal
        assert done.samples == ()
        assert took is None or done.took == took
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == 1, "nothing moved"
    assert run(spark, "DESCRIBE HISTORY copy") == before, "the target stays as it is"

    corrected = _replayed(spark, "fixed", second, MERGE.format("c.v * 10", "c.v"))
    assert (corrected.missing, corrected.unexpected) == (20, 20)
    assert {("target", '{"id":0,"v":1}'), ("shadow", '{"id":0,"v":10}')} <= set(corrected.samples)
    with pytest.raises(StreamqlError, match="NAME_ALREADY_IN_USE"):
        _replayed(spark, "fixed", second)
    with pytest.raises(StreamqlError, match=r"UNSUPPORTED_STATEMENT.*names src as its target"):
        _replayed(spark, "new", second, "INSERT INTO src SELECT id, v, NULL FROM s")
    assert run(spark, "SHOW TABLES LIKE 'new'") == []


def test_a_statement_over_two_streams(spark: SparkSession) -> None:
    """Each is shown as the consumption found it, though both have gone on since."""
    fresh_schema(spark, "replayed_joins")
    for name in ("src", "names"):
        run(spark, f"CREATE TABLE {name} (id BIGINT, v BIGINT) TBLPROPERTIES ('change_tracking' = 'true')")
    run(spark, "CREATE STREAM s ON TABLE src")
    run(spark, "CREATE STREAM named ON TABLE names")
    run(spark, "CREATE TABLE copy (id BIGINT, v BIGINT, w BIGINT)")
    for start in (0, 100):
        run(spark, f"INSERT INTO src SELECT id, id * 2 FROM range({start}, {start + 50})")
        run(spark, f"INSERT INTO names SELECT id, id * 3 FROM range({start + 20}, {start + 70})")
        run(spark, "INSERT INTO copy SELECT s.id, s.v, n.v FROM s FULL JOIN named AS n ON s.id = n.id")
    first = _replayed(spark, "first", min(_numbers(spark, spark.catalog.currentDatabase())))
    assert (first.is_equal, first.rows) == (True, 70)
    assert _replayed(spark, "second").is_equal
    only_one = _replayed(spark, "third", text="INSERT INTO copy SELECT s.id, s.v, NULL FROM s")
    assert (only_one.missing, only_one.unexpected) == (50, 30)


def test_a_transaction_a_failure_and_a_history_that_is_gone(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "replayed_parts")
    run(spark, "CREATE TABLE src (id BIGINT, v BIGINT) TBLPROPERTIES ('change_tracking' = 'true')")
    run(spark, "CREATE STREAM s ON TABLE src")
    run(spark, "CREATE TABLE a (id BIGINT)")
    run(spark, "CREATE TABLE copy (id BIGINT, v BIGINT)")
    with pytest.raises(StreamqlError, match=r"CONSUMPTION_NOT_FOUND.*was not consumed yet"):
        _replayed(spark, "shadow")
    run(spark, "INSERT INTO src SELECT id, id FROM range(50)")
    for text in (
        "BEGIN TRANSACTION",
        "INSERT INTO a SELECT id FROM s WHERE id < 5",
        "INSERT INTO copy SELECT id, v FROM s",
        "COMMIT",
    ):
        run(spark, text)
    with pytest.raises(StreamqlError, match=r"UNSUPPORTED_STATEMENT.*transaction(.|\n)*--target .*\.a or .*\.copy"):
        _replayed(spark, "shadow")
    assert _replayed(spark, "shadow_a", target="a").rows == 5
    assert _replayed(spark, "shadow_copy", target=f"{schema}.copy").is_equal
    with pytest.raises(Exception, match=r"TASK_WRITE_FAILED|DIVIDE_BY_ZERO"):
        _replayed(spark, "bad", text="INSERT INTO copy SELECT id, v / 0 FROM s", target="copy")
    assert run(spark, "SHOW TABLES LIKE 'bad'") == [], "a shadow that was not filled is dropped"

    path = Path(run(spark, "DESCRIBE DETAIL src")[0]["location"].removeprefix("file:"))
    run(spark, "DELETE FROM src WHERE id >= 0")
    for file in path.glob("*.parquet"):
        file.unlink()  # as VACUUM does
    with pytest.raises(StreamqlError, match=r"CONSUMPTION_GONE.*VACUUM removed"):
        _replayed(spark, "late", target="copy")
    assert run(spark, "SHOW TABLES LIKE 'late'") == []
