"""How long sources keep what streams have still to read: as Delta counts it, extended for who lags, and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.catalog.store import catalog_of
from streamql.delta.table import duration_ms
from streamql.engine.doctor import Finding, examine
from streamql.engine.status import statuses
from streamql.errors import StreamqlError
from tests.consume.support import fresh_schema, run, tracked_table

ROWS = 1_000
HOUR_MS = 3_600_000
FILES, LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


def doctor(spark: SparkSession, schema: str, *, fix: bool = False) -> dict[str, Finding]:
    return {f.code: f for f in examine(spark, fix=fix) if f".{schema}." in f".{f.subject}"}


def retention(spark: SparkSession, table: str = "t") -> dict[str, str]:
    return {r["key"]: r["value"] for r in run(spark, f"SHOW TBLPROPERTIES {table}") if "etention" in r["key"]}


def lagging(spark: SparkSession, prefix: str) -> str:
    """A stream whose source keeps nothing."""
    schema = fresh_schema(spark, prefix)
    tracked_table(spark, ROWS)
    run(spark, f"ALTER TABLE t SET TBLPROPERTIES ('{FILES}' = '1 second')")
    return schema


@pytest.mark.parametrize(
    ("text", "hours"),
    [("1 day", 24), ("30 days", 720), ("2 weeks", 336), ("interval 1 day 12 hours", 36), ("INTERVAL 3 DAYS", 72)],
)
def test_durations_are_as_delta_reads_them(spark: SparkSession, text: str, hours: int) -> None:
    assert duration_ms(spark, text) == hours * HOUR_MS


def test_an_owner_that_keeps_more_is_left_alone(spark: SparkSession) -> None:
    schema = lagging(spark, "owner")
    run(spark, f"ALTER TABLE t SET TBLPROPERTIES ('{FILES}' = '30 days')")
    before = retention(spark)
    assert doctor(spark, schema, fix=True) == {}
    assert retention(spark) == before


def test_what_the_owner_sets_after_an_extension_stays(spark: SparkSession) -> None:
    schema = lagging(spark, "later")
    assert doctor(spark, schema, fix=True)["STREAM_STALE"].is_fixed
    run(spark, f"ALTER TABLE t SET TBLPROPERTIES ('{FILES}' = '20 days')")
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    assert doctor(spark, schema, fix=True)["RETENTION_EXTENDED"].is_fixed
    assert retention(spark) == {FILES: "20 days"}
    assert doctor(spark, schema) == {}


def test_an_extension_is_taken_back_after_the_stream_is_gone(spark: SparkSession) -> None:
    schema = lagging(spark, "gone")
    before = retention(spark)
    assert doctor(spark, schema, fix=True)["STREAM_STALE"].is_fixed
    run(spark, "DROP STREAM s")
    assert doctor(spark, schema, fix=True)["RETENTION_EXTENDED"].is_fixed
    assert retention(spark) == before


def test_an_extension_is_taken_back_by_the_catalog_that_made_it(spark: SparkSession) -> None:
    """Another one's doctor looks at its own streams, which may all be current."""
    schema = lagging(spark, "ours")
    before = retention(spark)
    assert doctor(spark, schema, fix=True)["STREAM_STALE"].is_fixed
    extended = retention(spark)
    other = spark.newSession()
    other.conf.set("spark.streamql.catalog", f"{schema}_other")
    run(other, f"USE {schema}")
    run(other, "CREATE STREAM current ON TABLE t")
    assert doctor(other, schema, fix=True) == {}
    assert retention(spark) == extended
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    assert doctor(other, schema, fix=True) == {}
    assert doctor(spark, schema, fix=True)["RETENTION_EXTENDED"].is_fixed
    assert retention(spark) == before


def test_the_source_is_extended_and_not_what_has_its_name_by_now(spark: SparkSession, tmp_path: Path) -> None:
    schema = fresh_schema(spark, "renamed")
    run(spark, f"CREATE TABLE t (id BIGINT) LOCATION '{tmp_path / 't'}'")
    run(spark, "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')")
    run(spark, "CREATE STREAM s ON TABLE t")
    run(spark, f"ALTER TABLE t SET TBLPROPERTIES ('{FILES}' = '1 second')")
    run(spark, "INSERT INTO t VALUES (1)")
    run(spark, "ALTER TABLE t RENAME TO renamed")
    run(spark, "CREATE TABLE t (id BIGINT)")
    assert doctor(spark, schema, fix=True)["STREAM_STALE"].is_fixed
    assert retention(spark) == {}
    assert retention(spark, "renamed")[FILES] == "interval 8 days"


def test_an_extension_that_protects_nothing_is_not_made(spark: SparkSession) -> None:
    schema = lagging(spark, "late")
    spark.conf.set("spark.streamql.maxRetentionExtension", "1 second")
    try:
        before = retention(spark)
        assert not doctor(spark, schema, fix=True)["STREAM_STALE"].is_fixed
        assert retention(spark) == before
    finally:
        spark.conf.unset("spark.streamql.maxRetentionExtension")


@pytest.mark.parametrize(("mode", "is_refused"), [("STANDARD", False), ("APPEND_ONLY", True)])
def test_initial_rows_need_the_files_of_where_they_end(spark: SparkSession, mode: str, is_refused: bool) -> None:
    """STANDARD shows the table as it is by now; APPEND_ONLY as it was, and what was appended."""
    schema = fresh_schema(spark, "initial")
    run(spark, "CREATE TABLE t (id BIGINT)")
    run(spark, "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')")
    run(spark, "INSERT INTO t SELECT id FROM range(1000)")
    run(spark, f"CREATE STREAM s ON TABLE t WITH (TABLE_STREAM_MODE = {mode}) SHOW_INITIAL_ROWS = TRUE")
    run(spark, "DELETE FROM t WHERE id % 2 = 0")
    run(spark, "REORG TABLE t APPLY (PURGE)")
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(check, "false")
    try:
        if is_refused:
            with pytest.raises(StreamqlError, match="STREAM_NEEDS_FILES"):
                run(spark, "VACUUM t RETAIN 0.4 HOURS")  # which Delta takes for 0
        else:
            run(spark, "VACUUM t RETAIN 0 HOURS")
        run(spark, "VACUUM t RETAIN 24 HOURS")  # for which Delta takes the table's own retention
    finally:
        spark.conf.unset(check)
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == (1000 if is_refused else 500), schema


def test_a_source_that_cannot_be_read_hides_no_other_stream(spark: SparkSession) -> None:
    schema = fresh_schema(spark, "broken")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE u (id BIGINT)")
    run(spark, "ALTER TABLE u SET PROPERTIES ('change_tracking' = 'true')")
    run(spark, "CREATE STREAM of_u ON TABLE u")
    path = run(spark, "DESCRIBE DETAIL u")[0]["location"].removeprefix("file:")
    newest = max(Path(path, "_delta_log").glob("*.json"))
    broken = newest.with_name(f"{int(newest.stem) + 1:020}.json")
    broken.write_text('{"commitInfo":{"oper')
    states = [s for s in catalog_of(spark).all(spark) if s.name.schema == schema]
    shown = {s.name.object: status for s, status in zip(states, statuses(spark, states), strict=True)}
    assert shown["s"].invalid_reason is None
    assert shown["of_u"].invalid_reason is not None
    assert len(run(spark, f"SHOW STREAMS IN {schema}")) == 2
    broken.unlink()
