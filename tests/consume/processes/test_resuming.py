"""Consumptions that stopped half way: resumed by the same statements, or given up by a person."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from streamql.consume.claims import resolve
from streamql.errors import StreamqlError
from tests.consume.support import BLOCK_ROWS as ROWS
from tests.consume.support import (
    assert_arrived_once,
    fresh_schema,
    killed,
    run,
    two_targets,
)

MAPPING_MODE = "spark.databricks.delta.properties.defaults.columnMapping.mode"


@pytest.mark.parametrize(
    ("said", "outcome", "event"),
    [
        ("ALTER STREAM s SET OFFSET TO LATEST", "PARTIALLY_COMMITTED", "set_offset"),
        ("ALTER STREAM s RELEASE", "PARTIALLY_COMMITTED", "given_up"),
        ("DROP STREAM s", "PARTIALLY_COMMITTED", "dropped"),
        ("CREATE OR REPLACE STREAM s ON TABLE t", "PARTIALLY_COMMITTED", "dropped"),
    ],
)
def test_what_is_given_up_and_what_it_gives_way_to_are_one_commit(
    spark: SparkSession, said: str, outcome: str, event: str
) -> None:
    """Between two, somebody else could take a second time what is in already."""
    schema, (begin, first, *_) = two_targets(spark, "block")
    run(spark, "CREATE STREAM other ON TABLE t SHOW_INITIAL_ROWS = TRUE")
    run(spark, begin)
    run(spark, first)
    run(spark, f"INSERT INTO {schema}.b SELECT id, v FROM {schema}.other")
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, "ROLLBACK")
    before = commits(spark)
    run(spark, said)
    assert commits(spark) == before + 1
    rows = spark.table("streamql.events").where(f"stream = '{schema}.s'").orderBy("sequence").collect()
    assert [r["outcome"] for r in rows if r["event"] == "released"][-1:] == [outcome]
    assert event in [r["event"] for r in rows]
    run(spark, f"INSERT INTO {schema}.b SELECT id, v FROM {schema}.other")  # its other stream is free as well


def commits(spark: SparkSession) -> int:
    """How many commits the catalog has had, without those of its upkeep (OPTIMIZE, VACUUM, DELETE)."""
    return sum(r["operation"] in ("WRITE", "MERGE") for r in run(spark, "DESCRIBE HISTORY streamql.events"))


def test_a_transaction_that_has_seen_less_does_not_take_over_another(spark: SparkSession) -> None:
    schema, block = two_targets(spark, "block")
    other = spark.newSession()
    run(other, block[0])
    run(other, f"SELECT count(*) FROM {schema}.s")
    run(spark, "INSERT INTO t VALUES (-1, -10)")
    run(spark, block[0])
    run(spark, block[1])
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, "ROLLBACK")
    with pytest.raises(StreamqlError, match="STREAM_MOVED"):
        run(other, block[1])
    run(other, "ROLLBACK")
    for statement in block:
        run(other, statement)
    for table in ("a", "b"):
        assert run(spark, f"SELECT count(*) AS n, count(DISTINCT id) AS d FROM {table}")[0]["d"] == ROWS + 1


def half_inserted(spark: SparkSession, columns: str = "id, v") -> tuple[str, str]:
    """A statement of two INSERTs, of which the first is done and the second, which failed, would succeed by now."""
    schema, _ = two_targets(spark, "block")
    run(spark, "ALTER TABLE b ADD CONSTRAINT small CHECK (id < 10)")
    both = f"FROM {schema}.s INSERT INTO {schema}.a SELECT {columns} INSERT INTO {schema}.b SELECT {columns}"
    with pytest.raises(StreamqlError) as half:
        run(spark, both)
    assert half.value.code == "CONSUMPTION_PARTIALLY_COMMITTED"
    run(spark, "ALTER TABLE b DROP CONSTRAINT small")
    return schema, both


def test_several_inserts_in_one_statement_go_on_where_they_stopped(spark: SparkSession) -> None:
    schema, both = half_inserted(spark)
    run(spark, both)
    assert_arrived_once(spark, schema)


def test_several_inserts_go_on_though_the_source_has_another_column_now(spark: SparkSession) -> None:
    schema, both = half_inserted(spark)
    run(spark, "ALTER TABLE t ADD COLUMN note STRING AFTER id")
    run(spark, "INSERT INTO t VALUES (-1, 'new', -10)")
    run(spark, both)
    assert [tuple(row) for row in run(spark, "SELECT id, note, v FROM s")] == [(-1, "new", -10)]
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    assert_arrived_once(spark, schema)


def test_several_inserts_go_on_though_a_column_is_wider_and_another_has_more_in_it(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "wider")
    run(spark, "CREATE TABLE t (id INT, at STRUCT<x: INT>) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    run(spark, "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')")
    run(spark, "CREATE STREAM s ON TABLE t")
    run(spark, "INSERT INTO t SELECT CAST(id AS INT), struct(CAST(-id AS INT)) FROM range(0, 1000, 1, 4)")
    for table in ("a", "b"):
        run(spark, f"CREATE TABLE {table} (id BIGINT, x BIGINT)")
    run(spark, "ALTER TABLE b ADD CONSTRAINT small CHECK (id < 10)")
    both = f"FROM {schema}.s INSERT INTO {schema}.a SELECT id, at.x INSERT INTO {schema}.b SELECT id, at.x"
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, both)
    run(spark, "ALTER TABLE b DROP CONSTRAINT small")
    run(spark, "ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    run(spark, "ALTER TABLE t ADD COLUMN at.y STRING FIRST")
    run(spark, "ALTER TABLE t ALTER COLUMN at COMMENT 'where'")
    run(spark, "INSERT INTO t VALUES (5000000000, named_struct('y', 'new', 'x', 7))")
    run(spark, both)
    for table in ("a", "b"):
        rows = run(spark, f"SELECT count(*) AS n, count(DISTINCT id) AS d, sum(id) + sum(x) AS zero FROM {table}")
        assert [tuple(row) for row in rows] == [(1000, 1000, 0)]
    run(spark, both)
    for table in ("a", "b"):
        assert [tuple(row) for row in run(spark, f"SELECT * FROM {table} WHERE id > 1000")] == [(5000000000, 7)]


def test_what_has_not_ended_is_something_to_do_though_its_rows_are_gone_again(spark: SparkSession) -> None:
    """A job that runs when there is data would else never come back to it."""
    _, both = half_inserted(spark)
    run(spark, "DELETE FROM t")
    assert run(spark, "SELECT * FROM s") == []
    assert run(spark, "SELECT stream_has_data('s') AS yes")[0]["yes"]
    assert run(spark, "SHOW STREAMS LIKE 's'")[0]["has_data"]
    assert run(spark, "SELECT has_data FROM stream_backlog('s')")[0]["has_data"]
    run(spark, both)
    run(spark, both)
    assert not run(spark, "SELECT stream_has_data('s') AS yes")[0]["yes"]


def test_several_inserts_go_on_though_columns_have_each_others_names_now(spark: SparkSession) -> None:
    spark.conf.set(MAPPING_MODE, "name")
    try:
        schema, both = half_inserted(spark, "* EXCEPT (__change_type, __commit_version, __commit_timestamp)")
    finally:
        spark.conf.unset(MAPPING_MODE)
    run(spark, "ALTER TABLE t RENAME COLUMN v TO w")
    run(spark, "ALTER TABLE t RENAME COLUMN id TO v")
    run(spark, both)
    assert_arrived_once(spark, schema)


def test_vacuum_leaves_what_a_partially_committed_statement_took(spark: SparkSession) -> None:
    """All rows since the stream's offset are gone by now, so that it has nothing to read; what was claimed is read all the same."""
    _, both = half_inserted(spark)
    run(spark, "DELETE FROM t")
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(check, "false")
    try:
        with pytest.raises(StreamqlError, match="STREAM_NEEDS_FILES"):
            run(spark, "VACUUM t RETAIN 0 HOURS")
    finally:
        spark.conf.unset(check)
    run(spark, both)
    for table in ("a", "b"):
        assert run(spark, f"SELECT count(*) AS n FROM {table}")[0]["n"] == ROWS


def test_several_inserts_do_not_go_on_over_a_table_that_was_replaced(spark: SparkSession) -> None:
    schema, both = half_inserted(spark)
    run(spark, "CREATE OR REPLACE TABLE a (id BIGINT, v BIGINT)")
    with pytest.raises(StreamqlError, match=r"\ba was replaced, restored or dropped"):
        run(spark, both)
    run(spark, "ALTER STREAM s RELEASE")
    run(spark, both)
    assert_arrived_once(spark, schema)


def test_what_is_given_up_in_doubt_can_write_nowhere_else(spark: SparkSession) -> None:
    schema, _ = two_targets(spark, "block")
    both = f"FROM {schema}.s INSERT INTO {schema}.a SELECT id, v INSERT INTO {schema}.b SELECT id, v"
    killed(spark, "after:execute:1", both)
    run(spark, "DROP TABLE a")
    run(spark, "ALTER STREAM s RELEASE")
    (latest,) = run(spark, "DESCRIBE HISTORY b LIMIT 1")
    assert latest["version"] == 1, "the fence: a process that only slept could else commit later"
    run(spark, "INSERT INTO b SELECT id, v FROM s")
    assert run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM b")[0].asDict() == {"n": ROWS, "d": ROWS}


@pytest.mark.parametrize(
    "refused", ["ALTER STREAM s SET OFFSET TIMESTAMP '2001-01-01'", "CREATE OR REPLACE STREAM s ON TABLE no_such_table"]
)
def test_a_statement_that_is_refused_gives_no_partially_committed_transaction_up(
    spark: SparkSession, refused: str
) -> None:
    schema, block = two_targets(spark, "block")
    run(spark, block[0])
    run(spark, block[1])
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, "ROLLBACK")
    with pytest.raises(StreamqlError) as error:
        run(spark, refused)
    assert error.value.code in ("INVALID_POINT_IN_TIME", "TABLE_NOT_FOUND")
    for statement in block:
        run(spark, statement)
    assert_arrived_once(spark, schema)


def half_done(spark: SparkSession) -> tuple[str, list[str]]:
    """A transaction of two statements, of which the first is done; the second failed, and it was rolled back."""
    schema, block = two_targets(spark, "half")
    run(spark, "ALTER TABLE b ADD CONSTRAINT small CHECK (id < 10)")
    run(spark, block[0])
    run(spark, block[1])
    with pytest.raises(Exception, match="small"):
        run(spark, block[2])
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, "ROLLBACK")
    run(spark, "ALTER TABLE b DROP CONSTRAINT small")
    return schema, block


def test_what_a_restore_took_back_is_not_skipped(spark: SparkSession) -> None:
    """Between RESTORE, which the hint tells to begin with, and RELEASE a scheduled job runs again."""
    schema, block = half_done(spark)
    run(spark, "RESTORE TABLE a TO VERSION AS OF 0")
    run(spark, block[0])
    with pytest.raises(StreamqlError, match=r"\ba was replaced, restored or dropped"):
        run(spark, block[1])
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, "ROLLBACK")
    run(spark, "ALTER STREAM s RELEASE")
    for statement in block:
        run(spark, statement)
    assert_arrived_once(spark, schema)


def test_a_run_that_leaves_the_failed_statement_out_is_not_committed(spark: SparkSession) -> None:
    schema, block = half_done(spark)
    run(spark, block[0])
    run(spark, block[1])
    with pytest.raises(StreamqlError, match="failed in an earlier run"):
        run(spark, block[3])
    run(spark, f"INSERT INTO {schema}.b SELECT id, CAST(v AS BIGINT) FROM {schema}.s")  # the script was corrected
    run(spark, block[3])
    assert_arrived_once(spark, schema)


def test_a_corrected_run_that_broke_off_as_well_is_resumed(spark: SparkSession) -> None:
    """The failed statement of the first run was replaced in the second: the third has nothing left to do but COMMIT."""
    schema, (begin, into_a, _, commit) = half_done(spark)
    corrected = f"INSERT INTO {schema}.b SELECT id, CAST(v AS BIGINT) FROM {schema}.s"
    for last in ("ROLLBACK", commit):
        for statement in (begin, into_a, corrected):
            run(spark, statement)
        if last == commit:
            run(spark, last)
        else:
            with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
                run(spark, last)
    assert_arrived_once(spark, schema)


def test_what_cannot_be_looked_at_can_be_given_up(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    schema, block = two_targets(spark, "block")
    killed(spark, "before:execute:1", *block)
    with monkeypatch.context() as patch:
        patch.setattr(resolve, "fence", storage_is_gone)
        with pytest.raises(Exception, match="the bucket is gone"):
            run(spark, f"INSERT INTO {schema}.b SELECT id, v FROM {schema}.s")
        run(spark, "ALTER STREAM s RELEASE")
    (row,) = run(spark, f"SELECT outcome, error FROM streamql.consumptions WHERE stream = '{schema}.s'")
    assert row["outcome"] == "IN_DOUBT"
    assert "the bucket is gone" in row["error"]
    for statement in block:
        run(spark, statement)


def storage_is_gone(*_: object) -> None:
    raise OSError("the bucket is gone")


def test_a_dataframe_whose_write_did_nothing_can_be_written_again(spark: SparkSession) -> None:
    schema, _ = two_targets(spark, "again")
    run(spark, f"INSERT INTO {schema}.a SELECT id, v FROM {schema}.s")
    run(spark, "UPDATE t SET v = v + 1")
    changes = spark.table(f"{schema}.s").where("__change_type = 'UPDATE_AFTER'").select("id", "v")
    with pytest.raises(Exception, match="ALREADY_EXISTS"):
        changes.writeTo(f"{schema}.b").create()
    changes.writeTo(f"{schema}.b").append()
    assert run(spark, "SELECT count(*) AS n FROM b")[0]["n"] == ROWS
    assert run(spark, "SELECT * FROM s") == []
