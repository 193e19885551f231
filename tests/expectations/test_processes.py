"""A consumer is killed, or stands still, around the write of the quarantine table: afterwards every row is in one table, once."""

from __future__ import annotations

import os
import signal

import pytest
from pyspark.sql import SparkSession

from streamql.features.expectations import quarantine
from tests.consume.support import (
    TIMEOUT_SECONDS,
    TRACKED,
    assert_ledger_tiles,
    fresh_schema,
    killed,
    run,
    start_child,
)

ROWS = 1_000
BAD = [i for i in range(ROWS) if i % 10 == 7]
GOOD = [i for i in range(ROWS) if i % 10 != 7]
INSERT = "INSERT INTO {schema}.target SELECT id, CAST(amount AS INT) FROM {schema}.s"
BLOCK = ["BEGIN TRANSACTION", INSERT, "INSERT INTO {schema}.other SELECT id, 1 FROM {schema}.s", "COMMIT"]


def prepared(spark: SparkSession) -> str:
    schema = fresh_schema(spark, "expectkill")
    run(spark, f"CREATE TABLE t (id INT, amount STRING) {TRACKED}")
    run(spark, "CREATE STREAM s ON TABLE t EXPECTATION num CHECK (CAST(amount AS INT) >= 0) ON VIOLATION QUARANTINE")
    amounts = f"INSERT INTO t SELECT id, IF(id % 10 = 7, 'x', CAST(id AS STRING)) FROM range(0, {ROWS}, 1, 4)"
    run(spark, amounts)
    for table in ("target", "other"):
        run(spark, f"CREATE TABLE {table} (id INT, amount INT)")
    return schema


def ids(spark: SparkSession, table: str) -> list[int]:
    return sorted(r["id"] for r in run(spark, f"SELECT id FROM {table}"))


def of(statements: list[str], schema: str) -> list[str]:
    return [s.format(schema=schema) for s in statements]


@pytest.mark.every_case
@pytest.mark.parametrize("point", ["before:quarantine", "after:quarantine", "before:end"])
def test_insert(spark: SparkSession, point: str) -> None:
    schema = prepared(spark)
    killed(spark, point, INSERT.format(schema=schema))
    assert ids(spark, "target") == GOOD, "the statement had committed"
    assert ids(spark, "s_quarantine") == ([] if point == "before:quarantine" else BAD)
    run(spark, INSERT.format(schema=schema))
    assert (ids(spark, "target"), ids(spark, "s_quarantine")) == (GOOD, BAD)
    (row,) = run(
        spark, f"SELECT from_version, sequence, details FROM streamql.consumptions WHERE stream = '{schema}.s'"
    )
    assert f'"rows": {len(BAD)}' in row["details"]
    assert {r[0] for r in run(spark, "SELECT __consumption FROM s_quarantine")} == {row["sequence"]}
    assert_ledger_tiles(spark, f"{schema}.s", row["from_version"])


@pytest.mark.every_case
@pytest.mark.parametrize("point", ["before:quarantine", "after:quarantine"])
def test_transaction(spark: SparkSession, point: str) -> None:
    schema = prepared(spark)
    killed(spark, point, *of(BLOCK, schema))
    for statement in of(BLOCK, schema):
        run(spark, statement)
    assert ids(spark, "target") == ids(spark, "other") == GOOD
    assert ids(spark, "s_quarantine") == BAD
    assert run(spark, "SELECT * FROM s") == []


@pytest.mark.every_case
@pytest.mark.parametrize("point", ["before:quarantine", "after:quarantine"])
def test_query_that_consumes(spark: SparkSession, point: str) -> None:
    """Its rows go nowhere else. If its quarantine has been written, the stream moves, so that it is not written again."""
    schema = prepared(spark)
    killed(spark, point, f"SELECT id FROM {schema}.s WITH (CONSUME = TRUE)")
    run(spark, INSERT.format(schema=schema))
    assert ids(spark, "target") == (GOOD if point == "before:quarantine" else [])
    assert ids(spark, "s_quarantine") == BAD


LEASE = {"spark.streamql.lease": "2s"}


@pytest.mark.every_case
@pytest.mark.parametrize("statements", [[INSERT], BLOCK], ids=["insert", "transaction"])
def test_a_process_that_was_given_up(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, statements: list[str]
) -> None:
    """It stands still before it writes the quarantine table, for longer than its lease, and goes on after the user has released the stream.
    Of the INSERT, the other process must find a table that it cannot write: it would write the rows itself."""
    own = spark.newSession()
    own.conf.set("spark.streamql.lease", LEASE["spark.streamql.lease"])
    schema = prepared(own)

    def denied(*_: object) -> None:
        raise OSError("Permission denied")

    with start_child(own, "stop:quarantine", *of(statements, schema), conf=LEASE) as child:
        state = os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert state is not None
        assert state.si_code == os.CLD_STOPPED, child.communicate()
        assert ids(own, "target") == GOOD
        with monkeypatch.context() as patch:
            patch.setattr(quarantine, "write", denied)
            run(own, "ALTER STREAM s RELEASE")
        child.send_signal(signal.SIGCONT)
        _, errors = child.communicate(timeout=TIMEOUT_SECONDS)
    assert child.returncode == 1
    assert "[CLAIM_LOST]" in errors
    assert ids(own, "s_quarantine") == []
    run(own, INSERT.format(schema=schema))
    assert (ids(own, "target"), ids(own, "s_quarantine")) == (sorted([*GOOD, *GOOD]), BAD)
