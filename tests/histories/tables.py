"""A table for hand-written scenarios: run statements, then ask for its changes, checked against the snapshots."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cached_property

from pyspark.sql import SparkSession

from streamql.model import StreamMode, Versions

from . import oracles, subject
from .oracles import Bag
from .recording import Image, TableLog, conf, latest_version, read_log, read_snapshot, sql_name

TRACKED = "'delta.enableRowTracking' = 'true', 'delta.enableInCommitTimestamps' = 'true'"

ROW_GROUPS = (("parquet.block.size", "65536"),)
"""Row groups of 64 KiB: a dozen in a file of 20,000 short rows."""

Rows = list[tuple[object, ...]]


class LazySnapshots:
    """Reads a version when it is asked for, once."""

    def __init__(self, spark: SparkSession, log: Callable[[], TableLog]) -> None:
        self._spark, self._log = spark, log
        self._known: dict[int, dict[int, Image]] = {}

    def know(self, version: int, rows: dict[int, Image]) -> None:
        """Takes a version as read elsewhere."""
        self._known[version] = rows

    def __getitem__(self, version: int, /) -> dict[int, Image]:
        if version not in self._known:
            self._known[version] = read_snapshot(self._spark, self._log(), version)
        return self._known[version]


class Table:
    """A Delta table at a path; `{t}` in statements stands for it."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark, self.path = spark, path
        self.start = -1
        self.rows = 0

    @property
    def log(self) -> TableLog:
        return read_log(self.path)

    @cached_property
    def snapshots(self) -> LazySnapshots:
        return LazySnapshots(self.spark, lambda: self.log)

    @property
    def version(self) -> int:
        return latest_version(self.path)

    def run(self, *statements: str, settings: tuple[tuple[str, str], ...] = ()) -> int:
        """Runs statements; the version after them."""
        with conf(self.spark, settings):
            for text in statements:
                self.spark.sql(text.replace("{t}", sql_name(self.path)))
        return self.version

    def create(self, columns: str, *, clauses: str = "", properties: str = "") -> None:
        """Makes the table, with row tracking and in-commit timestamps."""
        more = f", {properties}" if properties else ""
        self.run(f"CREATE TABLE {{t}} ({columns}) USING DELTA {clauses} TBLPROPERTIES ({TRACKED}{more})")

    def fill(self, select: str) -> None:
        """Inserts the rows a scenario starts from, and takes the version after as its start."""
        self.start = self.run(f"INSERT INTO {{t}} {select}", settings=ROW_GROUPS)
        self.rows = self.spark.sql(f"SELECT 1 FROM {sql_name(self.path)}").count()

    def copy(self, path: str) -> Table:
        """The same table at another place: Delta's log names files relative to it. Cheaper than making it again."""
        shutil.copytree(self.path, path)
        made = Table(self.spark, path)
        made.start, made.rows = self.start, self.rows
        made.snapshots.know(self.start, self.snapshots[self.start])
        return made

    def bag(self, after: int, through: int, mode: StreamMode = StreamMode.STANDARD) -> Bag:
        """The subject's change set, which must be what the snapshots say."""
        standard = mode is StreamMode.STANDARD
        expected = (oracles.snapshot_changes if standard else oracles.snapshot_appends)(self, after, through)
        actual = subject.collected(self.spark, self.log, Versions(after, through), mode)
        report = oracles.differences(expected, actual)
        assert not report, f"not what the snapshots say of ({after}, {through}], {mode.value}:\n{report}"
        return actual

    def net(self, after: int | None = None, through: int | None = None, mode: StreamMode = StreamMode.STANDARD) -> Rows:
        """The change set as (type, commits after the start, *values), sorted."""
        first = self.start if after is None else after
        bag = self.bag(first, self.version if through is None else through, mode)
        rows = [(c.change_type, c.commit_version - self.start, *c.values) for c in bag.elements()]
        return sorted(rows, key=repr)

    def appended(self, after: int | None = None, through: int | None = None) -> Rows:
        """The same for APPEND_ONLY."""
        return self.net(after, through, StreamMode.APPEND_ONLY)

    def counts(self, after: int | None = None) -> dict[str, int]:
        """How many changes of each type since the start."""
        found: dict[str, int] = {}
        for row in self.net(after):
            found[str(row[0])] = found.get(str(row[0]), 0) + 1
        return found

    def plan(self, mode: StreamMode = StreamMode.STANDARD) -> str | None:
        """The plan taken since the start, where the subject tells."""
        return subject.plan_of(self.spark, self.path, Versions(self.start, self.version), mode)
