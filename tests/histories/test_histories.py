"""Every window of random histories against every oracle that can say something of it.

pytest tests/histories/test_histories.py                                        # a sample: four of six histories, of each some windows
STREAMQL_LONG=1 pytest tests/histories/test_histories.py                        # all of them
STREAMQL_LONG=20000 pytest tests/histories/test_histories.py                    # or: --long 20000
STREAMQL_HISTORIES=7 STREAMQL_WINDOW=3:9 pytest tests/histories/test_histories.py # one window of one history
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.changes import plan
from streamql.errors import StreamqlError
from streamql.model import StreamMode, Versions
from tests.lines import HAS_CHANGES
from tests.sample import IS_LONG, amount, sample
from tests.small import INTERPRETED

from . import oracles, subject
from .histories import make_history
from .oracles import Bag, Change
from .recording import READERS, SEVERAL_TASKS, Recording, record
from .spark_oracles import changelog

HISTORIES = 6
ALIKE = ((0, 4), (1, 5), (2,), (3,))
"""Histories that take paths of one type: one of each meets every plan and operation that a run must meet."""
WINDOWS_MIN = amount(25, 500)
CHANGELOG_WINDOWS_MIN = 10 if IS_LONG else 4
WINDOWS_PER_HISTORY = 90
WINDOWS_SAMPLED = 2
REQUIRED_OPERATIONS = ("INSERT", "UPDATE", "DELETE", "MERGE", "RESTORE", "OPTIMIZE", "REPLACE WHERE", "ADD COLUMN")
APPENDS_EVERY = 3
COMPILED_EVERY = 4
"""One window in so many is read by compiled code, as in production; compiling takes longer than these windows take to read."""
CHANGELOG_EVERY = 12 if IS_LONG else 32
"""Spark's own net changes are asked for one window in so many: each costs as much as the subject."""


def seeds(config: pytest.Config) -> list[int]:
    """The histories to run: those asked for, or as many as the windows wanted need; in a sample, one of those that are alike."""
    if named := os.environ.get("STREAMQL_HISTORIES"):
        return [int(seed) for seed in named.split(",")]
    windows = config.getoption("--long", 0) or amount(0, 0)
    if not windows and not IS_LONG:
        return [seed for alike in ALIKE for seed in sample(f"histories like {alike[0]}", alike, 1)]
    count = max(HISTORIES, -(-windows // WINDOWS_PER_HISTORY))
    return list(range(count))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds(metafunc.config))


@dataclass
class Run:
    """What a whole run has met; looked at by the last test."""

    windows: int = 0
    refused: int = 0
    histories: int = 0
    plans: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    oracles: Counter[str] = field(default_factory=Counter)


class Recorder:
    """Runs the next history while the windows of this one are checked."""

    def __init__(self, spark: SparkSession, scratch: Path, todo: list[int]) -> None:
        self._spark, self._scratch, self._todo = spark, scratch, list(todo)
        self._pool = ThreadPoolExecutor(1)
        self._ahead: dict[int, Future[Recording]] = {}

    def take(self, seed: int) -> Recording:
        recording = self._ahead.pop(seed, None) or self._start(seed)
        done = recording.result()
        later = [s for s in self._todo[self._todo.index(seed) + 1 :][:1] if s not in self._ahead]
        self._ahead.update({s: self._start(s) for s in later})
        return done

    def _start(self, seed: int) -> Future[Recording]:
        path = str(self._scratch / f"history {seed}")
        return self._pool.submit(lambda: record(self._spark, make_history(seed), path))

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def run() -> Run:
    return Run()


@pytest.fixture(scope="module")
def recorder(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Recorder]:
    made = Recorder(spark, tmp_path_factory.mktemp("histories"), seeds(request.config))
    yield made
    made.close()


def fail(recording: Recording, window: tuple[int, int], what: str, details: str) -> None:
    after, through = window
    seed = recording.history.seed
    command = f"STREAMQL_HISTORIES={seed} STREAMQL_WINDOW={after}:{through} pytest tests/histories/test_histories.py"
    text = f"{what}: seed {seed}, window ({after}, {through}]\n{details}\n{recording.describe(after, through)}"
    pytest.fail(f"{text}\nAgain: {command}", pytrace=False)


def without_versions(bag: Bag) -> Bag:
    """Types and values only."""
    out: Bag = Counter()
    for change, count in bag.items():
        out[Change(change.change_type, 0, None, change.values)] += count
    return out


def paired_values_differ(bag: Bag) -> Bag:
    """Spark's changelog keeps pairs of equal images: an UPDATE_BEFORE and an UPDATE_AFTER of one value cancel."""
    out = Counter(bag)
    for change in bag:
        if change.change_type == "UPDATE_BEFORE":
            twin = Change("UPDATE_AFTER", change.commit_version, change.commit_time, change.values)
            common = min(out[change], out[twin])
            out[change] -= common
            out[twin] -= common
    return +out


class Checker:
    """Checks the windows of one recorded history."""

    def __init__(self, spark: SparkSession, recording: Recording, run: Run) -> None:
        self.spark, self.recording, self.run = spark, recording, run
        self.interpreted = spark.newSession()
        for key, value in (*INTERPRETED, *SEVERAL_TASKS):
            self.interpreted.conf.set(key, value)
        self.rng = random.Random(recording.history.seed)

    def sampled(self, windows: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The windows to check: all in a long run; else one of each plan, so that the sample misses none, and a sample of all."""
        if IS_LONG:
            return windows
        label = f"windows of {self.recording.history.seed}"
        plan_name = subject.quick_plans(self.interpreted, self.recording.path)
        by_plan: dict[tuple[str, bool], list[tuple[int, int]]] = {}
        for window in windows:
            of_plan = plan_name(Versions(*window)), oracles.narrows(self.recording, *window)
            by_plan.setdefault(of_plan, []).append(window)
        chosen = {w for of_plan, group in by_plan.items() for w in sample(f"{label}, {of_plan}", group, 1)}
        chosen |= set(sample(label, windows, WINDOWS_SAMPLED))
        return [w for w in windows if w in chosen]

    def modes(self, window: tuple[int, int]) -> list[StreamMode]:
        """STANDARD always; APPEND_ONLY, which depends on less, for a part of the windows."""
        appends = sum(window) % APPENDS_EVERY == 0 and subject.HAS_APPEND_ONLY
        return [StreamMode.STANDARD, StreamMode.APPEND_ONLY] if appends else [StreamMode.STANDARD]

    def check(self, window: tuple[int, int]) -> None:
        after, through = window
        for mode in self.modes(window):
            expected = self.agreed(window, mode)
            actual = self.actual(Versions(*window), mode)
            if actual is None:
                self.run.refused += 1
                continue
            if report := oracles.differences(expected, actual):
                fail(self.recording, window, f"wrong {mode.value} change set", report)
            if mode is StreamMode.STANDARD and (left := oracles.unapplied(self.recording, actual, after, through)):
                fail(self.recording, window, "old table + change set is not the new table", repr(left)[:2000])
        self.run.windows += 1

    def agreed(self, window: tuple[int, int], mode: StreamMode) -> Bag:
        """What the oracles say; their disagreement is a failure of its own."""
        standard = mode is StreamMode.STANDARD
        expected = (oracles.snapshot_changes if standard else oracles.snapshot_appends)(self.recording, *window)
        modelled = oracles.python_table(self.recording, *window, appends=not standard)
        if report := oracles.differences(modelled, oracles.without_unmodelled(self.recording, expected, window[1])):
            fail(self.recording, window, f"the plain-Python table and the snapshots disagree ({mode.value})", report)
        self.run.oracles.update(["snapshots", "python table"])
        return expected

    def actual(self, interval: Versions, mode: StreamMode) -> Bag | None:
        """What the subject says; None where it refuses a window that it may refuse."""
        window = (interval.after, interval.through)
        spark = self.interpreted if sum(window) % COMPILED_EVERY else self.spark
        try:
            if plan := subject.plan_of(spark, self.recording.path, interval, mode):
                self.run.plans[plan] += 1
            return subject.collected(spark, self.recording.log, interval, mode)
        except StreamqlError as error:
            if error.code == "INCOMPATIBLE_SCHEMA_CHANGE" and oracles.narrows(self.recording, *window):
                return None
            fail(self.recording, window, f"{mode.value}: {error.code}", str(error))
        except Exception as error:
            fail(self.recording, window, f"{mode.value}: {type(error).__name__}", str(error)[:3000])
        raise AssertionError("unreachable")

    def check_changelog(self, window: tuple[int, int]) -> None:
        """Spark's own net changes against the snapshots: oracle against oracle."""
        try:
            theirs = changelog(self.spark, self.recording.log, *window)
        except Exception as error:
            if "ArrayIndexOutOfBoundsException" in str(error) and "DeltaParquetFileFormat" in str(error):
                return  # Delta 4.4's reader of CHANGES fails on the row commit versions of some files: this oracle says nothing
            fail(self.recording, window, "Spark's CHANGES failed", str(error)[:3000])
        if theirs is None:
            return
        ours = without_versions(oracles.snapshot_changes(self.recording, *window))
        if report := oracles.differences(ours, paired_values_differ(theirs)):
            fail(self.recording, window, "Spark's CHANGES and the snapshots disagree", report)
        self.run.oracles["CHANGES"] += 1

    def check_initial(self, window: tuple[int, int]) -> None:
        """A first read of SHOW_INITIAL_ROWS."""
        for mode in StreamMode:
            expected = oracles.initial_rows(self.recording, *window, mode)
            actual = self.actual(Versions(*window, initial=True), mode)
            if actual is not None and (report := oracles.differences(expected, actual)):
                fail(self.recording, window, f"wrong initial rows, {mode.value}", report)


@pytest.mark.every_case
def test_every_window_of_a_history(
    spark: SparkSession, recorder: Recorder, run: Run, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # a path for large files, taken for these as well
        monkeypatch.setattr(plan, "CARRIED_BYTES_MIN", 1)
    if seed % 4 >= 2:  # and shuffles, though there is little to be shuffled
        monkeypatch.setattr(plan, "ONE_TASK_BYTES_MAX", -1)
    recording = recorder.take(seed)
    checker = Checker(spark, recording, run)
    compared = list(recording.windows())[seed % CHANGELOG_EVERY :: CHANGELOG_EVERY]
    windows = checker.sampled(list(recording.windows()))
    if only := os.environ.get("STREAMQL_WINDOW"):
        after, through = only.split(":")
        windows = compared = [(int(after), int(through))]
    with ThreadPoolExecutor(READERS) as pool:
        list(pool.map(checker.check, windows))
        if HAS_CHANGES:
            list(pool.map(checker.check_changelog, compared))
    if subject.HAS_INITIAL:
        latest = recording.log.latest
        for window in sample(f"first reads of {seed}", ((0, latest), (latest, latest), (1, latest // 2 + 1)), 1):
            checker.check_initial(window)
    run.histories += 1
    run.operations.update(op.label for op in recording.history.operations)
    shutil.rmtree(recording.path)


def test_the_run_met_what_it_should(run: Run, request: pytest.FixtureRequest) -> None:
    """A plan that was never taken, an operation never made, or too few windows: then the run says little."""
    print(f"\n{run}")
    if os.environ.get("STREAMQL_HISTORIES") or run.histories < len(seeds(request.config)):
        pytest.skip("a part of the run, or one with failures")
    assert run.windows >= WINDOWS_MIN
    assert not HAS_CHANGES or run.oracles["CHANGES"] >= CHANGELOG_WINDOWS_MIN
    for label in REQUIRED_OPERATIONS:
        assert run.operations[label], f"no {label} in any history"
    if subject.HAS_PLANS:
        assert subject.REQUIRED_PLANS.issubset(run.plans), f"plans taken: {run.plans}"
