"""Records made of entries: one task marks and numbers them as it passes over them, in their order (`RecordRows.scala`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from streamql.delta.jvm import frame, java_frame, scala


@dataclass(frozen=True)
class EntryColumns:
    """The columns of entries. `place`: shard, slice and version. `kind`: what happened to the key: `went` and `came` are values of it.
    `row`: is overwritten with the number of the record."""

    place: tuple[str, str, str]
    key: Sequence[str]
    kind: str
    row: str
    went: int
    came: int


def numbered(
    entries: DataFrame,
    columns: EntryColumns,
    tasks: tuple[str, int],
    violations: tuple[str, str],
    divided: Collection[int],
) -> DataFrame:
    """Returns records, sorted within tasks by place and number. An entry `went` is left out if one that `came` to the same key follows.

    `tasks`: an SQL expression for the number of an entry's task, the same for all entries of a shard and slice; and how many tasks there
    are. `violations`: SQL expressions that raise, for an entry whose key has a NULL, and for one whose key another entry has. `divided`:
    versions that have several slices, if records are to be numbered in commit and shard; it takes a job to count those of each slice. If
    it is empty, they are numbered in the slice. Lazy otherwise.
    """
    names = [*columns.place, columns.kind, columns.row, *columns.key]
    records = scala(entries.sparkSession).changes.RecordRows
    made = records.numbered(
        java_frame(entries),
        json.dumps(names),
        columns.went,
        columns.came,
        *tasks,
        json.dumps(violations),
        json.dumps(sorted(divided)),
    )
    return frame(entries.sparkSession, made)
