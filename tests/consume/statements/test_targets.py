"""Targets in unlikely states: made twice, dropped under a claim, replaced, written by path; and the ways out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from streamql import StreamqlError
from streamql.consume import consumption
from streamql.delta.command import Command
from streamql.delta.jvm import jvm
from tests.consume.support import TRACKED, assert_ledger_tiles, fresh_schema, in_threads, run, tracked_table

ROWS = 1_000


@pytest.fixture
def schema(spark: SparkSession) -> str:
    """A schema with the tracked table t and the stream s, which shows all of its rows."""
    name = fresh_schema(spark, "target")
    tracked_table(spark, ROWS)
    return name


def before(monkeypatch: pytest.MonkeyPatch, owner: Any, attribute: str, act: Callable[[], object]) -> None:
    """Lets `act` happen once, right before a step."""
    step = getattr(owner, attribute)
    todo = [act]

    def stepping(*args: Any, **kwargs: Any) -> Any:
        if todo:
            todo.pop()()
        return step(*args, **kwargs)

    monkeypatch.setattr(owner, attribute, stepping)


def code_of(spark: SparkSession, text: str) -> str:
    """The code with which a statement fails."""
    with pytest.raises(StreamqlError) as error:
        run(spark, text)
    return error.value.code


def outcomes(spark: SparkSession, schema: str) -> list[str]:
    """What became of the consumptions of stream s, in their order."""
    ledger = spark.table("streamql.consumptions").where(f"stream = '{schema}.s'")
    return [row["outcome"] for row in ledger.orderBy("sequence").collect()]


def test_two_create_the_same_table(spark: SparkSession, schema: str) -> None:
    """The one that waits must not replace what the other one made."""
    create = f"CREATE TABLE {schema}.x AS SELECT id, v FROM {schema}.s"
    failures = in_threads(*[lambda: run(spark.newSession(), create)] * 2)
    assert len(failures) == 1
    assert "ALREADY_EXISTS" in str(failures[0])
    assert run(spark, "SELECT count(*) AS n FROM x")[0]["n"] == ROWS
    assert run(spark, "SELECT * FROM s") == []


def test_a_failed_create_keeps_its_name_for_the_next(spark: SparkSession, schema: str) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        run(spark, "CREATE TABLE x AS SELECT id / (id - id) AS n FROM s")
    assert run(spark, "SELECT * FROM x") == []
    run(spark, "CREATE TABLE x AS SELECT id FROM s")
    assert run(spark, "SELECT count(*) AS n FROM x")[0]["n"] == ROWS
    assert spark.table("x").columns == ["id"]


@pytest.mark.parametrize("late", [False, True])
def test_rows_that_came_into_a_reservation_stay(
    spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    other = spark.newSession()
    where: tuple[Any, str] = (Command, "execute") if late else (consumption, "execute")
    before(monkeypatch, *where, lambda: other.sql(f"INSERT INTO {schema}.x VALUES (8)"))
    assert code_of(spark, "CREATE TABLE x AS SELECT id FROM s") == "CONSUMPTION_FAILED"
    assert run(spark, "SELECT id FROM x") == [(8,)]
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == ROWS


def test_two_creates_of_one_name_on_two_streams(spark: SparkSession, schema: str) -> None:
    """The one that comes second finds a table with rows, or a conflict with the one that makes it; it replaces nothing."""
    run(spark, "CREATE STREAM s2 ON TABLE t AT (STREAM => 's')")
    creates = [f"CREATE TABLE {schema}.x AS SELECT id, v FROM {schema}.{s}" for s in ("s", "s2")]
    failures = in_threads(*[lambda c=c: run(spark.newSession(), c) for c in creates])
    assert len(failures) == 1
    assert run(spark, "SELECT count(*) AS n FROM x")[0]["n"] == ROWS
    assert sorted(run(spark, f"SELECT count(*) AS n FROM {s}")[0]["n"] for s in ("s", "s2")) == [0, ROWS]


@pytest.mark.parametrize(
    ("recovery", "left"),
    [
        ("ALTER STREAM s SET OFFSET VERSION 0", ROWS),
        ("ALTER STREAM s SET OFFSET TO LATEST", 0),
        ("CREATE OR REPLACE STREAM s ON TABLE t", 0),
    ],
)
def test_a_target_dropped_under_a_claim(
    spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch, recovery: str, left: int
) -> None:
    """Nobody can tell whether the rows arrived: reading goes on, consuming says so, and a person has three ways out."""
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    insert = "INSERT INTO target SELECT id, v FROM s"
    other = spark.newSession()
    before(monkeypatch, consumption, "execute", lambda: other.sql(f"DROP TABLE {schema}.target"))
    assert code_of(spark, insert) == "CONSUMPTION_IN_DOUBT"
    run(spark, "CREATE TABLE other (id BIGINT, v BIGINT)")
    assert code_of(spark, "INSERT INTO other SELECT id, v FROM s") == "CONSUMPTION_IN_DOUBT"
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == ROWS
    run(spark, recovery)
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == left
    assert "IN_DOUBT" in outcomes(spark, schema)
    run(spark, "INSERT INTO other SELECT id, v FROM s")
    assert run(spark, "SELECT count(*) AS n FROM other")[0]["n"] == left


def test_a_stream_with_an_in_doubt_claim_can_be_dropped(
    spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    other = spark.newSession()
    before(monkeypatch, consumption, "execute", lambda: other.sql(f"DROP TABLE {schema}.target"))
    assert code_of(spark, "INSERT INTO target SELECT id, v FROM s") == "CONSUMPTION_IN_DOUBT"
    run(spark, "DROP STREAM s")
    assert code_of(spark, "DESC STREAM s") == "STREAM_NOT_FOUND"


def test_a_target_replaced_under_a_claim_still_resolves(
    spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CREATE OR REPLACE continues the log, so the log tells that nothing was written; the next attempt delivers."""
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    insert = "INSERT INTO target SELECT id, v FROM s"
    other = spark.newSession()
    replace = f"CREATE OR REPLACE TABLE {schema}.target (id BIGINT, v BIGINT) USING delta"
    before(monkeypatch, consumption, "execute", lambda: other.sql(replace))
    assert code_of(spark, insert) == "CONSUMPTION_FAILED"
    run(spark, insert)
    assert run(spark, "SELECT count(*) AS n FROM target")[0]["n"] == ROWS
    assert outcomes(spark, schema) == ["FAILED", "CONSUMED"]


def test_a_writers_own_transaction_is_refused(spark: SparkSession, schema: str) -> None:
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    rows = spark.table("s").select("id", "v")
    with pytest.raises(Exception, match="txnAppId"):
        rows.write.option("txnAppId", "job").option("txnVersion", 1).mode("append").saveAsTable("target")
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == ROWS


@pytest.mark.parametrize("create", ["CREATE TABLE", "CREATE TABLE IF NOT EXISTS", "CREATE OR REPLACE TABLE"])
def test_a_table_is_made_at_a_path(spark: SparkSession, schema: str, tmp_path: Path, create: str) -> None:
    made = f"delta.`{tmp_path}/made`"
    run(spark, f"{create} {made} AS SELECT id, v FROM s")
    assert run(spark, f"SELECT count(*) AS n FROM {made}")[0]["n"] == ROWS
    assert run(spark, "SELECT * FROM s") == []
    assert outcomes(spark, schema) == ["CONSUMED"]


@pytest.mark.parametrize("mode", ["overwrite", "error"])
def test_a_table_that_a_writer_makes_is_as_it_asked(spark: SparkSession, schema: str, mode: str) -> None:
    """Its name was reserved by an empty table, of which nothing must stay: else the table, once emptied, would pass for a reservation."""
    rows = spark.table("s").select("id", "v")
    rows.write.mode(mode).option("delta.logRetentionDuration", "interval 99 days").saveAsTable("made")
    shown = {row["key"]: row["value"] for row in run(spark, "SHOW TBLPROPERTIES made")}
    assert "streamql.reserved" not in shown
    assert shown["delta.logRetentionDuration"] == "interval 99 days"
    run(spark, "DELETE FROM made")
    run(spark, "INSERT INTO t VALUES (-1, -1)")
    run(spark, "CREATE TABLE IF NOT EXISTS made AS SELECT id, v FROM s")
    assert run(spark, "SELECT * FROM made") == []
    assert len(run(spark, "SELECT * FROM s")) == 1


DEFAULTS = "spark.databricks.delta.properties.defaults."
PROPERTIES = "TBLPROPERTIES ('delta.appendOnly' = 'true', 'delta.columnMapping.mode' = 'name')"


def looks(spark: SparkSession, table: str) -> tuple[Any, ...]:
    """What Delta keeps of a table apart from its rows: columns with their ids, partitions, clustering, properties, protocol."""
    row = run(spark, f"DESCRIBE DETAIL {table}")[0]
    log = jvm(spark).org.apache.spark.sql.delta.DeltaLog
    snapshot = log.forTable(spark._jsparkSession, row["location"]).unsafeVolatileSnapshot()
    schema = re.sub(r"col-[0-9a-f-]+", "col", str(snapshot.metadata().schemaString()))
    protocol = (row["minReaderVersion"], row["minWriterVersion"], sorted(row["tableFeatures"]))
    return schema, row["partitionColumns"], row["clusteringColumns"], row["properties"], protocol


@pytest.mark.parametrize(
    ("create", "default"),
    [
        (f"CREATE TABLE {{}} {PROPERTIES} AS SELECT id, v FROM {{}}", ""),
        ("CREATE OR REPLACE TABLE {} TBLPROPERTIES ('DELTA.appendonly' = 'true') AS SELECT id, v FROM {}", ""),
        ("CREATE TABLE {} CLUSTER BY (id) AS SELECT id, v FROM {}", "appendOnly"),
    ],
)
def test_a_table_that_is_made_of_a_stream_is_as_one_that_is_made_of_a_table(
    spark: SparkSession, schema: str, create: str, default: str
) -> None:
    """Delta does not replace a table that is append-only; the name is reserved by one that is not."""
    if default:
        spark.conf.set(DEFAULTS + default, "true")
    try:
        run(spark, create.format("of_table", "t"))
        run(spark, create.format("of_stream", "s"))
    finally:
        spark.conf.unset(DEFAULTS + default)
    assert looks(spark, "of_stream") == looks(spark, "of_table")
    assert run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM of_stream")[0] == (ROWS, ROWS)
    assert run(spark, "SELECT * FROM s") == []


@pytest.mark.parametrize("properties", [PROPERTIES, TRACKED])
def test_a_corrected_statement_takes_over_what_a_failed_one_reserved(
    spark: SparkSession, schema: str, properties: str
) -> None:
    """The failed one asked for other columns, partitions and properties. Of a table that it replaces, Delta keeps row tracking, deletion
    vectors and the features of the protocol."""
    with pytest.raises(Exception, match="no"):
        run(spark, f"CREATE TABLE x PARTITIONED BY (k) {properties} AS SELECT id AS k, raise_error('no') AS v FROM s")
    run(spark, "CREATE TABLE x AS SELECT id, v FROM s")
    run(spark, "CREATE TABLE y AS SELECT id, v FROM t")
    assert spark.table("x").schema == spark.table("y").schema
    (_, *parts, shown, _), (_, *expected, _, _) = looks(spark, "x"), looks(spark, "y")
    assert parts == expected == [[], []]
    assert [key for key in shown if not key.startswith(("delta.enable", "delta.rowTracking"))] == []
    assert run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM x")[0] == (ROWS, ROWS)


@pytest.mark.parametrize("way", ["property", "option", "default"])
def test_a_table_that_would_forget_transactions_is_refused_before_its_name_is_reserved(
    spark: SparkSession, schema: str, way: str
) -> None:
    key = "setTransactionRetentionDuration"
    property_ = f"TBLPROPERTIES ('delta.{key}' = 'interval 1 day')" if way == "property" else ""

    def create() -> None:
        if way == "option":
            rows = spark.table("s").select("id", "v")
            rows.write.option(f"delta.{key}", "interval 1 day").saveAsTable("x")
        else:
            run(spark, f"CREATE TABLE x {property_} AS SELECT id, v FROM s")

    if way == "default":
        spark.conf.set(DEFAULTS + key, "interval 1 day")
    try:
        with pytest.raises(Exception, match=r"(?s)UNSUPPORTED_TARGET.*leave delta.setTransactionRetentionDuration out"):
            create()
    finally:
        spark.conf.unset(DEFAULTS + key)
    assert not spark.catalog.tableExists(f"{schema}.x")
    run(spark, "CREATE TABLE x AS SELECT id, v FROM s")
    assert run(spark, "SELECT count(*) AS n FROM x")[0]["n"] == ROWS


def test_threads_that_share_a_data_frame(spark: SparkSession, schema: str) -> None:
    """Both write what their DataFrame stands for when they run: the first all there is, the second what came since."""
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    shared = spark.table("s").select("id", "v")
    spark.range(ROWS, 2 * ROWS).selectExpr("id", "id AS v").writeTo("t").append()
    failures = in_threads(*[lambda: shared.writeTo(f"{schema}.target").append()] * 3)
    assert failures == []
    shared.writeTo(f"{schema}.target").append()
    row = run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM target")[0]
    assert (row["n"], row["d"]) == (2 * ROWS, 2 * ROWS)
    first = run(spark, f"SELECT min(from_version) AS v FROM streamql.consumptions WHERE stream = '{schema}.s'")
    assert_ledger_tiles(spark, f"{schema}.s", first[0]["v"])


def test_a_batch_stays_a_batch_for_whoever_waits(spark: SparkSession, schema: str) -> None:
    """A DataFrame made before others consumed is bound anew when it is written: to another batch, not to all there is."""
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    batch = spark.sql("SELECT id, v FROM s WITH (MAX_BATCH_SIZE = 10)")
    for n in range(1, 4):
        spark.range(n * ROWS, n * ROWS + 10).selectExpr("id", "id AS v").writeTo("t").append()
    run(spark, "INSERT INTO target SELECT id, v FROM s WITH (MAX_BATCH_SIZE = 10)")  # the first commit, larger or not
    assert run(spark, "SELECT count(*) AS n FROM target")[0]["n"] == ROWS
    batch.writeTo("target").append()
    assert run(spark, "SELECT count(*) AS n FROM target")[0]["n"] == ROWS + 10


def test_a_reservation_left_behind_is_a_table_once_it_has_rows(spark: SparkSession, schema: str) -> None:
    """CREATE TABLE AS died after its reservation; a job has been writing into the table since."""
    run(spark, "CREATE TABLE x (id BIGINT, v BIGINT) TBLPROPERTIES ('streamql.reserved' = 'of-a-dead-one')")
    run(spark, "INSERT INTO x SELECT id, v FROM s")
    spark.range(ROWS, ROWS + 10).selectExpr("id", "id AS v").writeTo("t").append()
    with pytest.raises(Exception, match="ALREADY_EXISTS"):
        run(spark, "CREATE TABLE x AS SELECT id, v FROM s")
    run(spark, "INSERT INTO x SELECT id, v FROM s")
    assert run(spark, "SELECT count(*) AS n FROM x")[0]["n"] == ROWS + 10


def test_a_stream_is_not_joined_to_a_query_that_never_ends(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    """Each of its batches would take the same rows, and none would move the stream."""
    rows = spark.readStream.table(f"{schema}.t").join(spark.table(f"{schema}.s").select("id"), "id")
    with pytest.raises(Exception, match=r"UNSUPPORTED_STATEMENT.*writeStream may not read a stream"):
        rows.writeStream.option("checkpointLocation", str(tmp_path)).toTable(f"{schema}.endless")
    assert spark.streams.active == []
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == ROWS


def test_rows_of_a_dataframe_made_while_the_columns_were_not_null(spark: SparkSession, schema: str) -> None:
    """Its reads are bound to an interval that came later, of rows with NULLs."""
    columns = "id BIGINT, n INT NOT NULL, s STRUCT<i: INT NOT NULL>"
    run(spark, f"CREATE TABLE strict ({columns}) TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    run(spark, "CREATE STREAM of_strict ON TABLE strict")
    run(spark, "INSERT INTO strict VALUES (1, 1, named_struct('i', 1))")
    run(spark, f"CREATE TABLE target ({columns.replace(' NOT NULL', '')})")
    rows = spark.table("of_strict").select("id", "n", "s")
    run(spark, "INSERT INTO target SELECT id, n, s FROM of_strict")
    run(spark, "ALTER TABLE strict ALTER COLUMN n DROP NOT NULL")
    run(spark, "INSERT INTO strict VALUES (2, NULL, named_struct('i', 2))")
    rows.write.mode("append").saveAsTable("target")
    assert run(spark, "SELECT id FROM target WHERE n IS NULL") == [(2,)]
    run(spark, "ALTER TABLE strict ALTER COLUMN s.i DROP NOT NULL")
    run(spark, "INSERT INTO strict VALUES (3, 3, named_struct('i', CAST(NULL AS INT)))")
    with pytest.raises(AnalysisException, match="STREAM_MOVED"):
        rows.write.mode("append").saveAsTable("target")
    run(spark, "INSERT INTO target SELECT id, n, s FROM of_strict")
    assert run(spark, "SELECT id FROM target WHERE s.i IS NULL") == [(3,)]


PREDICATES = (
    "p.c = 'x'",
    "'x' < p.c",
    "p.c IN ('x', 'zz')",
    "p.c <=> concat('x', '')",
    "p.c LIKE 'x %'",
    "length(p.c) = 5",
    "NOT p.c = 'x'",
)


def test_char_columns_compare_in_a_merge_as_in_a_query(spark: SparkSession, schema: str) -> None:
    """Files have CHAR unpadded, Spark shows it padded, and Delta analyses a MERGE's expressions apart from its tables."""
    run(spark, "CREATE TABLE p (id INT, c CHAR(5), n INT)")
    run(spark, "INSERT INTO p VALUES (1, 'x', 0), (2, 'y', 0), (3, NULL, 0)")
    merge = "MERGE INTO p USING (SELECT id, c AS d FROM p) s ON p.id = s.id WHEN MATCHED AND {} THEN UPDATE SET n = n + 1, c = s.d"
    for predicate in PREDICATES:
        (selected,) = run(spark, f"SELECT count(*) FROM p WHERE {predicate}")
        (merged,) = run(spark, merge.format(predicate))
        assert merged["num_updated_rows"] == selected[0] > 0, predicate
    both = (
        "MERGE INTO p USING p AS s ON p.c = s.c AND p.c = 'x' WHEN MATCHED THEN UPDATE SET n = -1 "
        "WHEN NOT MATCHED BY SOURCE AND p.c = 'y' THEN DELETE"
    )
    assert run(spark, both)[0][:3] == (2, 1, 1)
    assert {(r["c"], r["n"] < 0) for r in run(spark, "SELECT * FROM p")} == {("x    ", True), (None, False)}
