"""Reads the rows of an interval's files, and converts them to the schema of the interval's end. Lazy.

A file is read with metadata of the interval that has the file's partition columns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from streamql.changes import schema
from streamql.changes.net import first_changes
from streamql.changes.plan import ChangePlan, Piece, without_pairs
from streamql.delta.jvm import JavaObject
from streamql.delta.log import Commit, FileState, Json
from streamql.delta.table import (
    BASE_ROW_ID,
    FILE_VERSION,
    ROW_ID,
    ROW_VERSION,
    DeltaTable,
    FileRows,
    ScannedFiles,
    Snapshot,
)
from streamql.errors import StreamqlError
from streamql.names import quote


class RowQuery(Protocol):
    """A query that makes at most one row of each row of a table: it has only filters and projections."""

    @property
    def columns(self) -> Sequence[str]:
        """Returns the columns of its rows."""

    def rows(self, rows: DataFrame, carried: Sequence[str]) -> DataFrame:
        """Returns its rows over the given rows of the table: first the columns `carried` of the table's row, then its own columns. Lazy."""


@dataclass(frozen=True)
class Reading:
    """All that building a change set needs. `end`: the table at the interval's end. `commits`: of the interval. `epochs`: the table's
    metadata over time. `start`: reads the table at the interval's begin."""

    spark: SparkSession
    table: DeltaTable
    end: Snapshot
    commits: Sequence[Commit]
    epochs: Sequence[schema.Epoch]
    start: Callable[[], Snapshot]
    is_latest: bool
    """Whether the interval ends at the newest version. Only then the files that it added certainly exist."""
    changed: Mapping[int, FileRows] = field(default_factory=dict)
    """The rows by which deletion vectors changed, by weight: those that were deleted (-1), and those that were given back (+1)."""
    uncarried: Mapping[int, FileRows] = field(default_factory=dict)
    """By weight, the only rows that are read of pieces, because the interval carried the others along unchanged. Empty: all are read."""
    query: RowQuery | None = None
    """Makes the rows that are shown of the table's rows, before old and new rows are compared. None: the table's rows are shown."""
    bitwise: bool = False
    """Whether old and new values are equal only if their bits are."""

    @cached_property
    def changed_types(self) -> frozenset[str]:
        """Returns the identities of the columns whose type changed in the interval. Their values may have NULLs that the last type
        excludes.

        Other columns keep NOT NULL inside their types, because Delta's MERGE into such a type refuses a type without it.
        """
        return schema.changed_types(self.epochs)

    @property
    def columns(self) -> list[str]:
        """Returns the columns that are shown: the query's, or, without a query, the table's at the end of the interval."""
        return schema.column_names(self.end.metadata) if self.query is None else list(self.query.columns)

    def shown(self, rows: DataFrame) -> DataFrame:
        """Returns the query's rows over rows of the table in its final columns; without a query, the same rows."""
        return rows if self.query is None else self.query.rows(rows, [ROW_ID, ROW_VERSION])


def scan(reading: Reading, pieces: Sequence[Piece]) -> DataFrame:
    """Returns the rows of the pieces in the columns that are shown."""
    return reading.shown(table_rows(reading, pieces))


def table_rows(reading: Reading, pieces: Sequence[Piece], origins: bool = False) -> DataFrame:
    """Returns the table's rows in the pieces, in the final columns. For each partitioning there is one scan of whole files, and one for
    each side of changed deletion vectors. `origins`: adds BASE_ROW_ID and FILE_VERSION, which say where a row's id comes from."""
    own = [ROW_ID, ROW_VERSION, *((BASE_ROW_ID, FILE_VERSION) if origins else ())]
    parts = []
    for epoch, group in by_partitioning(reading, pieces):
        parts += [
            in_final_columns(reading, rows, epoch, own)
            for rows in scans(reading, group, epoch, descriptor(reading, epoch), origins)
        ]
    if not parts:
        return reading.table.scan(ScannedFiles(reading.end.handle, ()), origins)
    result = parts[0]
    for part in parts[1:]:
        result = result.unionByName(part)
    return result


def scans(
    reading: Reading, pieces: Sequence[Piece], epoch: schema.Epoch, reads_with: JavaObject, origins: bool
) -> list[DataFrame]:
    """Returns the rows of pieces in the columns of an epoch, for each part that is scanned. `reads_with`: the descriptor of the epoch."""
    loose = loose_columns(reading, epoch)
    return [reading.table.scan(part, origins, loose) for part in scanned(reading, pieces, reads_with)]


def scanned(reading: Reading, pieces: Sequence[Piece], reads_with: JavaObject) -> list[ScannedFiles]:
    """Returns what is scanned of pieces that one descriptor reads: whole files, and the files of each side of changed deletion vectors. If
    rows were carried along, whole files are divided by side, too."""
    if reading.uncarried:
        groups = [(rows, [p.file for p in pieces if p.weight == w]) for w, rows in reading.uncarried.items()]
        return [ScannedFiles(reads_with, files, rows) for rows, files in groups if files]
    pairs = [p for p in pieces if p.other is not None]
    parts = [ScannedFiles(reads_with, [p.file for p in pieces if p.other is None])]
    parts += [ScannedFiles(reads_with, [p.file for p in pairs if p.weight == w], r) for w, r in reading.changed.items()]
    return [part for part in parts if part.files]


def parts_of(reading: Reading, pieces: Sequence[Piece]) -> list[ScannedFiles]:
    """Returns what is scanned of pieces, for all epochs."""
    return [
        part
        for epoch, group in by_partitioning(reading, pieces)
        for part in scanned(reading, group, descriptor(reading, epoch))
    ]


def without_carried(
    reading: Reading, removed: Sequence[ScannedFiles], added: Sequence[ScannedFiles], after: int
) -> Reading:
    """Returns a reading that leaves out the rows that the interval carried along unchanged from removed files to added ones. `after`: its
    begin. Lazy."""
    old, new = reading.table.rewritten_rows(removed, added, after)
    return replace(reading, uncarried={-1: old, +1: new})


def loose_columns(reading: Reading, epoch: schema.Epoch) -> list[str]:
    """Returns the columns of an epoch whose types may hold NULLs that the epoch's schema excludes."""
    return [f["name"] for f in schema.fields(epoch.metadata) if schema.identity(f) in reading.changed_types]


def complete(reading: Reading, plan: ChangePlan) -> tuple[Reading, ChangePlan]:
    """Reads the deletion vectors that the plan compares. Returns the reading with the rows by which they differ, and the plan without the
    pieces that have no such rows."""
    pairs = [(p.file, p.other) for p in plan.pieces if p.other is not None and p.weight < 0]
    if not pairs:
        return reading, plan
    lost, back = reading.table.changed_rows(pairs)
    without = {weight for weight, rows in ((-1, lost), (+1, back)) if not rows.count()}
    return replace(reading, changed={-1: lost, +1: back}), without_pairs(plan, without)


def by_partitioning(reading: Reading, pieces: Sequence[Piece]) -> list[tuple[schema.Epoch, list[Piece]]]:
    """Groups pieces by the epoch whose metadata reads them. The last epoch reads all files, except those with other partition columns."""
    epochs = reading.epochs
    versions = [e.version for e in epochs]
    layouts = [schema.physical_partition_columns(e.metadata) for e in epochs]
    last_with = {layout: i for i, layout in enumerate(layouts)}
    came_back = _came_back(reading.commits) if len(last_with) > 1 else {}
    compatible = {len(epochs) - 1}
    groups: dict[int, list[Piece]] = {}
    for piece in pieces:
        written = piece.file.default_row_commit_version
        assert written is not None
        index = max(0, bisect_right(versions, written) - 1)
        if index not in compatible:
            check_readable_at_end(epochs, index)
            compatible.add(index)
        layout = layouts[index]
        if written < versions[0]:
            # The file is from before the interval. It is partitioned as the table was at the begin, unless a RESTORE brought it back.
            layout = came_back.get(piece.file.path, layouts[0])
        if layout not in last_with:
            raise _partitioned_otherwise(piece.file, layout)
        groups.setdefault(last_with[layout], []).append(piece)
    return [(epochs[i], group) for i, group in groups.items()]


def _came_back(commits: Sequence[Commit]) -> dict[str, frozenset[str]]:
    """Returns path → the partition columns of each file whose first change in the interval adds it. An add action names all of them. A
    remove action leaves out those whose value is NULL."""
    adds = {path: c.after for path, c in first_changes(commits).items() if c.before is None}
    return {path: frozenset(f.action.get("partitionValues") or ()) for path, f in adds.items() if f is not None}


def _partitioned_otherwise(file: FileState, layout: frozenset[str]) -> StreamqlError:
    return StreamqlError(
        "CHANGES_UNREADABLE",
        f"{file.path} is partitioned by ({', '.join(sorted(layout))}), as the table was at no version of the interval",
        hint="CREATE OR REPLACE the stream",
        file=file.path,
    )


def check_readable_at_end(epochs: Sequence[schema.Epoch], index: int) -> None:
    """Raises INCOMPATIBLE_SCHEMA_CHANGE if files of an epoch cannot be shown in the columns of the last epoch. The error names the version
    that changed the schema."""
    try:
        schema.check_compatible(epochs[index], epochs[-1].metadata, epochs[-1].version)
    except StreamqlError:
        for epoch in epochs[index + 1 :]:
            schema.check_compatible(epochs[index], epoch.metadata, epoch.version)
        raise


def descriptor(reading: Reading, epoch: schema.Epoch) -> JavaObject:
    """Returns the descriptor with which `DeltaTable.scan` reads files of an epoch."""
    if epoch is reading.epochs[-1]:
        return reading.end.handle
    return reading.table.descriptor(reading.end, epoch.version, epoch.metadata)


def in_final_columns(reading: Reading, rows: DataFrame, epoch: schema.Epoch, carried: Sequence[str]) -> DataFrame:
    """Returns rows, which were read with an epoch's metadata, in the final columns. Columns that were added later are NULL. `carried`: the
    columns in front of the table's, which stay as they are."""
    if epoch is reading.epochs[-1]:
        return rows
    shown = followed(
        lambda name: F.col(quote(name)),
        schema.fields(epoch.metadata),
        schema.fields(reading.end.metadata),
        reading.table.schema(reading.end),
    )
    return rows.select(*carried, *shown)


def followed(get: Callable[[str], Column], old: Sequence[Json], new: Sequence[Json], types: StructType) -> list[Column]:
    """Returns fields in their final order, with their final names and types. A field is found by its identity, and is NULL if `old` lacks
    it.

    `get`: returns a field by its old name. `types`: the final types, all nullable. A field that had its final type before keeps NOT NULL
    inside that type.
    """
    before = {schema.identity(f): f for f in old}
    shown = []
    for now, data_type in zip(new, types.fields, strict=True):
        was = before.get(schema.identity(now))
        if was is None:
            value = F.lit(None).cast(data_type.dataType)
        elif schema.has_type_of(was, now):
            value = get(was["name"])  # no cast: it would drop NOT NULL inside the type
        else:
            value = _reshaped(get(was["name"]), was["type"], now["type"], data_type.dataType).cast(data_type.dataType)
        shown.append(value.alias(now["name"]))
    return shown


def _reshaped(value: Column, was: Any, now: Any, data_type: DataType) -> Column:
    """Returns a value in the final type. Fields of structs are found by their identity; a cast would find them by their position."""
    if was == now or not isinstance(was, Mapping) or not isinstance(now, Mapping) or was.get("type") != now.get("type"):
        return value
    if isinstance(data_type, StructType):
        parts = followed(value.getField, was["fields"], now["fields"], data_type)
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(data_type, ArrayType):
        inner = data_type.elementType
        return F.transform(value, lambda x: _reshaped(x, was["elementType"], now["elementType"], inner).cast(inner))
    if isinstance(data_type, MapType):
        to_key, to_value = data_type.keyType, data_type.valueType
        keys = F.transform(
            F.map_keys(value), lambda x: _reshaped(x, was["keyType"], now["keyType"], to_key).cast(to_key)
        )
        values = F.transform(
            F.map_values(value), lambda x: _reshaped(x, was["valueType"], now["valueType"], to_value).cast(to_value)
        )
        return F.map_from_arrays(keys, values)
    return value
