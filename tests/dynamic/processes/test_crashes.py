"""CREATE, RENAME and DROP that end at any step: run again they work, and nothing is left that the doctor does not name and remove."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamql import dialect
from streamql.features.dynamic import checks as doctor
from streamql.features.dynamic.language.statements import AlterDynamicTable, CreateDynamicTable, DropDynamicTable
from streamql.features.dynamic.refreshes import refresh as refreshes
from streamql.features.dynamic.refreshes import run as runs
from streamql.features.dynamic.statements import create, ddl
from tests.consume.support import findings
from tests.dynamic.support import DynamicPlace
from tests.sample import sample

STEPS = ("make_backing", "make_view", "_register", "drop_parts", "refresh_created", "_put_back", "drop")

CREATE = "CREATE DYNAMIC TABLE d AS SELECT id FROM t"
REPLACE = "CREATE OR REPLACE DYNAMIC TABLE d AS SELECT id, v FROM t"
RENAME = "ALTER DYNAMIC TABLE d RENAME TO e"
DROP = "DROP DYNAMIC TABLE d"

DEATHS = [
    *((CREATE, when, step) for when in ("before", "after") for step in ("make_backing", "make_view", "_register")),
    (CREATE, "before", "refresh_created"),
    *(
        (REPLACE, when, step)
        for when in ("before", "after")
        for step in ("make_backing", "_register", "refresh_created", "make_view", "drop_parts")
    ),
    *((RENAME, when, "make_view") for when in ("before", "after")),
    *((DROP, when, "drop_parts") for when in ("before", "after")),
]


class Died(BaseException):
    """The process is gone: nothing that follows is run."""


class Process:
    """Lets the steps of a statement die as a process does that is killed: what would clean up does not run either."""

    def __init__(self, patch: pytest.MonkeyPatch, when: str, step: str) -> None:
        self.is_dead, self.when, self.step = False, when, step
        for module in (create, ddl):
            for name in STEPS:
                if hasattr(module, name):
                    patch.setattr(module, name, self.mortal(name, getattr(module, name)))

    def mortal(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """A step that is run unless the process has died."""

        def run(*arguments: Any, **named: Any) -> Any:
            if self.is_dead or (name == self.step and self.when == "before"):
                self.die()
            result = work(*arguments, **named)
            if name == self.step:
                self.die()
            return result

        return run

    def die(self) -> None:
        """Ends the process."""
        self.is_dead = True
        raise Died


def run(spark: SparkSession, text: str) -> None:
    """Runs a statement in this thread: what ends a thread of the gateway ends the gateway."""
    statement = dialect.parse(text)
    if isinstance(statement, CreateDynamicTable):
        create.create_dynamic(spark, statement, text)
    elif isinstance(statement, AlterDynamicTable):
        ddl.alter_dynamic(spark, statement, text)
    else:
        assert isinstance(statement, DropDynamicTable)
        ddl.drop_dynamic(spark, statement, text)


@pytest.mark.parametrize(("statement", "when", "step"), sample("deaths of dynamic tables", DEATHS, 6))
def test_the_statement_can_be_run_again(
    spark: SparkSession, place: DynamicPlace, monkeypatch: pytest.MonkeyPatch, statement: str, when: str, step: str
) -> None:
    place.run("INSERT INTO t VALUES (1, 10)")
    before = place.tables()
    if statement != CREATE:
        place.run(CREATE)
    with monkeypatch.context() as patch:
        Process(patch, when, step)
        with pytest.raises(Died):
            run(spark, statement)
    is_done = {RENAME: "e", CREATE: "d"}.get(statement)
    if is_done and place.run(f"SHOW DYNAMIC TABLES LIKE '{is_done}'"):  # it died after the commit that counts
        place.refresh(is_done)
        statement = "SHOW DYNAMIC TABLES" if statement == RENAME else REPLACE
    place.run(statement.replace("DROP DYNAMIC TABLE", "DROP DYNAMIC TABLE IF EXISTS"))
    name = {RENAME: "e", "SHOW DYNAMIC TABLES": "e", DROP: ""}.get(statement, "d")
    if name:
        assert place.refresh(name)[name][0] in ("REFRESHED", "UNCHANGED")
        assert place.verify(name) == ("EQUAL", 1, 0, 0)
    place.run(CREATE.replace("DYNAMIC TABLE", "DYNAMIC TABLE IF NOT EXISTS"), "DROP DYNAMIC TABLE d")
    if name == "e":
        place.run("DROP DYNAMIC TABLE e")
    monkeypatch.setattr(doctor, "BEING_MADE_MS", -1_000_000)
    left = place.tables() - before
    named = {f.subject.rpartition(".")[2]: f for f in findings(spark, f"{place.schema}.", fix=True)}
    assert left <= named.keys(), (left, named)
    assert all(f.is_fixed for f in named.values()), named
    assert place.tables() == before


def test_a_process_that_dies_at_once_after_the_definition_is_there(
    place: DynamicPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is there, and empty: IF NOT EXISTS leaves it so, and a REFRESH fills it."""
    place.run("INSERT INTO t VALUES (1, 10)")
    with monkeypatch.context() as patch:
        Process(patch, "before", "refresh_created")
        with pytest.raises(Died):
            run(place.spark, CREATE)
    assert place.facts()["state"] == "EMPTY"
    assert place.refresh() == {"d": ("REFRESHED", "the first refresh", 1, 0, 0)}


def test_a_refresh_goes_on_with_a_replacement_that_died(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then the old rows are shown."""
    place.run("INSERT INTO t VALUES (1, 10)", CREATE)
    with monkeypatch.context() as patch:
        Process(patch, "before", "refresh_created")
        with pytest.raises(Died):
            run(place.spark, REPLACE)
    assert place.bag("SELECT * FROM d") == {(1,): 1}
    assert place.facts()["state"] == "EMPTY"
    assert place.refresh() == {"d": ("REFRESHED", "the first refresh", 1, 0, 0)}
    assert place.bag("SELECT * FROM d") == {(1, 10): 1}


def test_the_first_refresh_of_a_replacement_dies_after_its_commit(
    place: DynamicPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are there, and the view still shows those of the old table. The next refresh has nothing to write, and corrects the view."""
    place.run("INSERT INTO t VALUES (1, 10)", CREATE)
    with monkeypatch.context() as patch:
        Process(patch, "before", "refresh_created")
        with pytest.raises(Died):
            run(place.spark, REPLACE)

    def die(*_: Any) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(refreshes, "show_rows", die)
        with pytest.raises(Died):
            runs.run(place.spark, [place.found()])
    assert place.bag("SELECT * FROM d") == {(1,): 1}
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
    assert place.bag("SELECT * FROM d") == {(1, 10): 1}


@pytest.mark.parametrize("step", ["refresh_created", "make_view"])
def test_a_replacement_that_fails_leaves_the_old_table(
    place: DynamicPlace, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    place.run("INSERT INTO t VALUES (1, 10)", CREATE)
    before = place.tables()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(create, step, fail)
        with pytest.raises(OSError, match="no space left"):
            run(place.spark, REPLACE)
    assert place.tables() == before
    assert place.bag("SELECT * FROM d") == {(1,): 1}
    place.run("INSERT INTO t VALUES (2, 20)")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 0, 0)}
    assert place.bag("SELECT * FROM d") == {(1,): 1, (2,): 1}
    place.run(REPLACE)
    assert place.verify() == ("EQUAL", 2, 0, 0)
