"""Runs a history on Spark, and reads back what it left: versions, schemas, commit times, snapshots with row ids.

Schemas and times come from the commit files themselves, snapshots from public SQL (`VERSION AS OF`): none of it goes
through the code under test.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession

from tests.small import INTERPRETED

from .columns import canonical
from .histories import History
from .model import TableState
from .operations import Restore

READERS = 2


@dataclass(frozen=True)
class LogColumn:
    """A column as a version of the table has it: its name, its name inside files, its type as the log spells it."""

    name: str
    physical: str
    type: object


@dataclass(frozen=True)
class Image:
    """A row at one version: the version that wrote it, and its canonical values by physical column name."""

    commit_version: int
    values: dict[str, Hashable]


@dataclass(frozen=True)
class TableLog:
    """What the commit files say: of each version its columns, its time, its operation."""

    path: str
    columns: tuple[tuple[LogColumn, ...], ...]
    times: tuple[dt.datetime, ...]
    operations: tuple[str, ...]

    @property
    def latest(self) -> int:
        return len(self.columns) - 1


@dataclass(frozen=True)
class Recording:
    """A history that has run. `step_versions[i]` are the versions that step i made, maybe none."""

    history: History
    log: TableLog
    step_versions: tuple[tuple[int, ...], ...]
    snapshots: tuple[dict[int, Image], ...] = field(repr=False)

    @property
    def path(self) -> str:
        return self.log.path

    def step_of(self, version: int) -> int:
        return next(i for i, versions in enumerate(self.step_versions) if version in versions)

    def state_at(self, version: int) -> TableState:
        return self.history.states[self.step_of(version)]

    def windows(self) -> Iterator[tuple[int, int]]:
        """Every pair of versions, shortest first."""
        latest = self.log.latest
        yield from ((a, a + length) for length in range(1, latest + 1) for a in range(latest - length + 1))

    def describe(self, after: int, through: int) -> str:
        """The steps of a window, for people to read."""
        lines = [f"table at {self.path}, seed {self.history.seed}, shape {self.history.shape}"]
        ops = ["CREATE", *(f"{op.label}: {op}" for op in self.history.operations)]
        for text, versions in zip(ops, self.step_versions, strict=True):
            inside = [v for v in versions if after < v <= through]
            lines.append(f"  {'*' if inside else ' '} {versions}: {text}")
        return "\n".join(lines)


def latest_version(path: str) -> int:
    """The last version with a commit file; -1 where there is none."""
    return max((int(f.stem) for f in Path(path, "_delta_log").glob("*.json") if f.stem.isdigit()), default=-1)


def read_log(path: str) -> TableLog:
    """Reads all commit files of a local table."""
    columns: tuple[LogColumn, ...] = ()
    all_columns, times, operations = [], [], []
    for version in range(latest_version(path) + 1):
        lines = Path(path, "_delta_log", f"{version:020d}.json").read_text(encoding="utf-8").splitlines()
        actions = [json.loads(line) for line in lines if line]
        info = next(a["commitInfo"] for a in actions if "commitInfo" in a)
        for metadata in (a["metaData"] for a in actions if "metaData" in a):
            columns = tuple(
                LogColumn(f["name"], f["metadata"].get("delta.columnMapping.physicalName", f["name"]), f["type"])
                for f in json.loads(metadata["schemaString"])["fields"]
            )
        all_columns.append(columns)
        times.append(local_time(info["inCommitTimestamp"]))
        operations.append(info["operation"])
    return TableLog(path, tuple(all_columns), tuple(times), tuple(operations))


def local_time(epoch_ms: int) -> dt.datetime:
    """As PySpark's collect() shows it."""
    seconds = dt.datetime.fromtimestamp(epoch_ms // 1000)  # noqa: DTZ006 - naive local time, as said
    return seconds + dt.timedelta(milliseconds=epoch_ms % 1000)


def quoted(name: str) -> str:
    """A column name for SQL text."""
    return "`" + name.replace("`", "``") + "`"


def sql_name(path: str) -> str:
    """A table by its path, as SQL names it."""
    return f"delta.`{path}`"


def read_snapshot(spark: SparkSession, log: TableLog, version: int) -> dict[int, Image]:
    """A whole version by row id. Two rows of one id would be a fault of Delta's, and fail here."""
    names = ", ".join(quoted(c.name) for c in log.columns[version])
    ids = "_metadata.row_id, _metadata.row_commit_version"
    rows = spark.sql(f"SELECT {ids}, {names} FROM {sql_name(log.path)} VERSION AS OF {version}").collect()
    physical = [c.physical for c in log.columns[version]]
    images = {row[0]: Image(row[1], dict(zip(physical, map(canonical, row[2:]), strict=True))) for row in rows}
    assert len(images) == len(rows), f"a row id occurs twice in version {version} of {log.path}"
    assert None not in images, f"version {version} of {log.path} has rows without an id"
    return images


@contextmanager
def conf(spark: SparkSession, settings: tuple[tuple[str, str], ...]) -> Iterator[None]:
    """Session settings for the time of a block."""
    before = [(key, spark.conf.get(key, None)) for key, _ in settings]
    for key, value in settings:
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before:
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


SEVERAL_TASKS = (("spark.sql.shuffle.partitions", "2"),)
"""Rows that belong together may be in different tasks, and a write makes several files."""


def record(spark: SparkSession, history: History, path: str) -> Recording:
    """Runs a history at `path` in a session of its own, and reads it back."""
    writer = spark.newSession()
    step_versions: list[tuple[int, ...]] = []
    table = sql_name(path)

    def run(texts: list[str]) -> None:
        first = latest_version(path) + 1
        for text in texts:
            try:
                writer.sql(text)
            except Exception as error:
                raise AssertionError(f"seed {history.seed} cannot run: {text}\n{str(error)[:1500]}") from error
        step_versions.append(tuple(range(first, latest_version(path) + 1)))

    with conf(writer, (*INTERPRETED, *SEVERAL_TASKS, *history.shape.write_conf)):
        run(history.shape.create(table))
        for step, operation in enumerate(history.operations, start=1):
            if isinstance(operation, Restore):
                made = [v for versions in step_versions[: operation.to_step + 1] for v in versions]
                operation = replace(operation, version=made[-1])
                if made[-1] == latest_version(path):  # Delta refuses to restore to the version it is at
                    step_versions.append(())
                    continue
            run(operation.sql(history.states[step - 1], table))
        log = read_log(path)
        with ThreadPoolExecutor(
            READERS
        ) as pool:  # in that session: compiled code of a version's columns would be used once
            snapshots = tuple(pool.map(lambda v: read_snapshot(writer, log, v), range(log.latest + 1)))
    return Recording(history, log, tuple(step_versions), snapshots)
