"""From a plan to a lazy DataFrame: the change set's rows. Runs no job; only file lists and positions pass the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamql.changes import schema
from streamql.changes.plan import ChangePlan, PlanKind
from streamql.changes.scan import Reading, in_final_columns, scan, version_of_change
from streamql.changes.values import equal
from streamql.delta.images import among, rename, select, unfold
from streamql.delta.table import BASE_ROW_ID, FILE_VERSION, ROW_ID, ROW_VERSION
from streamql.errors import StreamqlError
from streamql.model import METADATA_DDL
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

_HIDDEN_DDL = ", ".join(
    f"{quote(name)} {kind}" for name, kind in zip(HIDDEN_COLUMNS, ("STRING", "BOOLEAN", "BIGINT") * 2, strict=True)
)

_WEIGHT = "__streamql_weight"
_TYPE = "__streamql_type"


def build(reading: Reading, plan: ChangePlan) -> DataFrame:
    """The rows of a plan: the three metadata columns, the table's columns, then HIDDEN_COLUMNS."""
    if plan.kind is PlanKind.NOTHING:
        return reading.table.nothing(reading.end, METADATA_DDL, _HIDDEN_DDL)
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


_ACTION = f"IF({_TYPE} IN ('INSERT', 'UPDATE_AFTER'), 'INSERT', 'DELETE')"
_IS_UPDATE = f"{_TYPE} IN ('UPDATE_BEFORE', 'UPDATE_AFTER')"


def _shown(reading: Reading, rows: DataFrame) -> DataFrame:
    time = reading.table.commit_time(reading.end.table_id, reading.commits, F.col(ROW_VERSION))
    hidden = zip((_ACTION, _IS_UPDATE, ROW_ID) * 2, HIDDEN_COLUMNS, strict=True)
    columns = [
        f"{_TYPE} AS __change_type",
        f"{ROW_VERSION} AS __commit_version",
        *map(quote, reading.columns),
        *(f"{value} AS {quote(name)}" for value, name in hidden),
    ]
    return select(rows, columns, (2, time.alias("__commit_timestamp")))


def _typed(rows: DataFrame, change_type: str) -> DataFrame:
    return select(rows, [f"'{change_type}' AS {_TYPE}", "*"])


def _apart(reading: Reading, plan: ChangePlan) -> DataFrame:
    """No row is on both sides, so there is nothing to compare."""
    pieces = plan.inserted + plan.pieces
    sides = [(-1, "DELETE"), (+1, "INSERT")]
    parts = [(change, [p for p in pieces if p.weight * sign > 0]) for sign, change in sides]
    shown = [_typed(scan(reading, part), change) for change, part in parts if part]
    return shown[0] if len(shown) == 1 else shown[0].unionByName(shown[1])


def _initial_rows(reading: Reading, _: ChangePlan) -> DataFrame:
    return _typed(reading.table.rows(reading.end), "INSERT")


def _appended(reading: Reading, plan: ChangePlan) -> DataFrame:
    rows = scan(reading, plan.inserted, origins=True)
    # A row is new where its id was given out by this very file, at the file's own commit; ids that a rewrite carried along are lower.
    new = rows.where((F.col(ROW_ID) >= F.col(BASE_ROW_ID)) & (F.col(ROW_VERSION) == F.col(FILE_VERSION)))
    return _typed(new.drop(BASE_ROW_ID, FILE_VERSION), "INSERT")


def _initial_appended(reading: Reading, plan: ChangePlan) -> DataFrame:
    start = reading.start()
    if len(reading.epochs) > 1:
        schema.check_compatible(reading.epochs[0], reading.epochs[-1].metadata, version_of_change(reading.epochs, 0))
    before = in_final_columns(reading, reading.table.rows(start), reading.epochs[0], origins=False)
    present = _typed(before, "INSERT")
    return present.unionByName(_appended(reading, plan)) if plan.inserted else present


def _minimize(reading: Reading, plan: ChangePlan) -> DataFrame:
    """Every row id has at most one image on either side: they meet in one join, and equal versions cancel unseen."""
    removed = scan(reading, [p for p in plan.pieces if p.weight < 0])
    added = scan(reading, [p for p in plan.pieces if p.weight > 0])
    if plan.kind is PlanKind.MINIMIZE_CARRIED:
        # Most rows of rewritten files are the same on both sides. Their ids are read first, and tell which are not.
        whole = scan(reading, [p for p in plan.pieces if p.weight > 0 and p.other is None])
        kept = whole.where(F.col(ROW_VERSION) <= plan.interval.after)
        removed = removed.where(~among(kept.select(ROW_ID), F.col(ROW_ID)))
        added = added.where(F.col(ROW_VERSION) > plan.interval.after)
    before, after = _side(removed, reading.columns, "b"), _side(added, reading.columns, "a")
    pairs = before.join(after, F.col("b_id") == F.col("a_id"), "full_outer")
    changed = _unfolded(reading, pairs)
    if not plan.inserted:
        return changed
    return changed.unionByName(_typed(scan(reading, plan.inserted), "INSERT"))


def _side(rows: DataFrame, columns: Sequence[str], side: str) -> DataFrame:
    return rename(rows, [f"{side}_id", f"{side}_version", *(f"{side}{i}" for i in range(len(columns)))])


def _minimize_moved(reading: Reading, plan: ChangePlan) -> DataFrame:
    """Moved copies of a row image enter with weights of both signs: they are summed by (row id, version) before sides are told apart."""
    columns = reading.columns
    image = ", ".join([f"{ROW_VERSION} AS version", *(f"{quote(c)} AS c{i}" for i, c in enumerate(columns))])
    images = None
    for weight in sorted({p.weight for p in plan.pieces}):
        rows = scan(reading, [p for p in plan.pieces if p.weight == weight])
        part = select(rows, [ROW_ID, ROW_VERSION, f"{weight} AS {_WEIGHT}", f"struct({image}) AS image"])
        images = part if images is None else images.union(part)
    assert images is not None
    summed = (
        images.repartition(F.col(ROW_ID))  # serves both groupings: one shuffle
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
            f"IF({side} IS NULL, NULL, {ROW_ID}) AS {side}_id",
            f"{side}.version AS {side}_version",
            *(f"{side}.c{i} AS {side}{i}" for i in range(len(columns))),
        )
    ]
    return _unfolded(reading, select(summed, sides))


def _unfolded(reading: Reading, pairs: DataFrame) -> DataFrame:
    """Pairs of a before and an after image (either may be absent) → the rows of the change set."""
    fields = reading.table.schema(reading.end).fields
    same = " AND ".join(["true", *(equal(f"b{i}", f"a{i}", f.dataType) for i, f in enumerate(fields))])
    kept = pairs.where(f"b_id IS NULL OR a_id IS NULL OR NOT (b_version <=> a_version OR ({same}))")
    kinds = {
        "b": "CASE WHEN b_id IS NULL THEN NULL WHEN a_id IS NULL THEN 'DELETE' ELSE 'UPDATE_BEFORE' END",
        "a": "CASE WHEN a_id IS NULL THEN NULL WHEN b_id IS NULL THEN 'INSERT' ELSE 'UPDATE_AFTER' END",
    }
    halves = [[kind, f"{s}_id", f"{s}_version", *(f"{s}{i}" for i in range(len(fields)))] for s, kind in kinds.items()]
    return unfold(kept, [_TYPE, ROW_ID, ROW_VERSION, *reading.columns], *halves).where(f"{_TYPE} IS NOT NULL")


_BUILDERS: dict[PlanKind, Callable[[Reading, ChangePlan], DataFrame]] = {
    PlanKind.ADDED_ONLY: _apart,
    PlanKind.REMOVED_ONLY: _apart,
    PlanKind.ADDED_AND_REMOVED: _apart,
    PlanKind.MINIMIZE: _minimize,
    PlanKind.MINIMIZE_CARRIED: _minimize,
    PlanKind.MINIMIZE_MOVED: _minimize_moved,
    PlanKind.APPENDED: _appended,
    PlanKind.INITIAL_ROWS: _initial_rows,
    PlanKind.INITIAL_APPENDED: _initial_appended,
}
