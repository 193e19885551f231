"""Columns, functions and views by which the text of a dynamic table's query means something else than at its last refresh."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.consume.support import TRACKED
from tests.dynamic.support import DynamicPlace
from tests.histories.recording import conf

pytestmark = pytest.mark.usefixtures("quick")

UTC = (("spark.sql.session.timeZone", "UTC"),)
MEANING = "columns of its tables or parameters of its functions have changed what its query means"


@pytest.mark.parametrize(
    ("query", "statements"),
    [
        (
            "SELECT id, to_csv(struct(*)) AS x FROM n",
            ("ALTER TABLE n ADD COLUMN c INT", "INSERT INTO n VALUES (9, 9, 9)"),
        ),
        ("SELECT id, to_json(struct(*)) AS x FROM n", ("ALTER TABLE n RENAME COLUMN k TO l",)),
        (
            "SELECT l.id FROM n AS l NATURAL JOIN t",
            ("ALTER TABLE n ADD COLUMN v BIGINT", "INSERT INTO n VALUES (1, 9, 10)"),
        ),
        (
            "SELECT * FROM n UNION ALL SELECT id, v FROM t",
            ("ALTER TABLE n ALTER COLUMN k FIRST", "INSERT INTO n VALUES (7, 8)"),
        ),
        ("SELECT id, k FROM n EXCEPT TABLE m", ("ALTER TABLE m ALTER COLUMN b FIRST",)),
        ("SELECT id FROM n WHERE (id, k) IN (TABLE m)", ("ALTER TABLE m ALTER COLUMN b FIRST",)),
        ("SELECT DISTINCT * FROM n", ("ALTER TABLE n ALTER COLUMN k FIRST", "INSERT INTO n VALUES (7, 8)")),
        (
            "SELECT x.id, x.k, u.w FROM (SELECT DISTINCT * FROM n) x JOIN u ON x.id = u.id",
            ("ALTER TABLE n ALTER COLUMN k FIRST",),
        ),
        ("SELECT id, k AS x, x + 1 AS y FROM n", ("ALTER TABLE n ADD COLUMN x INT", "UPDATE n SET x = 5")),
        (
            "SELECT id FROM n WHERE EXISTS (SELECT 1 FROM u WHERE w = 'b' AND k = 1)",
            ("ALTER TABLE u ADD COLUMN k INT", "UPDATE u SET k = 2"),
        ),
        (
            "SELECT id, of_two(1, k) AS x FROM n",
            ("CREATE OR REPLACE FUNCTION of_two(b INT, a INT) RETURNS INT RETURN a - b",),
        ),
        (
            "SELECT id, of_one(k) AS x FROM n",
            (
                "CREATE OR REPLACE FUNCTION of_one(a INT, b INT DEFAULT 5) RETURNS INT RETURN a - b",
                "INSERT INTO n VALUES (9, 9)",
            ),
        ),
        (
            "SELECT id, x FROM zoned",
            (
                "SET TIME ZONE 'Asia/Tokyo'",
                "CREATE OR REPLACE VIEW zoned AS SELECT id, hour(timestamp_seconds(k)) AS x FROM n",
            ),
        ),
        (
            "SELECT id FROM early",
            (
                "SET TIME ZONE 'Asia/Tokyo'",
                "CREATE OR REPLACE VIEW early AS SELECT id FROM n WHERE timestamp_seconds(k) < TIMESTAMP '1970-01-01 00:00:10'",
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_query_that_means_something_else(place: DynamicPlace, query: str, statements: tuple[str, ...]) -> None:
    """Its text is the same. What Spark makes of it is not, so that rows which no commit has written have other values."""
    mapped = TRACKED.replace("(", "('delta.columnMapping.mode' = 'name', ", 1)
    with conf(place.spark, UTC):
        place.run(
            f"CREATE TABLE n (id BIGINT, k INT) USING DELTA {mapped}",
            "INSERT INTO n VALUES (1, 1), (2, 20)",
            "INSERT INTO t VALUES (1, 10), (2, 20)",
            "INSERT INTO u VALUES (1, 'a'), (2, 'b')",
            f"CREATE TABLE m (a BIGINT, b BIGINT) USING DELTA {mapped}",
            "INSERT INTO m VALUES (1, 1), (20, 2)",
            "CREATE FUNCTION of_two(a INT, b INT) RETURNS INT RETURN a - b",
            "CREATE FUNCTION of_one(a INT, b INT DEFAULT 2) RETURNS INT RETURN a - b",
            "CREATE VIEW early AS SELECT id FROM n WHERE timestamp_seconds(k) < TIMESTAMP '1970-01-01 00:00:10'",
            "CREATE VIEW zoned AS SELECT id, hour(timestamp_seconds(k)) AS x FROM n",
        )
        place.create(query)
        place.run(*statements)
        assert place.refused("VERIFY DYNAMIC TABLE d").code == "DYNAMIC_TABLE_NOT_VERIFIABLE"
        assert place.explained()["reason"] == MEANING
        assert place.refresh()["d"][:2] == ("REFRESHED", MEANING)
        assert place.history()[0]["mode"] == "FULL"
        assert place.verify()[0] == "EQUAL"
        columns = ", ".join(place.spark.table("d").columns)
        assert place.bag("SELECT * FROM d") == place.bag(f"SELECT {columns} FROM ({query})")
        assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}


def test_states_that_count_other_columns(place: DynamicPlace) -> None:
    """Values are counted of columns that may be NULL. If NOT NULL goes from one to another, the types of the states stay."""
    place.run(
        f"CREATE TABLE n (g INT, a INT NOT NULL, b INT NOT NULL) USING DELTA {TRACKED}",
        "INSERT INTO n VALUES (1, 1, 1), (1, 2, 2)",
        "ALTER TABLE n ALTER COLUMN a DROP NOT NULL",
        "INSERT INTO n VALUES (1, NULL, 3)",
    )
    place.create("SELECT g, count(a) AS a, count(b) AS b FROM n GROUP BY g", clauses="REFRESH_MODE = INCREMENTAL")
    place.run(
        "RESTORE TABLE n TO VERSION AS OF 1",
        "ALTER TABLE n ALTER COLUMN b DROP NOT NULL",
        "INSERT INTO n VALUES (1, 3, NULL)",
    )
    assert place.refresh()["d"][:2] == ("REFRESHED", MEANING)
    place.run("INSERT INTO n VALUES (1, 4, NULL)")
    place.refresh()
    assert place.history()[0]["mode"] == "INCREMENTAL"
    assert place.bag("SELECT * FROM d") == {(1, 4, 2): 1}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM (SELECT * FROM t) JOIN u USING (id)",
        "SELECT id, v, w FROM (SELECT *, id + 1 AS more FROM t) LEFT JOIN u USING (id)",
        "SELECT id, v, max(w) AS w FROM (SELECT t.*, w FROM t JOIN u USING (id) WHERE v > 0) GROUP BY id, v",
        "SELECT t.id, t.v, r.w FROM u AS r, LATERAL (SELECT * FROM t WHERE t.id = r.id) AS t",
        "SELECT id, v, w FROM u JOIN t USING (id) WHERE EXISTS (SELECT * FROM t AS x WHERE x.id = u.id)",
        "WITH x AS (SELECT * FROM t) SELECT x.id, x.v, w FROM x JOIN u ON x.id = u.id AND u.id IN (SELECT id FROM x)",
    ],
)
def test_columns_that_change_nothing(place: DynamicPlace, query: str) -> None:
    """A query that does not show a new column means what it did, also with `*`."""
    place.run("INSERT INTO t VALUES (1, 10)", "INSERT INTO u VALUES (1, 'a')")
    place.create(query, clauses="REFRESH_MODE = INCREMENTAL")
    place.run(
        "ALTER TABLE t ADD COLUMN c INT FIRST", "INSERT INTO t VALUES (7, 2, 20)", "INSERT INTO u VALUES (2, 'b')"
    )
    assert place.refresh()["d"][:3] == ("REFRESHED", "its sources changed", 1)
    assert place.history()[0]["mode"] == "INCREMENTAL"
    assert place.bag("SELECT * FROM d") == {(1, 10, "a"): 1, (2, 20, "b"): 1}


def test_hidden_keys_that_stand_for_other_columns(place: DynamicPlace) -> None:
    """All columns of a node identify its rows. Those that the query does not show have numbers."""
    place.run(f"CREATE TABLE n (a INT, b INT, c INT, d INT, s STRING) USING DELTA {TRACKED}")
    place.run("INSERT INTO n VALUES (5, 6, 1, 2, 'x')")
    place.create("SELECT a FROM (SELECT DISTINCT a, b, c, d FROM n)", clauses="REFRESH_MODE = INCREMENTAL")
    place.create("SELECT a FROM (SELECT DISTINCT * FROM n)", "typed")
    place.run("ALTER TABLE n ALTER COLUMN d AFTER b")
    assert place.refresh()["d"][0] == "UNCHANGED"
    place.refresh("typed")
    place.run("ALTER TABLE n ALTER COLUMN s AFTER a")
    for _ in range(2):
        refused = place.refused("REFRESH DYNAMIC TABLE typed")
        assert (refused.code, "other key columns" in refused.message) == ("UNSUPPORTED_SOURCE", True)


def test_hidden_keys_that_are_arrays(place: DynamicPlace) -> None:
    """Delta stores them with elements that may be NULL. Those of the query may not."""
    place.run("INSERT INTO t VALUES (1, 10)")
    place.create("SELECT count(*) AS n FROM t GROUP BY array(id, 1)")
    place.create("SELECT 1 AS one FROM t UNPIVOT INCLUDE NULLS (x FOR k IN (id, v))", "none")
    place.run("INSERT INTO t VALUES (2, 20)", "REFRESH DYNAMIC TABLE d", "REFRESH DYNAMIC TABLE none")
    assert (place.verify(), place.verify("none")) == (("EQUAL", 2, 0, 0), ("EQUAL", 4, 0, 0))


def test_hidden_keys_whose_values_would_be_rounded(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (2, 10), (3, 10)", "CREATE VIEW x AS SELECT DISTINCT id AS k, v FROM t")
    place.create("SELECT v FROM x")
    place.run("CREATE OR REPLACE VIEW x AS SELECT DISTINCT id / 2 AS k, v FROM t")
    assert place.refused("REFRESH DYNAMIC TABLE d").code == "UNSUPPORTED_SOURCE"


def test_hidden_keys_of_an_empty_table_whose_values_would_be_rounded(place: DynamicPlace) -> None:
    place.run("CREATE VIEW x AS SELECT DISTINCT id AS k, v FROM t")
    place.create("SELECT v FROM x", clauses="REFRESH_MODE = INCREMENTAL")
    place.run(
        "CREATE OR REPLACE VIEW x AS SELECT DISTINCT id / 2 AS k, v FROM t", "INSERT INTO t VALUES (2, 10), (3, 10)"
    )
    assert place.refused("REFRESH DYNAMIC TABLE d").code == "UNSUPPORTED_SOURCE"


def test_hidden_keys_beyond_what_a_double_holds(place: DynamicPlace) -> None:
    place.run(f"CREATE TABLE n (k DOUBLE, v INT) USING DELTA {TRACKED}", "INSERT INTO n VALUES (1, 1)")
    place.create("SELECT v FROM (SELECT DISTINCT k, v FROM n)")
    place.run(
        f"CREATE OR REPLACE TABLE n (k BIGINT, v INT) USING DELTA {TRACKED}",
        "INSERT INTO n VALUES (9007199254740992, 1), (9007199254740993, 1)",
    )
    assert place.refused("REFRESH DYNAMIC TABLE d").code == "UNSUPPORTED_SOURCE"


def test_hidden_keys_of_a_decimal_that_has_not_enough_digits_to_be_compared(place: DynamicPlace) -> None:
    place.run(
        "INSERT INTO t VALUES (7, 10), (3, 10)",
        "CREATE VIEW x AS SELECT DISTINCT CAST(id / 5 AS DECIMAL(38, 18)) AS k, v FROM t",
    )
    place.create("SELECT v FROM x")
    place.run("CREATE OR REPLACE VIEW x AS SELECT DISTINCT CAST(id / 5 AS DECIMAL(38, 0)) AS k, v FROM t")
    assert place.refused("REFRESH DYNAMIC TABLE d").code == "UNSUPPORTED_SOURCE"


@pytest.mark.parametrize(("narrow", "wide"), [("INT", "BIGINT"), ("DECIMAL(10, 2)", "DECIMAL(12, 2)")])
def test_hidden_keys_of_a_wider_type(place: DynamicPlace, narrow: str, wide: str) -> None:
    widening = TRACKED.replace("(", "('delta.enableTypeWidening' = 'true', ", 1)
    place.run(f"CREATE TABLE n (k {narrow}) USING DELTA {widening}", "INSERT INTO n VALUES (1), (2)")
    place.create("SELECT v FROM t UNION ALL SELECT 1 FROM (SELECT DISTINCT k FROM n)")
    place.run(f"ALTER TABLE n ALTER COLUMN k TYPE {wide}", "INSERT INTO n VALUES (3)")
    place.refresh()
    assert place.verify() == ("EQUAL", 3, 0, 0)
    place.run("DELETE FROM n WHERE k = 2")
    place.refresh()
    assert place.verify() == ("EQUAL", 2, 0, 0)


def test_unpivoted_columns_that_are_moved_and_added(place: DynamicPlace) -> None:
    place.run(f"CREATE TABLE n (a INT, b INT, c INT, d INT) USING DELTA {TRACKED}", "INSERT INTO n VALUES (5, 6, 1, 2)")
    place.create("SELECT v FROM n UNPIVOT (v FOR k IN (a, b))", clauses="REFRESH_MODE = INCREMENTAL")
    place.run("ALTER TABLE n ALTER COLUMN d AFTER b", "DELETE FROM n")
    place.refresh()
    assert place.run("SELECT * FROM d") == []
    place.run("ALTER TABLE n ADD COLUMN e INT", "INSERT INTO n (a, b, c, d, e) VALUES (1, 2, 3, 4, 5), (1, 2, 3, 4, 6)")
    place.refresh()
    assert place.verify() == ("EQUAL", 4, 0, 0)
    place.run("DELETE FROM n WHERE e = 5", "REFRESH DYNAMIC TABLE d")
    assert place.verify() == ("EQUAL", 2, 0, 0)
    assert place.history()[0]["mode"] == "INCREMENTAL"


def test_variables_in_the_text_have_the_values_of_create(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10)", "SET least = 5")
    place.create("SELECT id, v + ${least} AS v FROM t WHERE v > ${least}")
    place.run("RESET least", "INSERT INTO t VALUES (2, 20), (3, 3)", "REFRESH DYNAMIC TABLE d")
    assert place.bag("SELECT * FROM d") == {(1, 15): 1, (2, 25): 1}
    assert place.run("SHOW CREATE DYNAMIC TABLE d")[0][0].endswith("SELECT id, v + 5 AS v FROM t WHERE v > 5")


def test_text_like_a_variable_that_the_value_of_one_makes(place: DynamicPlace) -> None:
    """It is replaced once, as in any statement."""
    place.run("INSERT INTO t VALUES (1, 10)", "SET open = {least}")
    place.create("SELECT id, '$${open}' AS x FROM t")
    place.run("SET least = 5", "INSERT INTO t VALUES (2, 20)", "REFRESH DYNAMIC TABLE d")
    assert place.bag("SELECT * FROM d") == {(1, "${least}"): 1, (2, "${least}"): 1}
    place.run("RESET open", "RESET least")


def test_variables_of_the_process(spark: SparkSession, place: DynamicPlace) -> None:
    """Their values may be secrets. Without substitution, it is text like any other."""
    place.run("INSERT INTO t VALUES (1, 10)")
    create = "CREATE DYNAMIC TABLE d AS SELECT id, '${env:HOME}' AS h FROM t"
    assert place.refused(create).code == "UNSUPPORTED_CLAUSE"
    with conf(spark, (("named.otherwise", "${env" + ":HOME}"),)):
        assert place.refused(create.replace("env:HOME", "named.otherwise")).code == "UNSUPPORTED_CLAUSE"
    with conf(spark, (("spark.sql.variable.substitute", "false"),)):
        place.run(create)
    place.run("INSERT INTO t VALUES (2, 20)", "REFRESH DYNAMIC TABLE d")
    assert {row[1] for row in place.run("SELECT * FROM d")} == {"${env" + ":HOME}"}


def test_the_current_time_is_no_other_meaning(place: DynamicPlace) -> None:
    """Spark's parser replaces TIMESTAMP 'now' by the time at which it reads the query, as the query of a view is at each refresh."""
    place.run("INSERT INTO t VALUES (1, 10)", "CREATE VIEW x AS SELECT id FROM t")
    place.create("SELECT id, TIMESTAMP 'now' AS n FROM x")
    assert place.refresh() == {"d": ("REFRESHED", "its query reads the clock", 0, 1, 0)}
    place.run("INSERT INTO t VALUES (2, 20)")
    assert place.refresh()["d"][1] == "its sources changed"
    assert place.history()[0]["why_not_incremental"] == "the query uses the current time"


def test_another_session_and_moved_columns_change_nothing(place: DynamicPlace) -> None:
    """A TIMESTAMP of the query is the same one in each time zone, and a column the same one in each place."""
    with conf(place.spark, UTC):
        place.run("INSERT INTO t VALUES (1, 10)")
        place.create("SELECT id, v FROM t WHERE timestamp_seconds(v) > TIMESTAMP '1970-01-01 00:00:01'")
        place.run("SET TIME ZONE 'Asia/Tokyo'", "ALTER TABLE t ALTER COLUMN v FIRST", "INSERT INTO t VALUES (20, 2)")
        assert place.refresh()["d"][:3] == ("REFRESHED", "its sources changed", 1)
    assert place.history()[0]["mode"] == "INCREMENTAL"
    assert place.verify() == ("EQUAL", 2, 0, 0)
