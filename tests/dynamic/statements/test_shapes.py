"""Dynamic tables whose sources get other columns and types: their own columns follow where Delta can change them, and streams on them
live on; else the refresh fails by name. `test_histories.py` has the same at random."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from streamql.errors import StreamqlError
from tests.consume.support import TRACKED
from tests.dynamic.support import DynamicPlace

WIDENING = TRACKED.replace(
    "(",
    "('delta.enableTypeWidening' = 'true', 'delta.columnMapping.mode' = 'name', 'delta.feature.timestampNtz' = 'supported', ",
    1,
)
COLUMNS = "k INT, n INT, m DECIMAL(5, 2), day DATE, b INT, x INT, note STRING"
BEFORE = "(1, 2, 2.25, DATE '2020-01-01', 2, 2, 'a'), (2, 2, 2.25, DATE '2020-01-01', 2, 2, 'b')"
ALTERED = (
    "ALTER COLUMN n TYPE DOUBLE",
    "ALTER COLUMN m TYPE DECIMAL(12, 4)",
    "ALTER COLUMN day TYPE TIMESTAMP_NTZ",
    "ALTER COLUMN b TYPE BIGINT",
    "DROP COLUMN x",
    "ADD COLUMN x DOUBLE AFTER b",
)
AFTER = "2.75, 2.7512, TIMESTAMP_NTZ '2020-01-01 03:04:05', 3000000000, 7.5"
ROW = (2.75, Decimal("2.7512"), datetime.fromisoformat("2020-01-01 03:04:05"), 3000000000, 7.5)
WIDENED = (2.0, Decimal("2.25"), datetime.fromisoformat("2020-01-01"), 2)
"""What the rows of BEFORE have in the first columns, in the wider types."""
QUERIES = {
    "d": "SELECT k, n, m, day, b, x FROM t",
    "dd": "SELECT x, k, n, m, day, b FROM d",
    "grouped": "SELECT n, m, day, b, count(*) AS c FROM t GROUP BY n, m, day, b",
    "hidden": "SELECT count(*) AS c, max(k) AS k FROM t GROUP BY n, m, day, b",
    "states": "SELECT note, max(n) AS n, min(day) AS day, sum(m) AS m, sum(b) AS b, avg(b) AS a FROM t GROUP BY note",
    "total": "SELECT sum(m) AS m, sum(b) AS b, max(n) AS n FROM t",
    "filtered": "SELECT a.k FROM t a JOIN t b ON a.n = b.n AND a.m = b.m WHERE a.day >= (SELECT max(day) FROM t)",
}
CLAUSES = {
    "d": "REFRESH_MODE = INCREMENTAL",
    "dd": "REFRESH_MODE = FULL",
    "grouped": "PARTITIONED BY (day, n)",
    "states": "REFRESH_MODE = INCREMENTAL",
}


def test_columns_of_wider_types(place: DynamicPlace) -> None:
    place.run("DROP TABLE t", f"CREATE TABLE t ({COLUMNS}) USING DELTA {WIDENING}", f"INSERT INTO t VALUES {BEFORE}")
    for name, query in QUERIES.items():
        place.create(query, name, CLAUSES.get(name, ""))
    place.run("CREATE STREAM s ON DYNAMIC TABLE d", "CREATE STREAM sd ON DYNAMIC TABLE dd")
    place.run(*(f"ALTER TABLE t {one}" for one in ALTERED), f"INSERT INTO t VALUES (3, {AFTER}, 'a')")
    assert place.refused("VERIFY DYNAMIC TABLE d").code == "DYNAMIC_TABLE_NOT_VERIFIABLE"
    check(place)
    assert place.bag("SELECT * FROM d") == {(1, *WIDENED, None): 1, (2, *WIDENED, None): 1, (3, *ROW): 1}
    # Values of a column that was dropped are those that its rows had.
    moved = {(kind, k, *WIDENED, x): 1 for k in (1, 2) for kind, x in (("UPDATE_BEFORE", 2.0), ("UPDATE_AFTER", None))}
    assert shown(place, "s") == shown(place, "sd") == {("INSERT", 3, *ROW): 1, **moved}
    # From then on it is as it always was.
    place.run(
        "CREATE TABLE o AS SELECT * FROM s", "UPDATE t SET k = 5 WHERE k = 3", f"INSERT INTO t VALUES (4, {AFTER}, 'b')"
    )
    check(place)
    assert shown(place, "s") == {("UPDATE_BEFORE", 3, *ROW): 1, ("UPDATE_AFTER", 5, *ROW): 1, ("INSERT", 4, *ROW): 1}
    assert [place.history(name)[0]["mode"] for name in ("d", "states")] == ["INCREMENTAL"] * 2


def check(place: DynamicPlace) -> None:
    """The rows and types of all are those of their queries."""
    for name, text in QUERIES.items():
        place.refresh(name)
        assert place.bag(f"SELECT * FROM {name}") == place.bag(text), name
        types = [[f.dataType for f in place.spark.sql(t).schema.fields] for t in (text, f"SELECT * FROM {name}")]
        assert types[0] == types[1], name
        assert place.verify(name)[0] == "EQUAL", name


def shown(place: DynamicPlace, stream: str) -> Counter[tuple[Any, ...]]:
    return place.bag(f"SELECT __change_type, k, n, m, day, b, x FROM {stream}")


def test_columns_that_no_type_makes_fit(place: DynamicPlace) -> None:
    """What can be stored without loss is; for anything else the refresh names the table, the column and its types, and keeps the rows."""
    place.run("DROP TABLE t", f"CREATE TABLE t (k INT, n INT) USING DELTA {WIDENING}", "INSERT INTO t VALUES (1, 2)")
    place.create("SELECT k, n FROM t")
    place.create("SELECT sum(n) AS s FROM t", "g")
    place.create("SELECT count(*) AS c FROM t GROUP BY n", "hidden")
    place.run("ALTER TABLE t ALTER COLUMN n TYPE DOUBLE", "INSERT INTO t VALUES (2, 2.75)")
    refused = place.refused("REFRESH DYNAMIC TABLE g")
    assert refused.code == "UNSUPPORTED_SOURCE"
    said = f"column s of {place.schema}.g is BIGINT, and the query has DOUBLE for it now, a type that Delta cannot widen it to"
    assert refused.message == said
    assert refused.hint.startswith(f"CREATE OR REPLACE DYNAMIC TABLE {place.schema}.g AS …")
    assert place.refused("VERIFY DYNAMIC TABLE g").message == said
    assert said in place.history("g")[0]["error"]
    assert place.bag("SELECT * FROM g") == {(2,): 1}
    assert place.refresh()["d"][0] == "REFRESHED"
    assert place.bag("SELECT * FROM d") == {(1, 2.0): 1, (2, 2.75): 1}

    def other(type_name: str, value: str) -> None:
        place.run(
            "ALTER TABLE t DROP COLUMN n",
            f"ALTER TABLE t ADD COLUMN n {type_name}",
            f"INSERT INTO t VALUES (3, {value})",
        )

    other("SMALLINT", "7")
    place.refresh()
    assert place.bag("SELECT k, n FROM d") == {(1, None): 1, (2, None): 1, (3, 7): 1}
    assert place.verify() == ("EQUAL", 3, 0, 0)
    other("STRING", "'x'")
    assert "column n of" in place.refused("REFRESH DYNAMIC TABLE d").message
    assert "has STRING for it" in place.refused("REFRESH DYNAMIC TABLE d").message
    hidden = place.refused("REFRESH DYNAMIC TABLE hidden").message
    assert hidden.endswith("other key columns identify its rows now, STRING in the place of INT")


FIELDS = {
    "d": "SELECT k, s, l, m FROM t",
    "dd": "SELECT * FROM d",
    "grouped": "SELECT s, count(*) AS c, max(k) AS k FROM t GROUP BY s",
    "items": "SELECT k, x, x.a FROM t LATERAL VIEW explode(l) AS x",
    "both": "SELECT a.k, a.s, b.m FROM t a LEFT JOIN t b ON a.k = b.k",
    "parts": "SELECT s FROM t UNION ALL SELECT l[0] FROM t",
    "v_rows": "SELECT * FROM v",
}


def test_fields_of_structs(place: DynamicPlace) -> None:
    columns = "k INT, s STRUCT<a: INT>, l ARRAY<STRUCT<a: INT>>, m MAP<STRING, STRUCT<a: INT>>"
    place.run(
        "DROP TABLE t",
        f"CREATE TABLE t ({columns}) USING DELTA {WIDENING}",
        "INSERT INTO t SELECT 1, s, array(s), map('x', s) FROM (SELECT named_struct('a', 1) AS s)",
        "INSERT INTO t VALUES (2, NULL, NULL, NULL), (3, NULL, array(NULL), map('x', NULL))",
        "CREATE VIEW v AS SELECT k, s FROM t",
    )
    for name, query in FIELDS.items():
        place.create(query, name)
    place.run(
        "CREATE STREAM st ON DYNAMIC TABLE d", "CREATE STREAM sdd ON DYNAMIC TABLE dd", "CREATE STREAM sv ON VIEW v"
    )
    place.run(
        "INSERT INTO t SELECT 4, s, array(s), map('x', s) FROM (SELECT named_struct('a', 1) AS s)",
        "ALTER TABLE t ADD COLUMNS (s.b INT, l.element.b INT, m.value.b INT)",
        "INSERT INTO t SELECT 5, s, array(s), map('x', s) FROM (SELECT named_struct('a', 1, 'b', 2) AS s)",
    )
    # Spark itself cannot read the view: it casts the struct to the type that the view was made with.
    refused = place.refused("REFRESH DYNAMIC TABLE v_rows")
    assert (refused.code, "with the same text" in refused.hint) == ("STREAM_SOURCE_MISSING", True)
    assert "with the same text" in place.refused("SELECT * FROM sv").hint
    place.run("CREATE OR REPLACE VIEW v AS SELECT k, s FROM t")
    assert place.bag("SELECT __change_type, k, s.b FROM sv") == {("INSERT", 4, None): 1, ("INSERT", 5, 2): 1}
    check_fields(place)
    assert place.bag("SELECT __change_type, k, s.b, l[0].b, m['x'].b FROM st") == {
        ("INSERT", 4, None, None, None): 1,
        ("INSERT", 5, 2, 2, 2): 1,
    }
    assert place.bag("SELECT __change_type, k, s.b FROM sdd") == {("INSERT", 4, None): 1, ("INSERT", 5, 2): 1}
    place.run(
        "ALTER TABLE t ALTER COLUMN s.a TYPE BIGINT",
        "ALTER TABLE t ALTER COLUMN l.element.a TYPE DOUBLE",
        "ALTER TABLE t ALTER COLUMN s.b FIRST",
        "CREATE OR REPLACE VIEW v AS SELECT k, s FROM t",
        "UPDATE t SET s.a = 3000000000 WHERE k = 5",
    )
    place.run("DROP DYNAMIC TABLE parts")  # a UNION ALL of s and an element of l is no query any more
    check_fields(place, [name for name in FIELDS if name != "parts"])
    place.run("ALTER TABLE t DROP COLUMN s.b")
    said = f"column s.b of {place.schema}.d is INT, and the query no longer has it"
    assert place.refused("REFRESH DYNAMIC TABLE d").message == said


def check_fields(place: DynamicPlace, names: list[str] | None = None) -> None:
    for name in names or list(FIELDS):
        place.refresh(name)
        want, have = (sorted(map(str, place.run(text))) for text in (FIELDS[name], f"SELECT * FROM {name}"))
        assert want == have, name
        assert place.verify(name)[0] == "EQUAL", name


def test_a_refresh_that_dies_between_the_new_type_and_the_view(place: DynamicPlace) -> None:
    """Spark casts the columns of a view to the types that it was made with."""
    place.run("DROP TABLE t", f"CREATE TABLE t (k INT, n INT) USING DELTA {WIDENING}", "INSERT INTO t VALUES (1, 2)")
    place.run("CREATE DYNAMIC TABLE d (k COMMENT 'the key', n) AS SELECT k, n FROM t")
    place.run("ALTER TABLE t ALTER COLUMN n TYPE BIGINT", "INSERT INTO t VALUES (2, 3000000000)")
    place.write("ALTER TABLE {d} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    place.write("ALTER TABLE {d} ALTER COLUMN n TYPE BIGINT")
    place.refresh()
    assert place.bag("SELECT * FROM d") == {(1, 2): 1, (2, 3000000000): 1}
    assert place.bag("DESCRIBE d") == {("k", "int", "the key"): 1, ("n", "bigint", None): 1}


FAILURES = {
    "SELECT id, 10 / v AS x FROM t": "DIVIDE_BY_ZERO",
    "SELECT id, CAST(v + 3000000000 AS INT) AS x FROM t": "CAST_OVERFLOW",
    "SELECT id, CAST(concat('a', v) AS INT) AS x FROM t": "CAST_INVALID_INPUT",
    "SELECT id, array(1)[v + 1] AS x FROM t": "INVALID_ARRAY_INDEX",
    "SELECT sum(v + 9223372036854775807) AS x FROM t": "ARITHMETIC_OVERFLOW",
}


def test_errors_of_the_query_name_the_table(place: DynamicPlace) -> None:
    """In statements, for a table that is filled and for one with rows, and in the history."""
    for query, condition in FAILURES.items():
        place.run("DELETE FROM t", f"CREATE DYNAMIC TABLE d AS {query}", "INSERT INTO t VALUES (1, 0), (2, 1)")
        named = f"the query of {place.schema}.d cannot be computed: [{condition}"
        for statement in ("REFRESH DYNAMIC TABLE d", f"CREATE OR REPLACE DYNAMIC TABLE d AS {query}"):
            refused = place.refused(statement)
            assert refused.code == "DYNAMIC_TABLE_REFRESH_FAILED", query
            assert refused.message.startswith(named), refused.message
        assert place.history()[0]["error"].startswith(f"[{condition}"), query
        with pytest.raises(Exception, match=condition) as raised:  # the same from Spark's own front end
            place.spark.sql("REFRESH DYNAMIC TABLE d")
        assert not isinstance(raised.value, StreamqlError)
        assert raised.value.getCondition() == "DYNAMIC_TABLE_REFRESH_FAILED"  # type: ignore[attr-defined]
        assert "Traceback" not in str(raised.value)
        place.run("DROP DYNAMIC TABLE d")


def test_a_view_that_casts_a_wider_column(place: DynamicPlace) -> None:
    """A view has the types that it was made with. A dynamic table over it equals its query, and says where a value does not fit."""
    place.run(
        "DROP TABLE t",
        f"CREATE TABLE t (k INT, n INT) USING DELTA {WIDENING}",
        "CREATE VIEW v AS SELECT k, n FROM t",
    )
    place.create("SELECT * FROM v")
    place.run("ALTER TABLE t ALTER COLUMN n TYPE BIGINT", "INSERT INTO t VALUES (2, 3000000000)")
    assert "CAST_OVERFLOW" in place.refused("REFRESH DYNAMIC TABLE d").message
    place.run("CREATE OR REPLACE VIEW v AS SELECT k, n FROM t")
    assert place.refresh()["d"][0] == "REFRESHED"
    assert place.bag("SELECT * FROM d") == {(2, 3000000000): 1}
