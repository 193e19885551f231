"""Refreshes that follow the changes of the tables, and those that compute the whole query: which is which, and that both end equal."""

from __future__ import annotations

from dataclasses import replace

import pytest

import streamql.features.dynamic.refreshes.refresh as dynamic_refresh
import streamql.features.dynamic.statements.explain as dynamic_explain
from streamql.features.dynamic.refreshes import timings
from streamql.features.dynamic.source import costs as refresh_costs
from streamql.features.dynamic.source.backing import hidden_stream
from streamql.features.dynamic.source.costs import Timing
from tests.consume.support import path_of
from tests.dynamic.support import DynamicPlace
from tests.sample import sample

pytestmark = pytest.mark.usefixtures("quick")

SMALL = "the tables have less than 4 MB, so AUTO refreshes fully"

QUERIES = {
    "SELECT id, v * 2 AS v, upper(CAST(v AS STRING)) AS s FROM t WHERE v > 5": None,
    "SELECT v, id, id AS again FROM t ORDER BY v": None,
    "SELECT id, v FROM t UNION ALL SELECT id, w FROM u WHERE w IS NOT NULL": None,
    "SELECT * FROM (SELECT id FROM t UNION ALL SELECT v FROM t) UNION ALL (SELECT id FROM u UNION ALL SELECT w FROM u)": None,
    "WITH x AS (SELECT id AS k, v FROM t WHERE id > 1) SELECT k, v FROM x UNION ALL SELECT k, k FROM x": None,
    "SELECT /*+ REPARTITION(2) */ array(id, v) AS a, named_struct('x', v) AS b, map('k', v) AS m FROM t": None,
    "SELECT v, count(*) AS n FROM t GROUP BY v": SMALL,
    "SELECT t.id, u.w FROM t JOIN u ON t.id = u.id": SMALL,
    "SELECT id FROM t WHERE id IN (SELECT id FROM u)": SMALL,
    "SELECT id, rand() AS r FROM t": "a function whose value differs",
    "SELECT v, collect_list(id) AS ids FROM t GROUP BY v": "a function whose value may depend on the order of rows",
    "SELECT id, v FROM t ORDER BY v LIMIT 2": "has LIMIT",
}

ANY = (
    "SELECT t.id, u.w, t.v FROM t JOIN u ON t.id = u.id",
    "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.v = b.v JOIN u ON u.id = a.id",
    "SELECT t.id, u.w FROM t LEFT JOIN u ON t.id = u.id AND u.w > 9",
    "SELECT t.id, u.id AS other, v, w FROM t FULL OUTER JOIN u ON t.id = u.id",
    "SELECT v, count(*) AS n, sum(id) AS s, max(id) AS m FROM t GROUP BY v",
    "SELECT u.w, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY u.w HAVING count(*) > 0",
    "SELECT count(*) AS n, sum(v) AS s, min(id) AS m FROM t",
    "SELECT DISTINCT v FROM t",
    "SELECT id FROM t UNION SELECT id FROM u",
    "SELECT id FROM t EXCEPT SELECT id FROM u",
    "SELECT id FROM t WHERE id IN (SELECT id FROM u)",
    "SELECT id FROM t WHERE id IN (SELECT id FROM u WHERE w IN (SELECT v FROM t))",
    "SELECT id FROM t WHERE id IN (SELECT id FROM u WHERE w > (SELECT 0.5 * sum(v) FROM t AS x WHERE x.id = u.id))",
    "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id)",
    "SELECT id, (SELECT max(w) FROM u WHERE u.id = t.id) AS m FROM t",
    "SELECT * FROM (SELECT id, v, row_number() OVER (PARTITION BY v % 2 ORDER BY v, id) AS n FROM t) WHERE n = 1",
    "SELECT t.id, x.n FROM t JOIN (SELECT w, count(*) AS n FROM u GROUP BY w) x ON t.id = x.w",
    "SELECT id, e FROM t LATERAL VIEW explode(array(v, 0)) AS e",
    "SELECT t.id, x.n, x.m FROM t LEFT JOIN LATERAL (SELECT count(*) AS n, max(w) AS m FROM u WHERE u.id = t.id) x ON x.n > 0",
)
"""Queries that a refresh follows if REFRESH_MODE says so."""

WRITES = (
    "UPDATE t SET v = 3 WHERE id = 2",  # leaves the filter
    "UPDATE t SET v = 90 WHERE id = 1",  # comes into it
    "DELETE FROM t WHERE id = 3",
    "INSERT INTO t VALUES (5, NULL), (6, 60)",
    """MERGE INTO t USING (SELECT * FROM VALUES (4, 41), (7, 70) AS n(id, v)) n ON t.id = n.id
    WHEN MATCHED THEN UPDATE SET v = n.v WHEN NOT MATCHED THEN INSERT *""",
    "INSERT INTO u VALUES (1, 10), (2, NULL)",
    "OPTIMIZE t",
    "INSERT OVERWRITE t SELECT id, v + 1 FROM t",
    "ALTER TABLE t ADD COLUMN c INT",
    "RESTORE TABLE t TO VERSION AS OF 3",
    "TRUNCATE TABLE t",
    "INSERT INTO t VALUES (1, 10), (8, 80)",
)


def last_mode(place: DynamicPlace, name: str = "d") -> str | None:
    mode = place.history(name)[0]["mode"]
    assert mode is None or isinstance(mode, str)
    return mode


def explained(place: DynamicPlace, name: str = "d") -> tuple[str | None, str | None]:
    """The mode of the next refresh, and why it is not incremental."""
    said = place.explained(name)
    return said["mode"], said["why_not_incremental"]


def filled(place: DynamicPlace) -> None:
    place.run(
        "INSERT INTO t VALUES (1, 1), (2, 20)", "INSERT INTO t VALUES (3, 30), (4, 40)", "INSERT INTO u VALUES (3, 33)"
    )


def test_which_queries_are_followed(place: DynamicPlace) -> None:
    filled(place)
    names = {f"d{i}": query for i, query in enumerate(sample("modes of refreshes", list(QUERIES), 6))}
    for name, query in names.items():
        place.create(query, name)
    assert explained(place, "d0") == (None, None)
    place.run("UPDATE t SET v = 21 WHERE id = 2")
    for name, query in names.items():
        why = QUERIES[query]
        mode, said = explained(place, name)
        assert mode == ("INCREMENTAL" if why is None else "FULL"), query
        assert (said is None) if why is None else (why in str(said)), query


@pytest.mark.parametrize("query", sample("incremental refreshes of any query", list(ANY), 2), ids=list(ANY).index)
def test_any_query_is_followed(place: DynamicPlace, query: str) -> None:
    """With REFRESH_MODE = INCREMENTAL, the table equals its query after each write."""
    filled(place)
    place.create(query, clauses="REFRESH_MODE = INCREMENTAL")
    place.create(query, "w", clauses="REFRESH_MODE = FULL")
    place.run("CREATE STREAM sd ON DYNAMIC TABLE d", "CREATE STREAM sw ON DYNAMIC TABLE w")
    modes = set()
    for write in WRITES:
        place.run(write)
        followed, whole = place.refresh(), place.refresh("w")
        modes.add(last_mode(place))
        assert followed["d"][2:] == whole["w"][2:], write
        assert place.verify()[0] == "EQUAL", write
    assert modes == {"INCREMENTAL"}
    shown = "SELECT to_json(struct(* EXCEPT (__commit_version, __commit_timestamp))) FROM"
    assert place.bag(f"{shown} sd") == place.bag(f"{shown} sw")


def test_conditions_of_the_tables_are_below_the_join_of_a_subquery(place: DynamicPlace) -> None:
    """Otherwise each changed row of t is joined with all rows of u."""
    filled(place)
    where = "t.id = u.id AND t.v > (SELECT 0.2 * avg(x.v) FROM t AS x WHERE x.id = u.id)"
    place.create(f"SELECT sum(t.v) AS s FROM t, u WHERE {where}", clauses="REFRESH_MODE = INCREMENTAL")
    place.run(WRITES[0])
    operators = [text.lstrip("+-: ").partition(":")[0] for text in place.operators()]
    assert operators[:3] == ["AGGREGATE", "LEFT OUTER JOIN", "INNER JOIN"]
    place.refresh()
    assert place.verify()[0] == "EQUAL"


def test_an_exists_within_a_condition_is_explained_and_followed(place: DynamicPlace) -> None:
    filled(place)
    query = (
        "SELECT id, EXISTS (SELECT 1 FROM u WHERE u.id = t.id) AS known FROM t WHERE v > 15 OR v IN (SELECT w FROM u)"
    )
    place.create(query, clauses="REFRESH_MODE = INCREMENTAL")
    place.run(WRITES[0], "DELETE FROM u WHERE id = 3")
    assert place.operators()[0] == "EXISTENCE JOIN: computes all rows again whose join key a change affects"
    place.refresh()
    assert place.bag("SELECT * FROM d") == place.bag(query)


def test_a_table_with_a_change_data_feed_is_refreshed(place: DynamicPlace) -> None:
    """Delta's MERGE writes it, because the feed needs files that a refresh does not write by itself."""
    filled(place)
    place.create("SELECT v, count(*) AS n FROM t GROUP BY v", clauses="REFRESH_MODE = INCREMENTAL")
    backing = place.backing()
    place.write("ALTER TABLE {d} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    version = place.run(f"DESCRIBE HISTORY {backing} LIMIT 1")[0]["version"]
    place.run("INSERT INTO t VALUES (77, 777)")
    place.refresh()
    assert place.verify()[0] == "EQUAL"
    types = [row[0] for row in place.run(f"SELECT _change_type FROM table_changes('{backing}', {version + 1})")]
    assert types == ["insert"]


def test_auto_follows_large_tables(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the sizes of files: that of the other table, if one of two has changed."""
    place.run("INSERT INTO t SELECT id, id FROM range(20000)", "INSERT INTO u VALUES (1, 10), (3, 30)")
    place.create("SELECT t.id, u.w FROM t JOIN u ON t.id = u.id")
    groups = "SELECT v, count(DISTINCT id) AS n FROM t GROUP BY v"
    place.create(groups, "once")
    place.create(f"SELECT n, count(DISTINCT v) AS m FROM ({groups}) GROUP BY n", "twice")
    place.create("SELECT v, count(*) AS n FROM t GROUP BY v", "states")
    place.run("INSERT INTO t VALUES (3, 1)")
    assert explained(place) == ("FULL", SMALL)
    monkeypatch.setattr(refresh_costs, "SMALL_BYTES", 0)
    assert explained(place) == ("INCREMENTAL", None)
    assert explained(place, "once") == ("INCREMENTAL", None)
    mode, why = explained(place, "twice")
    assert (mode, "an incremental refresh would read" in str(why)) == ("FULL", True), why
    assert explained(place, "states") == ("INCREMENTAL", None)
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 0, 0)}
    assert last_mode(place) == "INCREMENTAL"
    assert place.verify()[0] == "EQUAL"


def in_ledger(place: DynamicPlace) -> list[Timing]:
    """How long the refreshes took, by the ledger."""
    uid = place.found().stream_id
    return timings._read(place.spark, [uid])[uid]


def test_a_process_remembers_its_refreshes(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the ledger once, for all tables, and again after another process has refreshed one."""
    place.run("INSERT INTO t SELECT id, id FROM range(20000)", "INSERT INTO u VALUES (1, 10), (3, 30)")
    place.create("SELECT t.id, u.w FROM t JOIN u ON t.id = u.id")
    place.create("SELECT u.id, u.w FROM u JOIN t ON t.id = u.id", "other")
    monkeypatch.setattr(refresh_costs, "SMALL_BYTES", 0)
    monkeypatch.setattr(timings, "_known", {})
    reads: list[int] = []
    read = timings._read
    monkeypatch.setattr(timings, "_read", lambda *arguments: (reads.append(1), read(*arguments))[1])
    for n in range(3):
        place.run(f"INSERT INTO t VALUES (3, {n})")
        place.refresh()
        place.refresh("other")
    assert len(reads) == 1
    known = timings.timings_of(place.spark, place.found(), hidden_stream(place.spark, place.found()))
    assert len(reads) == 1
    assert [replace(t, duration_ms=0) for t in known] == [replace(t, duration_ms=0) for t in in_ledger(place)]
    table = place.found()
    timings._known[table.stream_id] = (timings._known[table.stream_id][0] - 2, [])
    place.run("INSERT INTO t VALUES (3, 9)")
    place.refresh()
    assert len(reads) == 3
    assert len(timings._known[table.stream_id][1]) == 5


def test_auto_learns_from_the_refreshes_before(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the last refreshes had both modes, it compares how long they took."""
    place.run("INSERT INTO t SELECT id, id FROM range(20000)", "INSERT INTO u VALUES (1, 10), (3, 30)")
    place.create("SELECT t.id, u.w FROM t JOIN u ON t.id = u.id")
    monkeypatch.setattr(refresh_costs, "SMALL_BYTES", 0)
    place.run("INSERT INTO t VALUES (3, 1)")
    place.refresh()
    known = in_ledger(place)
    assert [(t.mode, t.bytes is None, t.is_first) for t in known] == [
        ("INCREMENTAL", False, False),
        ("FULL", True, True),
    ]
    known = [known[0], known[0], replace(known[1], is_first=False)]
    for slower, mode in (("INCREMENTAL", "FULL"), ("FULL", "INCREMENTAL")):
        place.run("INSERT INTO t VALUES (3, 2)")
        told = [replace(t, duration_ms=100_000 if t.mode == slower else 1000) for t in known]
        for reader in (dynamic_refresh, dynamic_explain):
            monkeypatch.setattr(reader, "timings_of", lambda *_, told=told: told)
        said = place.explained("d")
        assert said["mode"] == mode
        assert said[f"estimated time, {slower.lower()}"] == "100.0 s"
        times = ("100.0 s", "1.0 s") if mode == "FULL" else ("1.0 s", "100.0 s")
        why = f"by the last refreshes, an incremental refresh would take {times[0]}, and a full one {times[1]}"
        whys = (said["why_not_incremental"], said["why_incremental"])
        assert whys == ((why, None) if mode == "FULL" else (None, why))
        place.refresh()
        assert last_mode(place) == mode
        assert place.verify()[0] == "EQUAL"
    assert [(t.mode, t.bytes is None) for t in in_ledger(place)][:2] == [
        ("INCREMENTAL", False),
        ("FULL", False),
    ]


@pytest.mark.parametrize("number", sample("incremental refreshes", range(3), 1))
def test_writes_are_followed(place: DynamicPlace, number: int) -> None:
    """The table equals its query after each write, and its stream shows as much as that of its twin, which is computed whole."""
    query = [query for query, why in QUERIES.items() if why is None][number * 2 + 1]
    filled(place)
    place.create(query, "d")
    place.create(query, "w", clauses="REFRESH_MODE = FULL")
    place.run("CREATE STREAM sd ON DYNAMIC TABLE d", "CREATE STREAM sw ON DYNAMIC TABLE w")
    for i, write in enumerate(WRITES):
        place.run(write)
        if i % 3 == number:  # two writes in one refresh
            continue
        (followed,), (whole,) = (place.run(f"REFRESH DYNAMIC TABLE {name}") for name in "dw")
        assert (followed["mode"], whole["mode"]) in ((None, None), ("INCREMENTAL", "FULL")), f"{write}\n{query}"
        assert followed[4:7] == whole[4:7], f"{write}\n{query}"
        assert place.bag("SELECT to_json(struct(*)) FROM d") == place.bag("SELECT to_json(struct(*)) FROM w"), (
            f"{write}\n{query}"
        )
    assert place.verify("d")[0] == "EQUAL"
    shown = "SELECT to_json(struct(* EXCEPT (__commit_version, __commit_timestamp))) FROM"
    assert place.bag(f"{shown} sd") == place.bag(f"{shown} sw")


def test_only_what_changed_is_read(place: DynamicPlace) -> None:
    """A data file of the source that no change touches is not read."""
    filled(place)
    place.create("SELECT id, v + 1 AS v FROM t WHERE id <> 9")
    untouched = {row[0] for row in place.run("SELECT DISTINCT _metadata.file_path FROM t WHERE id = 1")}
    place.run("UPDATE t SET v = 31 WHERE id = 3", "DELETE FROM t WHERE id = 4", "INSERT INTO t VALUES (9, 9), (10, 10)")
    (path,) = untouched
    file = path_of(place.spark, f"{place.schema}.t") / str(path).rpartition("/")[2]
    kept = file.read_bytes()
    file.unlink()
    try:
        assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 1, 1)}
    finally:
        file.write_bytes(kept)
    assert last_mode(place) == "INCREMENTAL"
    assert place.verify()[0] == "EQUAL"


def test_a_change_that_the_query_does_not_show(place: DynamicPlace) -> None:
    filled(place)
    place.create("SELECT id FROM t WHERE v > 25")
    place.run("UPDATE t SET v = v + 1", "DELETE FROM t WHERE id = 1")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 0, 0, 0)}
    assert last_mode(place) == "INCREMENTAL"
    assert place.verify() == ("EQUAL", 2, 0, 0)


def test_a_table_that_was_written_by_others_is_computed(place: DynamicPlace) -> None:
    filled(place)
    place.create("SELECT id, v FROM t")
    place.write("DELETE FROM {d} WHERE id = 1")
    place.run("UPDATE t SET v = 21 WHERE id = 2")
    assert explained(place) == ("FULL", "another statement wrote into the table")
    assert place.refresh() == {"d": ("REFRESHED", "another statement wrote into the table", 1, 1, 0)}
    assert last_mode(place) == "FULL"
    place.run("UPDATE t SET v = 22 WHERE id = 2")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 0, 1, 0)}
    assert last_mode(place) == "INCREMENTAL"
    assert place.verify()[0] == "EQUAL"


def test_without_history_the_query_is_computed(place: DynamicPlace) -> None:
    """A file that VACUUM removed held rows that were deleted."""
    filled(place)
    place.create("SELECT id, v FROM t")
    place.run("INSERT OVERWRITE t VALUES (1, 2)", "INSERT OVERWRITE t VALUES (1, 3), (2, 4)")
    place.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    location = path_of(place.spark, f"{place.schema}.t")
    for file in location.glob("*.parquet"):
        if place.spark.read.parquet(str(file)).filter("v in (2, 20, 30)").head(1):
            file.unlink()
    mode, why = explained(place)
    assert (mode, "VACUUM removed" in str(why)) == ("FULL", True), why
    assert place.refresh()["d"][:2] == ("REFRESHED", "its sources changed")
    assert place.verify() == ("EQUAL", 2, 0, 0)


def test_a_column_that_becomes_another_one(place: DynamicPlace) -> None:
    """All its values are NULL, also in rows that no commit has written."""
    place.run(
        "CREATE TABLE m (id BIGINT, v INT) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableRowTracking' = 'true', "
        "'delta.enableInCommitTimestamps' = 'true')",
        "INSERT INTO m VALUES (1, 10), (2, 20)",
    )
    place.create("SELECT id, v FROM m")
    place.run("UPDATE m SET v = 11 WHERE id = 1", "ALTER TABLE m DROP COLUMN v", "ALTER TABLE m ADD COLUMN v INT")
    place.run("UPDATE m SET v = 22 WHERE id = 2")
    assert explained(place) == ("FULL", f"columns of {place.schema}.m were replaced, or their types were changed")
    place.refresh()
    assert place.verify()[0] == "EQUAL"
    assert place.bag("SELECT id, v FROM d") == place.bag("SELECT id, v FROM m")
    place.run("ALTER TABLE m ADD COLUMN w INT", "UPDATE m SET w = 1, v = 5 WHERE id = 1")
    assert explained(place) == ("INCREMENTAL", None)
    place.refresh()
    assert place.verify()[0] == "EQUAL"


def test_the_mode_is_asked_for(place: DynamicPlace) -> None:
    filled(place)
    place.create("SELECT id, v FROM t", clauses="REFRESH_MODE = INCREMENTAL")
    assert place.facts()["refresh_mode"] == "INCREMENTAL"
    place.run("UPDATE t SET v = 21 WHERE id = 2")
    assert explained(place) == ("INCREMENTAL", None)
    place.run("ALTER DYNAMIC TABLE d SET REFRESH_MODE = FULL")
    assert explained(place) == ("FULL", "REFRESH_MODE is FULL")
    place.run("ALTER DYNAMIC TABLE d SET REFRESH_MODE = INCREMENTAL")
    assert explained(place) == ("INCREMENTAL", None)
    place.create("SELECT id FROM t LIMIT 1", "g")
    refused = place.refused("ALTER DYNAMIC TABLE g SET REFRESH_MODE = INCREMENTAL")
    assert (refused.code, "has LIMIT" in refused.message) == ("UNSUPPORTED_CLAUSE", True)


KEYS = (
    "id",
    "upper(concat('k', id))",
    "if(id % 3 = 0, NULL, CAST(id AS DECIMAL(20, 2)))",
    "if(id % 3 = 0, -0.0D, id / 2.0D)",
    "array(id, v)",
    "named_struct('a', id, 'b', CAST(v AS STRING))",
    "date_add(DATE '2020-01-01', CAST(id AS INT))",
    "CAST(CAST(id AS STRING) AS BINARY)",
)


@pytest.mark.parametrize("keys", sample("types of keys", [KEYS[:4], KEYS[4:]], 1))
def test_keys_of_many_types_find_their_rows(place: DynamicPlace, keys: tuple[str, ...]) -> None:
    """Rows that are written are found in the table by their keys, whatever types those are of."""
    place.run("INSERT INTO t SELECT id, id % 7 FROM range(200)")
    for i, key in enumerate(keys):
        place.create(f"SELECT {key} AS k, count(*) AS n, sum(v) AS s FROM t GROUP BY {key}", f"d{i}")
    place.run("UPDATE t SET v = v + 1 WHERE id < 20", "DELETE FROM t WHERE id = 30", "INSERT INTO t VALUES (1000, 1)")
    for i, key in enumerate(keys):
        place.refresh(f"d{i}")
        assert place.verify(f"d{i}")[0] == "EQUAL", key
