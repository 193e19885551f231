"""Refreshes by several processes at once, and by processes that are killed: the table is its query's, and a stream on it replays exactly.

pytest tests/dynamic/processes/test_races.py                     # a sample
STREAMQL_LONG=50 pytest tests/dynamic/processes/test_races.py    # that many kills
"""

from __future__ import annotations

import contextlib
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Event, current_thread
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamql.errors import StreamqlError
from streamql.features.dynamic.source import backing
from streamql.features.dynamic.source.table import DynamicTable
from streamql.features.dynamic.statements import create, ddl
from tests.consume.support import findings, in_threads, killed_within, start_child
from tests.dynamic.images import Image, between, image, shown
from tests.dynamic.processes.test_crashes import run
from tests.dynamic.support import DynamicPlace
from tests.sample import SEED, amount

KILLS = amount(1, 20)
ROUND_SECONDS = 12.0
"""One round of the loop takes about so long; the kill comes at any instant of the first two."""
RACE_SECONDS = amount(10, 120)

GROUPED = "SELECT v % 7 AS k, count(*) AS n, sum(id) AS s FROM t GROUP BY v % 7"
JOINED = "SELECT d.k, d.n, t.id, t.v FROM d JOIN t ON t.v % 7 = d.k WHERE t.id % 3 = 0"
FOLLOWED = "SELECT id, v * 2 AS w FROM t WHERE v % 5 <> 0"
NAMES = ("d", "d2", "d3")


@pytest.fixture
def loaded(spark: SparkSession, place: DynamicPlace) -> Iterator[DynamicPlace]:
    """d groups t, d2 joins the two, and d3 filters t, by incremental refreshes; a stream on each has seen nothing yet."""
    place.run("INSERT INTO t SELECT id, id * 3 FROM range(100)")
    place.create(GROUPED)
    place.create(JOINED, name="d2")
    place.create(FOLLOWED, name="d3")
    for name in NAMES:
        place.run(f"CREATE STREAM {name}_s ON DYNAMIC TABLE {name}")
    spark.conf.set("spark.streamql.lease", "5s")  # the JVM of a dead process goes on for a moment
    yield place
    spark.conf.unset("spark.streamql.lease")


def changes(schema: str) -> list[str]:
    """Statements that change t."""
    t = f"{schema}.t"
    some = (
        f"MERGE INTO {t} y USING (SELECT * FROM {t} WHERE id % {{0}} = (SELECT max(id) % {{0}} FROM {t})) x ON y.id = x.id "
        "WHEN MATCHED THEN {1}"
    )
    return [
        f"INSERT INTO {schema}.t SELECT m + id, 3 * (m + id) FROM range(5) CROSS JOIN (SELECT max(id) + 1 AS m FROM {schema}.t)",
        some.format(10, "UPDATE SET v = x.v + 1"),
        some.format(13, "DELETE"),
    ]


def refreshes(schema: str) -> list[str]:
    return [f"REFRESH DYNAMIC TABLE {schema}.{name}" for name in ("d2", "d", "d3")]


def check(place: DynamicPlace, firsts: dict[str, Image]) -> None:
    """At the end all is as if one process had done it."""
    place.refresh("d2")
    place.refresh("d3")
    for name in NAMES:
        last = image(place.spark, f"{place.schema}.{name}")
        assert place.verify(name) == ("EQUAL", len(last.rows), 0, 0)
        want = between(firsts[name].by_id, last.by_id)
        assert want == shown(place.spark, f"{name}_s")
        assert want.types, f"{name} has not changed"
    assert place.versions("d")["t"] == place.versions("d2")["t"] == place.latest("t")
    assert findings(place.spark, f"{place.schema}.") == []
    outcomes = Counter(r["outcome"] for name in NAMES for r in place.history(name))
    assert outcomes["REFRESHED"] > len(NAMES)
    assert Counter(r["mode"] for r in place.history("d3"))["INCREMENTAL"] > 0


def test_killed_at_any_instant(spark: SparkSession, loaded: DynamicPlace) -> None:
    rng = random.Random(SEED)
    place = loaded
    firsts = {name: image(spark, f"{place.schema}.{name}") for name in NAMES}
    insert, update, delete = changes(place.schema)
    fill, again, follow = refreshes(place.schema)
    statements = [insert, follow, fill, update, again, follow, delete, fill, follow]
    for _ in range(KILLS):
        killed_within(spark, rng.uniform(0, 2 * ROUND_SECONDS), *statements)
    check(place, firsts)


def test_two_refreshers_and_a_writer(spark: SparkSession, loaded: DynamicPlace) -> None:
    place = loaded
    firsts = {name: image(spark, f"{place.schema}.{name}") for name in NAMES}
    fill, again, follow = refreshes(place.schema)
    programs = [[fill, follow], [again, follow, fill], changes(place.schema)]
    children = [start_child(spark, "loop", *program) for program in programs]
    said = []
    try:
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        with contextlib.suppress(subprocess.TimeoutExpired):
            children[0].wait(RACE_SECONDS)
        said = [child.poll() for child in children]
    finally:
        for child in children:
            child.kill()
    errors = [child.communicate()[1] for child in children]
    assert said == [None] * len(children), [e[-3000:] for e in errors]
    check(place, firsts)


@pytest.mark.parametrize("clause", ["", "INITIALIZE = ON_SCHEDULE"])
def test_two_creates_of_one_name(
    spark: SparkSession, place: DynamicPlace, monkeypatch: pytest.MonkeyPatch, clause: str
) -> None:
    """The second CREATE takes the view of the first one, which is not registered yet, for one that was left over. The first one sees that
    when the second one is about to take its own view back."""
    make_view, register, mark_of = create.make_view, create._register, backing.mark_of
    has_view, is_taken, is_registered, is_found, is_done = (Event() for _ in range(5))
    first = "first"

    def is_first() -> bool:
        return current_thread().name == first

    def made(*args: Any, **named: Any) -> None:
        make_view(*args, **named)
        (has_view if is_first() else is_taken).set()

    def registered(*args: Any) -> None:
        assert (is_taken if is_first() else is_registered).wait(60)
        register(*args)
        is_registered.set()

    def marked(*args: Any) -> str | None:
        if is_first():
            assert not is_registered.is_set() or is_found.wait(60)
            return mark_of(*args)
        found = mark_of(*args)
        if is_registered.is_set() and not is_found.is_set():
            is_found.set()
            assert is_done.wait(60)
        return found

    for module, name, made_by in (
        (create, "make_view", made),
        (create, "_register", registered),
        (create, "mark_of", marked),
        (backing, "mark_of", marked),
    ):
        monkeypatch.setattr(module, name, made_by)
    place.run("INSERT INTO t VALUES (1, 10)")

    def one() -> None:
        current_thread().name = first
        run(spark, f"CREATE DYNAMIC TABLE {place.schema}.d {clause} AS SELECT id FROM {place.schema}.t")
        is_done.set()

    def other() -> None:
        assert has_view.wait(60)
        with pytest.raises(StreamqlError, match="another process created"):
            run(spark, f"CREATE DYNAMIC TABLE {place.schema}.d AS SELECT v FROM {place.schema}.t")

    assert in_threads(one, other) == []
    place.refresh()
    assert place.run("SELECT * FROM d") == [(1,)]
    assert place.verify() == ("EQUAL", 1, 0, 0)


def during_the_first_refresh(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], *, fails: bool) -> None:
    """Lets another process do something before the first refresh of a table, which perhaps fails."""
    refresh_created = create.refresh_created

    def refreshed(spark: SparkSession, table: DynamicTable) -> None:
        monkeypatch.setattr(create, "refresh_created", refresh_created)
        work()
        if fails:
            raise StreamqlError("STREAM_BUSY", "it fails")
        refresh_created(spark, table)

    monkeypatch.setattr(create, "refresh_created", refreshed)


@pytest.mark.parametrize("head", ["CREATE", "CREATE OR REPLACE"])
def test_a_rename_during_the_first_refresh(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch, head: str) -> None:
    place.run("INSERT INTO t VALUES (1, 10)")
    before = place.tables()
    if head != "CREATE":
        place.create("SELECT v FROM t")
    during_the_first_refresh(monkeypatch, lambda: place.run("ALTER DYNAMIC TABLE d RENAME TO e"), fails=False)
    place.run(f"{head} DYNAMIC TABLE d AS SELECT id FROM t")
    assert place.run("SELECT * FROM e") == [(1,)]
    assert place.tables() - before == {"e", place.backing("e").rpartition(".")[2].strip("`")}


@pytest.mark.parametrize("head", ["CREATE", "CREATE OR REPLACE"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_drop_during_the_first_refresh(
    place: DynamicPlace, monkeypatch: pytest.MonkeyPatch, head: str, *, fails: bool
) -> None:
    """Nothing is left of the table; a CREATE that fails raises why."""
    before = place.tables()
    if head != "CREATE":
        place.create("SELECT v FROM t")
    during_the_first_refresh(monkeypatch, lambda: place.run("DROP DYNAMIC TABLE d"), fails=fails)
    with pytest.raises(StreamqlError, match="it fails") if fails else contextlib.nullcontext():
        run(place.spark, f"{head} DYNAMIC TABLE {place.schema}.d AS SELECT id FROM {place.schema}.t")
    assert place.tables() == before


@pytest.mark.parametrize("other", ["DROP DYNAMIC TABLE d; CREATE DYNAMIC TABLE d", "CREATE OR REPLACE DYNAMIC TABLE d"])
def test_a_create_that_fails_leaves_the_table_of_another(
    place: DynamicPlace, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    place.run("INSERT INTO t VALUES (1, 10)")
    during_the_first_refresh(monkeypatch, lambda: place.run(*f"{other} AS SELECT v FROM t".split("; ")), fails=True)
    with pytest.raises(StreamqlError, match="it fails"):
        run(place.spark, f"CREATE DYNAMIC TABLE {place.schema}.d AS SELECT id FROM {place.schema}.t")
    assert place.run("SELECT * FROM d") == [(10,)]
    assert place.verify() == ("EQUAL", 1, 0, 0)


@pytest.mark.parametrize("change", ["RENAME TO e", "SUSPEND"])
def test_a_replacement_that_is_altered_and_fails(
    place: DynamicPlace, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The old table comes back, and nothing is left of the other."""
    place.run("INSERT INTO t VALUES (1, 10)")
    place.create("SELECT v FROM t")
    before = place.tables()
    during_the_first_refresh(monkeypatch, lambda: place.run(f"ALTER DYNAMIC TABLE d {change}"), fails=True)
    with pytest.raises(StreamqlError, match="it fails"):
        run(place.spark, f"CREATE OR REPLACE DYNAMIC TABLE {place.schema}.d AS SELECT id FROM {place.schema}.t")
    assert place.tables() == before
    place.run("INSERT INTO t VALUES (2, 20)")
    assert place.refresh()["d"][0] == "REFRESHED"
    assert place.bag("SELECT * FROM d") == {(10,): 1, (20,): 1}


def test_a_drop_that_waits_while_the_table_is_replaced(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves the rows of the old table, which come back if the replacement fails."""
    place.run("INSERT INTO t VALUES (1, 10)")
    place.create("SELECT v FROM t")
    old = place.found()
    said = []
    during_the_first_refresh(
        monkeypatch, lambda: said.append(ddl.drop(place.spark, old, "DROP", follows_renames=False)), fails=True
    )
    with pytest.raises(StreamqlError, match="it fails"):
        run(place.spark, f"CREATE OR REPLACE DYNAMIC TABLE {place.schema}.d AS SELECT id FROM {place.schema}.t")
    assert said == [False]
    assert place.verify() == ("EQUAL", 1, 0, 0)


def test_a_replacement_that_fails_while_another_takes_its_name(
    place: DynamicPlace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The old table cannot come back: the name is taken. The other keeps its rows."""
    place.run("INSERT INTO t VALUES (1, 10)")
    place.create("SELECT v FROM t")

    def others() -> None:
        place.run("ALTER DYNAMIC TABLE d RENAME TO e", "CREATE DYNAMIC TABLE d AS SELECT id + v AS x FROM t")

    during_the_first_refresh(monkeypatch, others, fails=True)
    with pytest.raises(StreamqlError, match="it fails"):
        run(place.spark, f"CREATE OR REPLACE DYNAMIC TABLE {place.schema}.d AS SELECT id FROM {place.schema}.t")
    assert "parts of" in caplog.text
    assert place.run("SELECT * FROM d") == [(11,)]
    place.refresh("e")
    assert place.run("SELECT * FROM e") == [(1,)]


def test_a_replacement_whose_view_is_gone_when_it_fails(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old table comes back with a view."""
    place.run("INSERT INTO t VALUES (1, 10)")
    place.create("SELECT v FROM t")
    old = place.found()

    def others() -> None:
        place.run("ALTER DYNAMIC TABLE d RENAME TO e")
        assert not ddl.drop(place.spark, old, "DROP", follows_renames=False)
        place.refused("CREATE DYNAMIC TABLE d AS SELECT id FROM range(3)")

    during_the_first_refresh(monkeypatch, others, fails=True)
    with pytest.raises(StreamqlError, match="it fails"):
        run(place.spark, f"CREATE OR REPLACE DYNAMIC TABLE {place.schema}.d AS SELECT id FROM {place.schema}.t")
    assert place.run("SELECT * FROM d") == [(10,)]
    assert place.verify() == ("EQUAL", 1, 0, 0)


def test_a_drop_that_waits_while_the_table_is_renamed(place: DynamicPlace) -> None:
    place.create("SELECT v FROM t")
    old = place.found()
    place.run("ALTER DYNAMIC TABLE d RENAME TO e")
    assert not ddl.drop(place.spark, old, "DROP", follows_renames=False)
    assert place.verify("e") == ("EQUAL", 0, 0, 0)
