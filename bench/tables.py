"""Tables to measure on: made once from a seed, kept in the data directory, copied by links, read only."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

NARROW = (
    "id, id % 1000 AS grp, concat('name-', id) AS name, id * 0.5D AS amount, timestamp_seconds(1700000000 + id) AS at"
)
MORE = [(f"id * {n}", f"concat('c{n}-', id % {n * 97 + 5})", f"id / {n + 3}.0D")[n % 3] for n in range(55)]
WIDE = ", ".join([NARROW, *(f"{value} AS c{n}" for n, value in enumerate(MORE))])
TRACKED = (
    "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = '{vectors}', 'delta.enableChangeDataFeed' = 'true', "
    "'delta.logRetentionDuration' = 'interval 1000 days', 'delta.deletedFileRetentionDuration' = 'interval 1000 days'"
)
ROWS_PER_FILE = 625_000


@dataclass(frozen=True)
class Built:
    """A table, and the interval (after, through] of its history that is measured."""

    spark: SparkSession
    path: str
    after: int
    through: int

    @property
    def name(self) -> str:
        """The table in SQL."""
        return f"delta.`{self.path}`"

    def commits(self) -> list[dict[str, Any]]:
        """The actions of the interval, as the log has them."""
        log = Path(self.path) / "_delta_log"
        files = [log / f"{v:020d}.json" for v in range(self.after + 1, self.through + 1)]
        return [json.loads(line) for f in files for line in f.read_text().splitlines()]

    def touched_files(self) -> list[str]:
        """Files that the interval's actions name: what any reader of its changes has to open."""
        actions = [a.get("add") or a.get("remove") for a in self.commits()]
        paths = dict.fromkeys(a["path"] for a in actions if a is not None)
        return [f"{self.path}/{p}" for p in paths]

    def schema_of(self) -> Any:
        """The table's columns."""
        return self.spark.read.format("delta").load(self.path).schema


class Tables:
    """The data directory's tables."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark, self._directory = spark, directory.absolute() / "tables"
        self._directory.mkdir(parents=True, exist_ok=True)

    def base(self, rows: int, *, vectors: bool = True, wide: bool = False, files: int = 0) -> str:
        """A table of so many rows at version 1. `files`: how many it has; 0: one for each ROWS_PER_FILE rows."""
        name = f"{'wide' if wide else 'narrow'}_{rows}_{'vectors' if vectors else 'copies'}" + (
            f"_{files}_files" if files else ""
        )
        path = self._directory / name
        if not path.exists():
            making = self._fresh(f"{name}.making")
            columns, files = WIDE if wide else NARROW, files or max(4, rows // ROWS_PER_FILE)
            self.spark.sql(
                f"CREATE TABLE delta.`{making}` USING delta TBLPROPERTIES ({TRACKED.format(vectors=str(vectors).lower())}) "
                f"AS SELECT {columns} FROM range(0, 0)"
            )
            self.spark.sql(f"INSERT INTO delta.`{making}` SELECT {columns} FROM range(0, {rows}, 1, {files})")
            making.rename(path)
        return str(path)

    def after(self, base: str, name: str, statements: Sequence[str]) -> Built:
        """A copy of a table, with statements run on it ({t}: its name)."""
        return self._copy(base, name, lambda _: None, statements)

    def by_hand(
        self, base: str, name: str, commits: int, files: int, statements: Sequence[str] = (), *, real: bool = True
    ) -> Built:
        """A copy of a small table, to which commits written here each add `files` copies (links) of its first file; then statements run.

        Unless `real`, the files are in the log only: for what never reads them.
        """
        return self._copy(base, name, lambda made: add_links(made, commits, files, real), statements)

    def _copy(self, base: str, name: str, change: Callable[[Path], None], statements: Sequence[str]) -> Built:
        path = self._directory / f"{Path(base).name}_{name}"
        if not path.exists():
            making = self._fresh(f"{path.name}.making")
            link(Path(base), making)
            change(making)
            for statement in statements:
                self.spark.sql(statement.format(t=f"delta.`{making}`"))
            making.rename(path)
        return Built(self.spark, str(path), latest(base), latest(str(path)))

    def _fresh(self, name: str) -> Path:
        path = self._directory / name
        shutil.rmtree(path, ignore_errors=True)
        return path


def link(source: Path, target: Path) -> None:
    """Copies a table: the log by value, data files, which do not change, by hard links."""
    for root, _, names in os.walk(source):
        to = target / Path(root).relative_to(source)
        to.mkdir(parents=True, exist_ok=True)
        for name in names:
            copy = shutil.copy2 if "_delta_log" in root else os.link
            copy(Path(root) / name, to / name)


def latest(path: str) -> int:
    """The newest version of a table."""
    return max(int(f.stem) for f in (Path(path) / "_delta_log").glob("[0-9]" * 20 + ".json"))


def add_links(table: Path, commits: int, files: int, real: bool) -> None:
    """Writes commits that each add `files` links of the table's first file, with row ids of their own."""
    log = table / "_delta_log"
    version = latest(str(table))
    lines = [json.loads(line) for v in range(version + 1) for line in (log / f"{v:020d}.json").read_text().splitlines()]
    model = next(a["add"] for a in lines if "add" in a)
    rows = json.loads(model["stats"])["numRecords"]
    marks = [a["domainMetadata"] for a in lines if "domainMetadata" in a]
    mark = json.loads(marks[-1]["configuration"])["rowIdHighWaterMark"]
    now = int(time.time() * 1000)
    for n in range(1, commits + 1):
        info = {
            "timestamp": now + n,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append"},
            "isBlindAppend": True,
        }
        actions: list[dict[str, Any]] = [{"commitInfo": info}]
        for i in range(files):
            name = f"part-{n:05d}-{i:05d}.parquet"
            if real:
                os.link(table / model["path"], table / name)
            first = {
                "path": name,
                "baseRowId": mark + 1,
                "defaultRowCommitVersion": version + n,
                "modificationTime": now,
            }
            actions.append({"add": {**model, **first}})
            mark += rows
        actions.append({"domainMetadata": {**marks[-1], "configuration": json.dumps({"rowIdHighWaterMark": mark})}})
        (log / f"{version + n:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))
