"""The forms of a consuming statement: each is matched in another process, none is taken for another; DeltaTable.merge is one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

import streamql
from tests.consume.statements.forms import TEXTS, fingerprints, writers
from tests.consume.support import ROOT, assert_ledger_tiles, data_of, fresh_schema, run, tracked_table
from tests.lines import IS_4_0

ROWS = 1_000


@pytest.fixture
def schema(spark: SparkSession) -> str:
    """A schema with the stream s of ROWS rows, a table b, and a partitioned table p."""
    name = fresh_schema(spark, "forms")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE b (id BIGINT, v BIGINT)")
    run(spark, "CREATE TABLE p (id BIGINT, v BIGINT) PARTITIONED BY (v)")
    return name


def test_each_is_matched_in_another_process_and_none_is_taken_for_another(spark: SparkSession, schema: str) -> None:
    here = fingerprints(spark, schema)
    assert set(here) == {*TEXTS, *writers(spark)}
    child = [sys.executable, "-m", "tests.consume.statements.forms", data_of(spark), schema]
    there = json.loads(subprocess.run(child, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert {n: (here[n], there[n]) for n in here if here[n] != there[n]} == {}
    # Spark 4.0 runs the text of EXECUTE IMMEDIATE as the statement that it is.
    told = {
        name: found
        for name, found in here.items()
        if not IS_4_0 or not name.startswith("EXECUTE IMMEDIATE") or "USING" in name
    }
    several = [fingerprint for found in told.values() for fingerprint in found]
    assert len(set(several)) == len(several)


def merge(spark: SparkSession, source: str) -> None:
    rows = spark.table(source).select("id", "v").alias("x")
    DeltaTable.forName(spark, "b").alias("b").merge(rows, "b.id = x.id").whenNotMatchedInsertAll().execute()


def test_the_merge_of_delta_tables_consumes(spark: SparkSession, schema: str) -> None:
    merge(spark, "s")
    assert run(spark, "SELECT * FROM s") == []
    run(spark, f"INSERT INTO t VALUES ({ROWS}, 0)")
    run(spark, "BEGIN TRANSACTION")
    merge(spark, "s")
    assert len(run(spark, "SELECT * FROM s")) == 1
    with pytest.raises(Exception, match="reads no stream"):
        merge(spark, "t")
    run(spark, "COMMIT")
    assert run(spark, "SELECT * FROM s") == []
    row = run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM b")[0]
    assert row["n"] == row["d"] == ROWS + 1
    ledger = spark.table("streamql.consumptions").where(f"stream = '{schema}.s'")
    assert [r["operation"] for r in ledger.collect()] == ["MERGE", "MERGE"]
    assert_ledger_tiles(spark, f"{schema}.s", ledger.agg({"from_version": "min"}).collect()[0][0])
    run(spark, f"INSERT INTO t VALUES ({ROWS + 1}, 0)")
    merge(spark, "t")  # a table is merged as ever
    assert run(spark, "SELECT count(*) AS n FROM b")[0]["n"] == ROWS + 2


def test_the_rows_of_a_statement_that_has_run_read_no_stream(spark: SparkSession, schema: str) -> None:
    """A DataFrame holds the plan of the statement beside its rows: to write them must not run it again, nor move its streams."""
    described = streamql.sql("DESCRIBE s", spark)
    for _ in range(2):  # makes the table, and appends to it
        described.write.mode("append").saveAsTable("described")
    described.writeTo("described").append()
    shown = streamql.sql("SELECT id, v FROM s WITH CONSUME", spark)
    run(spark, f"INSERT INTO t VALUES ({ROWS}, 0)")
    for write in (
        lambda: shown.write.mode("overwrite").saveAsTable("b"),
        lambda: shown.write.saveAsTable("made"),
        lambda: shown.writeTo("b").append(),
    ):
        with pytest.raises(Exception, match="stands for its rows"):
            write()
    shown.select("*").write.mode("overwrite").saveAsTable("b")
    assert run(spark, "SELECT count(*) AS n FROM b")[0]["n"] == ROWS
    assert len(run(spark, "SELECT * FROM s")) == 1
    merged = streamql.sql(
        "MERGE INTO b USING s ON b.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)", spark
    )
    merged.select("*").write.saveAsTable("merges")
    run(spark, f"INSERT INTO t VALUES ({ROWS + 1}, 0)")
    merged.write.mode("append").saveAsTable("merges")
    with pytest.raises(Exception, match="stands for its rows"):
        merged.writeTo("merges").append()
    assert run(spark, "SELECT sum(num_inserted_rows) AS n FROM merges")[0]["n"] == 2
    assert run(spark, "SELECT count(*) AS n FROM b")[0]["n"] == ROWS + 1
    assert len(run(spark, "SELECT * FROM s")) == 1


def test_execute_immediate_into_variables_takes_nothing_and_loses_nothing(spark: SparkSession, schema: str) -> None:
    """Spark runs what INTO cannot take, and refuses it then."""
    spark.sql("DECLARE OR REPLACE VARIABLE n BIGINT")
    spark.sql("DECLARE OR REPLACE VARIABLE said STRING DEFAULT 'SELECT count(*) FROM s WITH CONSUME'")
    taking = (
        "EXECUTE IMMEDIATE 'SELECT id FROM s WITH CONSUME WHERE id = ?' INTO n USING 3",
        "EXECUTE IMMEDIATE said INTO n",
        "EXECUTE IMMEDIATE 'SELECT count(*) FROM s' || ' WITH CONSUME' INTO n",
        "BEGIN EXECUTE IMMEDIATE 'SELECT count(*) FROM s WITH CONSUME' INTO n; END",
        "BEGIN IF 1 > 2 THEN SELECT 1; ELSE WHILE true DO EXECUTE IMMEDIATE said INTO n; END WHILE; END IF; END",
        """BEGIN
             DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO BEGIN EXECUTE IMMEDIATE said INTO n; END;
             FOR r AS SELECT 0 AS z DO SELECT 1 / r.z; END FOR;
           END""",
    )
    for text in taking:
        with pytest.raises(
            Exception,
            match="INTO clause of EXECUTE IMMEDIATE|PARSE_SYNTAX_ERROR" if IS_4_0 else "the rows would be lost",
        ):
            run(spark, text)
    counting = "EXECUTE IMMEDIATE 'SELECT count(*) FROM s WHERE id < ?' INTO n USING"
    run(spark, f"{counting} 10")
    assert run(spark, "SELECT n") == [(10,)]
    run(spark, f"BEGIN DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO BEGIN {counting} 20; END; SELECT 1 / 0; END")
    assert run(spark, "SELECT n") == [(20,)]
    with pytest.raises(Exception, match="stands right behind"):
        run(spark, "EXECUTE IMMEDIATE 'SELECT id FROM s WHERE WITH CONSUME' INTO n")
    assert len(run(spark, "SELECT * FROM s")) == ROWS
    assert len(run(spark, "EXECUTE IMMEDIATE said")) == 1
    assert run(spark, "SELECT * FROM s") == []


def test_a_writer_may_read_changes_beside_a_stream(spark: SparkSession, schema: str) -> None:
    run(spark, "BEGIN TRANSACTION")
    changed = streamql.sql("SELECT id FROM t CHANGES (INFORMATION => DEFAULT) AT (STREAM => 's')", spark)
    spark.table("s").select("id", "v").join(changed.select("id").distinct(), "id").writeTo("b").append()
    run(spark, "COMMIT")
    assert run(spark, "SELECT count(*) AS n FROM b")[0]["n"] == ROWS
    assert run(spark, "SELECT * FROM s") == []
