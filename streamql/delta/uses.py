"""Rows of data files together with what each commit did to them: a file is read once, however many commits added or removed its rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import JavaObject, frame, java_frame, scala
from streamql.delta.log import FileState
from streamql.delta.table import DeltaTable
from streamql.shared import constants

_EVENTS = constants("events")
VERSION = _EVENTS["version"]
TIME = _EVENTS["time"]
SLICE = _EVENTS["slice"]
SIGN = _EVENTS["sign"]
TOLD = _EVENTS["told"]
"""Columns behind the table's own in `UsedFiles.scan`: the commit's version, its time in milliseconds since 1970, the slice it is in, +1 if
it added the row or -1 if it removed it, and whether row versions tell which rows it only carried along."""


@dataclass(frozen=True)
class Fact:
    """What rows show of a commit. `slice`: a number that grows with versions; by it rows are divided into tasks and files."""

    version: int
    time_ms: int
    slice: int
    told: bool


RowsUsed = tuple[int, int, FileState, FileState | None]
"""(version, sign, state, other): rows that a commit added or removed, as `changes.by_commit.Use` has it."""


class UsedFiles:
    """Files and the rows of them that commits added or removed; held in the JVM. Reads deletion vectors.

    Raises STREAM_STALE if VACUUM has removed one of these.
    """

    def __init__(self, spark: SparkSession, table: DeltaTable, files: Iterable[tuple[FileState, Sequence[RowsUsed]]]):
        self._spark = spark
        lines = "\n".join(_line(file, uses) for file, uses in files)
        try:
            self._handle: JavaObject = scala(spark).changes.CommitEvents.read(table.reader, lines)
        except Py4JJavaError as e:
            if "FileNotFoundException" in str(e.java_exception):
                raise table.vector_gone() from e
            raise

    def empty(self) -> list[tuple[int, int]]:
        """Returns the uses that have no rows, as (number of the file, number of the use in it)."""
        return [(int(file), int(use)) for file, use in json.loads(self._handle.empty())]

    def scan(
        self, descriptor: JavaObject, numbers: Iterable[int], facts: Iterable[Fact], loose: Iterable[str]
    ) -> DataFrame:
        """Returns the rows of some of the files, once for each use that has them: ROW_ID, ROW_VERSION, the table's columns as the
        descriptor has them, then VERSION, TIME, SLICE, SIGN and TOLD. Lazy.

        `numbers`: of the files, in their order. `facts`: of all versions that have uses. `loose`: as `DeltaTable.scan` takes it.
        """
        known = json.dumps([[f.version, f.time_ms, f.slice, f.told] for f in facts])
        chosen = "\n".join(map(str, numbers))
        return frame(self._spark, self._handle.scan(descriptor, chosen, known, "\n".join(loose)))


def _line(file: FileState, uses: Sequence[RowsUsed]) -> str:
    parts = (
        f"[{version},{sign},{_vector(state)},{'false' if other is None else _vector(other)}]"
        for version, sign, state, other in uses
    )
    return f'{{"add":{json.dumps(json.loads(file.as_add())["add"])},"uses":[{",".join(parts)}]}}'


def _vector(state: FileState) -> str:
    return json.dumps(state.action.get("deletionVector"))


def with_changed(rows: DataFrame, before: str, after: str, name: str) -> DataFrame:
    """Returns the rows with one more column, an array of booleans: for each field of the structs `before` and `after` whether it differs,
    as streamql compares values. NULL if one of the structs is NULL."""
    spark = rows.sparkSession
    return frame(spark, scala(spark).changes.CommitEvents.withChanged(java_frame(rows), before, after, name))
