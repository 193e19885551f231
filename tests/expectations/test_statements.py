"""Expectations in every form that consumes: what arrives, what is quarantined, and what the ledger counts."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

from streamql.delta.jvm import message
from streamql.errors import StreamqlError
from streamql.features.expectations import quarantine
from streamql.model import CHANGE_TYPE
from tests.consume.support import TRACKED, findings, fresh_schema, in_threads, offset_of, run

GOOD = "(1, '10'), (2, '20')"
BAD = "(3, 'x'), (4, '-4'), (5, NULL)"


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """A schema with a table, a stream that quarantines and drops, and a target."""
    schema = fresh_schema(spark, "expect")
    run(spark, f"CREATE TABLE t (id INT, amount STRING) {TRACKED}")
    run(spark, "CREATE TABLE target (id INT, amount INT)")
    run(
        spark,
        "CREATE STREAM s ON TABLE t EXPECTATION num CHECK (CAST(amount AS INT) > 0) ON VIOLATION QUARANTINE "
        "EXPECTATION small CHECK (id < 100) ON VIOLATION DROP EXPECTATION even CHECK (id % 2 = 0)",
    )
    run(spark, f"INSERT INTO t VALUES {GOOD}, {BAD}, (100, '1')")
    yield schema
    run(spark, "USE default")


def ids(spark: SparkSession, relation: str) -> list[int]:
    return sorted(r[0] for r in run(spark, f"SELECT id FROM {relation}"))


def details(spark: SparkSession, stream: str) -> list[dict[str, object]]:
    rows = run(
        spark,
        f"SELECT details FROM streamql.consumptions WHERE stream = '{stream}' AND outcome = 'CONSUMED' ORDER BY sequence",
    )
    return [json.loads(r["details"] or "{}") for r in rows]


MERGED = (
    "MERGE INTO target USING (SELECT id, CAST(amount AS INT) AS amount FROM s) AS s ON target.id = s.id "
    "WHEN NOT MATCHED THEN INSERT *"
)
FORMS = {
    "insert": ("INSERT INTO target SELECT id, CAST(amount AS INT) FROM s",),
    "insert some": ("INSERT INTO target SELECT id, CAST(amount AS INT) FROM s WHERE id <= 2",),
    "merge": (MERGED,),
    "create": ("DROP TABLE target", "CREATE TABLE target AS SELECT id, CAST(amount AS INT) AS amount FROM s"),
    "several": (
        "CREATE TABLE other (id INT)",
        "FROM s INSERT INTO target SELECT id, CAST(amount AS INT) INSERT INTO other SELECT id",
    ),
    "transaction": (
        "BEGIN TRANSACTION",
        "INSERT INTO target SELECT id, CAST(amount AS INT) FROM s",
        "CREATE TABLE other AS SELECT id FROM s",
        "COMMIT",
    ),
    "cdc": (
        "DROP TABLE target",
        "CREATE TABLE target (id INT, amount STRING)",
        "AUTO CDC INTO target FROM STREAM s KEYS (id)",
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize("form", FORMS)
def test_forms(spark: SparkSession, schema: str, form: str) -> None:
    assert ids(spark, "stream_violations('s')") == [1, 3, 4, 5, 100]
    for statement in FORMS[form]:
        run(spark, statement)
    assert ids(spark, "target") == [1, 2]
    quarantined = run(spark, "SELECT * FROM s_quarantine ORDER BY id")
    assert [r["id"] for r in quarantined] == [3, 4, 5]
    assert [r["__violated"] for r in quarantined] == [["num", "even"], ["num"], ["num", "even"]]
    assert [r["__error"] is None for r in quarantined] == [False, True, True]
    assert {(r["__expectation"], r["__stream"], r[CHANGE_TYPE]) for r in quarantined} == {
        ("num", f"{schema}.s", "INSERT")
    }
    ledger = run(spark, f"SELECT sequence, consumption_id FROM streamql.consumptions WHERE stream = '{schema}.s'")
    assert {(r["__consumption"], r["__consumption_id"]) for r in quarantined} == {tuple(r) for r in ledger}
    counts = {"num": 3, "small": 1, "even": 3}
    for found in details(spark, f"{schema}.s"):
        assert found == {"violations": counts, "quarantined": {f"{schema}.s_quarantine": {"rows": 3, "version": 1}}}
    assert run(spark, "SELECT * FROM s") == []
    (finding,) = [f for f in findings(spark, f"{schema}.s") if f.code == "EXPECTATION_VIOLATED"]
    assert "num: 3 rows" in finding.what
    assert "s_quarantine" in finding.remedy


def test_a_query_that_consumes(spark: SparkSession, schema: str) -> None:
    assert [r["id"] for r in run(spark, "SELECT id FROM s WITH (CONSUME = TRUE) ORDER BY id")] == [1, 2]
    assert ids(spark, "s_quarantine") == [3, 4, 5]
    assert details(spark, f"{schema}.s")[0]["violations"] == {"num": 3, "small": 1, "even": 3}


def test_rows_that_a_statement_does_not_read(spark: SparkSession, schema: str) -> None:
    """The rows of a quarantine do not depend on what a statement takes: here an empty join, and a limit."""
    run(
        spark,
        "CREATE STREAM limited ON TABLE t AT (STREAM => 's') EXPECTATION n CHECK (amount > '0') ON VIOLATION QUARANTINE",
    )
    run(spark, "CREATE TABLE nothing (id INT)")
    run(spark, "INSERT INTO target SELECT s.id, 1 FROM s JOIN nothing ON nothing.id = s.id")
    run(spark, "INSERT INTO target SELECT id, 1 FROM limited LIMIT 1")
    assert len(ids(spark, "target")) == 1
    assert ids(spark, "s_quarantine") == [3, 4, 5]
    assert ids(spark, "limited_quarantine") == [4, 5]


TYPES = (
    "id BIGINT, amount STRING, d DECIMAL(30, 4), f DOUBLE, b BINARY, t TIMESTAMP_NTZ, y DATE, v VARIANT, "
    "s STRUCT<a: INT, bc: ARRAY<STRING>>, m MAP<STRING, STRUCT<x: DECIMAL(5, 2)>>"
)
ALL_TYPES = (
    "SELECT id, IF(id % 7 = 3, 'bad', string(id)), id / 3, IF(id % 2 = 0, double('NaN'), id), binary(string(id)), "
    "TIMESTAMP_NTZ'2026-01-01 00:00:00', DATE'1500-01-01', parse_json(concat('[', id, ']')), "
    "IF(id % 5 = 0, NULL, named_struct('a', int(id), 'bc', array(NULL, 'x'))), map('k', named_struct('x', 1.5)) FROM range(500)"
)


def test_kept_rows_are_those_that_are_read_again(
    spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that reads all columns keeps its bad rows, if they are few. Otherwise they are read a second time."""
    run(spark, f"CREATE TABLE every ({TYPES}) {TRACKED}")
    checks = (
        "CHECK (CAST(amount AS INT) >= 0) ON VIOLATION QUARANTINE EXPECTATION odd CHECK (id % 3 = 0) ON VIOLATION DROP"
    )
    for stream in ("kept", "again"):
        run(spark, f"CREATE STREAM {stream} ON TABLE every EXPECTATION num {checks}")
    run(spark, ALL_TYPES.replace("SELECT", "INSERT INTO every SELECT", 1))
    run(spark, "UPDATE every SET amount = 'worse', d = NULL WHERE id IN (3, 9)")
    run(spark, "CREATE TABLE copy AS SELECT * FROM every LIMIT 0")
    with monkeypatch.context() as patch:
        patch.setattr(quarantine, "violations", lambda *_: pytest.fail("read again"))
        run(spark, "INSERT INTO copy SELECT * EXCEPT (__change_type, __commit_version, __commit_timestamp) FROM kept")
    run(spark, "INSERT INTO target SELECT id, 1 FROM again")
    columns = "* EXCEPT (__stream, __consumption, __consumption_id, v, f, m), to_json(v), string(f), to_json(m)"
    found = [run(spark, f"SELECT {columns} FROM {s}_quarantine ORDER BY id") for s in ("kept", "again")]
    assert found[0] == found[1]
    assert len(found[0]) == len({*range(3, 500, 7), 9})
    run(spark, "INSERT INTO every (id, amount) SELECT id, repeat('x', 1000) FROM range(5000)")
    run(spark, "INSERT INTO copy SELECT * EXCEPT (__change_type, __commit_version, __commit_timestamp) FROM kept")
    assert run(spark, "SELECT count(*) FROM kept_quarantine WHERE length(amount) = 1000")[0][0] == 5000


def test_updates_come_and_go(spark: SparkSession, schema: str) -> None:
    merge = (
        "MERGE INTO target USING (SELECT id, CAST(amount AS INT) AS amount, __change_type AS type FROM s) AS s ON target.id = s.id "
        "WHEN MATCHED AND type = 'DELETE' THEN DELETE WHEN MATCHED AND type = 'UPDATE_AFTER' THEN UPDATE SET amount = s.amount "
        "WHEN NOT MATCHED AND type = 'INSERT' THEN INSERT (id, amount) VALUES (s.id, s.amount)"
    )
    run(spark, merge)
    run(spark, "UPDATE t SET amount = 'bad' WHERE id = 1")
    run(spark, "UPDATE t SET amount = '21' WHERE id = 2")
    run(spark, "UPDATE t SET amount = '33' WHERE id = 3")
    run(spark, "UPDATE t SET amount = 'worse' WHERE id = 4")
    run(spark, "DELETE FROM t WHERE id = 5")
    shown = run(spark, "SELECT __change_type, id, amount, `METADATA$ISUPDATE` FROM s ORDER BY id, amount")
    assert [tuple(r) for r in shown] == [
        ("DELETE", 1, "10", True),
        ("UPDATE_BEFORE", 2, "20", True),
        ("UPDATE_AFTER", 2, "21", True),
        ("INSERT", 3, "33", True),
    ]
    run(spark, merge)
    assert sorted(map(tuple, run(spark, "SELECT * FROM target"))) == [(2, 21), (3, 33)]
    rows = run(spark, "SELECT id, amount FROM s_quarantine WHERE __change_type = 'UPDATE_AFTER'")
    assert sorted(map(tuple, rows)) == [(1, "bad"), (4, "worse")]


@pytest.mark.every_case
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO target SELECT id, 1 FROM s",
        "INSERT INTO target SELECT id, 1 FROM s WHERE id = 2",
        "INSERT INTO target SELECT id, 1 FROM s LIMIT 1",
        "INSERT INTO target SELECT s.id, 1 FROM s JOIN (SELECT 1 AS id WHERE false) e ON e.id = s.id",
        "SELECT id FROM s WITH (CONSUME = TRUE) LIMIT 1",
        "CREATE TABLE made AS SELECT * FROM s",
    ],
)
def test_failing(spark: SparkSession, schema: str, statement: str) -> None:
    run(spark, "ALTER STREAM s ADD EXPECTATION low CHECK (100 / (id - 4) IS NOT NULL) ON VIOLATION FAIL")
    before = offset_of(spark, f"{schema}.s")
    assert ids(spark, "s") == [1, 2]
    with pytest.raises(Exception, match=r"EXPECTATION_VIOLATED.*expectation low.*DIVIDE_BY_ZERO.*id = 4"):
        run(spark, statement)
    assert (ids(spark, "target"), ids(spark, "s_quarantine")) == ([], [])
    assert offset_of(spark, f"{schema}.s") == before
    run(spark, "DELETE FROM t WHERE id = 4")
    run(spark, "INSERT INTO target SELECT id, 1 FROM s")
    assert (ids(spark, "target"), ids(spark, "s_quarantine")) == ([1, 2], [3, 5])


def test_an_expectation_that_is_added_while_a_frame_waits(spark: SparkSession, schema: str) -> None:
    """A DataFrame is analysed with the expectations of its time, and written with those of the claim."""
    frame = spark.sql("SELECT id, 1 AS amount FROM s")
    run(spark, "ALTER STREAM s ADD EXPECTATION two CHECK (id <> 2) ON VIOLATION QUARANTINE INTO seconds")
    frame.writeTo("target").append()
    assert (ids(spark, "target"), ids(spark, "seconds"), ids(spark, "s_quarantine")) == ([1], [2], [3, 4, 5])


def test_a_table_that_cannot_be_written(spark: SparkSession, schema: str) -> None:
    """Before the claim, nothing moves. A table that is gone is made again, and gets columns that the source got."""
    run(spark, "DROP TABLE s_quarantine")
    run(spark, "CREATE TABLE s_quarantine (id INT)")
    with pytest.raises(StreamqlError, match=r"INVALID_EXPECTATION.*not a quarantine table"):
        run(spark, "INSERT INTO target SELECT id, 1 FROM s")
    assert ids(spark, "target") == []
    run(spark, "DROP TABLE s_quarantine")
    run(spark, "ALTER TABLE t ADD COLUMNS (more STRUCT<a: INT, b: ARRAY<STRING>>)")
    run(spark, "INSERT INTO target SELECT id, 1 FROM s")
    assert ids(spark, "s_quarantine") == [3, 4, 5]
    run(spark, "ALTER TABLE t ADD COLUMNS (last MAP<STRING, INT>)")
    run(spark, "INSERT INTO t VALUES (6, 'y', named_struct('a', 1, 'b', array('c')), map('d', 2))")
    run(spark, "INSERT INTO target SELECT id, 1 FROM s")
    (row,) = run(spark, "SELECT more, last FROM s_quarantine WHERE id = 6")
    assert (row["more"].asDict(), row["last"]) == ({"a": 1, "b": ["c"]}, {"d": 2})
    run(spark, "ALTER STREAM s DROP EXPECTATION num")
    assert ids(spark, "stream_violations('s')") == []


def test_two_consumers_at_once(spark: SparkSession, schema: str) -> None:
    insert = f"INSERT INTO {schema}.target SELECT id, CAST(amount AS INT) FROM {schema}.s"
    assert in_threads(*[lambda: run(spark, insert)] * 3) == []
    assert (ids(spark, "target"), ids(spark, "s_quarantine")) == ([1, 2], [3, 4, 5])


def test_time_zones_and_settings_do_not_matter(spark: SparkSession, schema: str) -> None:
    """The rows of a quarantine are computed after those of the statement, maybe in another session."""
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "America/New_York")
    own.sql(f"USE {schema}")
    run(own, f"CREATE TABLE times (id INT, at TIMESTAMP) {TRACKED}")
    run(own, "CREATE STREAM late ON TABLE times EXPECTATION e CHECK (at >= '2026-01-01 00:00') ON VIOLATION QUARANTINE")
    run(own, "INSERT INTO times VALUES (1, TIMESTAMP'2026-01-01 04:59:59Z'), (2, TIMESTAMP'2026-01-01 05:00:00Z')")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        run(spark, "INSERT INTO target SELECT id, CAST(amount AS INT) FROM s")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert ids(spark, "s_quarantine") == [3, 4, 5]
    run(spark, "INSERT INTO target SELECT id, 1 FROM late")
    assert ids(spark, "late_quarantine") == [1]


HINT = "ALTER STREAM {schema}.s ADD EXPECTATION name CHECK (condition) ON VIOLATION QUARANTINE"


def test_an_error_of_a_row_names_expectations(spark: SparkSession, schema: str) -> None:
    """Of a statement that consumes: a cast, a division, and constraints of its target. Class and condition of the error stay."""
    for expectation in ("num", "small", "even"):
        run(spark, f"ALTER STREAM s DROP EXPECTATION {expectation}")
    run(spark, "CREATE TABLE filled (id INT NOT NULL)")
    run(spark, "CREATE TABLE checked (id INT, amount INT)")
    run(spark, "ALTER TABLE checked ADD CONSTRAINT few CHECK (id < 100)")
    hint = HINT.format(schema=schema)
    cast = "MERGE INTO target USING s ON target.id = s.id WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, CAST(s.amount AS INT))"
    for statement, condition in {
        "INSERT INTO target SELECT id, CAST(amount AS INT) FROM s": "CAST_INVALID_INPUT",
        cast: "CAST_INVALID_INPUT",
        "INSERT INTO target SELECT id, 1 FROM s WHERE 1 / (id - 3) > 0": "DIVIDE_BY_ZERO",
        "INSERT INTO checked SELECT id, 1 FROM s": "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        "INSERT INTO filled SELECT nullif(id, 3) FROM s": "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        "SELECT CAST(amount AS INT) FROM s WITH (CONSUME = TRUE)": "CAST_INVALID_INPUT",
    }.items():
        with pytest.raises(Exception, match=condition) as raised:
            run(spark, statement)
        assert hint in message(raised.value), statement
    with pytest.raises(ArithmeticException):
        spark.sql("INSERT INTO target SELECT id, 1 FROM s WHERE 1 / (id - 3) > 0").collect()
    for statement in ("SELECT CAST(amount AS INT) FROM s", "INSERT INTO target SELECT id, CAST(amount AS INT) FROM t"):
        with pytest.raises(Exception, match="CAST_INVALID_INPUT") as raised:
            run(spark, statement)
        assert "EXPECTATION" not in str(raised.value), "it does not consume"
    assert ids(spark, "s") == [1, 2, 3, 4, 5, 100]
