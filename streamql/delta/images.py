"""Relational pieces that Spark has and its DataFrame interface lacks, or has at the price of a call to the JVM for each column."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame

from streamql.delta.jvm import JavaObject, frame, java_frame, scala
from streamql.shared import constants


def select(df: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Returns the SQL expressions."""
    return frame(
        df.sparkSession, scala(df.sparkSession).changes.Images.select(java_frame(df), json.dumps(list(columns)))
    )


TYPE, TIME, ACTION, IS_UPDATE = (constants("shown")[name] for name in ("type", "time", "action", "isUpdate"))
"""What `shown` can show besides columns: the change type, its commit's time, INSERT or DELETE, and whether it is half of an update."""


def shown(
    df: DataFrame,
    columns: Sequence[tuple[str, str]],
    times: JavaObject,
    *,
    change_type: str | None,
    change_type_column: str,
    version_column: str,
) -> DataFrame:
    """(name, what it shows) for each column; what: a column's name, or one of the constants above.

    `change_type`: the change type of all rows; None: `change_type_column` says it. `times`: of DeltaTable.commit_times.
    """
    images = scala(df.sparkSession).changes.Images
    made = images.shown(
        java_frame(df), json.dumps(list(columns)), change_type, change_type_column, version_column, times
    )
    return frame(df.sparkSession, made)


def compared(before: DataFrame, after: DataFrame, names: Sequence[str], *, bitwise: bool) -> DataFrame:
    """Rows of two sides, both (row id, version, columns …), joined by row id: from each pair the rows of the change set.

    `names`: of the change type, row id, version and columns. A pair of equal values (`Values.scala`), or of one version, is not a change.
    `bitwise`: values are equal only if their bits are.
    """
    images = scala(before.sparkSession).changes.Images
    made = images.compared(java_frame(before), java_frame(after), json.dumps(list(names)), bitwise)
    return frame(before.sparkSession, made)


def unfold(pairs: DataFrame, names: Sequence[str], *, bitwise: bool) -> DataFrame:
    """`compared` for pairs made elsewhere: the columns of the row before, then of the row after, NULLs if there is none."""
    images = scala(pairs.sparkSession).changes.Images
    return frame(pairs.sparkSession, images.unfold(java_frame(pairs), json.dumps(list(names)), bitwise))


def among(rows: DataFrame, row_id: Column) -> Column:
    """Returns whether a row id is one of those in the only column of `rows`. They run first, as a subquery, and become a set of bits."""
    from pyspark.sql.classic.column import Column as ClassicColumn

    return ClassicColumn(scala(rows.sparkSession).changes.RowIds.among(java_frame(rows), row_id._jc))
