"""A Delta table: its snapshots, its commits, its files as rows. Everything asked of Delta's classes is asked here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from streamql.delta.jvm import JavaObject, frame, scala, session_of
from streamql.delta.log import Commit, CommitMissing, FileState, Json, file_state, parse_commits
from streamql.errors import StreamqlError
from streamql.shared import constants
from streamql.times import iso

_COLUMNS = constants("columns")
ROW_ID = _COLUMNS["rowId"]
ROW_VERSION = _COLUMNS["rowVersion"]
BASE_ROW_ID = _COLUMNS["baseRowId"]
FILE_VERSION = _COLUMNS["fileVersion"]
"""Columns that scans show before the table's own: Delta's row identity, and the file's part in it."""


LOG_IS_GONE = (
    "DELTA_LOG_FILE_NOT_FOUND",
    "DELTA_MISSING_PART_FILES",
    "DELTA_NO_COMMITS_FOUND",
    "DELTA_NO_RECREATABLE_HISTORY_FOUND",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
    "DELTA_VERSION_NOT_FOUND",
    "Trying to load a non-existent version",
    "requirement failed: Did not get the first delta file version",
    "requirement failed: Did not get the last delta file version",
)
"""What Delta says where a version's files are not in the log, or not yet; storage that refuses, or is slow, says something else."""


@dataclass(frozen=True)
class Snapshot:
    """A version of a table: what its metadata and protocol say."""

    version: int
    time_ms: int
    metadata: Json
    protocol: Json
    handle: JavaObject

    @property
    def exists(self) -> bool:
        """False if there is no table at the path."""
        return self.version >= 0

    @property
    def table_id(self) -> str:
        """Delta's id of the table; another one after CREATE OR REPLACE or DROP + CREATE."""
        return str(self.metadata["id"])

    @property
    def configuration(self) -> dict[str, str]:
        """Returns the table's properties."""
        return dict(self.metadata.get("configuration") or {})


@dataclass(frozen=True)
class LatestVersion:
    """The newest version of a table, when it was made, and the table's id."""

    version: int
    time_ms: int
    table_id: str


def latest_versions(spark: SparkSession, paths: Sequence[str]) -> dict[str, LatestVersion]:
    """Returns the newest versions of several tables, read together; version -1 if there is no table."""
    answer = json.loads(scala(spark).changes.TableReader.latestVersions(session_of(spark), "\n".join(paths)))
    return {path: LatestVersion(*one) for path, one in zip(paths, answer, strict=True)}


class FileRows:
    """Some rows of some files, by position; held in the JVM."""

    def __init__(self, handle: JavaObject) -> None:
        self.handle = handle
        self.count = int(handle.count())


class DeltaTable:
    """A Delta table at a path."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self.reader = scala(spark).changes.TableReader.open(session_of(spark), path)
        self.path = path

    def latest(self) -> Snapshot:
        """Returns the newest version in the log, looked for now; `exists` is False if there is no table."""
        return self.described(self.reader.update())

    def known(self) -> Snapshot:
        """Returns the version that this process has: of its own last commit, or as it was last read. The log may have newer ones."""
        return self.described(self.reader.known())

    def at(self, version: int) -> Snapshot:
        """Returns an earlier version. Raises STREAM_STALE where the log does not reach back to it; what storage says else, as it says
        it."""
        try:
            return self.described(self.reader.snapshotAt(version))
        except Exception as e:  # Py4J's own class, or PySpark's, for those errors of Delta that it knows
            if any(said in str(e) for said in LOG_IS_GONE) or version < self.earliest()[0]:
                raise self.stale(version) from e
            raise

    def described(self, handle: JavaObject) -> Snapshot:
        """Returns a snapshot of this table in the JVM, with what its metadata and protocol say."""
        text = json.loads(self.reader.describe(handle))
        return Snapshot(
            int(text["version"]),
            int(text.get("timestamp", 0)),
            text.get("metaData", {}),
            text.get("protocol", {}),
            handle,
        )

    def schema(self, snapshot: Snapshot) -> StructType:
        """Returns the columns of a version, as Spark types in which all is nullable, nested fields too."""
        return StructType.fromJson(_nullable(json.loads(snapshot.metadata["schemaString"])))

    def commits(self, snapshot: Snapshot, after: int, through: int, *, files: bool = True) -> list[Commit]:
        """Returns the commits of (after, through], with or without their actions on files. Raises CommitMissing."""
        if after == through:
            return []
        commits = parse_commits(self.reader.commits(snapshot.handle, after + 1, through, files))
        if [c.version for c in commits] != list(range(after + 1, through + 1)):
            raise StreamqlError("INTERNAL_ERROR", f"asked for commits {after + 1} to {through}, read others")
        return commits

    def statistics(self, snapshot: Snapshot, version: int, column: str) -> list[tuple[int, Any, Any]]:
        """Returns the number of rows, and the least and the greatest value of a column, for each file that a commit added or removed; files
        without these statistics are left out. `column`: its physical name. Values are as JSON has them; long texts are cut."""
        return [tuple(entry) for entry in json.loads(self.reader.statistics(snapshot.handle, version, column))]

    def has_commit(self, snapshot: Snapshot, version: int) -> bool:
        """Returns whether the commit of a version, up to the snapshot's, is still in the log: one file is checked, nothing is listed."""
        return bool(self.reader.hasCommit(snapshot.handle, version))

    def was_restored_since(self, snapshot: Snapshot, version: int) -> bool:
        """Returns whether the table was RESTOREd after a version; no, if the log no longer shows it."""
        if not 0 <= version < snapshot.version:
            return False
        try:
            commits = self.commits(snapshot, version, snapshot.version, files=False)
        except CommitMissing:
            return False
        return any(commit.operation == "RESTORE" for commit in commits)

    def earliest(self) -> tuple[int, int]:
        """Returns the first version whose commit is still in the log, and its time in milliseconds; (-1, 0) where the log is empty."""
        version, time_ms = self.reader.earliest()
        return int(version), int(time_ms)

    def version_at(self, time_ms: int) -> int:
        """Returns the last version committed at or before a time; -1 where the log begins later."""
        return int(self.reader.versionAt(time_ms))

    def stale(self, version: int) -> StreamqlError:
        """Returns the error for a version that the log does not reach back to; names what can still be read."""
        first, time_ms = self.earliest()
        return StreamqlError(
            "STREAM_STALE",
            f"version {version} of the table at {self.path} can no longer be read: "
            f"its history begins at version {first} ({iso(time_ms)})",
            hint="CREATE OR REPLACE the stream, or ALTER STREAM … SET OFFSET TO LATEST",
            version=version,
            earliest_version=first,
            earliest_time_ms=time_ms,
        )

    def missing_files(self, files: Iterable[FileState]) -> list[str]:
        """Names of those of the files, and of their deletion vectors, that storage no longer has."""
        return str(self.reader.missing("\n".join(f.as_add() for f in files))).splitlines()

    def forgotten(self, snapshot: Snapshot, removed: Sequence[FileState], since_ms: int) -> list[FileState]:
        """Returns those of the file states, removed at a time or later, whose removal a version does not hold: a checkpoint dropped it, and
        VACUUM goes by the age of the file alone. One job over the log's state."""
        lines = {state.as_add(): state for state in removed}
        text = self.reader.forgotten(snapshot.handle, "\n".join(lines), since_ms)
        return [lines[line] for line in text.splitlines()]

    def is_empty(self, snapshot: Snapshot) -> bool:
        """Returns whether a version has no file."""
        return bool(self.reader.isEmpty(snapshot.handle))

    def files(self, snapshot: Snapshot) -> list[FileState]:
        """Returns all files of a version: costs what the table's size costs."""
        text = self.reader.filesOf(snapshot.handle)
        return [file_state(json.loads(line)["add"]) for line in text.split("\n") if line]

    def changed_rows(self, pairs: Sequence[tuple[FileState, FileState]]) -> tuple[FileRows, FileRows]:
        """For each (earlier, later) state of one file: the rows that only the earlier has, and those that only the later has.

        Reads the deletion vectors. Raises STREAM_STALE where one is gone.
        """
        lines = (f'{{"before":{before.as_add()},"after":{after.as_add()}}}' for before, after in pairs)
        try:
            lost, back = scala(self._spark).changes.FileRows.changed(self.reader, "\n".join(lines))
            return FileRows(lost), FileRows(back)
        except Py4JJavaError as e:
            if "FileNotFoundException" in str(e.java_exception):
                raise self.vector_gone() from e
            raise

    def vector_gone(self) -> StreamqlError:
        """Returns the error for a deletion vector that is needed and was removed."""
        return StreamqlError(
            "STREAM_STALE",
            f"a deletion vector of the table at {self.path} was removed by VACUUM",
            hint="CREATE OR REPLACE the stream, or ALTER STREAM … SET OFFSET TO LATEST",
        )

    def descriptor(self, base: Snapshot, version: int, metadata: Json) -> JavaObject:
        """Returns what `scan` reads with, for a version's metadata other than a snapshot's own."""
        return self.reader.descriptor(base.handle, version, json.dumps({"metaData": metadata}))

    def scan(
        self,
        descriptor: JavaObject,
        files: Iterable[FileState],
        chosen: FileRows | None = None,
        origins: bool = False,
        loose: Iterable[str] = (),
    ) -> DataFrame:
        """Returns the rows of exactly these files, with ROW_ID and ROW_VERSION before the columns (`origins`: BASE_ROW_ID, FILE_VERSION
        too).

        `chosen`: only the rows it names. All columns are nullable; those of `loose` in their nested fields, elements and values too. Lazy.
        """
        adds = "\n".join(f.as_add() for f in files)
        only = chosen.handle if chosen else None
        return frame(self._spark, self.reader.scan(descriptor, adds, only, origins, "\n".join(loose)))

    def nothing(self, snapshot: Snapshot, before: str, after: str) -> DataFrame:
        """No rows, of a version's columns between others, which are given as DDL."""
        return frame(self._spark, self.reader.nothing(snapshot.handle, before, after))

    def rows(self, snapshot: Snapshot) -> DataFrame:
        """Returns all rows of a version, as `scan` shows them. Lazy."""
        return frame(self._spark, self.reader.table(snapshot.handle))

    def image(self, snapshot: Snapshot) -> DataFrame:
        """Returns all rows of a version, as a query reads them: the table's own columns. Lazy."""
        return frame(self._spark, self.reader.image(snapshot.handle))

    def commit_times(self, snapshot: Snapshot, commits: Sequence[Commit]) -> JavaObject:
        """Returns what tells when a version was committed (`images.shown`): these commits from memory, earlier ones from the log, where it
        still has them."""
        known = "\n".join(f"{c.version} {c.time_ms}" for c in commits)
        return scala(self._spark).changes.CommitTimes.of(self.reader, snapshot.handle, known)


def _nullable(data_type: Json) -> dict[str, Any]:
    """Returns a type, or a field, as JSON has it: without NOT NULL anywhere in it."""
    made = dict(data_type)
    for part in ("type", "elementType", "keyType", "valueType"):
        if isinstance(data_type.get(part), dict):
            made[part] = _nullable(data_type[part])
    if "fields" in data_type:
        made["fields"] = [_nullable(field) for field in data_type["fields"]]
    made.update(dict.fromkeys(data_type.keys() & {"nullable", "containsNull", "valueContainsNull"}, True))
    return made


_durations: dict[str, int] = {}


def duration_ms(spark: SparkSession, text: str) -> int:
    """Returns a duration as table properties have it (`interval 1 week`, `14 days`, `1 day 12 hours`), in milliseconds, as Delta reads
    it."""
    if text not in _durations:
        _durations[text] = int(scala(spark).changes.TableReader.milliseconds(text))
    return _durations[text]
