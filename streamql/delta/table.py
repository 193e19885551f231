"""A Delta table: its snapshots, its commits, and the rows of its files. This module calls the Scala classes that read tables by Delta's."""

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
"""The columns that scans put before the table's own. ROW_ID and ROW_VERSION are Delta's row id and row commit version of a row; BASE_ROW_ID
and FILE_VERSION are those of its file."""


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
"""Texts in Delta's errors which mean that the files of a version are no longer or not yet in the log. Errors of the storage have other
texts."""


@dataclass(frozen=True)
class Snapshot:
    """A version of a table, with its metadata and protocol."""

    version: int
    time_ms: int
    metadata: Json
    protocol: Json
    handle: JavaObject

    @property
    def exists(self) -> bool:
        """Returns False if there is no table at the path."""
        return self.version >= 0

    @property
    def table_id(self) -> str:
        """Returns Delta's id of the table. CREATE OR REPLACE, or DROP and CREATE, give it another one."""
        return str(self.metadata["id"])

    @property
    def configuration(self) -> dict[str, str]:
        """Returns the table's properties."""
        return dict(self.metadata.get("configuration") or {})


@dataclass(frozen=True)
class LatestVersion:
    """The newest version of a table, when it was committed, and the table's id."""

    version: int
    time_ms: int
    table_id: str


def latest_versions(spark: SparkSession, paths: Sequence[str]) -> dict[str, LatestVersion]:
    """Returns the newest version of each table by path, read at once. The version is -1 if there is no table."""
    answer = json.loads(scala(spark).changes.TableReader.latestVersions(session_of(spark), "\n".join(paths)))
    return {path: LatestVersion(*one) for path, one in zip(paths, answer, strict=True)}


class FileRows:
    """Some rows of some files, by their positions in the files. They are held in the JVM."""

    def __init__(self, handle: JavaObject) -> None:
        self.handle = handle

    def count(self) -> int:
        """Returns how many rows there are. If they are not known yet, this finds them."""
        return int(self.handle.count())


@dataclass(frozen=True)
class ScannedFiles:
    """File states, with the descriptor that `DeltaTable.scan` reads them with. `chosen`: only these rows; None: all."""

    descriptor: JavaObject
    files: Sequence[FileState]
    chosen: FileRows | None = None

    @property
    def as_adds(self) -> str:
        """Returns the files as add actions, one a line."""
        return "\n".join(f.as_add() for f in self.files)

    @property
    def rows_handle(self) -> JavaObject | None:
        """Returns the object of the JVM that has the chosen rows; None: all are meant."""
        return self.chosen.handle if self.chosen else None


class DeltaTable:
    """A Delta table at a path."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self.reader = scala(spark).changes.TableReader.open(session_of(spark), path)
        self.path = path

    def latest(self) -> Snapshot:
        """Reads the newest version from the log. Its `exists` is False if there is no table."""
        return self.described(self.reader.update())

    def known(self) -> Snapshot:
        """Returns the newest version that this process knows, without reading the log: that of its own last commit, or the one that it last
        read."""
        return self.described(self.reader.known())

    def at(self, version: int) -> Snapshot:
        """Returns a version. Raises STREAM_STALE if the log no longer has it. Errors of the storage are raised as they are."""
        try:
            return self.described(self.reader.snapshotAt(version))
        except Exception as e:  # a class of Py4J, or of PySpark for the errors of Delta that PySpark knows
            if any(said in str(e) for said in LOG_IS_GONE) or version < self.earliest()[0]:
                raise self.stale(version) from e
            raise

    def described(self, handle: JavaObject) -> Snapshot:
        """Returns a snapshot of the JVM as a `Snapshot`, with its metadata and protocol."""
        text = json.loads(self.reader.describe(handle))
        return Snapshot(
            int(text["version"]),
            int(text.get("timestamp", 0)),
            text.get("metaData", {}),
            text.get("protocol", {}),
            handle,
        )

    def schema(self, snapshot: Snapshot) -> StructType:
        """Returns the columns of a version as Spark types. Everything in them is nullable, including nested fields."""
        return StructType.fromJson(_nullable(json.loads(snapshot.metadata["schemaString"])))

    def commits(self, snapshot: Snapshot, after: int, through: int, *, files: bool = True) -> list[Commit]:
        """Returns the commits of (after, through]. `files`: with their actions on files. Raises `CommitMissing`."""
        if after == through:
            return []
        commits = parse_commits(self.reader.commits(snapshot.handle, after + 1, through, files))
        if [c.version for c in commits] != list(range(after + 1, through + 1)):
            raise StreamqlError("INTERNAL_ERROR", f"asked for commits {after + 1} to {through}, read others")
        return commits

    def statistics(self, snapshot: Snapshot, version: int, column: str) -> list[tuple[int, Any, Any]]:
        """Returns the number of rows, and the least and the greatest value of a column, for each file that a commit added or removed. Files
        without these statistics are left out. `column`: its physical name. Values are as JSON has them, and Delta cuts long texts."""
        return [tuple(entry) for entry in json.loads(self.reader.statistics(snapshot.handle, version, column))]

    def has_commit(self, snapshot: Snapshot, version: int) -> bool:
        """Returns whether the commit of a version is still in the log. Checks one file, and lists nothing. `version`: not above the
        snapshot's."""
        return bool(self.reader.hasCommit(snapshot.handle, version))

    def was_restored_since(self, snapshot: Snapshot, version: int) -> bool:
        """Returns whether the table was RESTOREd after a version. Returns False if the log no longer shows that."""
        if not 0 <= version < snapshot.version:
            return False
        try:
            commits = self.commits(snapshot, version, snapshot.version, files=False)
        except CommitMissing:
            return False
        return any(commit.operation == "RESTORE" for commit in commits)

    def earliest(self) -> tuple[int, int]:
        """Returns the first version whose commit is still in the log, and its time in milliseconds. They are (-1, 0) if the log is
        empty."""
        version, time_ms = self.reader.earliest()
        return int(version), int(time_ms)

    def version_at(self, time_ms: int) -> int:
        """Returns the last version that was committed at or before a time; -1 if the log begins later."""
        return int(self.reader.versionAt(time_ms))

    def stale(self, version: int) -> StreamqlError:
        """Returns the error for a version that the log no longer has. It names the earliest version that can be read."""
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
        """Returns the names of those data files and deletion vectors of `files` that the storage no longer has."""
        return str(self.reader.missing("\n".join(f.as_add() for f in files))).splitlines()

    def forgotten(self, snapshot: Snapshot, removed: Sequence[FileState], since_ms: int) -> list[FileState]:
        """Returns those of `removed` whose remove action is no longer in a version's state. For such a file, VACUUM goes by the age of the
        file alone. Runs one job over the state. `removed`: file states that were removed at `since_ms` or later."""
        lines = {state.as_add(): state for state in removed}
        text = self.reader.forgotten(snapshot.handle, "\n".join(lines), since_ms)
        return [lines[line] for line in text.splitlines()]

    def is_empty(self, snapshot: Snapshot) -> bool:
        """Returns whether a version has no files."""
        return bool(self.reader.isEmpty(snapshot.handle))

    def files(self, snapshot: Snapshot) -> list[FileState]:
        """Returns all files of a version. Its cost grows with the number of the table's files."""
        text = self.reader.filesOf(snapshot.handle)
        return [file_state(json.loads(line)["add"]) for line in text.split("\n") if line]

    def changed_rows(self, pairs: Sequence[tuple[FileState, FileState]]) -> tuple[FileRows, FileRows]:
        """Compares the earlier and later states of files. Returns the rows that only the earlier states have, and those that only the later
        ones have.

        Reads the deletion vectors. Raises STREAM_STALE if one no longer exists.
        """
        lines = (f'{{"before":{before.as_add()},"after":{after.as_add()}}}' for before, after in pairs)
        try:
            lost, back = scala(self._spark).changes.FileRows.changed(self.reader, "\n".join(lines))
            return FileRows(lost), FileRows(back)
        except Py4JJavaError as e:
            if "FileNotFoundException" in str(e.java_exception):
                raise self.vector_gone() from e
            raise

    def rewritten_rows(
        self, removed: Iterable[ScannedFiles], added: Iterable[ScannedFiles], after: int
    ) -> tuple[FileRows, FileRows]:
        """Returns those rows of removed files, and those of added files, that were not carried along unchanged since a version. Lazy: the
        first use of one of them finds both, by two Spark jobs over ids and versions."""
        found = scala(self._spark).changes.RewrittenFiles(self.reader, after)
        for is_removed, side in ((True, removed), (False, added)):
            for part in side:
                found.add(is_removed, part.descriptor, part.as_adds, part.rows_handle)
        return FileRows(found.removed()), FileRows(found.added())

    def vector_gone(self) -> StreamqlError:
        """Returns the error for a deletion vector that is needed and no longer exists."""
        return StreamqlError(
            "STREAM_STALE",
            f"a deletion vector of the table at {self.path} was removed by VACUUM",
            hint="CREATE OR REPLACE the stream, or ALTER STREAM … SET OFFSET TO LATEST",
        )

    def descriptor(self, base: Snapshot, version: int, metadata: Json) -> JavaObject:
        """Returns the descriptor with which `scan` reads files that were written under other metadata than the snapshot's."""
        return self.reader.descriptor(base.handle, version, json.dumps({"metaData": metadata}))

    def scan(self, files: ScannedFiles, origins: bool = False, loose: Iterable[str] = ()) -> DataFrame:
        """Returns the rows of exactly these files, with ROW_ID and ROW_VERSION before the table's columns. Lazy.

        `origins`: also with BASE_ROW_ID and FILE_VERSION. All columns are nullable. `loose`: the names of columns whose nested fields,
        elements and values are nullable, too.
        """
        made = self.reader.scan(files.descriptor, files.as_adds, files.rows_handle, origins, "\n".join(loose))
        return frame(self._spark, made)

    def nothing(self, snapshot: Snapshot, before: str, after: str) -> DataFrame:
        """Returns a DataFrame without rows. It has the columns `before` (DDL), a version's columns, and the columns `after` (DDL)."""
        return frame(self._spark, self.reader.nothing(snapshot.handle, before, after))

    def rows(self, snapshot: Snapshot) -> DataFrame:
        """Returns all rows of a version in the columns of `scan`. Lazy."""
        return frame(self._spark, self.reader.table(snapshot.handle))

    def image(self, snapshot: Snapshot) -> DataFrame:
        """Returns all rows of a version in the table's own columns, as a query reads them. Lazy."""
        return frame(self._spark, self.reader.image(snapshot.handle))

    def commit_times(self, snapshot: Snapshot, commits: Sequence[Commit]) -> JavaObject:
        """Returns an object of the JVM that knows when versions were committed, for `images.shown`. It has the times of these commits. It
        takes those of earlier ones from the log, as far as the log has them."""
        known = "\n".join(f"{c.version} {c.time_ms}" for c in commits)
        return scala(self._spark).changes.CommitTimes.of(self.reader, snapshot.handle, known)


def _nullable(data_type: Json) -> dict[str, Any]:
    """Returns a type or field (Spark's JSON) in which everything is nullable."""
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
    """Returns the milliseconds of a duration in a table property (`interval 1 week`, `14 days`, `1 day 12 hours`), as Delta reads it."""
    if text not in _durations:
        _durations[text] = int(scala(spark).changes.TableReader.milliseconds(text))
    return _durations[text]
