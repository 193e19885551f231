"""Relational pieces that Spark has and its DataFrame interface lacks, or has at the price of a call to the JVM for each column."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame

from streamql.delta.jvm import frame, java_frame, scala


def rename(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """The columns under other names, by position."""
    return frame(df.sparkSession, scala(df.sparkSession).Images.rename(java_frame(df), json.dumps(list(names))))


def select(df: DataFrame, columns: Sequence[str], another: tuple[int, Column] | None = None) -> DataFrame:
    """The SQL expressions; `another`: a column that no SQL can say, at a place among them."""
    at, column = (0, None) if another is None else (another[0], another[1]._jc)
    selected = scala(df.sparkSession).Images.select(java_frame(df), json.dumps(list(columns)), at, column)
    return frame(df.sparkSession, selected)


def unfold(df: DataFrame, names: Sequence[str], first: Sequence[str], second: Sequence[str]) -> DataFrame:
    """Each row becomes two: the SQL expressions of its first half, then of its second, both under the same names. Computes `df` once."""
    texts = [json.dumps(list(x)) for x in (names, first, second)]
    return frame(df.sparkSession, scala(df.sparkSession).Images.unfold(java_frame(df), *texts))


def among(rows: DataFrame, row_id: Column) -> Column:
    """Whether a row id is one of those in the only column of `rows`, which run first, as a subquery, and become a set of bits."""
    from pyspark.sql.classic.column import Column as ClassicColumn

    return ClassicColumn(scala(rows.sparkSession).RowIds.among(java_frame(rows), row_id._jc))
