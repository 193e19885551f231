"""Random dynamic tables over random histories of the tables that they read. After each step each is refreshed, and compared with its query
by plain Spark, at the versions that DESC names.

pytest tests/dynamic/histories/test_histories.py                      # a sample
STREAMQL_LONG=1 pytest tests/dynamic/histories/test_histories.py      # each form of query
STREAMQL_LONG=10 pytest tests/dynamic/histories/test_histories.py     # each of them over so many histories
STREAMQL_SEED=7 pytest tests/dynamic/histories/test_histories.py      # other ones
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import streamql
from streamql.errors import StreamqlError
from tests.consume.support import fresh_schema
from tests.dynamic.histories.bases import DynamicWriter
from tests.dynamic.histories.queries import FORMS, Maker, Query
from tests.dynamic.images import Image, bag, between, image, shown, versions
from tests.sample import IS_LONG, SEED, amount, sample
from tests.views.bases import Base

pytestmark = pytest.mark.usefixtures("quick")

TABLES_PER_HISTORY = 4 if IS_LONG else 1
STEPS = 5 if IS_LONG else 2
OPERATIONS_PER_STEP = 4
HISTORIES = amount(1, 1)
STEPS_UNCHANGED_MAX = 3
"""How many further random steps a history has until the rows of each of its dynamic tables have changed. If one still has not, the tables
that it reads are emptied: it had rows when it was made."""
QUERIES_DRAWN_MAX = 50
TYPES = {"INSERT", "DELETE", "UPDATE_AFTER"}
"""The types of change that a run must have met."""

Group = tuple[int, tuple[str, ...]]


def groups() -> list[Group]:
    """Histories, each with the forms of the dynamic tables over it."""
    found: list[Group] = []
    for number in range(HISTORIES):
        forms = sample(f"forms of dynamic tables {number}", list(FORMS), TABLES_PER_HISTORY)
        random.Random(f"{SEED} {number}").shuffle(forms)
        found += [(number, tuple(forms[i : i + TABLES_PER_HISTORY])) for i in range(0, len(forms), TABLES_PER_HISTORY)]
    return found


@dataclass
class Run:
    """What a run has met; looked at by the last test."""

    refreshes: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)


@pytest.fixture(scope="module")
def run() -> Run:
    return Run()


@dataclass
class Dynamic:
    """A dynamic table under test. `reads`: what its places stand for: the name of a base table, another dynamic table, or both by a view
    (then `via` is the view's text)."""

    name: str
    query: Query
    reads: list[Base | Dynamic]
    first: Image | None = None
    last: Image | None = None
    via: dict[int, str] = field(default_factory=dict)

    def text(self) -> str:
        """Its query over each base table at the version that DESC named when the last image was taken."""
        assert self.last is not None
        at = versions(self.last.facts)
        places = {}
        for i, read in enumerate(self.reads):
            if isinstance(read, Dynamic):
                columns = ", ".join(c for c in ("id", "a", "b", "s", "m"))
                places[f"t{i}"] = f"(SELECT {columns} FROM ({read.text()}))"
            elif f"{{t{i}}}" in self.query.text:
                (version,) = [v for part, v in at.items() if part_of(part, read)]
                places[f"t{i}"] = f"(SELECT id, a, b, s, m FROM {read.name} VERSION AS OF {version})"
            if i in self.via and f"t{i}" in places:
                places[f"t{i}"] = f"({self.via[i].format(t=places[f't{i}'])})"
        return self.query.text.format(**places)


def part_of(part: str, base: Base) -> bool:
    """Whether a position's name for a table is the table's, by the name that it had."""
    return part.rstrip("x") == base.name.rstrip("x")


BELOW = "SELECT id, a, b + 1 AS b, s, m FROM {t0} WHERE b <> 4"
VIEW = "SELECT id, a, b, upper(s) AS s, m FROM {t} WHERE b IS NOT NULL"


class Story:
    """One history with its dynamic tables."""

    def __init__(self, spark: SparkSession, run: Run, number: int, forms: tuple[str, ...]) -> None:
        self.spark, self.run, self.forms = spark, run, forms
        self.rng = random.Random(f"{SEED} {number} {forms}")
        self.schema = fresh_schema(spark, "dynamic")
        self.writer = DynamicWriter(spark, self.rng, self.schema)
        self.bases = [self.writer.create(f"{self.schema}.t{i}") for i in range(self.rng.randint(2, 4))]
        self.tables: list[Dynamic] = []

    def sql(self, text: str) -> list[tuple[object, ...]]:
        self.writer.done.append(text)
        try:
            return [tuple(row) for row in streamql.sql(text, self.spark).collect()]
        except Exception as e:
            raise AssertionError(f"{self.told}\n{type(e).__name__} {str(e)[:3000]}") from e

    @property
    def told(self) -> str:
        return ";\n".join(self.writer.done)

    def create(self) -> None:
        """A dynamic table below, and one of each form over the tables, that one, and views of them."""
        below = Dynamic(f"{self.schema}.below", Query("below", BELOW), [self.bases[0]])
        self.make(below)
        for i, form in enumerate(self.forms):
            self.make(self.drawn(f"{self.schema}.d{i}", form, [*self.bases, below]))

    def drawn(self, name: str, form: str, reads: list[Base | Dynamic]) -> Dynamic:
        """A dynamic table of the form that has rows: the rows of an empty one would hardly ever change."""
        for _ in range(QUERIES_DRAWN_MAX):
            query = Maker(self.rng, len(reads)).query(form)
            if "COLLATE" in query.text:  # Delta refuses to store such a column
                continue
            via = {i: VIEW for i in range(len(reads)) if self.rng.random() < 0.2}
            places = {
                f"t{i}": f"({via[i].format(t=read.name)})" if i in via else read.name for i, read in enumerate(reads)
            }
            if self.spark.sql(query.text.format(**places)).head(1):
                return Dynamic(name, query, reads, via=via)
        raise AssertionError(f"{self.told}\nno query of the form {form} has rows")

    def make(self, table: Dynamic) -> None:
        names = {}
        for i, read in enumerate(table.reads):
            names[f"t{i}"] = read.name
            if i in table.via:
                names[f"t{i}"] = f"{table.name}_v{i}"
                self.sql(f"CREATE VIEW {names[f't{i}']} AS {table.via[i].format(t=read.name)}")
        columns = f"({', '.join(f'`{c}`' for c in table.query.columns)}) " if table.query.columns else ""
        self.sql(f"CREATE DYNAMIC TABLE {table.name} {columns}AS {table.query.text.format(**names)}")
        self.sql(f"CREATE STREAM {table.name}_s ON DYNAMIC TABLE {table.name}")
        table.first = table.last = image(self.spark, table.name)
        self.tables.append(table)
        self.compare(table)
        self.verify(table)

    def renew_views(self) -> None:
        """A view casts its columns to the types that they had: it must be told of other types."""
        self.writer.is_reshaped = False
        self.sql(f"REFRESH DYNAMIC TABLE {self.tables[0].name}")
        for table in self.tables:
            for i, text in table.via.items():
                self.sql(f"CREATE OR REPLACE VIEW {table.name}_v{i} AS {text.format(t=table.reads[i].name)}")

    def leave(self, table: Dynamic, error: StreamqlError) -> None:
        """Drops a table whose query Spark itself cannot read over columns of other types, such as date_add() of a BIGINT."""
        names = {f"t{i}": f"{table.name}_v{i}" if i in table.via else r.name for i, r in enumerate(table.reads)}
        told = f"{self.told}\n{table.name}: {error}"
        assert error.code == "STREAM_SOURCE_MISSING", told
        with pytest.raises(AnalysisException):
            self.spark.sql(table.query.text.format(**names))
        self.sql(f"DROP STREAM {table.name}_s")
        self.sql(f"DROP DYNAMIC TABLE {table.name}")
        self.tables.remove(table)
        self.run.changed[table.query.form] += 1

    def step(self) -> None:
        """Changes the tables at random, and refreshes all dynamic ones."""
        for _ in range(OPERATIONS_PER_STEP):
            i = self.rng.randrange(len(self.bases))
            before = self.bases[i]
            self.bases[i] = self.writer.change(before)
            for table in self.tables:
                table.reads = [self.bases[i] if read is before else read for read in table.reads]
                if self.bases[i].name != before.name:
                    self.follow(table, i)
            if self.writer.is_reshaped:
                self.renew_views()
        self.refresh()

    def empty(self) -> None:
        """Empties the tables, and refreshes all dynamic ones."""
        for base in self.bases:
            self.writer.empty(base)
        self.refresh()

    def change_a_row(self) -> None:
        """Changes a row of the table below by each type of change, and refreshes all dynamic ones after each."""
        for _ in self.writer.life_of_a_row(self.bases[0]):
            self.refresh()

    def refresh(self) -> None:
        for table in list(self.tables):
            self.writer.done.append(f"REFRESH DYNAMIC TABLE {table.name}")
            try:
                streamql.sql(self.writer.done[-1], self.spark)
            except StreamqlError as e:
                self.leave(table, e)
        for table in self.tables:
            self.look(table)

    def follow(self, table: Dynamic, place: int) -> None:
        """A view names its tables: it must be told of another name."""
        if place in table.via:
            text = table.via[place].format(t=self.bases[place].name)
            self.sql(f"CREATE OR REPLACE VIEW {table.name}_v{place} AS {text}")

    def look(self, table: Dynamic) -> None:
        """After a refresh: the rows are the query's, and rows that live on have their ids."""
        now = image(self.spark, table.name)
        assert table.last is not None
        try:
            changes = between(table.last.by_id, now.by_id)
            if not self.is_filled_anew(table):  # else another row may have a key
                between(table.last, now)
        except AssertionError as e:
            raise AssertionError(f"{self.told}\n{table.name}: {e}") from e
        self.run.changed[table.query.form] += bool(changes.types)
        self.run.types += changes.types
        self.run.refreshes += 1
        table.last = now
        self.compare(table)
        if IS_LONG:
            self.verify(table)

    def is_filled_anew(self, table: Dynamic) -> bool:
        """Whether its last refresh was for another reason than changes of what it reads."""
        history = self.sql(f"SHOW DYNAMIC TABLE REFRESH HISTORY FOR {table.name}")
        return history[0][3] != "its sources changed"

    def compare(self, table: Dynamic) -> None:
        text = table.text()
        want, have = bag(self.spark, text), bag(self.spark, f"SELECT * FROM {table.name}")
        story = f"{self.told}\n{table.name}: {text}"
        assert want == have, f"{story}\nmissing: {want - have}\nunexpected: {have - want}"

    def verify(self, table: Dynamic) -> None:
        """VERIFY says what `compare` and `look` have found."""
        assert table.last is not None
        verdict = self.sql(f"VERIFY DYNAMIC TABLE {table.name}")[0]
        want = ("EQUAL", table.last.bag.total(), 0, 0)
        assert verdict[1:5] == want, f"{self.told}\n{table.name}: {verdict}"

    def end(self) -> None:
        """The stream that was made at the beginning makes the last image of the first."""
        for table in self.tables:
            assert table.first is not None
            assert table.last is not None
            self.verify(table)
            want = between(table.first.by_id, table.last.by_id)
            have = shown(self.spark, f"{table.name}_s")
            assert want == have, f"{self.told}\n{table.name}\n{want}\n{have}"
            left = table.first.bag
            left.subtract(have.removed)
            left.update(have.added)
            assert +left == table.last.bag
        for table in reversed(self.tables):
            self.sql(f"DROP STREAM {table.name}_s")
            self.sql(f"DROP DYNAMIC TABLE {table.name}")
        self.run.operations += self.writer.operations
        self.spark.sql("USE default")
        self.spark.sql(f"DROP SCHEMA {self.schema} CASCADE")


@pytest.mark.parametrize(("number", "forms"), groups(), ids=lambda value: re.sub(r"[^\w,]+", " ", str(value)).strip())
def test_refreshed_tables_equal_their_queries(
    spark: SparkSession, run: Run, number: int, forms: tuple[str, ...]
) -> None:
    story = Story(spark, run, number, forms)
    story.create()
    for _ in range(STEPS):
        story.step()
    for _ in range(STEPS_UNCHANGED_MAX):
        if all(run.changed[form] for form in forms):
            break
        story.step()
    else:
        story.empty()
    if not run.types.keys() >= TYPES:
        story.change_a_row()
    story.end()


def test_the_run_met_what_it_should(run: Run) -> None:
    """Each form's rows have changed, and rows have changed by each type."""
    print(f"\n{run.refreshes} refreshes; not empty: {dict(run.changed)}; {dict(run.types)}; {dict(run.operations)}")
    wanted = {form for _, forms in groups() for form in forms}
    if run.refreshes < len(groups()) * STEPS:
        pytest.skip("a part of the run, or one with failures")
    for form in wanted:
        assert run.changed[form], f"no change of {form}"
    assert run.types.keys() >= TYPES
