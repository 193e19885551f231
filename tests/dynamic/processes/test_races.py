"""Refreshes by several processes at once, and by processes that are killed: the table is its query's, and a stream on it replays exactly.

pytest tests/dynamic/processes/test_races.py                     # a sample
STREAMQL_LONG=50 pytest tests/dynamic/processes/test_races.py    # that many kills
"""

from __future__ import annotations

import contextlib
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamql.engine.dynamic import create
from streamql.sources.queries.dynamic import DynamicTable
from tests.consume.support import findings, in_threads, killed_within, start_child
from tests.dynamic.images import Image, between, image, shown
from tests.dynamic.support import DynamicPlace
from tests.sample import SEED, amount

KILLS = amount(1, 20)
ROUND_SECONDS = 12.0
"""One round of the loop takes about so long; the kill comes at any instant of the first two."""
RACE_SECONDS = amount(25, 120)

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


def test_two_creates_of_one_name(spark: SparkSession, place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second CREATE takes the view of the first one, which is not registered yet, for one that was left over."""
    make_view, register = create.make_view, create._register
    first_has_view, second_has_view, first_is_registered = Event(), Event(), Event()

    def made(*args: Any, **named: Any) -> None:
        make_view(*args, **named)
        (second_has_view if first_has_view.is_set() else first_has_view).set()

    def registered(spark: SparkSession, table: DynamicTable, *args: Any) -> None:
        is_first = table.columns == ("id",)
        assert (second_has_view if is_first else first_is_registered).wait(60)
        try:
            register(spark, table, *args)
        finally:
            if is_first:
                first_is_registered.set()

    monkeypatch.setattr(create, "make_view", made)
    monkeypatch.setattr(create, "_register", registered)
    place.run("INSERT INTO t VALUES (1, 10)")

    def second() -> None:
        assert first_has_view.wait(60)
        assert (
            place.refused(f"CREATE DYNAMIC TABLE {place.schema}.d AS SELECT v FROM {place.schema}.t").code
            == "STREAM_BUSY"
        )

    assert in_threads(lambda: place.create(f"SELECT id FROM {place.schema}.t", f"{place.schema}.d"), second) == []
    assert place.run("SELECT * FROM d") == [(1,)]
    assert place.verify() == ("EQUAL", 1, 0, 0)
