"""Random views over random histories of two to four tables, between any two points, against images of the view by time travel.

pytest tests/views/test_histories.py                        # a sample
STREAMQL_LONG=1 pytest tests/views/test_histories.py        # about a thousand windows
STREAMQL_LONG=20000 pytest tests/views/test_histories.py    # that many windows
STREAMQL_SEED=7 pytest tests/views/test_histories.py        # other ones
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from pyspark.sql import SparkSession

from streamql.changes import plan
from streamql.model import StreamMode
from streamql.sources.views.query import OpenQuery
from tests.consume.support import fresh_schema
from tests.histories.recording import READERS, SEVERAL_TASKS, conf
from tests.sample import IS_LONG, SEED, amount, sample
from tests.small import INTERPRETED
from tests.views import subject
from tests.views.bases import LATER, Base, Writer, history
from tests.views.oracle import Changes, Oracle, Position, bag, changes, inserts
from tests.views.views import FORMS, Maker, Select, Text, operators

WINDOWS_PER_VIEW = 4 if IS_LONG else 2
CHECKS_PER_VIEW = 2 * WINDOWS_PER_VIEW
STEPS = 18
HISTORIES = max(1, -(-amount(1, 1000) // (len(FORMS) * CHECKS_PER_VIEW)))
FORMS_SAMPLED = 3
TRIES = 20
COMMITS_IN_BATCHES = 3
"""Of each table, its last ones: to find the end of a batch, its rows are counted several times."""
ALL_LABELS = {"filter", "comma join", "named view", "WITH", "projection", "FROM-subquery"}
OPERATIONS = (
    "INSERT",
    "UPDATE",
    "UPDATE key",
    "UPDATE in vain",
    "DELETE",
    "MERGE",
    "INSERT OVERWRITE",
    "RESTORE",
    "OPTIMIZE",
    "ADD COLUMN",
)
CASES = [(n, form) for n in range(HISTORIES) for form in sample("forms of views", list(FORMS), FORMS_SAMPLED)]
STANDARD, APPEND_ONLY = StreamMode.STANDARD, StreamMode.APPEND_ONLY


@dataclass
class Run:
    """What a run has met; looked at by the last test."""

    views: int = 0
    windows: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)

    def count(self, labels: list[str], expected: Changes) -> None:
        """Notes a window that was checked, and of what it had changes."""
        self.windows += 1
        for label in labels if not expected.is_empty else ():
            self.changed[label] += 1


@pytest.fixture(scope="module")
def run() -> Run:
    return Run()


@pytest.fixture(scope="module", autouse=True)
def quick(spark: SparkSession) -> Iterator[None]:
    """Plans are interpreted, and shuffles are real ones."""
    with conf(spark, (*INTERPRETED, *SEVERAL_TASKS)):
        yield


@dataclass
class Checker:
    """A view with its oracle, and the windows of it that were checked."""

    run: Run
    oracle: Oracle
    source: OpenQuery
    rng: random.Random
    labels: list[str]
    story: str

    def point(self, low: Position | None = None) -> dict[str, int]:
        """A version of each table, none before those in `low`."""
        bases = self.oracle.bases
        return {t: self.rng.randint(low[t] if low else 1, bases[t].latest) for t in self.oracle.tables}

    def windows(self) -> list[tuple[dict[str, int], dict[str, int]]]:
        """All that there is, a window of one table's changes, and some others."""
        bases, tables = self.oracle.bases, self.oracle.tables
        latest = {t: bases[t].latest for t in tables}
        found = [(dict.fromkeys(tables, 0), latest)]
        one = self.rng.choice(tables)
        begin = self.point()
        found.append((begin | {one: self.rng.randint(0, bases[one].latest)}, begin | {one: latest[one]}))
        while len(found) < WINDOWS_PER_VIEW:
            found.append(self.window())
        return found

    def window(self) -> tuple[dict[str, int], dict[str, int]]:
        """A window up to a point where the view has rows, if it has some at one of ten points. Its tables may be empty by now."""
        for _ in range(10):
            after = self.point()
            through = self.point(after)
            if self.oracle.image(through):
                break
        return after, through

    def check(self, number: int, window: tuple[dict[str, int], dict[str, int]]) -> None:
        """Both modes, and of every other window a first read with SHOW_INITIAL_ROWS."""
        after, through = window
        begin, end = self.oracle.image(after), self.oracle.image(through)
        expected = changes(self.oracle, begin, end)
        self.compare(expected, window, STANDARD)
        left = bag(begin)
        left.subtract(values for (_, values) in expected.old.elements())
        left.update(values for (_, values, _, _) in expected.new.elements())
        assert +left == bag(end)
        appended = self.oracle.appended(after, through)
        self.compare(inserts(self.oracle, appended), window, APPEND_ONLY)
        if number % 2 == 0:
            self.compare(inserts(self.oracle, end), window, STANDARD, initial=True)
            self.compare(inserts(self.oracle, begin, appended), window, APPEND_ONLY, initial=True)

    def compare(
        self, expected: Changes, window: tuple[Position, Position], mode: StreamMode, *, initial: bool = False
    ) -> None:
        """Reads a window, and fails with the whole history if it is another than expected."""
        read = subject.interval(self.source, *window, initial=initial)
        try:
            actual = subject.read(self.source, read, mode)
        except Exception as e:
            raise AssertionError(f"{self.story}\n{mode} {read}: {type(e).__name__} {str(e)[:3000]}") from e
        for title in ("new", "old", "updates"):
            want, have = getattr(expected, title), getattr(actual, title)
            assert want == have, (
                f"{self.story}\n{mode} {read}, {title}\nmissing: {want - have}\nunexpected: {have - want}"
            )
        extra = [mode.value] if mode is APPEND_ONLY else []
        self.run.count([*self.labels, *extra, *([f"initial {mode.value}"] if initial else [])], expected)

    def check_batches(self, size: int) -> None:
        """Batches of the last commits: each is short enough or one commit, and together they are the whole."""
        latest = {t: self.oracle.bases[t].latest for t in self.oracle.tables}
        at = start = {t: max(0, version - COMMITS_IN_BATCHES) for t, version in latest.items()}
        left = bag(self.oracle.image(start))
        while at != latest:
            rest = subject.interval(self.source, at, latest)
            end = subject.versions(self.source, self.source.batch_end(rest, STANDARD, size))
            found = subject.read(self.source, subject.interval(self.source, at, end), STANDARD)
            rows = found.new.total() + found.old.total()
            assert rows <= size or sum(end.values()) == sum(at.values()) + 1, (self.story, at, end, rows)
            assert end != at
            left.subtract(values for (_, values) in found.old.elements())
            left.update(values for (_, values, _, _) in found.new.elements())
            at = end
            self.run.count([*self.labels, "batches"], found)
        assert +left == bag(self.oracle.image(latest)), self.story


class Histories:
    """The tables of each number, made when the first view on them is."""

    def __init__(self, spark: SparkSession, run: Run) -> None:
        self.spark, self.run = spark, run
        self._made: dict[int, tuple[str, list[Base], Writer]] = {}

    def take(self, number: int) -> tuple[str, list[Base], Writer]:
        """A schema, its tables, and what was done to them."""
        if number not in self._made:
            self.drop()
            schema = fresh_schema(self.spark, "views")
            tables, writer = history(self.spark, random.Random(f"{SEED} {number}"), schema, STEPS)
            self.run.operations += writer.operations
            self._made[number] = schema, tables, writer
        return self._made[number]

    def drop(self) -> None:
        """Removes the tables."""
        self.spark.sql("USE default")
        for schema, _, _ in self._made.values():
            self.spark.sql(f"DROP SCHEMA {schema} CASCADE")
        self._made.clear()


@pytest.fixture(scope="module")
def histories(spark: SparkSession, run: Run) -> Iterator[Histories]:
    made = Histories(spark, run)
    yield made
    made.drop()


@pytest.mark.every_case
@pytest.mark.parametrize(("number", "form"), CASES)
def test_every_window_shows_the_least_changes(
    spark: SparkSession, run: Run, histories: Histories, number: int, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, tables, writer = histories.take(number)
    rng = random.Random(f"{SEED} {number} {form}")
    if rng.random() < 0.5:  # a plan for large files, taken for these as well
        monkeypatch.setattr(plan, "CARRIED_BYTES_MIN", 1)
    if rng.random() < 0.5:  # and shuffles, though there is little to be shuffled
        monkeypatch.setattr(plan, "ONE_TASK_BYTES_MAX", -1)
    bases, logs = {b.name: b for b in tables}, {b.name: b.log() for b in tables}
    later = {name for name, log in logs.items() if any(c.name == LATER for c in log.columns[-1])}
    maker = Maker(rng, f"{schema}.v{list(FORMS).index(form)}", list(bases), later)
    for _ in range(TRIES):  # until it has rows at some point
        view = maker.view(form)
        story = created(spark, maker.prefix, view)
        oracle = Oracle(spark, view, bases, logs)
        points = [{t: rng.randint(b.latest // 2, b.latest) for t, b in bases.items()} for _ in range(2)]
        if any(oracle.image(at) for at in points):
            break
    labels = [form, *operators(view)]
    checker = Checker(run, oracle, subject.opened(spark, maker.prefix), rng, labels, "\n".join([*writer.done, *story]))
    with ThreadPoolExecutor(READERS) as pool:
        list(pool.map(checker.check, range(WINDOWS_PER_VIEW), checker.windows()))
    checker.check_batches(rng.choice((1, 3, 10, 1000)))
    run.views += 1


def created(spark: SparkSession, name: str, view: Select) -> list[str]:
    """Makes a view, and those that it reads; the statements."""
    text = Text()
    outer = text.query(view)
    story = [f"CREATE OR REPLACE VIEW {inner} AS {query}" for inner, query in [*text.views, (name, outer)]]
    for statement in story:
        spark.sql(statement)
    return story


def test_the_run_met_what_it_should(run: Run) -> None:
    """An operator whose views never changed, or an operation never made: then the run says little."""
    print(f"\n{run.windows} windows of {run.views} views; not empty: {dict(run.changed)}; {dict(run.operations)}")
    if run.views < len(CASES):
        pytest.skip("a part of the run, or one with failures")
    labels = {form for _, form in CASES} | {APPEND_ONLY.value, "batches"}
    # Of the few windows of a short run, those that are read with initial rows may all end where a history has emptied the tables.
    initial = {"initial STANDARD", "initial APPEND_ONLY"} if IS_LONG else set()
    assert run.windows >= len(CASES) * CHECKS_PER_VIEW
    for label in labels | initial | (ALL_LABELS if IS_LONG else set()):
        assert run.changed[label], f"no change of {label}"
    for label in OPERATIONS if IS_LONG else ():
        assert run.operations[label], f"no {label}"
