"""Builds the lazy DataFrame of a change set from its plan. Runs no job. Only lists of files and positions go through the driver."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamql.changes.plan import ChangePlan, PlanType
from streamql.changes.scan import (
    Reading,
    check_readable_at_end,
    in_final_columns,
    parts_of,
    scan,
    table_rows,
    without_carried,
)
from streamql.delta.images import ACTION, IS_UPDATE, TIME, TYPE, compared, select, shown, unfold
from streamql.delta.jvm import JavaObject
from streamql.delta.table import BASE_ROW_ID, FILE_VERSION, ROW_ID, ROW_VERSION
from streamql.errors import StreamqlError, counted
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
"""The names that Snowflake and Databend have for the metadata columns. These columns are hidden, and come after the table's columns."""

_HIDDEN_DDL = ", ".join(
    f"{quote(name)} {change_type}"
    for name, change_type in zip(HIDDEN_COLUMNS, ("STRING", "BOOLEAN", "BIGINT") * 2, strict=True)
)

_WEIGHT = "__streamql_weight"
CHANGE_TYPE_COLUMN = "__streamql_type"
INSERT, DELETE = "INSERT", "DELETE"


def build(reading: Reading, plan: ChangePlan) -> DataFrame:
    """Returns the rows of a plan: the three metadata columns, the table's columns, then HIDDEN_COLUMNS."""
    if plan.type is PlanType.NOTHING and reading.query is None:
        return shown_parts(reading, ())
    check_files_exist(reading, plan)
    return shown_parts(reading, _BUILDERS[plan.type](reading, plan))


def check_files_exist(reading: Reading, plan: ChangePlan) -> None:
    """Raises STREAM_STALE if VACUUM has removed a file that the plan reads."""
    own = () if reading.is_latest else (p.file for p in (*plan.pieces, *plan.inserted))
    files = [*plan.perishable, *own]
    missing = reading.table.missing_files(files) if files else []
    if missing:
        error = reading.table.stale(plan.interval.after)
        raise StreamqlError(
            "STREAM_STALE",
            f"VACUUM removed {counted(len(missing), 'data file')} that changes since version {plan.interval.after} need, e.g. {missing[0]}",
            hint=error.hint,
            files=missing[:10],
            version=plan.interval.after,
        )


@dataclass(frozen=True)
class Part:
    """Rows with the columns of `scan`. `change_type`: of all rows; None: the column CHANGE_TYPE_COLUMN has it."""

    rows: DataFrame
    change_type: str | None = None


def shown_parts(reading: Reading, parts: Sequence[Part]) -> DataFrame:
    """Returns the rows of parts of a change set in the columns that a stream shows. Without parts, there are no rows."""
    if not parts:
        return reading.table.nothing(reading.end, METADATA_DDL, _HIDDEN_DDL)
    times = reading.table.commit_times(reading.end, reading.commits)
    return functools.reduce(DataFrame.union, [_shown(reading, part, times) for part in parts])


def _shown(reading: Reading, part: Part, times: JavaObject) -> DataFrame:
    columns = [
        ("__change_type", TYPE),
        ("__commit_version", ROW_VERSION),
        ("__commit_timestamp", TIME),
        *((c, c) for c in reading.columns),
        *zip(HIDDEN_COLUMNS, (ACTION, IS_UPDATE, ROW_ID) * 2, strict=True),
    ]
    return shown(
        part.rows,
        columns,
        times,
        change_type=part.change_type,
        change_type_column=CHANGE_TYPE_COLUMN,
        version_column=ROW_VERSION,
    )


def _apart(reading: Reading, plan: ChangePlan) -> list[Part]:
    """Reads removed rows as DELETEs and added rows as INSERTs. No row has images on both sides, so nothing is compared."""
    pieces = plan.inserted + plan.pieces
    parts = [(change, [p for p in pieces if p.weight * sign > 0]) for sign, change in ((-1, DELETE), (+1, INSERT))]
    return [Part(scan(reading, part), change) for change, part in parts if part]


def _initial_rows(reading: Reading, _: ChangePlan) -> list[Part]:
    return [Part(reading.shown(reading.table.rows(reading.end)), INSERT)]


def _appended(reading: Reading, plan: ChangePlan) -> list[Part]:
    rows = table_rows(reading, plan.inserted, origins=True)
    # A row is new if it has an id from this file's own range, and the version of the file's commit. Ids that a rewrite carried along are
    # lower.
    new = rows.where((F.col(ROW_ID) >= F.col(BASE_ROW_ID)) & (F.col(ROW_VERSION) == F.col(FILE_VERSION)))
    # The query runs on new rows only, because it may fail for values that an UPDATE has written.
    return [Part(reading.shown(new), INSERT)]


def _initial_appended(reading: Reading, plan: ChangePlan) -> list[Part]:
    start = reading.start()
    if len(reading.epochs) > 1:
        check_readable_at_end(reading.epochs, 0)
    before = in_final_columns(reading, reading.table.rows(start), reading.epochs[0], [ROW_ID, ROW_VERSION])
    return [Part(reading.shown(before), INSERT), *(_appended(reading, plan) if plan.inserted else [])]


def _minimize(reading: Reading, plan: ChangePlan) -> list[Part]:
    """Joins old and new images by row id. Every row id has at most one image on each side. Two images of the same row version are no
    change."""
    old, new = ([p for p in plan.pieces if p.weight * sign > 0] for sign in (-1, +1))
    compares = reading
    if plan.type is PlanType.MINIMIZE_CARRIED:
        # Most rows of rewritten files are the same on both sides. Ids and versions are read first, so that these rows are never read.
        compares = without_carried(reading, parts_of(reading, old), parts_of(reading, new), plan.interval.after)
    removed, added = scan(compares, old), scan(compares, new)
    if plan.meets_in_one_task:
        removed, added = removed.coalesce(1), added.coalesce(1)
    changed = compared(removed, added, _names(reading), bitwise=reading.bitwise)
    return [Part(changed), *([Part(scan(reading, plan.inserted), INSERT)] if plan.inserted else [])]


def _names(reading: Reading) -> list[str]:
    return [CHANGE_TYPE_COLUMN, ROW_ID, ROW_VERSION, *reading.columns]


def _minimize_moved(reading: Reading, plan: ChangePlan) -> list[Part]:
    """Reads files that moves have copied, so that one row image has weights of both signs. The weights are summed by (row id, version)
    before the images are divided into old and new ones."""
    columns = reading.columns
    image = ", ".join([f"{ROW_VERSION} AS version", *(f"{quote(c)} AS c{i}" for i, c in enumerate(columns))])
    images = None
    for weight in sorted({p.weight for p in plan.pieces}):
        rows = scan(reading, [p for p in plan.pieces if p.weight == weight])
        part = select(rows, [ROW_ID, ROW_VERSION, f"{weight} AS {_WEIGHT}", f"struct({image}) AS image"])
        images = part if images is None else images.union(part)
    assert images is not None
    # Both ways put all images of a row id into one task, so neither of the two groupings below shuffles.
    together = images.coalesce(1) if plan.meets_in_one_task else images.repartition(F.col(ROW_ID))
    summed = (
        together.groupBy(ROW_ID, ROW_VERSION)
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
    return [Part(unfold(select(summed, sides), _names(reading), bitwise=reading.bitwise))]


def _nothing(reading: Reading, _: ChangePlan) -> list[Part]:
    return [Part(scan(reading, ()), INSERT)]


_BUILDERS: dict[PlanType, Callable[[Reading, ChangePlan], list[Part]]] = {
    PlanType.NOTHING: _nothing,
    PlanType.ADDED_ONLY: _apart,
    PlanType.REMOVED_ONLY: _apart,
    PlanType.ADDED_AND_REMOVED: _apart,
    PlanType.MINIMIZE: _minimize,
    PlanType.MINIMIZE_CARRIED: _minimize,
    PlanType.MINIMIZE_MOVED: _minimize_moved,
    PlanType.APPENDED: _appended,
    PlanType.INITIAL_ROWS: _initial_rows,
    PlanType.INITIAL_APPENDED: _initial_appended,
}
