"""By what a statement of a transaction is matched: two that differ are never one, in whatever form they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import streamql
from streamql.errors import StreamqlError
from tests.consume.support import checkpoint, fresh_schema, path_of, run, tracked_table
from tests.sample import sample

ROWS = 1000

Write = Callable[[int], object]


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """A schema with a stream s of ROWS rows, a table a that takes those with an odd id alone, and a table b."""
    name = fresh_schema(spark, "identity")
    tracked_table(spark, ROWS)
    for table in ("a", "b"):
        run(spark, f"CREATE TABLE {table} (id BIGINT, v BIGINT)")
    run(spark, "ALTER TABLE a ADD CONSTRAINT odd CHECK (id % 2 = 1)")
    yield name
    with suppress(StreamqlError):  # of a test that failed half way
        run(spark, "ROLLBACK")


def merge(rest: int) -> str:
    return (
        f"MERGE INTO a USING s ON a.id = s.id AND s.id % 2 = {rest} "
        f"WHEN NOT MATCHED AND s.__change_type = 'INSERT' AND s.id % 2 = {rest} THEN INSERT (id, v) VALUES (s.id, s.v)"
    )


def writers(spark: SparkSession, tmp_path: Path) -> dict[str, Write]:
    """Ways to write, of the stream's rows, those with an even or an odd id into table a."""
    for rest in (0, 1):
        spark.range(rest, ROWS, 2).write.parquet(str(tmp_path / f"of_{rest}"))

    def append(ids: DataFrame) -> object:
        return spark.table("s").join(ids, "id").select("id", "v").writeTo("a").append()

    def filtered(rest: int) -> object:
        is_wanted = F.udf(lambda n: n % 2 == rest, "boolean", useArrow=False)
        return spark.table("s").select("id", "v").where(is_wanted("id")).writeTo("a").append()

    return {
        "MERGE": lambda rest: run(spark, merge(rest)),
        "EXECUTE IMMEDIATE": lambda rest: run(
            spark, f"EXECUTE IMMEDIATE 'INSERT INTO a SELECT id, v FROM s WHERE id % 2 = {rest}'"
        ),
        "EXECUTE IMMEDIATE USING": lambda rest: run(
            spark, f"EXECUTE IMMEDIATE 'INSERT INTO a SELECT id, v FROM s WHERE id % 2 = ?' USING {rest}"
        ),
        "parameters": lambda rest: streamql.sql(
            "INSERT INTO a SELECT id, v FROM s WHERE id % 2 = :rest", spark, {"rest": rest}
        ).collect(),
        "files": lambda rest: append(spark.read.parquet(str(tmp_path / f"of_{rest}"))),
        "local rows": lambda rest: append(spark.sql(f"SELECT * FROM VALUES ({rest}L), ({rest + 2}L) AS x (id)")),
        "rows of the driver": lambda rest: append(spark.createDataFrame([(rest,), (rest + 2,)], "id BIGINT")),
        "a function": filtered,
    }


FORMS = (
    "MERGE",
    "EXECUTE IMMEDIATE",
    "EXECUTE IMMEDIATE USING",
    "parameters",
    "files",
    "local rows",
    "rows of the driver",
    "a function",
)


@pytest.mark.parametrize("form", sample("forms that fail", FORMS, 4))
def test_another_statement_does_not_stand_for_one_that_failed(
    spark: SparkSession, schema: str, tmp_path: Path, form: str
) -> None:
    """The even ids break a constraint; the odd ones, by the same form, are another statement."""
    write = writers(spark, tmp_path)[form]
    run(spark, "BEGIN TRANSACTION")
    with pytest.raises(Exception, match=r"(?i)check constraint"):
        write(0)
    write(1)
    with pytest.raises(StreamqlError) as refused:
        run(spark, "COMMIT")
    assert refused.value.code == "INVALID_TRANSACTION_STATE"
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, "ROLLBACK")
    run(spark, "ALTER TABLE a DROP CONSTRAINT odd")
    run(spark, "BEGIN TRANSACTION")
    if (
        form == "rows of the driver"
    ):  # of which only a job could tell what is in them: refused rather than taken for what it may not be
        with pytest.raises(Exception, match="CONSUMPTION_PARTIALLY_COMMITTED"):
            write(0)
        return
    write(0)
    write(1)
    run(spark, "COMMIT")
    row = run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM a")[0]
    assert row["n"] == row["d"] == (4 if "rows" in form else ROWS)


@pytest.mark.parametrize(
    "form", sample("forms that are matched", ["MERGE", "EXECUTE IMMEDIATE", "files", "a function"], 2)
)
def test_a_statement_is_matched_in_the_next_run_and_another_is_not_taken_for_it(
    spark: SparkSession, schema: str, tmp_path: Path, form: str
) -> None:
    write = writers(spark, tmp_path)[form]
    run(spark, "BEGIN TRANSACTION")
    write(1)
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, "ROLLBACK")
    run(spark, "ALTER TABLE a DROP CONSTRAINT odd")
    run(spark, "BEGIN TRANSACTION")
    with pytest.raises(Exception, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        write(0)
    write(1)
    with pytest.raises(Exception, match="STATEMENT_COMMITTED"):  # one is in that it may be in other words
        write(0)
    write(0)
    run(spark, "COMMIT")
    row = run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM a")[0]
    assert row["n"] == row["d"] == ROWS


def test_the_ledger_has_the_text_of_a_merge(spark: SparkSession, schema: str) -> None:
    run(spark, merge(1))
    run(spark, "INSERT INTO t VALUES (2001, 0)")
    run(spark, "EXECUTE IMMEDIATE 'INSERT INTO a SELECT id, v FROM s'")
    said = run(spark, f"SELECT statement FROM streamql.consumptions WHERE stream = '{schema}.s' ORDER BY sequence")
    assert [r["statement"].split()[0] for r in said] == ["MERGE", "INSERT"]


def test_other_words_of_a_done_statement_are_not_written_a_second_time_unasked(
    spark: SparkSession, schema: str
) -> None:
    """What COMMIT says, to run it again, must not double rows."""
    first = "INSERT INTO b SELECT id, v FROM s"
    run(spark, "BEGIN TRANSACTION")
    run(spark, first)
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, "ROLLBACK")
    run(spark, "BEGIN TRANSACTION")
    other = "INSERT INTO b SELECT id,v FROM s"
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, other)
    run(spark, first)
    with pytest.raises(StreamqlError, match="INVALID_TRANSACTION_STATE"):
        run(spark, "COMMIT")
    with pytest.raises(StreamqlError, match=r"STATEMENT_COMMITTED.*done by an earlier run"):
        run(spark, other)
    run(spark, "COMMIT")
    assert run(spark, "SELECT count(*) AS n FROM b")[0]["n"] == ROWS


@pytest.mark.parametrize(
    "form", ["INSERT WITH", "overwritePartitions", "CTAS OPTIONS", "CTAS TBLPROPERTIES", "INSERT OVERWRITE WITH"]
)
def test_a_writers_own_transaction_is_refused_wherever_it_is_asked_for(
    spark: SparkSession, schema: str, form: str
) -> None:
    """Delta would commit under it, and not under the number by which it is resolved: the rows in, the stream where it was."""
    run(spark, "CREATE TABLE p (id BIGINT, v BIGINT) PARTITIONED BY (v)")
    options = "('txnAppId' = 'job', 'txnVersion' = '1')"
    rows = spark.table("s").select("id", "v")
    written = rows.writeTo("p").option("txnAppId", "job").option("txnVersion", "1")
    forms: dict[str, Callable[[], object]] = {
        "INSERT WITH": lambda: run(spark, f"INSERT INTO b WITH {options} SELECT id, v FROM s"),
        "INSERT OVERWRITE WITH": lambda: run(spark, f"INSERT OVERWRITE b WITH {options} SELECT id, v FROM s"),
        "overwritePartitions": lambda: written.overwritePartitions(),
        "CTAS OPTIONS": lambda: run(spark, f"CREATE TABLE c USING delta OPTIONS {options} AS SELECT id, v FROM s"),
        "CTAS TBLPROPERTIES": lambda: run(
            spark, "CREATE TABLE c TBLPROPERTIES ('option.txnAppId' = 'job') AS SELECT id, v FROM s"
        ),
    }
    with pytest.raises(Exception, match=r"(?i)txnAppId"):
        forms[form]()
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == ROWS
    assert run(spark, "SELECT (SELECT count(*) FROM b) + (SELECT count(*) FROM p) AS n")[0]["n"] == 0
    assert not spark.catalog.tableExists("c")


READERS = {
    "INSERT": "INSERT INTO b SELECT id, v FROM s",
    "WITH … INSERT": "WITH new AS (SELECT id, v FROM s) INSERT INTO b SELECT * FROM new",
    "INSERT WITH": "INSERT INTO b WITH new AS (SELECT id, v FROM s) SELECT * FROM new",
    "several INSERTs": "FROM s INSERT INTO b SELECT id, v WHERE id < 500 INSERT INTO b SELECT id, v WHERE id >= 500",
    "WITH … several INSERTs": "WITH new AS (SELECT id, v FROM s) "
    "FROM new INSERT INTO b SELECT id, v WHERE id < 500 INSERT INTO b SELECT id, v WHERE id >= 500",
    "MERGE": "MERGE INTO b USING s ON b.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)",
    "CTAS": "CREATE TABLE c AS SELECT id, v FROM s",
    "EXECUTE IMMEDIATE": "EXECUTE IMMEDIATE 'INSERT INTO b SELECT id, v FROM s'",
    "parameters": "INSERT INTO b SELECT id, v FROM s WHERE id >= :least",
}


@pytest.mark.parametrize("form", sample("forms that cannot read", list(READERS), 4))
def test_a_statement_whose_stream_cannot_be_read_is_pending(spark: SparkSession, schema: str, form: str) -> None:
    """With --continue-on-error a script comes to its COMMIT all the same, which would move the stream without the statement."""
    path = path_of(spark)
    commit = max((path / "_delta_log").glob("*.json"))
    spark.range(ROWS, ROWS + 2).selectExpr("id", "id * 10 AS v").writeTo("t").append()
    checkpoint(spark, path)

    def read() -> None:
        streamql.sql(READERS[form], spark, {"least": 0} if form == "parameters" else None).collect()

    run(spark, "BEGIN TRANSACTION")
    run(spark, "INSERT INTO a SELECT id, v FROM s WHERE id % 2 = 1")
    commit.rename(path / "aside")
    with pytest.raises(StreamqlError) as query:
        run(spark, "SELECT count(*) FROM s")  # a query is not pending
    with pytest.raises(StreamqlError) as stale:
        read()
    assert query.value.code == stale.value.code == "STREAM_STALE"
    with pytest.raises(StreamqlError, match="1 statement"):
        run(spark, "COMMIT")
    (path / "aside").rename(commit)
    read()
    run(spark, "COMMIT")
    arrived = "c" if form == "CTAS" else "b"
    assert run(spark, f"SELECT count(*) AS n, count(DISTINCT id) AS d FROM {arrived}")[0].asDict() == {
        "n": ROWS + 2,
        "d": ROWS + 2,
    }
    assert run(spark, "SELECT * FROM s") == []
