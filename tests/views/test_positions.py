"""Positions of streams on views: versions by table, points in time, what SHOW and the functions say."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import Counter
from functools import partial

from tests.views.support import FILTERED, JOINED, Place


def moment(place: Place) -> str:
    """Now, as SQL; nothing that was done before it has its time or a later one."""
    time.sleep(0.05)
    now = place.value("SELECT CAST(current_timestamp() AS STRING)")
    time.sleep(0.05)
    return f"TIMESTAMP '{now}'"


def written(place: Place) -> str:
    """Two commits of t around one of u; a moment after the first two."""
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)", "INSERT INTO u VALUES (1, 'a'), (2, 'b')")
    found = moment(place)
    place.run("UPDATE t SET v = 11 WHERE id = 1", "DELETE FROM u WHERE id = 2")
    return found


def test_versions_by_table_move_a_stream(place: Place) -> None:
    place.view(JOINED)
    written(place)
    place.run("ALTER STREAM s SET OFFSET TO LATEST")
    assert place.position() == {"t": 2, "u": 2}
    place.run("""ALTER STREAM s SET OFFSET '{"t": 1}'""")
    assert place.position() == {"t": 1, "u": 2}, "what is not named stays"
    assert place.changes() == Counter({("UPDATE_BEFORE", 1, 10, "a"): 1, ("UPDATE_AFTER", 1, 11, "a"): 1})
    place.run(f"""ALTER STREAM s SET OFFSET '{{"{place.schema}.t": 2, "{place.schema.upper()}.U": 1}}'""")
    assert place.position() == {"t": 2, "u": 1}
    assert place.changes() == Counter({("DELETE", 2, 20, "b"): 1})
    place.run("""ALTER STREAM s SET OFFSET '{"u": 0, "t": 0}'""")
    assert place.changes() == Counter({("INSERT", 1, 11, "a"): 1})


def test_names_and_versions_that_mean_nothing(place: Place) -> None:
    place.view(JOINED)
    written(place)
    latest = place.shown()["offset_position"]
    for text in (
        """'{"nothing": 3}'""",
        """'{"t": 99}'""",
        """'{"": 1}'""",
        "'{}'",
        "'t = 3'",
        """'{"t": -1}'""",
        "VERSION 1",
    ):
        found = place.refused(f"ALTER STREAM s SET OFFSET {text}")
        assert found.code == "INVALID_POINT_IN_TIME", text
        assert found.hint, text
    assert "reads no table named nothing" in place.refused("""ALTER STREAM s SET OFFSET '{"nothing": 3}'""").message
    assert place.shown()["offset_position"] == latest
    hint = place.refused("ALTER STREAM s SET OFFSET VERSION 1").hint or ""
    named = hint[hint.index("'{") :].strip("'")
    place.run(f"ALTER STREAM s SET OFFSET '{named}'")
    assert place.position() == {"t": 2, "u": 2}, "the hint's own example is what it says"


def test_two_tables_of_one_name_are_told_apart_by_schema(place: Place) -> None:
    other = f"{place.schema}_b"
    place.run(f"CREATE SCHEMA {other}")
    place.table(f"{other}.t", "id BIGINT, v BIGINT")
    place.view(f"SELECT x.id, y.v FROM t x JOIN {other}.t y ON x.id = y.id")
    place.run(
        "INSERT INTO t VALUES (1, 1)", f"INSERT INTO {other}.t VALUES (1, 7)", "ALTER STREAM s SET OFFSET TO LATEST"
    )
    found = place.refused("""ALTER STREAM s SET OFFSET '{"t": 0}'""")
    assert "reads several tables named t" in found.message
    place.run(f"""ALTER STREAM s SET OFFSET '{{"{other}.t": 0}}'""")
    assert json.loads(place.shown()["offset_position"]) == {f"{place.schema}.t": 1, f"{other}.t": 0}
    assert place.changes() == Counter({("INSERT", 1, 7): 1})
    place.run(f"DROP SCHEMA {other} CASCADE")


def test_one_table_has_versions_like_a_table(place: Place) -> None:
    place.view(FILTERED)
    written(place)
    place.run("ALTER STREAM s SET OFFSET VERSION 1")
    assert place.position() == {"t": 1}
    assert place.changes() == Counter({("INSERT", 1, 12): 1})
    place.run(
        "CREATE STREAM before_it ON VIEW v BEFORE (VERSION => 1)", "CREATE STREAM at_it ON VIEW v AT (VERSION => 1)"
    )
    assert (place.position("before_it"), place.position("at_it")) == ({"t": 0}, {"t": 1})


def test_a_time_is_a_version_of_each_table(place: Place) -> None:
    place.view(JOINED)
    then = written(place)
    place.run(f"ALTER STREAM s SET OFFSET TIMESTAMP {then}")
    assert place.position() == {"t": 1, "u": 1}
    expected = Counter({("UPDATE_BEFORE", 1, 10, "a"): 1, ("UPDATE_AFTER", 1, 11, "a"): 1, ("DELETE", 2, 20, "b"): 1})
    assert place.changes() == expected
    place.run(f"CREATE STREAM later ON VIEW v AT (TIMESTAMP => {then})")
    assert place.position("later") == {"t": 1, "u": 1}
    asked = f"SELECT __change_type, id, v, w FROM v CHANGES (INFORMATION => DEFAULT) AT (TIMESTAMP => {then})"
    assert place.bag(asked) == expected
    ended = f"{asked} END (TIMESTAMP => {moment(place)})"
    place.run("UPDATE t SET v = 99")
    assert place.bag(ended) == expected
    assert place.bag(asked) != expected
    only = "SELECT id FROM v CHANGES (INFORMATION => APPEND_ONLY) AT (TIMESTAMP => {})"
    assert place.bag(only.format(then)) == Counter()
    found = place.refused("CREATE STREAM early ON VIEW v AT (TIMESTAMP => TIMESTAMP '2001-01-01')")
    assert found.code == "INVALID_POINT_IN_TIME"


def test_where_another_stream_stands(place: Place) -> None:
    place.view(JOINED.replace("FROM t JOIN u", "FROM u JOIN t"))  # named in another order than by the alphabet
    written(place)
    place.run("CREATE STREAM same ON VIEW v AT (STREAM => 's')")
    assert place.position("same") == place.position() == {"t": 0, "u": 0}
    changes = "SELECT __change_type, id, v, w FROM v CHANGES (INFORMATION => DEFAULT) AT (STREAM => 's')"
    assert place.bag(changes) == place.changes() == Counter({("INSERT", 1, 11, "a"): 1})
    place.run("CREATE STREAM on_t ON TABLE t")
    assert place.refused("CREATE STREAM no ON VIEW v AT (STREAM => 'on_t')").code == "INVALID_POINT_IN_TIME"


def test_what_is_shown_of_a_stream(place: Place) -> None:
    place.view(JOINED, clauses="COMMENT = 'a join'")
    row = place.shown()
    assert (row["source_type"], row["table_name"], row["offset_version"]) == ("VIEW", f"{place.schema}.v", None)
    assert (row["lag_versions"], row["has_data"], row["stale"], row["invalid_reason"]) == (0, False, False, None)
    written(place)
    row, described = place.shown(), place.described()
    assert (row["lag_versions"], row["has_data"]) == (4, True)
    assert isinstance(row["stale_after"], dt.datetime)
    assert json.loads(described["latest_position"]) == {f"{place.schema}.t": 2, f"{place.schema}.u": 2}
    assert described["definition"].startswith("CREATE STREAM s ON VIEW v")
    assert place.jobs(lambda: place.run("SHOW STREAMS", "SELECT stream_has_data('s')", "DESC STREAM s")) == 0
    assert place.value("SELECT stream_has_data('s')") is True
    backlog = place.run("SELECT * FROM stream_backlog('s')")[0].asDict()
    assert backlog["versions"] == 4
    assert (backlog["rows_added"], backlog["rows_removed"]) == (None, None), (
        "a join has more rows than its tables, or less"
    )
    assert backlog["files"] > 0
    place.run("ALTER STREAM s SET OFFSET TO LATEST")
    assert place.value("SELECT stream_has_data('s')") is False


def test_backlog_of_one_table(place: Place) -> None:
    place.view(FILTERED)
    written(place)
    backlog = place.run("SELECT * FROM stream_backlog('s')")[0].asDict()
    assert (backlog["versions"], backlog["rows_added"]) == (2, 2)


def test_nothing_changed_runs_no_job(place: Place) -> None:
    place.run("CREATE TABLE sink (id BIGINT)")
    for name, text in (("a", FILTERED), ("b", JOINED), ("c", "SELECT id FROM t UNION ALL SELECT id FROM u")):
        place.view(text, f"v_{name}", f"s_{name}")
        assert place.jobs(partial(place.run, f"SELECT * FROM s_{name}")) == 0, name
        assert place.value(f"SELECT stream_has_data('s_{name}')") is False
