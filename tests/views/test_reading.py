"""Statements that read streams on views: what is computed once, and what each row is known by."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.views.support import FILTERED, JOINED, Place


def moved(place: Place, text: str) -> None:
    """A stream on a view, with changes of both tables."""
    place.run("INSERT INTO t SELECT id, 10 * id FROM range(1, 7)", "INSERT INTO u SELECT id, 'w' FROM range(1, 7)")
    place.view(text)
    place.run("UPDATE t SET v = v + 1 WHERE id < 4", "DELETE FROM u WHERE id = 3", "INSERT INTO u VALUES (2, 'second')")


def executed(place: Place, text: str) -> str:
    """The plan that ran."""
    frame = place.spark.sql(text)
    frame.collect()
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_a_change_set_is_computed_once(place: Place) -> None:
    moved(place, "SELECT a.id, a.v, b.v AS other FROM t a JOIN t b ON a.v < b.v")
    plan = executed(place, "SELECT * FROM s")
    final = plan[: plan.index("== Initial Plan ==")] if "== Initial Plan ==" in plan else plan
    reads = [line for line in final.splitlines() if "ChangeFileIndex" in line]
    assert len(reads) == 2, f"the rows before and the rows after, once for all four terms of the join:\n{final}"
    assert final.count("ReusedExchange") >= 3, final


def test_references_in_one_statement_see_one_interval(place: Place) -> None:
    moved(place, JOINED)
    once = place.changes()
    assert once
    both = place.run(
        "SELECT a.__change_type, a.id, a.v, a.w FROM s a JOIN s b ON a.__change_type = b.__change_type AND a.id = b.id "
        "AND a.w = b.w"
    )
    assert Counter(tuple(r) for r in both) == once
    union = place.bag("SELECT __change_type, id, v, w FROM s UNION ALL SELECT __change_type, id, v, w FROM s")
    assert union == once + once
    counted = place.value("SELECT (SELECT count(*) FROM s) + (SELECT count(*) FROM s)")
    assert counted == 2 * once.total()
    assert (
        place.bag("WITH x AS (SELECT __change_type, id, v, w FROM s) SELECT a.* FROM x a UNION ALL SELECT * FROM x")
        == once + once
    )


@pytest.mark.parametrize("text", [JOINED, FILTERED])
def test_a_stream_on_a_view_beside_one_on_its_table(place: Place, text: str) -> None:
    place.view(text)
    place.run("CREATE STREAM on_t ON TABLE t", "CREATE TABLE sink (id BIGINT, v BIGINT)")
    place.run("INSERT INTO t VALUES (1, 11), (2, 5), (3, 13)", "INSERT INTO u VALUES (1, 'a')")
    place.run("INSERT INTO sink SELECT x.id, x.v FROM on_t x LEFT ANTI JOIN s ON x.id = s.id")
    hidden = {(2, 5), (3, 13)} if text == JOINED else {(2, 5)}
    assert place.bag("SELECT * FROM sink") == Counter(dict.fromkeys(hidden, 1))
    assert place.changes("on_t") == place.changes("s") == Counter()
    place.run("INSERT INTO t VALUES (4, 14)", "INSERT INTO sink SELECT id, v FROM on_t")
    assert (place.changes("on_t"), bool(place.changes("s"))) == (Counter(), text == FILTERED)


def test_hidden_columns(place: Place) -> None:
    moved(place, f"SELECT id, v, 'x' AS w FROM t UNION ALL {JOINED}")
    rows = place.run(
        "SELECT *, METADATA$ACTION AS a, METADATA$ISUPDATE AS u, METADATA$ROW_ID AS r, `change$row_id` AS c FROM s"
    )
    assert rows
    for row in rows:
        assert row["r"] == row["c"]
        assert row["u"] == row["__change_type"].startswith("UPDATE")
        assert row["a"] == ("INSERT" if row["__change_type"] in ("INSERT", "UPDATE_AFTER") else "DELETE")
        assert row["__commit_version"] is None
        assert len(row["r"].split(":")) == (2 if row["w"] == "x" else 3)
    pairs = Counter(row["r"] for row in rows if row["u"])
    assert set(pairs.values()) == {2}


def test_a_filter_on_a_stream_and_a_view_over_a_stream(place: Place) -> None:
    moved(place, JOINED)
    place.run("CREATE VIEW over_s AS SELECT id, __change_type AS c FROM s WHERE w = 'second'")
    assert place.bag("SELECT id, c FROM over_s") == Counter({(2, "INSERT"): 1})
    assert place.value("SELECT count(*) FROM s WHERE __change_type = 'DELETE' AND id = 3") == 1


def test_an_update_that_the_view_does_not_show_is_no_change(place: Place) -> None:
    place.run("INSERT INTO t VALUES (1, 11), (2, 22)", "INSERT INTO u VALUES (1, 'a'), (2, 'b')")
    place.view("SELECT t.id, u.w FROM t JOIN u ON t.id = u.id WHERE t.v > 0")
    place.run("UPDATE t SET v = v + 1", "UPDATE u SET w = concat(w, '')")
    assert place.changes() == Counter()
    place.run("UPDATE t SET v = -1 WHERE id = 1")
    assert place.changes() == Counter({("DELETE", 1, "a"): 1})
    place.run("UPDATE t SET v = 7 WHERE id = 1")
    assert place.changes() == Counter(), "it left and came back"


def test_settings_of_the_session_do_not_change_the_rows(place: Place) -> None:
    moved(place, JOINED)
    expected = place.changes()
    settings = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.optimizer.maxIterations": "3",
    }
    for key, value in settings.items():
        place.spark.conf.set(key, value)
    try:
        assert place.changes() == expected
    finally:
        for key in settings:
            place.spark.conf.unset(key)


PAIRS = (
    "SELECT t.id, v div x AS q FROM t JOIN d ON t.id = d.id",
    "SELECT t.id, v FROM t JOIN d ON t.id = d.id AND v div x > 0",
    "SELECT t.id, v FROM t, d WHERE v div x > 0",
    "SELECT a.id, a.v, v div x AS q FROM (SELECT t.id, v FROM t JOIN u ON t.id = u.id) a JOIN d ON a.id = d.id",
    "SELECT t.id, v div x AS q FROM d JOIN t ON t.id = d.id JOIN u ON u.id = t.id",
)


@pytest.mark.parametrize("text", PAIRS)
def test_expressions_see_rows_that_were_there_together(place: Place, text: str) -> None:
    """A division fails for the row of one table as it was before, and that of the other as it is now."""
    place.table("d", "id BIGINT, x BIGINT")
    place.run("INSERT INTO d VALUES (1, 5)", "INSERT INTO t VALUES (1, 10)", "INSERT INTO u VALUES (1, 'a')")
    place.view(text)
    place.run("DELETE FROM t", "UPDATE d SET x = 0")
    assert {change[0] for change in place.changes()} == {"DELETE"}
    place.run("CREATE TABLE sink AS SELECT id FROM s", "UPDATE d SET x = 2", "INSERT INTO t VALUES (1, 8)")
    place.run("DELETE FROM u", "INSERT INTO u VALUES (1, 'b')")
    assert {change[0] for change in place.changes()} == {"INSERT"}
    place.run("INSERT INTO sink SELECT id FROM s", "UPDATE d SET x = 4", "UPDATE t SET v = 16")
    assert Counter(change[0] for change in place.changes())["DELETE"] == 0
