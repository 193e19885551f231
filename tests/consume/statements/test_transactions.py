"""Transactions: repeatable reads, one move of the offset, and what is left where a run of one ends half way."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
from pyspark.sql import SparkSession

import streamql
from streamql.consume import consumption, session_transactions
from streamql.consume.claims.owner import is_running_here, running, stop_running, this_owner
from streamql.consume.claims.steps import end_claim
from streamql.errors import StreamqlError
from tests.consume.support import BLOCK_ROWS as ROWS
from tests.consume.support import assert_arrived_once, assert_ledger_tiles, killed, run, two_targets
from tests.lines import IS_4_0
from tests.sample import sample

KILLS = [("after:execute", 1), ("before:execute", 2), ("before:end", 1), ("after:resolve", 1), ("after:execute", 2)]


@pytest.mark.parametrize(("point", "calls"), sample("kills of a block", KILLS, 1))
def test_killed_between_statements_and_run_again(spark: SparkSession, point: str, calls: int) -> None:
    schema, block = two_targets(spark, "block")
    killed(spark, f"{point}:{calls}", *block)
    for statement in block:
        run(spark, statement)
    assert_arrived_once(spark, schema)
    tiles = spark.table("streamql.consumptions").where(f"stream = '{schema}.s' AND outcome = 'CONSUMED'").collect()
    assert {r["target"].split(".")[-1] for r in tiles} == {"a", "b"}
    assert len({(r["consumption_id"], r["from_version"], r["through_version"]) for r in tiles}) == 1


def test_another_statement_does_not_take_a_partially_committed_transaction_over(spark: SparkSession) -> None:
    schema, block = two_targets(spark, "block")
    killed(spark, "before:execute:2", *block)
    with pytest.raises(StreamqlError) as refused:
        run(spark, "INSERT INTO b SELECT id, v + 1 FROM s")
    assert refused.value.code == "CONSUMPTION_PARTIALLY_COMMITTED"
    run(spark, "BEGIN TRANSACTION")
    with pytest.raises(StreamqlError) as other:
        run(spark, "INSERT INTO a SELECT id, v + 1 FROM s")
    assert other.value.code == "CONSUMPTION_PARTIALLY_COMMITTED"
    run(spark, block[1])
    with pytest.raises(StreamqlError) as open_still:  # COMMIT, ROLLBACK: what is done is done
        run(spark, "ROLLBACK")
    assert open_still.value.code == "CONSUMPTION_PARTIALLY_COMMITTED"
    with streamql.transaction(spark):
        for statement in block[1:-1]:
            run(spark, statement)
    assert_arrived_once(spark, schema)


def test_a_failed_body_is_rolled_back_and_a_half_done_one_says_so(spark: SparkSession) -> None:
    schema, block = two_targets(spark, "block")
    with pytest.raises(ZeroDivisionError), streamql.transaction(spark):
        raise ZeroDivisionError

    def half_done() -> None:
        with streamql.transaction(spark):
            run(spark, block[1])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as half:
        half_done()
    if sys.version_info >= (3, 11):
        assert "CONSUMPTION_PARTIALLY_COMMITTED" in half.value.__notes__[0]
    with streamql.transaction(spark):
        run(spark, block[1])
        run(spark, block[2])
    assert_arrived_once(spark, schema)


def test_reads_are_repeatable_and_others_wait(spark: SparkSession) -> None:
    schema, block = two_targets(spark, "block")
    other = spark.newSession()
    other.sql(f"USE {schema}")
    other.conf.set("spark.streamql.busyTimeout", "0s")
    with streamql.transaction(spark):
        seen = run(spark, "SELECT count(*) AS n FROM s")[0]["n"]
        other.sql("INSERT INTO t SELECT id, id * 10 FROM range(100000, 100100)")
        run(spark, block[1])
        with pytest.raises(StreamqlError) as busy:
            run(other, f"INSERT INTO {schema}.b SELECT id, v FROM {schema}.s")
        assert busy.value.code == "STREAM_BUSY"
        other.sql("DELETE FROM t WHERE id >= 100000")
        run(spark, block[2])
        assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == seen == ROWS
    assert_arrived_once(spark, schema)


def test_a_stream_that_was_seen_and_moved_by_others_is_not_taken(spark: SparkSession) -> None:
    schema, block = two_targets(spark, "block")
    other = spark.newSession()
    other.sql(f"USE {schema}")
    run(spark, "BEGIN TRANSACTION")
    run(spark, "SELECT count(*) FROM s")
    run(other, f"INSERT INTO {schema}.b SELECT id, v FROM {schema}.s")
    with pytest.raises(StreamqlError) as moved:
        run(spark, block[1])
    assert moved.value.code == "STREAM_MOVED"
    run(spark, "ROLLBACK")
    run(spark, "INSERT INTO a SELECT * FROM b")
    assert_arrived_once(spark, schema)
    assert_ledger_tiles(spark, f"{schema}.s", 0)


def test_of_two_transactions_that_wait_for_each_other_one_commits_what_is_done(spark: SparkSession) -> None:
    schema, _ = two_targets(spark, "crossed")
    run(spark, "CREATE STREAM s2 ON TABLE t SHOW_INITIAL_ROWS = TRUE")
    one = [f"INSERT INTO {schema}.a SELECT id, v FROM {schema}.{stream}" for stream in ("s", "s2")]
    other = [f"INSERT INTO {schema}.b SELECT id, v FROM {schema}.{stream}" for stream in ("s2", "s")]
    sessions = (spark.newSession(), spark.newSession())
    for session, block in zip(sessions, (one, other), strict=True):
        session.conf.set("spark.streamql.busyTimeout", "0s")
        run(session, "BEGIN TRANSACTION")
        run(session, block[0])
    for session, block in zip(sessions, (one, other), strict=True):
        with pytest.raises(StreamqlError, match=r"(?s)STREAM_BUSY.*ROLLBACK, then BEGIN, the statements that are done"):
            run(session, block[1])
    for session in sessions:
        with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
            run(session, "ROLLBACK")
    with streamql.transaction(sessions[0]):
        run(sessions[0], one[0])
    with streamql.transaction(sessions[1]):
        for statement in other:
            run(sessions[1], statement)
    for table in ("a", "b"):
        row = run(spark, f"SELECT count(*) AS n, count(DISTINCT id) AS d FROM {table}")[0]
        assert (row["n"], row["d"]) == (ROWS, ROWS)


@pytest.mark.parametrize("last", ["COMMIT", "ROLLBACK"])
def test_the_end_of_a_transaction_that_a_person_gave_up_says_so(spark: SparkSession, last: str) -> None:
    schema, (begin, into_a, *_) = two_targets(spark, "given")
    run(spark, begin)
    run(spark, into_a)
    transaction = session_transactions.current(spark)
    assert transaction is not None
    assert transaction.claim is not None
    end_claim(spark, transaction.claim, "PARTIALLY_COMMITTED", "given up by a person")
    with pytest.raises(StreamqlError, match=r"it was given up meanwhile .*; its data IS in") as lost:
        run(spark, last)
    assert lost.value.code == "CLAIM_LOST"
    assert schema in str(lost.value)


def test_a_statement_that_found_the_stream_busy_is_pending(spark: SparkSession) -> None:
    """Others of the block would move the stream without it: COMMIT waits until it was run."""
    schema, block = two_targets(spark, "pending")
    begin, into_a, into_b, commit = block
    other = spark.newSession()
    run(other, begin)
    with pytest.raises(Exception, match="no"):  # it holds the stream, and has written nothing
        run(other, f"INSERT INTO {schema}.a SELECT id, CAST(raise_error('no') AS BIGINT) FROM {schema}.s")
    spark.conf.set("spark.streamql.busyTimeout", "300ms")
    try:
        run(spark, begin)
        with pytest.raises(StreamqlError, match="STREAM_BUSY"):
            run(spark, into_a)
    finally:
        spark.conf.unset("spark.streamql.busyTimeout")
    run(other, "ROLLBACK")
    run(spark, into_b)
    with pytest.raises(StreamqlError, match="1 statement of the transaction failed: INSERT INTO"):
        run(spark, commit)
    run(spark, into_a)
    run(spark, commit)
    assert_arrived_once(spark, schema)


def cut_short(*_: object) -> None:
    raise StreamqlError("INTERNAL_ERROR", "cut short")


@pytest.mark.parametrize("again", [False, True])
def test_a_statement_whose_resolving_was_cut_short_is_decided_by_the_log(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    schema, (begin, first, second, commit) = two_targets(spark, "block")
    run(spark, begin)
    with monkeypatch.context() as patch:  # its rows are in, and nobody has heard of it
        patch.setattr(consumption, "resolve_own", cut_short)
        with pytest.raises(StreamqlError, match="cut short"):
            run(spark, first)
    for statement in [first] * again + [second, commit]:
        run(spark, statement)
    assert_arrived_once(spark, schema)
    assert_ledger_tiles(spark, f"{schema}.s", 0)
    taken = spark.table("streamql.consumptions").where(f"stream = '{schema}.s' AND outcome = 'CONSUMED'").collect()
    assert sorted((r["target"].split(".")[-1], r["rows_written"]) for r in taken) == [("a", ROWS), ("b", ROWS)]


def test_a_statement_that_arrived_unreported_is_named_before_another_form_of_it_runs(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who saw an error corrects the statement and runs it again: its rows would be in twice."""
    schema, (begin, first, second, commit) = two_targets(spark, "block")
    run(spark, begin)
    with monkeypatch.context() as patch:
        patch.setattr(consumption, "resolve_own", cut_short)
        with pytest.raises(StreamqlError, match="cut short"):
            run(spark, first)
    with pytest.raises(StreamqlError) as told:
        run(spark, first.replace("SELECT id, v", "SELECT id, CAST(v AS BIGINT)"))
    assert told.value.code == "STATEMENT_COMMITTED"
    run(spark, second)
    run(spark, commit)
    assert_arrived_once(spark, schema)


@pytest.mark.parametrize(
    "plain",
    [
        "FROM p INSERT OVERWRITE TABLE a SELECT id, v INSERT INTO b SELECT id, v",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) INSERT INTO a SELECT i, i FROM n",
    ],
)
def test_several_inserts_that_read_no_stream_are_refused_in_a_transaction(spark: SparkSession, plain: str) -> None:
    """Run again, the transaction would empty what it then takes for done."""
    _, block = two_targets(spark, "plain")
    run(spark, "CREATE TABLE p (id BIGINT, v BIGINT)")
    run(spark, block[0])
    with pytest.raises(Exception, match="could not tell whether an earlier run"):
        run(spark, plain)
    run(spark, "ROLLBACK")
    if "RECURSIVE" not in plain or not IS_4_0:  # Spark 4.0 cannot run it
        run(spark, plain)


@pytest.mark.skipif(IS_4_0, reason="Spark 4.0 has no WITH RECURSIVE before an INSERT")
def test_behind_a_recursive_query_one_insert_consumes_and_several_are_refused(spark: SparkSession) -> None:
    schema, _ = two_targets(spark, "recursive")
    numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 3)"
    rows = f"FROM {schema}.s JOIN n ON n.i = 0"
    with pytest.raises(Exception, match="cannot read a stream behind WITH RECURSIVE"):
        run(spark, f"{numbers} {rows} INSERT INTO a SELECT id, v INSERT INTO b SELECT id, v")
    run(spark, f"{numbers} INSERT INTO a SELECT id, v {rows}")
    assert run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM a")[0] == (ROWS, ROWS)
    assert run(spark, "SELECT * FROM s") == []


def test_a_statement_that_wrote_nothing_and_was_not_resolved_is_pending(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, (begin, first, second, commit) = two_targets(spark, "block")
    run(spark, begin)
    with monkeypatch.context() as patch:  # a storage that does not answer: neither writes nor tells
        patch.setattr(consumption, "execute", cut_short)
        patch.setattr(consumption, "resolve_own", cut_short)
        with pytest.raises(StreamqlError, match="cut short"):
            run(spark, first)
    run(spark, second)
    with pytest.raises(StreamqlError) as refused:
        run(spark, commit)
    assert refused.value.code == "INVALID_TRANSACTION_STATE"
    run(spark, first)
    run(spark, commit)
    assert_arrived_once(spark, schema)


def test_rollback_after_a_commit_that_came_through_says_so(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, (begin, first, second, commit) = two_targets(spark, "block")
    for statement in (begin, first, second):
        run(spark, statement)

    def end_unreported(*args: Any) -> None:
        end_claim(*args)
        cut_short()

    with monkeypatch.context() as patch:
        patch.setattr(consumption, "end_claim", end_unreported)
        with pytest.raises(StreamqlError, match="cut short"):
            run(spark, commit)
    with pytest.raises(StreamqlError, match="was committed"):
        run(spark, "ROLLBACK")
    assert_arrived_once(spark, schema)


def test_who_stops_does_not_stop_another_session_of_the_process(spark: SparkSession) -> None:
    owner = this_owner(spark)
    with running("x") as first:
        with running("x"):
            stop_running(first)
            assert is_running_here(owner, "x")
        assert not is_running_here(owner, "x")


def test_writers_over_one_text_are_different_statements(spark: SparkSession) -> None:
    schema, (begin, _, second, commit) = two_targets(spark, "block")
    run(spark, "ALTER TABLE a ADD CONSTRAINT odd CHECK (id % 2 = 1)")

    def write(rest: int) -> None:
        spark.sql(f"SELECT id, v FROM {schema}.s").where(f"id % 2 = {rest}").writeTo(f"{schema}.a").append()

    run(spark, begin)
    with pytest.raises(Exception, match="odd"):
        write(0)
    write(1)
    run(spark, second)
    with pytest.raises(StreamqlError) as refused:
        run(spark, commit)
    assert refused.value.code == "INVALID_TRANSACTION_STATE"
    run(spark.newSession(), f"ALTER TABLE {schema}.a DROP CONSTRAINT odd")
    write(0)
    run(spark, commit)
    assert_arrived_once(spark, schema)


def test_statements_of_one_script_are_different_statements(spark: SparkSession) -> None:
    schema, (begin, _, second, commit) = two_targets(spark, "script")
    run(spark, "ALTER TABLE a ADD CONSTRAINT odd CHECK (id % 2 = 1)")
    inserts = [f"INSERT INTO {schema}.a SELECT id, v FROM {schema}.s WHERE id % 2 = {rest};" for rest in (0, 1)]
    handled = f"BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END; {inserts[0]} END;"
    run(spark, begin)
    spark.sql(f"BEGIN {handled} {inserts[1]} END").collect()
    run(spark, second)
    with pytest.raises(StreamqlError) as refused:
        run(spark, commit)
    assert refused.value.code == "INVALID_TRANSACTION_STATE"
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, "ROLLBACK")
    run(spark, "ALTER TABLE a DROP CONSTRAINT odd")
    run(spark, begin)
    spark.sql(f"BEGIN {handled} {inserts[1]} END").collect()
    run(spark, second)
    run(spark, commit)
    assert_arrived_once(spark, schema)


def test_a_transaction_of_writers_is_resumed(spark: SparkSession) -> None:
    schema, (begin, *_, commit) = two_targets(spark, "block")

    def write(target: str) -> None:
        spark.table(f"{schema}.s").select("id", "v").writeTo(f"{schema}.{target}").append()

    run(spark, begin)
    write("a")
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, "ROLLBACK")
    run(spark, "INSERT INTO t VALUES (-1, -10)")  # of another interval, it is the same statement
    run(spark, begin)
    write("a")
    write("b")
    run(spark, commit)
    assert [row["id"] for row in run(spark, "SELECT id FROM s")] == [-1]
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    assert_arrived_once(spark, schema)


def test_an_idle_transaction_is_given_up(spark: SparkSession) -> None:
    schema, block = two_targets(spark, "block")
    other = spark.newSession()
    other.sql(f"USE {schema}")
    spark.conf.set("spark.streamql.transactionTimeout", "1s")
    spark.conf.set("spark.streamql.lease", "2s")
    try:
        run(spark, block[0])
        run(spark, block[1])
        threading.Event().wait(2)
        with pytest.raises(StreamqlError) as gone:
            run(spark, block[2])
        assert gone.value.code == "INVALID_TRANSACTION_STATE"
        with pytest.raises(StreamqlError) as half:  # the session goes on only when somebody has said so
            run(spark, "ROLLBACK")
        assert half.value.code == "CONSUMPTION_PARTIALLY_COMMITTED"
    finally:
        spark.conf.unset("spark.streamql.transactionTimeout")
        spark.conf.unset("spark.streamql.lease")
    for statement in block:
        run(other, statement)
    assert_arrived_once(spark, schema)
