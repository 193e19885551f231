"""Counts the rows that a statement wrote, for statements whose result does not have that number, such as INSERT."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from streamql.delta.jvm import scala


class RowCount:
    """The rows that Delta transactions wrote in the body of `counting_rows`. `rows`: None until the body ends, and if no transaction
    counted rows."""

    rows: int | None = None


@contextmanager
def counting_rows(spark: SparkSession) -> Iterator[RowCount]:
    """Counts the rows that this thread's Delta transactions write in the body. It runs no job."""
    written = scala(spark).consume.Written
    count = RowCount()
    written.begin()
    try:
        yield count
    finally:
        rows = written.end()
        count.rows = None if rows is None else int(rows)
