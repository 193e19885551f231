"""From a plan to a lazy DataFrame: the change set's rows. Runs no job; only file lists and positions pass the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from streamql.changes import schema
from streamql.changes.plan import ChangePlan, Piece, PlanKind
from streamql.changes.values import equal
from streamql.delta.images import unfold
from streamql.delta.jvm import JavaObject
from streamql.delta.log import Commit, FileState, Json
from streamql.delta.table import BASE_ROW_ID, FILE_VERSION, ROW_ID, ROW_VERSION, DeltaTable, Snapshot
from streamql.errors import StreamqlError
from streamql.names import quote

HIDDEN_COLUMNS = (
    "METADATA$ACTION",
    "METADATA$ISUPDATE",
    "METADATA$ROW_ID",
    "change$action",
    "change$is_update",
    "change$row_id",
)
"""Snowflake's and Databend's names for what the metadata columns say; they follow the table's columns."""

_WEIGHT = "__streamql_weight"
_TYPE = "__streamql_type"


@dataclass(frozen=True)
class Reading:
    """All that building needs: the table, its version at the interval's end, the commits between, the metadata over time."""

    spark: SparkSession
    table: DeltaTable
    end: Snapshot
    commits: Sequence[Commit]
    epochs: Sequence[schema.Epoch]
    start: Callable[[], Snapshot]
    is_latest: bool
    """Whether the interval ends at the newest version: only then are files that it added certain to be there."""

    @property
    def columns(self) -> list[str]:
        """The table's columns at the end of the interval."""
        return schema.column_names(self.end.metadata)


def build(reading: Reading, plan: ChangePlan) -> DataFrame:
    """The rows of a plan: the three metadata columns, the table's columns, then HIDDEN_COLUMNS."""
    _check_files_exist(reading, plan)
    rows = _BUILDERS[plan.kind](reading, plan)
    return _shown(reading, rows)


def _check_files_exist(reading: Reading, plan: ChangePlan) -> None:
    files = plan.perishable if reading.is_latest else [p.file for p in (*plan.pieces, *plan.inserted)]
    missing = reading.table.missing_files(files) if files else []
    if missing:
        error = reading.table.stale(plan.interval.after)
        raise StreamqlError(
            "STREAM_STALE",
            f"{len(missing)} data file(s) that changes since version {plan.interval.after} need were removed by VACUUM, e.g. {missing[0]}",
            hint=error.hint,
            files=missing[:10],
            version=plan.interval.after,
        )


def _shown(reading: Reading, rows: DataFrame) -> DataFrame:
    change = F.col(_TYPE)
    action = F.when(change.isin("INSERT", "UPDATE_AFTER"), "INSERT").otherwise("DELETE")
    is_update = change.startswith("UPDATE")
    row_id = F.col(ROW_ID)
    time = reading.table.commit_time(reading.end.table_id, reading.commits, F.col(ROW_VERSION))
    hidden = [action, is_update, row_id, action, is_update, row_id]
    return rows.select(
        change.alias("__change_type"),
        F.col(ROW_VERSION).alias("__commit_version"),
        time.alias("__commit_timestamp"),
        *_columns(reading.columns),
        *(c.alias(name) for c, name in zip(hidden, HIDDEN_COLUMNS, strict=True)),
    )


def _columns(names: Sequence[str]) -> list[Column]:
    return [F.col(quote(n)) for n in names]


def _typed(rows: DataFrame, change_type: str) -> DataFrame:
    return rows.withColumn(_TYPE, F.lit(change_type))


def _nothing(reading: Reading, _: ChangePlan) -> DataFrame:
    return _typed(reading.table.scan(reading.end.handle, ()), "INSERT").where(F.lit(False))


def _added_only(reading: Reading, plan: ChangePlan) -> DataFrame:
    return _typed(_scan(reading, plan.inserted), "INSERT")


def _removed_only(reading: Reading, plan: ChangePlan) -> DataFrame:
    return _typed(_scan(reading, plan.pieces), "DELETE")


def _initial_rows(reading: Reading, _: ChangePlan) -> DataFrame:
    return _typed(reading.table.rows(reading.end), "INSERT")


def _appended(reading: Reading, plan: ChangePlan) -> DataFrame:
    rows = _scan(reading, plan.inserted, origins=True)
    # A row is new where its id was given out by this very file, at the file's own commit; ids that a rewrite carried along are lower.
    new = rows.where((F.col(ROW_ID) >= F.col(BASE_ROW_ID)) & (F.col(ROW_VERSION) == F.col(FILE_VERSION)))
    return _typed(new.drop(BASE_ROW_ID, FILE_VERSION), "INSERT")


def _initial_appended(reading: Reading, plan: ChangePlan) -> DataFrame:
    start = reading.start()
    if len(reading.epochs) > 1:
        schema.check_compatible(reading.epochs[0], reading.epochs[-1].metadata, _version_of_change(reading.epochs, 0))
    before = _in_final_columns(reading, reading.table.rows(start), reading.epochs[0], origins=False)
    present = _typed(before, "INSERT")
    return present.unionByName(_appended(reading, plan)) if plan.inserted else present


def _minimize(reading: Reading, plan: ChangePlan) -> DataFrame:
    """Every row id has at most one image on either side: they meet in one join, and equal versions cancel unseen."""
    before = _side(_scan(reading, [p for p in plan.pieces if p.weight < 0]), reading.columns, "b")
    after = _side(_scan(reading, [p for p in plan.pieces if p.weight > 0]), reading.columns, "a")
    pairs = before.join(after, F.col("b_id") == F.col("a_id"), "full_outer")
    changed = _unfolded(reading, pairs)
    if not plan.inserted:
        return changed
    return changed.unionByName(_added_only(reading, plan))


def _side(rows: DataFrame, columns: Sequence[str], side: str) -> DataFrame:
    return rows.select(
        F.col(ROW_ID).alias(f"{side}_id"),
        F.col(ROW_VERSION).alias(f"{side}_version"),
        *(F.col(quote(c)).alias(f"{side}{i}") for i, c in enumerate(columns)),
    )


def _minimize_moved(reading: Reading, plan: ChangePlan) -> DataFrame:
    """Moved copies of a row image enter with weights of both signs: they are summed by (row id, version) before sides are told apart."""
    columns = reading.columns
    images = None
    for weight in sorted({p.weight for p in plan.pieces}):
        part = _scan(reading, [p for p in plan.pieces if p.weight == weight]).withColumn(_WEIGHT, F.lit(weight))
        images = part if images is None else images.unionByName(part)
    assert images is not None
    image = F.struct(
        F.col(ROW_VERSION).alias("version"), *(F.col(quote(c)).alias(f"c{i}") for i, c in enumerate(columns))
    )
    summed = (
        images.select(ROW_ID, ROW_VERSION, _WEIGHT, image.alias("image"))
        .repartition(F.col(ROW_ID))  # serves both groupings: one shuffle
        .groupBy(ROW_ID, ROW_VERSION)
        .agg(F.sum(_WEIGHT).alias(_WEIGHT), F.any_value("image").alias("image"))
        .where(F.col(_WEIGHT) != 0)
        .groupBy(ROW_ID)
        .agg(
            F.any_value(F.when(F.col(_WEIGHT) < 0, F.col("image")), True).alias("b"),
            F.any_value(F.when(F.col(_WEIGHT) > 0, F.col("image")), True).alias("a"),
        )
    )
    sides = [
        column
        for side in "ba"
        for column in (
            F.when(F.col(side).isNotNull(), F.col(ROW_ID)).alias(f"{side}_id"),
            F.col(side)["version"].alias(f"{side}_version"),
            *(F.col(side)[f"c{i}"].alias(f"{side}{i}") for i in range(len(columns))),
        )
    ]
    return _unfolded(reading, summed.select(*sides))


def _unfolded(reading: Reading, pairs: DataFrame) -> DataFrame:
    """Pairs of a before and an after image (either may be absent) → the rows of the change set."""
    kinds: StructType = reading.table.schema(reading.end)
    both = F.col("b_id").isNotNull() & F.col("a_id").isNotNull()
    same = F.lit(True)
    for i, field in enumerate(kinds.fields):
        same = same & equal(F.col(f"b{i}"), F.col(f"a{i}"), field.dataType)
    unchanged = both & (F.col("b_version").eqNullSafe(F.col("a_version")) | same)
    kept = pairs.where(~unchanged)
    before = F.when(F.col("b_id").isNotNull(), F.when(F.col("a_id").isNull(), "DELETE").otherwise("UPDATE_BEFORE"))
    after = F.when(F.col("a_id").isNotNull(), F.when(F.col("b_id").isNull(), "INSERT").otherwise("UPDATE_AFTER"))
    halves = [
        [
            change,
            F.col(f"{side}_id"),
            F.col(f"{side}_version"),
            *(F.col(f"{side}{i}") for i in range(len(kinds.fields))),
        ]
        for side, change in (("b", before), ("a", after))
    ]
    names = [_TYPE, ROW_ID, ROW_VERSION, *reading.columns]
    return unfold(reading.spark, kept, names, halves[0], halves[1]).where(F.col(_TYPE).isNotNull())


def _scan(reading: Reading, pieces: Sequence[Piece], origins: bool = False) -> DataFrame:
    """The rows of the pieces, in the final columns: one scan for whole files and one for lost rows, an epoch of partitioning at a time."""
    parts = []
    for epoch, group in _by_partitioning(reading, pieces):
        descriptor = _descriptor(reading, epoch)
        whole = [p.file for p in group if p.other is None]
        pairs = [(p.file, p.other) for p in group if p.other is not None]
        if whole:
            parts.append(
                _in_final_columns(reading, reading.table.scan(descriptor, whole, None, origins), epoch, origins)
            )
        lost = reading.table.lost_rows(pairs) if pairs else None
        if lost is not None and lost.count:
            files = [f for f, _ in pairs]
            parts.append(
                _in_final_columns(reading, reading.table.scan(descriptor, files, lost, origins), epoch, origins)
            )
    if not parts:
        return reading.table.scan(reading.end.handle, (), None, origins)
    result = parts[0]
    for part in parts[1:]:
        result = result.unionByName(part)
    return result


def _by_partitioning(reading: Reading, pieces: Sequence[Piece]) -> list[tuple[schema.Epoch, list[Piece]]]:
    """Files by the metadata to read them with: the final one reads all, but for files that were partitioned otherwise."""
    epochs = reading.epochs
    layouts = [schema.physical_partition_columns(e.metadata) for e in epochs]
    compatible = {len(epochs) - 1}
    groups: dict[int, list[Piece]] = {}
    for piece in pieces:
        index = _epoch_index(epochs, piece.file)
        if index not in compatible:
            schema.check_compatible(epochs[index], epochs[-1].metadata, _version_of_change(epochs, index))
            compatible.add(index)
        layout = layouts[index] if _is_of(epochs, piece.file) else None
        groups.setdefault(_last_partitioned_so(layouts, piece.file, layout), []).append(piece)
    return [(epochs[i], group) for i, group in groups.items()]


def _is_of(epochs: Sequence[schema.Epoch], file: FileState) -> bool:
    """Whether a file was written under one of the epochs, rather than before them all: a RESTORE may bring such a one back."""
    version = file.default_row_commit_version
    return file.action.get("partitionValues") is None or (version is not None and version >= epochs[0].version)


def _last_partitioned_so(layouts: Sequence[frozenset[str]], file: FileState, layout: frozenset[str] | None) -> int:
    """The last of the layouts that is the file's. Where nobody knows it (None) the file's partition values tell; the log leaves out those
    that are NULL."""
    if layout is None:
        named = frozenset(file.action["partitionValues"])
        layout = named if named in layouts else next((have for have in reversed(layouts) if have >= named), None)
    if layout is None:
        raise StreamqlError(
            "CHANGES_UNREADABLE",
            f"{file.path} is partitioned by ({', '.join(sorted(named))}), as the table was at no version of the interval",
            hint="CREATE OR REPLACE the stream",
            file=file.path,
        )
    return max(i for i, have in enumerate(layouts) if have == layout)


def _epoch_index(epochs: Sequence[schema.Epoch], file: FileState) -> int:
    written = file.default_row_commit_version
    assert written is not None
    return max([i for i, e in enumerate(epochs) if e.version <= written], default=0)


def _version_of_change(epochs: Sequence[schema.Epoch], index: int) -> int:
    """The first later version whose metadata no longer fits the epoch's."""
    for epoch in epochs[index + 1 :]:
        try:
            schema.check_compatible(epochs[index], epoch.metadata, epoch.version)
        except StreamqlError:
            return epoch.version
    return epochs[-1].version


def _descriptor(reading: Reading, epoch: schema.Epoch) -> JavaObject:
    if epoch is reading.epochs[-1]:
        return reading.end.handle
    return reading.table.descriptor(reading.end, epoch.version, epoch.metadata)


def _in_final_columns(reading: Reading, rows: DataFrame, epoch: schema.Epoch, origins: bool) -> DataFrame:
    """Rows read with an epoch's metadata, under the final names and types; a column that came later is NULL."""
    if epoch is reading.epochs[-1]:
        return rows
    shown = _followed(
        lambda name: F.col(quote(name)),
        schema.fields(epoch.metadata),
        schema.fields(reading.end.metadata),
        reading.table.schema(reading.end),
    )
    own = [ROW_ID, ROW_VERSION, *((BASE_ROW_ID, FILE_VERSION) if origins else ())]
    return rows.select(*own, *shown)


def _followed(
    get: Callable[[str], Column], old: Sequence[Json], new: Sequence[Json], kinds: StructType
) -> list[Column]:
    """Fields in their final order, names and types, followed by identity from those that `get` finds by their old name."""
    before = {schema.identity(f): f for f in old}
    shown = []
    for field, kind in zip(new, kinds.fields, strict=True):
        was = before.get(schema.identity(field))
        value = F.lit(None) if was is None else _reshaped(get(was["name"]), was["type"], field["type"], kind.dataType)
        shown.append(value.cast(kind.dataType).alias(field["name"]))
    return shown


def _reshaped(value: Column, was: Any, now: Any, kind: DataType) -> Column:
    """A value in the final type: structs by the identity of their fields, where a cast would go by position."""
    if was == now or not isinstance(was, Mapping) or not isinstance(now, Mapping) or was.get("type") != now.get("type"):
        return value
    if isinstance(kind, StructType):
        parts = _followed(value.getField, was["fields"], now["fields"], kind)
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(kind, ArrayType):
        inner = kind.elementType
        return F.transform(value, lambda x: _reshaped(x, was["elementType"], now["elementType"], inner).cast(inner))
    if isinstance(kind, MapType):
        to_key, to_value = kind.keyType, kind.valueType
        keys = F.transform(
            F.map_keys(value), lambda x: _reshaped(x, was["keyType"], now["keyType"], to_key).cast(to_key)
        )
        values = F.transform(
            F.map_values(value), lambda x: _reshaped(x, was["valueType"], now["valueType"], to_value).cast(to_value)
        )
        return F.map_from_arrays(keys, values)
    return value


_BUILDERS: dict[PlanKind, Callable[[Reading, ChangePlan], DataFrame]] = {
    PlanKind.NOTHING: _nothing,
    PlanKind.ADDED_ONLY: _added_only,
    PlanKind.REMOVED_ONLY: _removed_only,
    PlanKind.MINIMIZE: _minimize,
    PlanKind.MINIMIZE_MOVED: _minimize_moved,
    PlanKind.APPENDED: _appended,
    PlanKind.INITIAL_ROWS: _initial_rows,
    PlanKind.INITIAL_APPENDED: _initial_appended,
}
