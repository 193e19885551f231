"""Relational operations that PySpark's DataFrames lack, or that take a call to the JVM for each column there. Here each takes one call."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame

from streamql.delta.jvm import JavaObject, frame, java_frame, scala
from streamql.shared import constants


def select(df: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Returns a DataFrame of the SQL expressions over the rows of `df`."""
    return frame(
        df.sparkSession, scala(df.sparkSession).changes.Images.select(java_frame(df), json.dumps(list(columns)))
    )


TYPE, TIME, ACTION, IS_UPDATE = (constants("shown")[name] for name in ("type", "time", "action", "isUpdate"))
"""What `shown` can show besides columns: the change type, the commit's time, INSERT or DELETE, and whether the row is half of an update."""


def shown(
    df: DataFrame,
    columns: Sequence[tuple[str, str]],
    times: JavaObject,
    *,
    change_type: str | None,
    change_type_column: str,
    version_column: str,
) -> DataFrame:
    """Returns the rows with the given columns: (name, what it shows), which is the name of a column or one of the constants above.

    `change_type`: the change type of all rows; None: `change_type_column` has it. `times`: as `DeltaTable.commit_times` returns it.
    """
    images = scala(df.sparkSession).changes.Images
    made = images.shown(
        java_frame(df), json.dumps(list(columns)), change_type, change_type_column, version_column, times
    )
    return frame(df.sparkSession, made)


def compared(before: DataFrame, after: DataFrame, names: Sequence[str], *, bitwise: bool) -> DataFrame:
    """Joins old and new images by row id, and returns the rows of the change set. Both sides have the columns row id, version, and the
    values.

    `names`: the names of the result's columns: change type, row id, version, and the values. Two images with equal values (`Values.scala`)
    or the same version are not a change. `bitwise`: values are equal only if their bits are.
    """
    images = scala(before.sparkSession).changes.Images
    made = images.compared(java_frame(before), java_frame(after), json.dumps(list(names)), bitwise)
    return frame(before.sparkSession, made)


def unfold(pairs: DataFrame, names: Sequence[str], *, bitwise: bool) -> DataFrame:
    """Returns the rows of the change set for pairs that are joined already, as `compared` does. `pairs`: the columns of the old image, then
    those of the new one; they are NULL if the image is missing."""
    images = scala(pairs.sparkSession).changes.Images
    return frame(pairs.sparkSession, images.unfold(java_frame(pairs), json.dumps(list(names)), bitwise))
