"""Settings of streamql that a user gives: an unknown key, and a value that a setting does not take, are refused at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import streamql
from streamql.errors import StreamqlError
from streamql.settings import ALL, check
from tests.consume.support import TRACKED, fresh_schema, run

TIMEOUT = "spark.streamql.busyTimeout"
BAD = {
    TIMEOUT: "abc",
    "spark.streamql.lease": "",
    "spark.streamql.ledgerRetention": "90",
    "spark.streamql.transactionTimeout": "30m 1h",
    "spark.streamql.nonDeltaTargets": "at-least-once",
    "spark.streamql.vacuumGuard": "off",
}


def refused(work: Callable[[], object]) -> tuple[str, str]:
    """The message and the hint of an error of ours."""
    with pytest.raises(StreamqlError) as error:
        work()
    assert error.value.code == "INVALID_ARGUMENT"
    return error.value.message, error.value.hint


def test_before_spark_starts_and_in_it_the_same_is_said(spark: SparkSession) -> None:
    session = spark.newSession()
    misspelt = ("busyTimout", "leaes", "elaes", "vaccumgaurd", "catal", "cata", "cat", "nosuch")
    for key, value in {**BAD, **{f"spark.streamql.{name}": "1s" for name in misspelt}}.items():
        before = refused(lambda key=key, value=value: check({key: value}))  # type: ignore[misc]
        if value:  # SET k = '' is another value
            assert refused(lambda key=key, value=value: streamql.sql(f"SET {key} = {value}", session)) == before  # type: ignore[misc]
        assert key not in session.conf.getAll
        if key in BAD:
            with pytest.raises(AnalysisException, match=f"INVALID_ARGUMENT. {key} is '{value}', and must be"):
                session.conf.set(key, value)
    message, hint = refused(lambda: check({"spark.streamql.busyTimout": "1s"}))
    assert (message, hint.split("?")[0]) == ("there is no setting spark.streamql.busyTimout", f"did you mean {TIMEOUT}")
    run(session, f"SET {TIMEOUT} = 1 hour 30 min")
    run(session, f"SET {TIMEOUT} = 5s")
    assert (session.conf.get(TIMEOUT), spark.conf.get(TIMEOUT)) == ("5s", "90s")
    with pytest.raises(AnalysisException, match=r"CANNOT_MODIFY_(STATIC_)?CONFIG"):
        run(session, "SET spark.streamql.connectors = kafka")
    check({s.key: s.default for s in ALL if s.default is not None} | {"spark.sql.nosuch": "1"})


def test_an_unknown_key_that_spark_took_is_refused_by_the_next_statement(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "given")
    run(spark, f"CREATE TABLE t (id INT) {TRACKED}")
    run(spark, "CREATE STREAM s ON TABLE t")
    session = spark.newSession()
    session.sql(f"USE {schema}")
    session.conf.set("spark.streamql.leas", "5s")  # Spark asks nobody
    for statement in ("SELECT * FROM s", "SHOW STREAMS", "INSERT INTO t SELECT id FROM s"):
        message, hint = refused(lambda statement=statement: streamql.sql(statement, session))  # type: ignore[misc]
        assert message == "there is no setting spark.streamql.leas"
        assert hint == "did you mean spark.streamql.lease? If it is set already: RESET spark.streamql.leas"
    assert session.sql("SELECT count(*) FROM t").first()[0] == 0  # type: ignore[index]
    session.sql("RESET spark.streamql.leas")
    assert streamql.sql("SELECT * FROM s", session).collect() == []
