"""Statements that consume streams on views."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.cli.test_process import environment
from tests.consume.support import ROOT, data_of, in_threads, killed
from tests.sample import sample
from tests.small import SHORT_LIVED_ARGUMENTS
from tests.views.support import FILTERED, JOINED, Place

ROWS = 60


def filled(place: Place, text: str = JOINED) -> None:
    """A stream on a view that has three rows to show."""
    place.view(text)
    place.run("CREATE TABLE sink (id BIGINT, v BIGINT, w STRING)")
    place.run(
        "INSERT INTO t VALUES (1, 11), (2, 12), (3, 13)", "INSERT INTO u VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')"
    )


def test_insert_moves_each_table_and_the_ledger_says_from_where(place: Place) -> None:
    filled(place)
    place.run("INSERT INTO sink SELECT id, v, w FROM s")
    assert place.bag("SELECT * FROM sink") == place.bag("SELECT * FROM v")
    assert place.position() == {"t": 1, "u": 1}
    assert place.changes() == Counter()
    (row,) = place.ledger()
    assert (row["from_version"], row["through_version"], row["rows_written"]) == (None, None, 3)
    assert row["changes"] == {"INSERT": 3}
    names = [f"{place.schema}.{t}" for t in "tu"]
    assert json.loads(row["positions"]) == [dict.fromkeys(names, 0), dict.fromkeys(names, 1)]
    place.run("INSERT INTO sink SELECT id, v, w FROM s")
    assert len(place.ledger()) in (1, 2)
    assert place.value("SELECT count(*) FROM sink") == 3


def test_merge_keeps_a_copy_of_the_view(place: Place) -> None:
    filled(place)
    merge = (
        "MERGE INTO sink k USING (SELECT * FROM s WHERE __change_type <> 'UPDATE_BEFORE') c ON k.id = c.id "
        "WHEN MATCHED AND c.__change_type = 'DELETE' THEN DELETE WHEN MATCHED THEN UPDATE SET v = c.v, w = c.w "
        "WHEN NOT MATCHED AND c.__change_type <> 'DELETE' THEN INSERT (id, v, w) VALUES (c.id, c.v, c.w)"
    )
    steps = [
        "UPDATE t SET v = v + 1 WHERE id = 1",
        "DELETE FROM u WHERE id = 2",
        "UPDATE u SET w = 'z'",
        "INSERT INTO t VALUES (4, 44)",
        "UPDATE t SET id = 2 WHERE id = 3",
    ]
    for step in ["SELECT 1", *steps]:
        place.run(step, merge)
        assert place.bag("SELECT * FROM sink") == place.bag("SELECT * FROM v"), step
    place.run(*(s.replace("+ 1", "+ 5") for s in steps[:1]), "INSERT INTO u VALUES (2, 'again')", merge)
    assert place.bag("SELECT * FROM sink") == place.bag("SELECT * FROM v")
    place.assert_ledger_tiles()


def test_other_statements_that_consume(place: Place) -> None:
    filled(place)
    place.run("CREATE STREAM s2 ON VIEW v AT (STREAM => 's')", "CREATE STREAM s3 ON VIEW v AT (STREAM => 's')")
    place.run("CREATE TABLE made AS SELECT id, v, w FROM s")
    place.run("CREATE TABLE small (id BIGINT)", "CREATE TABLE large (id BIGINT)")
    place.run("FROM s2 INSERT INTO small SELECT id WHERE v < 13 INSERT INTO large SELECT id WHERE v >= 13")
    assert place.bag("SELECT * FROM made") == place.bag("SELECT * FROM v")
    assert (place.bag("SELECT * FROM small"), place.bag("SELECT * FROM large")) == (
        Counter({(1,): 1, (2,): 1}),
        Counter({(3,): 1}),
    )
    place.run("MERGE INTO made m USING s3 ON m.id = s3.id WHEN MATCHED THEN DELETE")
    assert place.value("SELECT count(*) FROM made") == 0
    for stream in ("s", "s2", "s3"):
        assert place.changes(stream) == Counter(), stream
        place.assert_ledger_tiles(stream)


def test_a_block_reads_one_interval(place: Place) -> None:
    filled(place)
    place.run("CREATE TABLE other (id BIGINT)", "BEGIN TRANSACTION", "INSERT INTO sink SELECT id, v, w FROM s")
    in_threads(lambda: place.spark.newSession().sql(f"INSERT INTO {place.schema}.t VALUES (4, 14)").collect())
    place.run("INSERT INTO other SELECT id FROM s", "COMMIT")
    assert (
        place.bag("SELECT id FROM sink") == place.bag("SELECT id FROM other") == Counter({(i,): 1 for i in (1, 2, 3)})
    )
    assert place.changes() == Counter({("INSERT", 4, 14, "d"): 1})


def test_two_consumers_take_each_row_once(place: Place) -> None:
    filled(place)
    place.run(
        f"INSERT INTO t SELECT id + 10, id FROM range({ROWS})", f"INSERT INTO u SELECT id + 10, 'x' FROM range({ROWS})"
    )

    def consume(n: int) -> None:
        text = f"INSERT INTO {place.schema}.sink SELECT id, v, w FROM {place.schema}.s WITH (MAX_BATCH_SIZE = {n})"
        place.spark.newSession().sql(text).collect()

    failures = in_threads(lambda: consume(5), lambda: consume(1_000))
    assert failures == []
    place.run("INSERT INTO sink SELECT id, v, w FROM s")
    assert place.bag("SELECT * FROM sink") == place.bag("SELECT * FROM v")
    place.assert_ledger_tiles()


@pytest.mark.parametrize("text", [JOINED, "SELECT id, v, CAST(id AS STRING) AS w FROM t WHERE v <> 12"])
def test_batches_are_commits_in_the_order_of_their_times(place: Place, text: str) -> None:
    place.view(text)
    place.run("CREATE TABLE sink (id BIGINT, v BIGINT, w STRING)")
    for i in range(4):
        place.run(f"INSERT INTO t VALUES ({i}, {i})", f"INSERT INTO u VALUES ({i}, 'a'), ({i}, 'b')")
    positions = []
    while place.value("SELECT stream_has_data('s')"):
        place.run("INSERT INTO sink SELECT id, v, w FROM s WITH (MAX_BATCH_SIZE = 4)")
        positions.append(place.position())
    assert place.bag("SELECT * FROM sink") == place.bag("SELECT * FROM v")
    assert len(positions) == (2 if "JOIN" in text else 1), positions
    if "JOIN" in text:
        assert positions[0] == {"t": 3, "u": 2}, "four rows, and a row of t that has no partner yet"
    place.assert_ledger_tiles()


def test_a_filter_that_fails_for_what_an_update_wrote(place: Place) -> None:
    """A stream of new rows does not compute it: that image is neither new nor there."""
    place.run("INSERT INTO t VALUES (1, 1), (2, 1)")
    place.run("CREATE VIEW v AS SELECT id FROM t WHERE 10 DIV v > 1")
    place.run("CREATE STREAM s ON VIEW v WITH (TABLE_STREAM_MODE = APPEND_ONLY)")
    place.run("UPDATE t SET v = 0 WHERE id = 1", "UPDATE t SET v = 2 WHERE id = 1", "INSERT INTO t VALUES (3, 1)")
    assert place.changes() == Counter({("INSERT", 3): 1})


def test_initial_rows_are_consumed_once(place: Place) -> None:
    place.run("INSERT INTO t VALUES (1, 1), (2, 2)", "INSERT INTO u VALUES (1, 'a')", "CREATE TABLE sink (id BIGINT)")
    place.view(JOINED, clauses="WITH (SHOW_INITIAL_ROWS = TRUE)")
    place.run("CREATE STREAM appends ON VIEW v WITH (TABLE_STREAM_MODE = APPEND_ONLY, SHOW_INITIAL_ROWS = TRUE)")
    place.run("INSERT INTO u VALUES (2, 'b')", "UPDATE t SET v = 10 WHERE id = 1")
    assert place.changes() == Counter({("INSERT", 1, 10, "a"): 1, ("INSERT", 2, 2, "b"): 1})
    assert place.changes("appends") == Counter({("INSERT", 1, 1, "a"): 1, ("INSERT", 2, 2, "b"): 1})
    assert place.value("SELECT stream_has_data('s')") is True
    place.run("INSERT INTO sink SELECT id FROM s", "INSERT INTO sink SELECT id FROM appends")
    assert place.changes() == place.changes("appends") == Counter()
    assert place.value("SELECT count(*) FROM sink") == 4


@pytest.mark.parametrize(
    "point", sample("kills of a consumer of a view", ["before:execute", "after:execute", "before:end"], 1)
)
def test_killed_and_resumed_it_arrives_once(place: Place, point: str) -> None:
    filled(place)
    statement = f"INSERT INTO {place.schema}.sink SELECT id, v, w FROM {place.schema}.s"
    killed(place.spark, point, statement)
    place.run("INSERT INTO t VALUES (4, 14)", statement, statement)
    assert place.bag("SELECT * FROM sink") == place.bag("SELECT * FROM v")
    assert place.value("SELECT count(*) FROM sink") == 4
    place.assert_ledger_tiles()


def test_every_front_end_shows_the_same(place: Place) -> None:
    filled(place, FILTERED)
    expected = Counter({("INSERT", i, 11 + i): 1 for i in (1, 2, 3)})
    assert place.changes() == expected
    assert Counter((r[0], *r[3:]) for r in place.spark.sql("SELECT * FROM s").collect()) == expected
    assert Counter((r[0], *r[3:]) for r in place.spark.table("s").collect()) == expected
    text = f"SELECT __change_type, id, v1 FROM {place.schema}.s ORDER BY id"
    command = [sys.executable, "-m", "streamql", *SHORT_LIVED_ARGUMENTS, "--data", data_of(place.spark)]
    ran = subprocess.run(
        [*command, "--output", "csv", "-e", text],
        cwd=ROOT,
        env=environment() | {"STREAMQL_HISTORY": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.strip().splitlines()
    assert lines == ["__change_type,id,v1", *(f"INSERT,{i},{11 + i}" for i in (1, 2, 3))]
