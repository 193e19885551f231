"""Tables that are read AT a stream or at its END: aligned with what the statement sees of the stream, and moving nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from pyspark.sql import Row, SparkSession

import streamql
from streamql import StreamqlError
from streamql.catalog.store import catalog_of
from streamql.names import Name
from streamql.sources.tables.image import image
from streamql.sources.tables.source_type import find_table
from streamql.sources.tables.table import open_table
from tests.consume.support import TIMEOUT_SECONDS, TRACKED, fresh_schema, in_threads, offset_of, run
from tests.histories.recording import conf
from tests.lines import HAS_PARAMETERS

IMAGES = """
    SELECT 'begin' AS what, id, v FROM t AT (STREAM => 's')
    UNION ALL SELECT 'end', id, v FROM t END (STREAM => 's')
    UNION ALL SELECT __change_type, id, v FROM s"""
"""Both images of t and the changes between them, in one statement."""


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """A schema with a stream s on t (id, v), behind whose offset the rows 1 and 2 are, and a table `target`."""
    name = fresh_schema(spark, "asof")
    run(spark, f"CREATE TABLE t (id BIGINT, v STRING) {TRACKED}")
    run(spark, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    run(spark, "CREATE STREAM s ON TABLE t")
    run(spark, "CREATE TABLE target (what STRING, id BIGINT, v STRING)")
    yield name
    for view in ("end_of_t", "end_of_batch"):  # other tests list the temporary views of the session
        spark.catalog.dropTempView(view)


def change(spark: SparkSession, n: int = 0) -> None:
    """A few commits: an update, an insert, a delete."""
    run(spark, f"UPDATE t SET v = 'changed {n}' WHERE id = 1")
    run(spark, f"INSERT INTO t VALUES ({10 + n}, 'c'), ({20 + n}, 'd')")
    run(spark, f"DELETE FROM t WHERE id = {20 + n}")


def assert_aligned(rows: list[Row]) -> None:
    """The image of the begin, with the changes, is the image of the end."""
    parts: dict[str, list[tuple[int, str]]] = {}
    for what, number, v in rows:
        parts.setdefault(what, []).append((number, v))
    rows_left = list(parts.get("begin", []))
    for gone in parts.get("DELETE", []) + parts.get("UPDATE_BEFORE", []):
        rows_left.remove(gone)
    rows_left += parts.get("INSERT", []) + parts.get("UPDATE_AFTER", [])
    assert sorted(rows_left) == sorted(parts.get("end", []))


def ids(spark: SparkSession, text: str) -> list[int]:
    return sorted(row["id"] for row in run(spark, text))


# -- what is read


def test_one_statement_sees_both_images_and_the_changes_between_them(spark: SparkSession, schema: str) -> None:
    assert ids(spark, "SELECT * FROM t AT (STREAM => 's')") == ids(spark, "TABLE t") == [1, 2]
    change(spark)
    rows = run(spark, IMAGES)
    assert len(rows) == 2 + 3 + 3
    assert_aligned(rows)
    assert spark.table("t").columns == spark.sql("SELECT * FROM t END (STREAM => 's')").columns
    assert ids(spark, "SELECT * FROM t END (STREAM => 's')") == [1, 2, 10]
    with conf(spark, (("spark.sql.ansi.enabled", "false"),)):
        assert_aligned(run(spark, IMAGES))
    late = spark.sql(IMAGES)  # analysed: its interval ends here
    change(spark, 1)
    assert sorted(late.collect()) == sorted(rows)
    assert ids(spark, "SELECT id FROM t") == sorted(r["id"] for r in spark.table("t").collect()) == [1, 2, 10, 11]


def test_views_queries_and_merge(spark: SparkSession, schema: str) -> None:
    change(spark)
    run(spark, "CREATE VIEW begin_of_t AS SELECT * FROM t AT (STREAM => 's')")
    run(spark, "CREATE TEMP VIEW end_of_t AS SELECT * FROM t END (STREAM => 's')")
    run(spark, "CREATE VIEW changed AS SELECT __change_type AS what, id, v FROM s")
    text = f"""
        WITH e AS (SELECT * FROM {schema}.t END (STREAM => '{schema}.s') EXCEPT SELECT * FROM end_of_t)
        SELECT 'begin', * FROM {schema}.begin_of_t UNION ALL SELECT 'end', * FROM end_of_t
        UNION ALL SELECT 'none', * FROM e UNION ALL SELECT * FROM {schema}.changed"""
    rows = run(spark, text)
    assert_aligned(rows)
    assert "none" not in [row[0] for row in rows]
    before = "SELECT id FROM target WHERE id IN (SELECT id FROM t AT (STREAM => 's')) ORDER BY id"
    run(spark, "USE default")
    assert sorted(run(spark, text)) == sorted(rows)  # the text of a view means the schema that it was made in
    run(spark, f"USE {schema}")
    merge = "MERGE INTO target x USING t {} ON x.id = {}.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES ({}.id, {}.v)"
    run(spark, merge.format("AT (STREAM => 's')", *["t"] * 3))
    assert ids(spark, "TABLE target") == [1, 2]
    run(spark, merge.format("END (STREAM => 's') AS d", *["d"] * 3))
    assert ids(spark, "TABLE target") == [1, 2, 10]
    assert [r["id"] for r in run(spark, before)] == [1, 2]
    assert len(run(spark, "SELECT * FROM s")) == 3


def test_points_without_a_stream(spark: SparkSession, schema: str) -> None:
    now = run(spark, "SELECT current_timestamp() AS t")[0]["t"]
    change(spark)
    assert ids(spark, "SELECT * FROM t AT (VERSION => 1)") == [1, 2]
    assert ids(spark, "SELECT * FROM t BEFORE (VERSION => 1)") == []
    assert ids(spark, "SELECT d.* FROM t AT (VERSION => 3) d") == [1, 2, 10, 20]
    assert ids(spark, f"SELECT * FROM t AT (TIMESTAMP => '{now}')") == [1, 2]
    assert ids(spark, f"SELECT * FROM t BEFORE (TIMESTAMP => '{now}'::timestamp)") == [1, 2]
    assert ids(spark, "SELECT * FROM t AT (OFFSET => 0)") == [1, 2, 10]
    if HAS_PARAMETERS:
        rows = spark.sql("SELECT * FROM t AT (VERSION => :n)", args={"n": 1})
        assert sorted(r["id"] for r in rows.collect()) == [1, 2]
    run(spark, "CREATE TABLE untracked (id INT)")
    run(spark, "INSERT INTO untracked VALUES (7)")
    run(spark, "INSERT INTO untracked SELECT id + 1 FROM untracked AT (VERSION => 1)")
    assert ids(spark, "SELECT * FROM untracked AT (VERSION => 2)") == [7, 8]


def test_initial_rows_do_not_count(spark: SparkSession, schema: str) -> None:
    run(spark, "CREATE STREAM initial ON TABLE t SHOW_INITIAL_ROWS = TRUE")
    change(spark)
    assert ids(spark, "SELECT * FROM t AT (STREAM => 'initial')") == [1, 2]
    assert ids(spark, "SELECT * FROM t END (STREAM => 'initial')") == ids(spark, "SELECT id FROM initial") == [1, 2, 10]


def test_each_table_of_a_view(spark: SparkSession, schema: str) -> None:
    run(spark, f"CREATE TABLE dim (id BIGINT, name STRING) {TRACKED}")
    run(spark, "INSERT INTO dim VALUES (1, 'one'), (2, 'two'), (10, 'ten')")
    run(spark, "CREATE VIEW joined AS SELECT t.id, t.v, d.name FROM t JOIN dim d ON t.id = d.id")
    run(spark, "CREATE STREAM of_view ON VIEW joined")
    change(spark)
    run(spark, "UPDATE dim SET name = 'eins' WHERE id = 1")
    end = "SELECT t.id, t.v, d.name FROM t {0} (STREAM => 'of_view') t JOIN dim {0} (STREAM => 'of_view') d ON t.id = d.id"
    begin, now = run(spark, end.format("AT")), run(spark, end.format("END"))
    assert sorted(begin) == [(1, "a", "one"), (2, "b", "two")]
    assert (
        sorted(now)
        == sorted(run(spark, "TABLE joined"))
        == [(1, "changed 0", "eins"), (2, "b", "two"), (10, "c", "ten")]
    )
    run(spark, "CREATE TABLE kept AS SELECT s.id, d.name FROM of_view s JOIN dim AT (STREAM => 'of_view') d USING (id)")
    assert sorted(run(spark, "TABLE kept")) == [(1, "one"), (1, "one"), (10, "ten")]
    assert run(spark, end.format("AT")) == now
    with pytest.raises(StreamqlError) as other:
        run(spark, "SELECT * FROM dim AT (STREAM => 's')")
    assert (other.value.code, other.value.line, other.value.column) == ("INVALID_POINT_IN_TIME", 1, 19)
    assert f"it reads {schema}.t" in other.value.message


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("SELECT * FROM t AT (STREAM => 'ss')", "STREAM_NOT_FOUND", 17),
        ("SELECT * FROM nothing AT (STREAM => 's')", "TABLE_NOT_FOUND", 15),
        ("SELECT * FROM s END (STREAM => 's')", "UNSUPPORTED_SOURCE", 15),
        ("SELECT * FROM v AT (VERSION => 1)", "NOT_A_DELTA_TABLE", 15),
        ("SELECT * FROM t AT (VERSION => 99)", "INVALID_POINT_IN_TIME", 17),
        ("SELECT * FROM t AT (TIMESTAMP => '2999-01-01')", "INVALID_POINT_IN_TIME", 17),
        ("SELECT * FROM t AT (OFFSET => 5)", "INVALID_POINT_IN_TIME", 17),
        ("SELECT * FROM target AT (STREAM => 's')", "INVALID_POINT_IN_TIME", 22),
        ("SELECT streamql_as_of.* FROM streamql_as_of('t', 'VERSION')", "INVALID_ARGUMENT", None),
    ],
)
def test_errors_have_a_place(spark: SparkSession, schema: str, text: str, code: str, column: int | None) -> None:
    run(spark, "CREATE VIEW v AS SELECT * FROM t")
    with pytest.raises(StreamqlError) as refused:
        run(spark, text)
    assert (refused.value.code, refused.value.column) == (code, column), refused.value
    assert refused.value.hint


def test_a_version_that_vacuum_took_is_stale(spark: SparkSession, schema: str) -> None:
    change(spark)
    run(spark, "OPTIMIZE t")
    guards = (
        ("spark.streamql.vacuumGuard", "false"),
        ("spark.databricks.delta.retentionDurationCheck.enabled", "false"),
    )
    with conf(spark, guards):
        run(spark, "VACUUM t RETAIN 0 HOURS")
    with pytest.raises(StreamqlError, match="STREAM_STALE"):
        run(spark, "SELECT * FROM t AT (STREAM => 's')")
    assert ids(spark, "SELECT * FROM t END (STREAM => 's')") == [1, 2, 10]


def test_an_earlier_image_in_later_columns(spark: SparkSession, schema: str) -> None:
    run(spark, "ALTER TABLE t ADD COLUMN w INT")
    table = find_table(spark, Name("spark_catalog", schema, "t"))
    assert table is not None
    source = open_table(spark, table)
    assert image(source, 1).columns == ["id", "v"]
    rows = image(source, 1, shown_at=source.latest)
    assert rows.columns == ["id", "v", "w"]
    assert sorted(rows.collect()) == [(1, "a", None), (2, "b", None)]


# -- consuming


def test_such_a_read_moves_nothing(spark: SparkSession, schema: str) -> None:
    change(spark)
    run(spark, "INSERT INTO target SELECT 'begin', * FROM t AT (STREAM => 's')")
    spark.sql("SELECT 'end' AS what, * FROM t END (STREAM => 's')").writeTo("target").append()
    assert len(run(spark, "SELECT * FROM s")) == 3
    ledger = spark.table("streamql.consumptions").where(f"stream = '{schema}.s'")
    assert ledger.count() == 0
    run(spark, "INSERT INTO target SELECT __change_type, id, v FROM s")
    assert_aligned(run(spark, "TABLE target"))
    assert [(r["outcome"], r["changes"]["INSERT"]) for r in ledger.collect()] == [("CONSUMED", 1)]


def test_a_statement_that_consumes_reads_aligned_images(spark: SparkSession, schema: str) -> None:
    for n in range(2):
        change(spark, n)
        run(spark, f"INSERT INTO target {IMAGES}")
        assert_aligned(run(spark, "TABLE target"))
        assert run(spark, "SELECT * FROM s") == []
        run(spark, "TRUNCATE TABLE target")
    change(spark, 2)
    consumed = run(
        spark, "SELECT c.id, e.v FROM s WITH (CONSUME = TRUE) c LEFT JOIN t END (STREAM => 's') e ON c.id = e.id"
    )
    assert len(consumed) == 3
    assert run(spark, "SELECT * FROM s") == []


def test_the_images_follow_a_read_that_is_bound_anew(spark: SparkSession, schema: str) -> None:
    """A DataFrame made before another consumer came first."""
    change(spark)
    rows = spark.sql(IMAGES)
    run(spark, "CREATE TABLE first AS SELECT id FROM s")
    change(spark, 1)
    rows.writeTo("target").append()
    written = run(spark, "TABLE target")
    assert_aligned(written)
    assert sorted(r["id"] for r in written if r["what"] == "begin") == [1, 2, 10]
    run(spark, "TRUNCATE TABLE target")
    change(spark, 2)
    rows.writeTo("target").append()
    assert_aligned(run(spark, "TABLE target"))
    assert ids(spark, "SELECT id FROM target WHERE what = 'end'") == [1, 2, 10, 11, 12]


def test_a_consumer_that_waits_reads_the_images_of_what_is_left(spark: SparkSession, schema: str) -> None:
    change(spark)
    run(spark, "CREATE TABLE first (id BIGINT)")
    name = Name("spark_catalog", schema, "s")
    claimed = threading.Event()

    def slow() -> None:
        own = spark.newSession()
        run(own, f"USE {schema}")
        run(
            own,
            "INSERT INTO first SELECT id FROM s WHERE reflect('java.lang.Thread', 'sleep', 1500L) IS NULL OR id > 0",
        )

    def waiting() -> None:
        end = time.monotonic() + TIMEOUT_SECONDS
        while (state := catalog_of(spark).find(spark, name)) is None or state.claim is None:
            assert time.monotonic() < end
            time.sleep(0.02)
        claimed.set()
        change(spark, 1)
        run(spark, f"INSERT INTO target {IMAGES}")

    assert in_threads(slow, waiting) == []
    assert claimed.is_set()
    rows = run(spark, "TABLE target")
    assert_aligned(rows)
    assert sorted(r["id"] for r in rows if r["what"] == "begin") == [1, 2, 10]
    assert run(spark, "SELECT * FROM s") == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT c.id, e.v FROM s WITH (MAX_BATCH_SIZE = 2) c LEFT JOIN t END (STREAM => 's') e ON c.id = e.id",
        "SELECT c.id, e.v FROM t END (STREAM => 's') e RIGHT JOIN s WITH (MAX_BATCH_SIZE = 2) c ON c.id = e.id",
        "SELECT id, v FROM t END (STREAM => 's') WHERE id IN (SELECT id FROM s WITH (MAX_BATCH_SIZE = 2))",
        "SELECT e.id, e.v FROM end_of_batch e JOIN (SELECT id FROM s WITH (MAX_BATCH_SIZE = 2)) c ON c.id = e.id",
    ],
)
def test_the_end_of_a_batch(spark: SparkSession, schema: str, text: str) -> None:
    """Spark resolves functions before relations, and views and the outer query before subqueries: the batch is known last."""
    run(spark, "CREATE TEMP VIEW end_of_batch AS SELECT * FROM t END (STREAM => 's')")
    run(spark, "UPDATE t SET v = 'c' WHERE id = 1")
    run(spark, "INSERT INTO t VALUES (3, 'x')")
    run(spark, "UPDATE t SET v = 'C' WHERE id = 1")
    assert set(run(spark, text)) == {(1, "c")}
    run(spark, f"INSERT INTO target (id, v) {text}")
    assert set(run(spark, "SELECT id, v FROM target")) == {(1, "c")}
    assert ids(spark, "SELECT id FROM s") == [1, 1, 3]  # the rest is left


# -- transactions


def test_a_transaction_sees_one_interval(spark: SparkSession, schema: str) -> None:
    change(spark)
    run(spark, "CREATE TABLE other (id BIGINT, v STRING)")
    with streamql.transaction(spark):
        before = run(spark, "SELECT * FROM t END (STREAM => 's') ORDER BY id")  # pins the interval
        writer = spark.newSession()
        run(writer, f"INSERT INTO {schema}.t VALUES (99, 'later')")
        run(spark, f"INSERT INTO target {IMAGES}")
        assert run(spark, "SELECT * FROM t END (STREAM => 's') ORDER BY id") == before
        with pytest.raises(StreamqlError, match="reads no stream"):
            run(spark, "INSERT INTO other SELECT * FROM t AT (STREAM => 's')")
        run(spark, "INSERT INTO other SELECT s.id, b.v FROM s JOIN t AT (STREAM => 's') b ON s.id = b.id")
    assert_aligned(run(spark, "TABLE target"))
    assert 99 not in ids(spark, "TABLE target")
    assert sorted(run(spark, "TABLE other")) == [(1, "a"), (1, "a")]
    assert ids(spark, "SELECT id FROM s") == [99]
    assert ids(spark, "SELECT id FROM t AT (STREAM => 's')") == [1, 2, 10]
    assert offset_of(spark, f"{schema}.s") == 4


def test_a_block_that_reads_a_table_at_a_moved_stream_is_not_run(spark: SparkSession, schema: str) -> None:
    change(spark)
    run(spark, "BEGIN TRANSACTION")
    run(spark, "SELECT * FROM t END (STREAM => 's')")
    other = spark.newSession()
    run(other, f"INSERT INTO {schema}.target SELECT __change_type, id, v FROM {schema}.s")
    with pytest.raises(StreamqlError, match="STREAM_MOVED"):
        run(spark, "INSERT INTO target SELECT __change_type, id, v FROM s")
    run(spark, "ROLLBACK")
