"""What the doctor finds and fixes; and the upkeep of the table of events."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from streamql.catalog import upkeep
from streamql.catalog.store import catalog_of
from streamql.delta.neutral import neutral_clone
from streamql.engine.doctor import Finding, examine
from streamql.errors import StreamqlError
from tests.consume.support import (
    assert_arrived_once,
    findings,
    fresh_schema,
    killed,
    run,
    start_child,
    tracked_table,
    two_targets,
)

ROWS = 2_000

LEASE = "25s"
"""Longer than what comes between the first look at a claim and a statement that must not take it over, also on a busy machine."""


def found(spark: SparkSession, schema: str, *, fix: bool = False) -> dict[str, Finding]:
    """Code → finding, of the streams of a schema."""
    return {f.code: f for f in examine(spark, fix=fix) if f.subject.startswith(f"{schema}.")}


def test_a_healthy_stream_is_no_finding(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "doctor")
    tracked_table(spark, ROWS)
    assert found(spark, schema) == {}


def test_a_claim_of_a_dead_process_is_resolved(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "doctor")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    killed(spark, "after:execute", f"INSERT INTO {schema}.target SELECT id, v FROM {schema}.s")
    assert found(spark, schema)["STREAM_BUSY"].severity == "warning"
    assert found(spark, schema, fix=True)["STREAM_BUSY"].is_fixed
    assert found(spark, schema) == {}
    arrived = run(spark, "SELECT count(*) AS n FROM target")[0]["n"]
    assert arrived in (0, ROWS)  # whether its JVM came to the commit; the stream tells the same
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == ROWS - arrived


def test_a_suspended_owner_is_told_and_its_claim_resolved_after_the_lease(spark: SparkSession) -> None:
    """Ctrl-Z in another terminal: the process lives and will never say anything."""
    schema, block = two_targets(spark, "doctor")
    sleep = "SELECT max(m) FROM (SELECT java_method('java.lang.Thread', 'sleep', id % 1 + 300000) AS m FROM range(2))"
    long = ["DECLARE VARIABLE x STRING", f"SET VAR x = ({sleep})"]
    with start_child(spark, "never", *block[:2], *long, conf={"spark.streamql.lease": LEASE}) as child:
        assert child.stdout is not None
        for _ in block[:2]:
            assert child.stdout.readline() == "done\n"
        try:
            assert found(spark, schema) == {}  # at work
            os.kill(child.pid, signal.SIGSTOP)
            assert "suspended" in found(spark, schema)["STREAM_BUSY"].what
            spark.conf.set("spark.streamql.lease", LEASE)  # the longer of this and the owner's is waited for
            spark.conf.set("spark.streamql.busyTimeout", "1s")  # shorter than the lease: nobody takes over on the way
            with pytest.raises(StreamqlError, match=r"STREAM_BUSY.*\n.*suspended"):
                run(spark, block[2])
            assert found(spark, schema, fix=True)["CONSUMPTION_PARTIALLY_COMMITTED"].severity == "error"
        finally:
            spark.conf.unset("spark.streamql.busyTimeout")
            spark.conf.unset("spark.streamql.lease")
            child.kill()
    for statement in block:
        run(spark, statement)
    assert_arrived_once(spark, schema)


def test_what_cannot_be_read_is_explained(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "doctor")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE gone (id BIGINT)")
    run(spark, "ALTER TABLE gone SET PROPERTIES ('change_tracking' = 'true')")
    run(spark, "CREATE STREAM of_gone ON TABLE gone")
    run(spark, "DROP TABLE gone")
    assert found(spark, schema)["STREAM_SOURCE_MISSING"].subject.endswith(".of_gone")
    path = run(spark, "DESCRIBE DETAIL t")[0]["location"].removeprefix("file:")
    run(spark, "CREATE STREAM late ON TABLE t")
    run(spark, "DELETE FROM t WHERE id % 7 = 0")
    for file in Path(path).glob("deletion_vector*"):
        file.unlink()
    assert found(spark, schema)["STREAM_STALE"].severity == "error"
    shutil.rmtree(path)


def test_a_stream_about_to_go_stale_is_a_warning(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "doctor")
    tracked_table(spark, ROWS)
    run(spark, "ALTER TABLE t SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 1 second')")
    finding = found(spark, schema)["STREAM_STALE"]
    assert finding.severity == "warning"
    assert "data_retention_days" in finding.remedy


def test_history_is_kept_for_longer_while_a_stream_lags(spark: SparkSession) -> None:
    """And no longer so once it has caught up; what the owner had set is in force again."""
    schema = fresh_schema(spark, "doctor")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")

    def retention() -> dict[str, str]:
        properties = run(spark, "SHOW TBLPROPERTIES t")
        return {r["key"]: r["value"] for r in properties if "etention" in r["key"]}

    run(spark, "ALTER TABLE t SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 1 second')")
    before = retention()
    spark.conf.set("spark.streamql.maxRetentionExtension", "0 days")
    assert not found(spark, schema, fix=True)["STREAM_STALE"].is_fixed
    spark.conf.unset("spark.streamql.maxRetentionExtension")
    assert retention() == before
    finding = found(spark, schema, fix=True)["STREAM_STALE"]
    assert finding.is_fixed
    assert "8 days" in finding.remedy
    assert retention()["delta.deletedFileRetentionDuration"] == "interval 8 days"
    assert examine_of(spark, schema) == {}  # extended, and still needed
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == ROWS
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    assert not examine_of(spark, schema)["RETENTION_EXTENDED"].is_fixed
    assert retention() != before
    assert examine_of(spark, schema, fix=True)["RETENTION_EXTENDED"].is_fixed
    assert retention() == before
    assert run(spark, "SELECT * FROM s") == []


def examine_of(spark: SparkSession, schema: str, *, fix: bool = False) -> dict[str, Finding]:
    """Code → finding, of the streams and tables of a schema."""
    return {f.code: f for f in findings(spark, f"{schema}.", fix=fix)}


def test_rows_that_somebody_edited_are_found_and_told_rightly_again(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "doctor")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    offset = f"SELECT offset_version AS v FROM streamql.streams WHERE name = '{schema}.s'"
    before = run(spark, offset)
    edit = f"UPDATE streamql.events SET offset_version = 99 WHERE stream = '{schema}.s'"
    with pytest.raises(Exception, match="UNSUPPORTED_TARGET"):
        run(spark, edit)
    hands = spark.newSession()
    hands.conf.set("spark.streamql.catalogGuard", "false")
    hands.sql(edit).collect()
    assert "they were edited by hand" in found(spark, schema)["CATALOG_UNREADABLE"].what
    assert found(spark, schema, fix=True)["CATALOG_UNREADABLE"].is_fixed
    assert run(spark, offset) == before
    assert found(spark, schema) == {}
    assert run(spark, "SELECT * FROM s") == []


def test_upkeep_forgets_old_entries_and_leaves_streams_alone(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "doctor")
    tracked_table(spark, 100)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    run(spark, "INSERT INTO t VALUES (-1, -1)")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    before = [s for s in catalog_of(spark).all(spark) if s.name.schema == schema]
    offset = f"SELECT offset_version FROM streamql.streams WHERE name = '{schema}.s'"
    shown = run(spark, offset)
    own = neutral_clone(spark)
    own.conf.set("spark.streamql.ledgerRetention", "0 minutes")
    upkeep.maintain(own, "streamql.events")
    left = run(spark, f"SELECT through_version FROM streamql.consumptions WHERE stream = '{schema}.s'")
    assert [r[0] for r in left] == [shown[0][0]]  # the newest alone
    assert run(spark, offset) == shown
    assert [s for s in catalog_of(spark).all(spark) if s.name.schema == schema] == before
    run(spark, "INSERT INTO t VALUES (-2, -2)")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    assert run(spark, "SELECT count(*) AS n FROM target")[0]["n"] == 102
    assert len(run(spark, "DESCRIBE HISTORY streamql.events")) > 3
    with pytest.raises(AnalysisException, match="ledgerRetention is 'soon'"):
        own.conf.set("spark.streamql.ledgerRetention", "soon")
