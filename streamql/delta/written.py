"""How many rows a statement wrote, for statements of which Spark does not say it: INSERT."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from streamql.delta.jvm import scala


class RowCount:
    """The rows that Delta transactions wrote inside `counting_rows`. `rows` is None before its end, and if none of them counts rows."""

    rows: int | None = None


@contextmanager
def counting_rows(spark: SparkSession) -> Iterator[RowCount]:
    """Counts the rows that this thread's Delta transactions write inside. It runs no job."""
    written = scala(spark).consume.Written
    count = RowCount()
    written.begin()
    try:
        yield count
    finally:
        rows = written.end()
        count.rows = None if rows is None else int(rows)
