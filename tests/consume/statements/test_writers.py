"""Targets that others write too, that refuse rows, that are full, that are sources themselves, or that are not Delta tables."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from streamql import StreamqlError
from streamql.delta import txns
from streamql.delta.table import DeltaTable
from tests.consume.support import (
    ROOT,
    TIMEOUT_SECONDS,
    data_of,
    fresh_schema,
    in_threads,
    killed,
    run,
    tracked_table,
)

ROWS = 5_000
FILE_KILOBYTES_MAX = 64
DISTURBANCES = 12
MERGE = (
    "MERGE INTO {target} r USING {source} s ON r.id = s.id WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE "
    "WHEN MATCHED AND s.__change_type = 'UPDATE_AFTER' THEN UPDATE SET r.v = s.v "
    "WHEN NOT MATCHED AND s.__change_type = 'INSERT' THEN INSERT (id, v) VALUES (s.id, s.v)"
)


@pytest.fixture
def schema(spark: SparkSession) -> str:
    """A schema with the tracked table t, the stream s that shows all of its rows, and an empty target."""
    name = fresh_schema(spark, "writers")
    tracked_table(spark, ROWS)
    run(spark, "CREATE TABLE target (id BIGINT, v BIGINT)")
    return name


def ledger(spark: SparkSession, schema: str, column: str = "outcome") -> list[object]:
    """A column of the consumptions of stream s, in their order."""
    rows = spark.table("streamql.consumptions").where(f"stream = '{schema}.s'").orderBy("sequence")
    return [r[column] for r in rows.collect()]


def count(spark: SparkSession, table: str) -> int:
    """How many rows."""
    return int(run(spark, f"SELECT count(*) AS n FROM {table}")[0]["n"])


def test_another_writer_rewrites_the_target_meanwhile(spark: SparkSession, schema: str) -> None:
    """Delta lets one of them win. A consumption that lost moved nothing, and succeeds when it is run again."""
    run(spark, "INSERT INTO target SELECT id, v FROM s")
    run(spark, "UPDATE t SET v = v + 1 WHERE id % 3 = 0")
    run(spark, "DELETE FROM t WHERE id % 3 = 1")
    others = spark.newSession()
    stop: list[bool] = []

    def disturb() -> None:
        for _ in range(DISTURBANCES):  # not for ever: on a slow machine the one who is quicker would win each time
            if stop:
                return
            try:
                others.sql(f"UPDATE {schema}.target SET v = v WHERE id % 7 = 0")
            except Exception as e:  # its turn to lose
                assert "DELTA_CONCURRENT" in str(e), e  # noqa: PT017 - it may also succeed

    def consume() -> None:
        try:
            own = spark.newSession()
            for _ in range(20):
                try:
                    run(own, MERGE.format(target=f"{schema}.target", source=f"{schema}.s"))
                    return
                except Exception as e:
                    assert "DELTA_CONCURRENT" in str(e), e  # noqa: PT017 - it may also succeed
                    assert count(spark, f"{schema}.s") > 0
                    time.sleep(0.5)
        finally:
            stop.append(True)

    assert in_threads(disturb, consume) == []
    assert count(spark, "s") == 0
    assert run(spark, "SELECT id, v FROM t EXCEPT ALL SELECT id, v FROM target") == []
    assert count(spark, "target") == count(spark, "t")
    assert ledger(spark, schema)[-1] == "CONSUMED"
    assert set(ledger(spark, schema)[1:-1]) <= {"FAILED"}


@pytest.mark.parametrize(
    ("columns", "query"),
    [
        ("id BIGINT, v BIGINT CHECK (v < 100)", "SELECT id, v FROM s"),
        ("id BIGINT, v BIGINT NOT NULL", "SELECT id, nullif(v, 500) FROM s"),
        ("id BIGINT, v BIGINT", "SELECT id, v, 'one more' FROM s"),
        ("id BIGINT, v BIGINT", "SELECT concat('x', id), v FROM s"),
        ("id BIGINT, v BIGINT", "SELECT id, v * 9223372036854775807 FROM s"),
    ],
)
def test_a_target_that_refuses_rows_moves_nothing(spark: SparkSession, schema: str, columns: str, query: str) -> None:
    run(spark, f"CREATE TABLE strict ({columns.replace(' CHECK (v < 100)', '')})")
    if "CHECK" in columns:
        run(spark, "ALTER TABLE strict ADD CONSTRAINT small CHECK (v < 100)")
    with pytest.raises(Exception, match=r"CONSTRAINT|NOT_NULL|METADATA_MISMATCH|CAST|ARITHMETIC|OVERFLOW"):
        run(spark, f"INSERT INTO strict {query}")
    assert count(spark, "strict") == 0
    assert count(spark, "s") == ROWS
    assert set(ledger(spark, schema)) <= {"FAILED"}


def test_a_disk_that_is_full(spark: SparkSession, schema: str) -> None:
    """The operating system refuses to let the process's files grow: what it wrote is nowhere to be seen, and nothing moved."""
    run(spark, "CREATE TABLE wide (id BIGINT, v STRING)")
    insert = f"INSERT INTO {schema}.wide SELECT s.id, repeat(uuid(), 50) FROM {schema}.s"
    limited = ["bash", "-c", f'ulimit -f {FILE_KILOBYTES_MAX}; exec "$@"', "limited"]
    child = subprocess.run(
        [*limited, sys.executable, "-m", "tests.consume.child", data_of(spark), "never", insert],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert child.returncode != 0
    assert "File too large" in child.stderr
    assert count(spark, "wide") == 0
    assert count(spark, "s") == ROWS
    run(spark, insert)
    assert count(spark, "wide") == ROWS
    assert ledger(spark, schema)[-1] == "CONSUMED"


def test_a_source_that_is_its_own_target(spark: SparkSession, schema: str) -> None:
    """What the statement adds is new to the stream: it moves up to where it read, not up to what it wrote."""
    run(spark, f"INSERT INTO t SELECT id + {ROWS}, v FROM s")
    assert count(spark, "t") == 2 * ROWS
    seen = run(spark, "SELECT min(id) AS low, count(*) AS n FROM s WHERE __change_type = 'INSERT'")[0]
    assert (seen["low"], seen["n"]) == (ROWS, ROWS)


def test_a_target_that_has_a_stream(spark: SparkSession, schema: str) -> None:
    """Changes go down a chain of streams, each link exactly once."""
    run(spark, "ALTER TABLE target SET PROPERTIES ('change_tracking' = 'true')")
    run(spark, "CREATE STREAM further ON TABLE target")
    run(spark, "CREATE TABLE last (id BIGINT, v BIGINT)")
    for change in (
        "SELECT 1",
        "UPDATE t SET v = v + 1 WHERE id % 5 = 0",
        "DELETE FROM t WHERE id % 5 = 1",
        "INSERT INTO t VALUES (-1, -1)",
    ):
        run(spark, change)
        run(spark, MERGE.format(target="target", source="s"))
        run(spark, MERGE.format(target="last", source="further"))
        assert run(spark, "SELECT * FROM t EXCEPT ALL SELECT * FROM last") == []
        assert count(spark, "last") == count(spark, "t")
    assert (count(spark, "s"), count(spark, "further")) == (0, 0)


def test_what_is_no_delta_table_is_refused_unless_asked_for(spark: SparkSession, schema: str) -> None:
    run(spark, "CREATE TABLE flat (id BIGINT, v BIGINT) USING parquet")
    insert = f"INSERT INTO {schema}.flat SELECT id, v FROM {schema}.s"
    with pytest.raises(StreamqlError, match="at_least_once") as error:
        run(spark, insert)
    assert error.value.code == "UNSUPPORTED_TARGET"
    own = spark.newSession()
    own.conf.set("spark.streamql.nonDeltaTargets", "at_least_once")
    with pytest.raises(StreamqlError, match="is not a Delta table"):
        run(own, f"CREATE TABLE {schema}.made USING parquet AS SELECT id, v FROM {schema}.s")
    run(own, insert)
    assert (count(own, f"{schema}.flat"), count(spark, "s")) == (ROWS, 0)
    assert (ledger(spark, schema, "guarantee"), ledger(spark, schema)) == (["at_least_once"], ["CONSUMED"])
    run(spark, "INSERT INTO t VALUES (-1, -1)")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        run(own, f"INSERT INTO {schema}.flat SELECT id, v DIV (id - id) FROM {schema}.s")
    assert (count(own, f"{schema}.flat"), count(spark, "s")) == (ROWS, 1)


def test_a_crash_may_double_what_is_written_at_least_once_and_loses_nothing(spark: SparkSession, schema: str) -> None:
    run(spark, "CREATE TABLE flat (id BIGINT, v BIGINT) USING parquet")
    insert = f"INSERT INTO {schema}.flat SELECT id, v FROM {schema}.s"
    conf = {"spark.streamql.nonDeltaTargets": "at_least_once"}
    killed(spark, "after:execute", insert, conf=conf)
    assert count(spark, "s") == ROWS
    own = spark.newSession()
    own.conf.set(*next(iter(conf.items())))
    run(own, insert)
    spark.sql(f"REFRESH TABLE {schema}.flat")
    row = run(spark, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM flat")[0]
    assert (row["n"], row["d"]) == (2 * ROWS, ROWS)
    assert ledger(spark, schema) == ["FAILED", "CONSUMED"]


def test_what_failed_into_no_delta_table_is_not_mended_by_what_went_into_another(
    spark: SparkSession, schema: str
) -> None:
    own = spark.newSession()
    run(own, f"USE {schema}")
    own.conf.set("spark.streamql.nonDeltaTargets", "at_least_once")
    for flat in ("flat", "other"):
        run(own, f"CREATE TABLE {flat} (id BIGINT, v BIGINT) USING parquet")
    run(own, "BEGIN TRANSACTION")
    run(own, f"INSERT INTO target SELECT id, v FROM {schema}.s")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        run(own, f"INSERT INTO flat SELECT id, v DIV (id - id) FROM {schema}.s")
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(own, "ROLLBACK")
    inserts = [f"INSERT INTO {table} SELECT id, v FROM {schema}.s" for table in ("target", "other", "flat")]
    run(own, "BEGIN TRANSACTION")
    for insert in inserts[:2]:
        run(own, insert)
    with pytest.raises(StreamqlError, match="INVALID_TRANSACTION_STATE"):
        run(own, "COMMIT")
    with pytest.raises(StreamqlError, match="CONSUMPTION_PARTIALLY_COMMITTED"):
        run(own, "ROLLBACK")
    run(own, "BEGIN TRANSACTION")
    for insert in inserts:
        run(own, insert)
    run(own, "COMMIT")
    assert [count(own, table) for table in ("target", "other", "flat", "s")] == [ROWS, ROWS, ROWS, 0]


@pytest.mark.parametrize("mode", ["ignore", "error"])
def test_a_write_by_path_that_a_table_keeps_from_writing_moves_nothing(
    spark: SparkSession, schema: str, mode: str
) -> None:
    """Spark has its say: nothing, or that the path exists; nobody took the stream meanwhile, and none of its changes is gone."""
    (row,) = run(spark, "DESCRIBE DETAIL target")
    before = ledger(spark, schema)
    writer = spark.table(f"{schema}.s").select("id", "v").write.format("delta").mode(mode)
    if mode == "ignore":
        writer.save(row["location"])
    else:
        with pytest.raises(Exception, match="DELTA_PATH_EXISTS"):
            writer.save(row["location"])
    assert (count(spark, "target"), count(spark, "s"), ledger(spark, schema)) == (0, ROWS, before)


def test_a_number_is_found_behind_many_commits_and_a_later_number(
    spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that resolves late must not take what is in for lost: the state knows only the last number of an id."""
    (row,) = run(spark, "DESCRIBE DETAIL target")
    path = str(row["location"]).removeprefix("file:")
    table = DeltaTable(spark, path)
    start = table.latest().version
    for number in (4, 6, 9):
        assert txns.fence(spark, path, "streamql:x:0", number, number) == number
    monkeypatch.setattr(txns, "REPLAY_COMMITS_MAX", 1)
    latest = table.latest()
    found = {n: txns.find_txn(spark, table, latest, "streamql:x:0", n, start) for n in (4, 6, 7, 9, 11)}
    assert {n: f.number for n, f in found.items() if f is not None} == {4: 4, 6: 6, 7: 9, 9: 9, 11: 9}
    assert found[4] is not None
    assert found[4].version == start + 1


def test_a_misspelt_column_of_the_merge_api_has_deltas_message(spark: SparkSession, schema: str) -> None:
    """PySpark asks Spark for the message of an error that has a place, also if the condition is Delta's."""
    from delta.tables import DeltaTable as Api

    target, source = Api.forName(spark, f"{schema}.target").alias("r"), spark.table(f"{schema}.t").alias("t")
    merge = target.merge(source, "r.id = t.idd").whenMatchedDelete()
    with pytest.raises(AnalysisException, match=r"DELTA_MERGE_UNRESOLVED_EXPRESSION.*t\.idd") as caught:
        merge.execute()
    assert "t.idd" in caught.value.getMessage()


def test_a_merge_in_a_script_runs(spark: SparkSession, schema: str) -> None:
    """The parser lets the source of a MERGE wait, also within BEGIN … END."""
    run(
        spark,
        "BEGIN MERGE INTO target r USING s ON r.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v); END",
    )
    assert count(spark, "target") == ROWS
