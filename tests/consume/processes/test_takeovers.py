"""Claims of owners that stand still or are out of sight, and what a person says where no log can tell."""

from __future__ import annotations

import signal
import time

import pytest
from pyspark.sql import SparkSession

from streamql.catalog.store import catalog_of
from streamql.consume import consumption
from streamql.consume.claims import owner, resolve
from streamql.consume.claims.errors import busy
from streamql.engine.doctor import Finding, examine
from streamql.errors import StreamqlError
from streamql.names import Name
from tests.consume.support import TIMEOUT_SECONDS, fresh_schema, killed, run, start_child, tracked_table, two_targets

ROWS = 5_000
LEASE = {"spark.streamql.lease": "2s"}


def doctor(spark: SparkSession, schema: str, *, fix: bool = False) -> list[Finding]:
    return [f for f in examine(spark, fix=fix) if f.subject.startswith(f"{schema}.")]


def consumer(spark: SparkSession, prefix: str) -> str:
    """A schema with a stream on a table of ROWS rows, and a target."""
    schema = fresh_schema(spark, prefix)
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    return schema


def killed_inserting(
    spark: SparkSession, point: str, schema: str, *streams: str, conf: dict[str, str] | None = None
) -> None:
    """A process that dies at a point of an INSERT from these streams into the target."""
    rows = " UNION ALL ".join(f"SELECT id, v FROM {schema}.{stream}" for stream in streams)
    killed(spark, point, f"INSERT INTO {schema}.target {rows}", conf=conf)


def left_behind(spark: SparkSession, point: str, prefix: str) -> str:
    """A schema where a process with a short lease died in an INSERT at a point."""
    schema = consumer(spark, prefix)
    killed_inserting(spark, point, schema, "s", conf=LEASE)
    return schema


@pytest.fixture
def short_lease(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.streamql.lease", LEASE["spark.streamql.lease"])
    return session


def test_who_stood_still_is_told_that_its_claim_is_lost(short_lease: SparkSession) -> None:
    """Its statement goes on in the JVM meanwhile, and meets the fence when it would commit, of which Delta says something else."""
    schema = consumer(short_lease, "still")
    slow = f"INSERT INTO {schema}.target SELECT id, v FROM {schema}.s WHERE id > 0 OR reflect('java.lang.Thread', 'sleep', 12000L) IS NULL"
    child = start_child(short_lease, "never", slow, conf=LEASE)
    end = time.monotonic() + TIMEOUT_SECONDS
    while not any(s.claim for s in catalog_of(short_lease).all(short_lease) if s.name.schema == schema):
        assert time.monotonic() < end
        assert child.poll() is None, child.communicate()
        time.sleep(0.1)
    child.send_signal(signal.SIGSTOP)
    run(short_lease, f"INSERT INTO {schema}.target SELECT id, v FROM {schema}.s")
    child.send_signal(signal.SIGCONT)
    _, errors = child.communicate(timeout=TIMEOUT_SECONDS)
    assert child.returncode == 1
    assert "[CLAIM_LOST]" in errors.splitlines()[-2] + errors.splitlines()[-1]
    row = run(short_lease, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM target")[0]
    assert (row["n"], row["d"]) == (ROWS, ROWS)


def test_the_doctor_ends_what_no_host_sees_alive(short_lease: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after the host of a consumer was started again, or in another container."""
    schema = left_behind(short_lease, "after:claim", "sight")
    monkeypatch.setattr(owner, "_host", lambda: "another host")
    (finding,) = doctor(short_lease, schema)
    assert finding.code == "STREAM_BUSY"
    assert "cannot be seen from here" in finding.what
    assert "for its lease of 2 s" in finding.remedy
    state = catalog_of(short_lease).find(short_lease, Name("spark_catalog", schema, "s"))
    assert state is not None
    assert "streamql doctor --fix" in busy(state).hint
    findings = doctor(short_lease, schema, fix=True)
    assert [(f.code, f.is_fixed) for f in findings] == [("STREAM_BUSY", True)], findings
    run(short_lease, "INSERT INTO target SELECT id, v FROM s")
    assert run(short_lease, "SELECT count(*) AS n FROM target")[0]["n"] == ROWS


def test_a_target_that_cannot_be_written_is_a_finding_and_can_be_recovered(
    short_lease: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = left_behind(short_lease, "after:claim", "denied")

    def denied(*_: object) -> int:
        raise OSError("Permission denied")

    monkeypatch.setattr(resolve, "fence", denied)
    (finding,) = doctor(short_lease, schema, fix=True)
    assert finding.code == "CONSUMPTION_IN_DOUBT"
    assert "Permission denied" in finding.what
    with pytest.raises(StreamqlError, match="CONSUMPTION_IN_DOUBT") as told:
        run(short_lease, "INSERT INTO target SELECT id, v FROM s")
    assert f"ALTER STREAM {schema}.s RELEASE" in told.value.hint
    run(short_lease, "ALTER STREAM s RELEASE")
    run(short_lease, "INSERT INTO target SELECT id, v FROM s")
    assert run(short_lease, "SELECT count(*) AS n FROM target")[0]["n"] == ROWS


def test_a_target_that_was_made_again_and_has_less_history_is_for_a_person(spark: SparkSession) -> None:
    schema = consumer(spark, "again")
    for n in range(3):
        run(spark, f"INSERT INTO target VALUES (-{n}, 0)")
    killed_inserting(spark, "after:execute", schema, "s")
    run(spark, "DROP TABLE target")
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    with pytest.raises(StreamqlError, match="CONSUMPTION_IN_DOUBT") as in_doubt:
        run(spark, f"INSERT INTO {schema}.target SELECT id, v FROM {schema}.s")
    assert "cannot be read" not in in_doubt.value.message
    run(spark, "ALTER STREAM s RELEASE")
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    assert run(spark, "SELECT count(*) AS n FROM target")[0]["n"] == ROWS


def test_streams_of_one_statement_move_along_where_a_person_says_that_it_arrived(spark: SparkSession) -> None:
    schema = consumer(spark, "along")
    run(spark, "CREATE STREAM s2 ON TABLE t AT (STREAM => 's')")
    killed_inserting(spark, "after:execute", schema, "s", "s2")
    run(spark, "ALTER TABLE target RENAME TO elsewhere")
    run(spark, "CREATE TABLE rest (id BIGINT, v BIGINT)")
    with pytest.raises(StreamqlError, match="CONSUMPTION_IN_DOUBT") as in_doubt:
        run(spark, "INSERT INTO rest SELECT id, v FROM s2")
    said, rest = in_doubt.value.hint.removeprefix("check whether the rows arrived; if so, ").split(" (", 1)
    assert rest.startswith("its other streams move along); if not, ")
    run(spark, said)
    for stream in ("s", "s2"):
        assert run(spark, f"SELECT * FROM {stream}") == []
    assert run(spark, "SELECT count(*) AS n FROM elsewhere")[0]["n"] == 2 * ROWS
    moved = run(spark, f"SELECT stream FROM streamql.events WHERE event = 'set_offset' AND stream LIKE '{schema}.%'")
    assert {r["stream"] for r in moved} == {f"{schema}.s", f"{schema}.s2"}


def test_the_beginning_of_what_had_nothing_to_deliver_says_nothing_of_what_arrived(spark: SparkSession) -> None:
    """One of the streams was quiet: its beginning is its end, and a person who names it may mean either."""
    schema = consumer(spark, "quiet")
    run(spark, "CREATE STREAM quiet ON TABLE t")
    killed_inserting(spark, "before:execute", schema, "s", "quiet")
    run(spark, "DROP TABLE target")
    state = catalog_of(spark).find(spark, Name("spark_catalog", schema, "quiet"))
    assert state is not None
    run(spark, f"ALTER STREAM quiet SET OFFSET VERSION {state.offset.position}")
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == ROWS


def test_a_statement_that_arrived_and_could_not_be_resolved_at_once_ends_as_it_should(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    schema = consumer(spark, "glitch")

    def glitch(*_: object) -> None:
        raise OSError("the storage did not answer")

    with monkeypatch.context() as patch:
        patch.setattr(consumption, "resolve_own", glitch)
        assert run(spark, f"INSERT INTO target SELECT id, v FROM {schema}.s") == []
    assert "the statement committed although it reported an error" in caplog.text
    assert run(spark, "SELECT * FROM s") == []
    assert run(spark, "SELECT count(*) AS n FROM target")[0]["n"] == ROWS


def test_whoever_gives_a_consumption_up_is_told_what_of_it_is_in(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    schema, (begin, first, *_) = two_targets(spark, "told")
    run(spark, begin)
    run(spark, first)
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(spark, "ROLLBACK")
    run(spark, "CREATE OR REPLACE STREAM s ON TABLE t AT (STREAM => 's')")
    assert f"was given up, and what it wrote is in spark_catalog.{schema}.a" in caplog.text
