"""Points in time at the edges of a table's history, and what SET OFFSET skips or shows again."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession

from streamql.errors import StreamqlError
from tests.consume.support import TRACKED, fresh_schema, offset_of, run

LATER = {
    "a version": "VERSION => 99",
    "the next version": "VERSION => {next}",
    "a time": "TIMESTAMP => current_timestamp() + INTERVAL 1 MINUTE",
    "a time without end": "TIMESTAMP => timestamp_micros(9223372036854775807)",
}
STATEMENTS = {
    "create at": "CREATE STREAM later ON TABLE t AT ({point})",
    "create before": "CREATE STREAM later ON TABLE t BEFORE ({point})",
    "replace": "CREATE OR REPLACE STREAM s ON TABLE t AT ({point})",
    "set offset": "ALTER STREAM s SET OFFSET {bare}",
    "changes from": "SELECT * FROM t CHANGES (INFORMATION => DEFAULT) AT ({point})",
    "changes to": "SELECT * FROM t CHANGES (INFORMATION => DEFAULT) AT (VERSION => 0) END ({point})",
}


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> str:
    """A schema with table t at version 4, of two rows a version, and its stream s at version 1."""
    schema = fresh_schema(spark, "offsets")
    run(spark, f"CREATE TABLE t (id BIGINT) {TRACKED}")
    for n in range(4):
        run(spark, f"INSERT INTO t VALUES ({n}), ({n + 10})")
    run(spark, "CREATE STREAM s ON TABLE t AT (VERSION => 1)")
    return schema


@pytest.fixture(autouse=True)
def _in_schema(spark: SparkSession, table: str) -> None:
    spark.catalog.setCurrentDatabase(table)


@pytest.mark.parametrize("point", LATER)
@pytest.mark.parametrize("form", STATEMENTS)
def test_a_point_that_is_not_there_yet_is_refused(spark: SparkSession, table: str, form: str, point: str) -> None:
    before = offset_of(spark, f"{table}.s")
    written = LATER[point].format(next=5)
    with pytest.raises(StreamqlError, match="the latest version is 4") as refused:
        run(spark, STATEMENTS[form].format(point=written, bare=written.replace("=>", "")))
    assert refused.value.code == "INVALID_POINT_IN_TIME"
    assert offset_of(spark, f"{table}.s") == before
    assert run(spark, "SHOW STREAMS LIKE 'later'") == []


def test_times_are_compared_by_the_microsecond(spark: SparkSession) -> None:
    """A commit has a time in whole milliseconds; a point one microsecond earlier does not include it."""
    times = {
        row["v"]: row["us"]
        for row in run(
            spark,
            "SELECT DISTINCT __commit_version AS v, unix_micros(__commit_timestamp) AS us "
            "FROM t CHANGES (INFORMATION => DEFAULT) AT (VERSION => 0)",
        )
    }
    commit_us = times[3]

    def rows_since(point: str) -> int:
        return len(run(spark, f"SELECT id FROM t CHANGES (INFORMATION => DEFAULT) {point}"))

    for away_us, at, before in ((-1, 4, 4), (0, 2, 4), (1, 2, 2), (999, 2, 2)):
        time = f"TIMESTAMP => timestamp_micros({commit_us + away_us})"
        assert (rows_since(f"AT ({time})"), rows_since(f"BEFORE ({time})")) == (at, before), away_us
    spelled = run(spark, f"SELECT string(timestamp_micros({commit_us - 1})) AS t")[0]["t"]
    assert rows_since(f"AT (TIMESTAMP => '{spelled}')") == 4


@pytest.mark.parametrize("seconds", ["0.5", "1e300", "-1e300", "double('NaN')", "-double('Infinity')"])
def test_offsets_that_are_no_time_are_refused(spark: SparkSession, seconds: str) -> None:
    with pytest.raises(StreamqlError, match="INVALID_POINT_IN_TIME"):
        run(spark, f"CREATE STREAM later ON TABLE t AT (OFFSET => {seconds})")


def test_a_start_before_tracking_names_the_earliest_that_can_be_read(spark: SparkSession) -> None:
    run(spark, "CREATE TABLE late (id BIGINT)")
    for n in range(3):
        run(spark, f"INSERT INTO late VALUES ({n})")
    run(spark, "ALTER TABLE late SET PROPERTIES ('change_tracking' = 'true')")
    run(spark, "INSERT INTO late VALUES (9)")
    with pytest.raises(StreamqlError) as refused:
        run(spark, "CREATE STREAM of_late ON TABLE late AT (VERSION => 1)")
    found = re.search(r"the earliest version that a stream can start at is (\d+) \(20", refused.value.message)
    assert found is not None, refused.value.message
    first = int(found[1])
    assert f"VERSION => {first}, or" in refused.value.hint
    run(spark, f"CREATE STREAM of_late ON TABLE late AT (VERSION => {first})")
    assert [r["id"] for r in run(spark, "SELECT id FROM of_late")] == [9]
    with pytest.raises(StreamqlError):
        run(spark, f"CREATE STREAM too_early ON TABLE late AT (VERSION => {first - 1})")
    with pytest.raises(StreamqlError, match=re.escape(f"the earliest that can be read is version {first} (")):
        run(spark, "CREATE STREAM too_early ON TABLE late AT (TIMESTAMP => '2001-01-01')")


def test_set_offset_says_what_it_skips_and_what_it_shows_again(
    spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    run(spark, "CREATE STREAM moved ON TABLE t AT (VERSION => 1)")
    run(spark, "CREATE STREAM shown ON TABLE t WITH (SHOW_INITIAL_ROWS = TRUE)")

    def said(statement: str) -> list[str]:
        caplog.clear()
        run(spark, statement)
        return [r.getMessage().removeprefix(f"stream {table}.") for r in caplog.records if r.name == "streamql"]

    set_offset = "ALTER STREAM moved SET OFFSET"
    assert said(f"{set_offset} VERSION 3") == ["moved skips 2 versions (1 to 3): at most 4 rows"]
    assert said(f"{set_offset} VERSION 3") == []
    assert said(f"{set_offset} TO LATEST") == ["moved skips 1 version (3 to 4): at most 2 rows"]
    assert said(f"{set_offset} VERSION 0") == ["moved goes back over 4 versions (4 to 0): at most 8 rows"]
    assert said("ALTER STREAM shown SET OFFSET TO LATEST") == [
        "shown skips the rows that its source had at version 4: at most 8 rows"
    ]
