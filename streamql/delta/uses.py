"""Reads rows of data files together with the commits that added or removed them. A file is read once, however many commits used its
rows."""

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
"""The columns that `UsedFiles.scan` adds behind the table's own. They are the commit's version, its time in milliseconds since 1970, its
slice, and its sign: +1 if it added the row, -1 if it removed it. TOLD says whether row versions tell which rows the commit only carried
along."""


@dataclass(frozen=True)
class CommitValues:
    """The values that the rows of a commit have in the columns above. `slice`: a number that grows with versions, by which the caller
    divides rows into tasks and files."""

    version: int
    time_ms: int
    slice: int
    told: bool


RowsUsed = tuple[int, int, FileState, FileState | None]
"""(version, sign, state, other): the fields of `changes.by_commit.Use`."""


class UsedFiles:
    """Files, and the rows of them that commits added or removed. They are held in the JVM.

    The constructor reads deletion vectors. It raises STREAM_STALE if VACUUM has removed one of them.
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
        """Returns the uses that have no rows, as (number of the file, number of the use in the file)."""
        return [(int(file), int(use)) for file, use in json.loads(self._handle.empty())]

    def scan(
        self, descriptor: JavaObject, numbers: Iterable[int], values: Iterable[CommitValues], loose: Iterable[str]
    ) -> DataFrame:
        """Returns the rows of some of the files, once for each use that has them: ROW_ID, ROW_VERSION, the table's columns as the
        descriptor has them, then VERSION, TIME, SLICE, SIGN and TOLD. Lazy.

        `numbers`: the numbers of the files, in their order. `values`: of all commits that have uses. `loose`: as `DeltaTable.scan` takes
        it.
        """
        known = json.dumps([[v.version, v.time_ms, v.slice, v.told] for v in values])
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
    """Returns the rows with one more column `name`: an array of booleans, which says for each field of the structs `before` and `after`
    whether it differs, as streamql compares values. It is NULL if one of the structs is NULL."""
    spark = rows.sparkSession
    return frame(spark, scala(spark).changes.CommitEvents.withChanged(java_frame(rows), before, after, name))
