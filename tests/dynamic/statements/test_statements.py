"""The statements about dynamic tables and materialized views: what they make, say and take away."""

from __future__ import annotations

from tests.dynamic.support import HISTORY, DynamicPlace

GROUPED = "SELECT v, count(*) AS n FROM t GROUP BY v"


def test_create_fills_the_table(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10), (2, 10), (3, 20)")
    place.create(GROUPED, clauses="(k COMMENT 'the value', number) TARGET_LAG = '10 minutes' COMMENT 'by value'")
    assert place.bag("SELECT * FROM d") == {(10, 2): 1, (20, 1): 1}
    assert [(r[0], r[2]) for r in place.run("DESCRIBE d")] == [("k", "the value"), ("number", None)]
    facts = place.facts()
    expected = {
        "name": f"{place.schema}.d",
        "type": "DYNAMIC TABLE",
        "state": "ACTIVE",
        "lag_seconds": "0",
        "has_changes": "false",
        "refresh_mode": "AUTO",
        "reads": None,
        "refreshing_now": "false",
        "last_outcome": "REFRESHED",
        "last_error": None,
        "columns": "k, number",
        "row_key": "k",
        "stored_in": place.backing(),
        "comment": "by value",
        "query": GROUPED,
    }
    assert {k: facts[k] for k in expected} == expected
    assert facts["target_lag"] == "10 minutes"
    assert place.versions() == {"t": place.latest("t")}
    assert place.verify() == ("EQUAL", 2, 0, 0)


def test_show(place: DynamicPlace) -> None:
    place.create(GROUPED, clauses="TARGET_LAG = DOWNSTREAM")
    place.create("SELECT n FROM d", name="d2", clauses="REFRESH INTERVAL 5 MINUTE")
    place.run("CREATE MATERIALIZED VIEW m BUILD DEFERRED AS SELECT id FROM t")
    rows = place.run("SHOW DYNAMIC TABLES")
    assert rows[0].__fields__ == [
        *("name", "schema_name", "state", "target_lag", "lag_seconds", "has_changes", "refresh_mode"),
        *("last_refresh", "last_outcome", "reads", "comment", "create_time", "query", "reason"),
    ]
    assert [(r["name"], r["state"], r["target_lag"], r["reads"]) for r in rows] == [
        ("d", "ACTIVE", "DOWNSTREAM", None),
        ("d2", "ACTIVE", "every 5 minutes", f"{place.schema}.d"),
    ]
    assert {r["reason"] for r in rows} == {None}
    (view,) = place.run("SHOW MATERIALIZED VIEWS")
    assert view["reason"] == "it was never filled, or all of it is to be computed again"
    assert (view["name"], view["state"], view["has_changes"], view["last_refresh"]) == ("m", "EMPTY", True, None)
    assert [r["name"] for r in place.run("SHOW DYNAMIC TABLES LIKE '*2'")] == ["d2"]
    assert [r["name"] for r in place.run("SHOW DYNAMIC TABLES WHERE target_lag = 'DOWNSTREAM'")] == ["d"]
    assert len(place.run("SHOW DYNAMIC TABLES LIMIT 1")) == 1
    created = place.value("SHOW CREATE DYNAMIC TABLE d")
    assert created == f"CREATE DYNAMIC TABLE d TARGET_LAG = DOWNSTREAM AS {GROUPED}"
    assert [r["name"] for r in place.run(f"{HISTORY} WHERE outcome = 'REFRESHED' LIMIT 5") if place.schema in r["name"]]
    assert place.run("SHOW MATERIALIZED VIEW REFRESH HISTORY FOR m") == []


def test_the_history_says_what_a_refresh_did(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)")
    place.create("SELECT id, v FROM t")
    place.run("UPDATE t SET v = 11 WHERE id = 1", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (3, 30), (4, 40)")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 2, 1, 1)}
    last, first = place.history()
    assert (first["reason"], *first[7:10]) == ("the first refresh", 2, 0, 0)
    assert (last["outcome"], last["mode"], last["reason"], *last[7:10]) == (
        "REFRESHED",
        "INCREMENTAL",
        "its sources changed",
        2,
        1,
        1,
    )
    assert last["source_versions"] == f'{{"spark_catalog.{place.schema}.t": {place.latest("t")}}}'
    assert last["table_version"] == first["table_version"] + 1
    assert last["error"] is None
    assert last["duration_ms"] >= 0


def test_on_schedule(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10)")
    place.create("SELECT id FROM t", clauses="INITIALIZE = ON_SCHEDULE")
    assert place.run("SELECT * FROM d") == []
    assert place.facts()["state"] == "EMPTY"
    assert place.refused("VERIFY DYNAMIC TABLE d").code == "DYNAMIC_TABLE_NOT_VERIFIABLE"
    said = {r[0]: r[1] for r in place.run("EXPLAIN REFRESH DYNAMIC TABLE d")}
    assert (said["outcome"], said["mode"], said["reason"]) == ("REFRESHED", "FULL", "the first refresh")
    assert place.run("SELECT * FROM d") == []
    assert place.refresh() == {"d": ("REFRESHED", "the first refresh", 1, 0, 0)}
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
    said = {r[0]: r[1] for r in place.run("EXPLAIN REFRESH DYNAMIC TABLE d")}
    assert (said["outcome"], said["mode"], said["reason"]) == ("UNCHANGED", None, None)


def test_if_not_exists_and_or_replace(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10)")
    place.create("SELECT id FROM t")
    place.run("CREATE STREAM s ON DYNAMIC TABLE d")
    backing = place.backing()
    assert place.refused("CREATE DYNAMIC TABLE d AS SELECT v FROM t").code == "NAME_ALREADY_IN_USE"
    place.run("CREATE DYNAMIC TABLE IF NOT EXISTS d AS SELECT v FROM t")
    assert place.backing() == backing
    place.run("CREATE OR REPLACE DYNAMIC TABLE d AS SELECT v FROM t")
    assert place.bag("SELECT * FROM d") == {(10,): 1}
    assert place.refused("SELECT * FROM s").code == "STREAM_SOURCE_REPLACED"
    assert place.backing() != backing
    assert backing.rpartition(".")[2] not in place.tables()
    place.run("CREATE OR REPLACE MATERIALIZED VIEW d AS SELECT id + v AS x FROM t")
    assert place.bag("SELECT * FROM d") == {(11,): 1}


def test_a_replacement_that_cannot_be_made_leaves_the_table(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10)")
    place.create("SELECT id FROM t", clauses="(x COMMENT 'it')")
    place.create("SELECT x + 1 AS y FROM d", name="d2")
    before = place.tables()
    for query in (
        "SELECT x FROM d",
        "SELECT y FROM d2",
        "SELECT no_such FROM t",
        "SELECT id AS __dynamic_key_1 FROM t",
        "SELECT CAST(raise_error('no') AS BIGINT) AS x FROM t",
    ):
        try:
            place.run(f"CREATE OR REPLACE DYNAMIC TABLE d AS {query}")
        except Exception:
            assert place.tables() == before
            assert place.bag("SELECT * FROM d") == {(1,): 1}
            assert place.verify() == ("EQUAL", 1, 0, 0)
        else:
            raise AssertionError(query)


def test_a_first_refresh_that_fails_leaves_nothing(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 0)")
    before = place.tables()
    assert "DIVIDE_BY_ZERO" in place.refused("CREATE DYNAMIC TABLE d AS SELECT 1 / v AS x FROM t").message
    assert place.tables() == before
    place.create("SELECT v AS x FROM t")


def test_drop(place: DynamicPlace) -> None:
    before = place.tables()
    place.create("SELECT id FROM t")
    place.run("CREATE STREAM s ON TABLE d")
    assert place.refused("DROP MATERIALIZED VIEW d").code == "DYNAMIC_TABLE_NOT_FOUND"
    place.run("DROP DYNAMIC TABLE d", "DROP DYNAMIC TABLE IF EXISTS d")
    assert place.tables() == before
    assert place.refused("SELECT * FROM s").code == "STREAM_SOURCE_MISSING"
    assert place.refused("DROP DYNAMIC TABLE d").code == "DYNAMIC_TABLE_NOT_FOUND"
    place.create("SELECT v FROM t")
    assert place.refused("SELECT * FROM s").code == "STREAM_SOURCE_REPLACED"


def test_rename(place: DynamicPlace) -> None:
    place.run("INSERT INTO t VALUES (1, 10)")
    place.create("SELECT id FROM t", clauses="(x COMMENT 'it')")
    place.run("CREATE STREAM s ON DYNAMIC TABLE d")
    place.create("SELECT x FROM d", name="d2")
    place.run("ALTER DYNAMIC TABLE d RENAME TO e", "INSERT INTO t VALUES (2, 20)")
    assert "d" not in place.tables()
    assert place.refresh("d2").keys() == {"e", "d2"}
    assert place.bag("SELECT * FROM e") == place.bag("SELECT * FROM d2") == {(1,): 1, (2,): 1}
    assert [(r[0], r[2]) for r in place.run("DESCRIBE e")] == [("x", "it")]
    assert place.bag("SELECT x, METADATA$ACTION FROM s") == {(2, "INSERT"): 1}
    assert place.verify("d2") == ("EQUAL", 2, 0, 0)
    assert len(place.history("e")) == 2
    assert place.refused("ALTER DYNAMIC TABLE e RENAME TO t").code == "NAME_ALREADY_IN_USE"
    assert place.refused("ALTER DYNAMIC TABLE e RENAME TO s").code == "NAME_ALREADY_IN_USE"
    assert place.refused("ALTER DYNAMIC TABLE e RENAME TO default.e").code == "UNSUPPORTED_CLAUSE"


def test_alter(place: DynamicPlace) -> None:
    place.create("SELECT id FROM t", clauses="(x COMMENT 'it')")
    place.create("SELECT x FROM d", name="d2")
    place.run("ALTER DYNAMIC TABLE d SUSPEND")
    assert place.facts()["state"] == "SUSPENDED"
    place.run("INSERT INTO t VALUES (1, 10)")
    assert place.refused("REFRESH DYNAMIC TABLE d2").code == "DYNAMIC_TABLE_SUSPENDED"
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 0, 0)}
    place.run("ALTER DYNAMIC TABLE d RESUME")
    assert place.refresh("d2")["d2"] == ("REFRESHED", "its sources changed", 1, 0, 0)
    place.run("ALTER DYNAMIC TABLE d SET COMMENT 'more'")
    assert place.facts()["comment"] == "more"
    assert [(r[0], r[2]) for r in place.run("DESCRIBE d")] == [("x", "it")]
    place.run("ALTER DYNAMIC TABLE d SET TARGET_LAG = DOWNSTREAM")
    assert place.facts()["target_lag"] == "DOWNSTREAM"
    place.run("ALTER DYNAMIC TABLE d UNSET TARGET_LAG")
    assert place.facts()["target_lag"] is None
    place.run("ALTER DYNAMIC TABLE d SET REFRESH_MODE = FULL")
    assert place.facts()["refresh_mode"] == "FULL"
    place.run("ALTER DYNAMIC TABLE d REFRESH", "ALTER DYNAMIC TABLE IF EXISTS nothing SUSPEND")
    assert place.refused("ALTER DYNAMIC TABLE nothing SUSPEND").code == "DYNAMIC_TABLE_NOT_FOUND"


def test_names_of_columns(place: DynamicPlace) -> None:
    """Those that Spark gives to expressions, those that CREATE gives to columns of one name, and those with odd characters."""
    place.run("INSERT INTO t VALUES (1, 10)", "INSERT INTO u VALUES (1, 'a')")
    place.create("SELECT v, count(*) FROM t GROUP BY v")
    assert place.bag("SELECT `count(1)` FROM d") == {(1,): 1}
    place.create("SELECT t.id, u.id, w FROM t JOIN u ON t.id = u.id", name="d2", clauses="(one, `an other`, `größe`)")
    assert place.bag("SELECT one, `an other`, `größe` FROM d2") == {(1, 1, "a"): 1}
    place.create("SELECT id, id, id FROM (SELECT id FROM t GROUP BY id, id)", name="d3", clauses="(a, b, c)")
    place.run("INSERT INTO t VALUES (2, 10)", "UPDATE u SET w = 'b'")
    for name, rows in (("d", 1), ("d2", 1), ("d3", 2)):
        place.refresh(name)
        assert place.verify(name) == ("EQUAL", rows, 0, 0)
