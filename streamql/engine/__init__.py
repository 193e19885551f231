"""Runs streamql's own statements: parses the text, and calls the function that runs statements of its type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamql.dialect import parse
from streamql.errors import StreamqlError
from streamql.feature import statement_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["run"]


def run(spark: SparkSession, text: str) -> DataFrame | None:
    """Runs one of streamql's statements, and returns its rows; None: it has no rows to show. If it raises StreamqlError, nothing was
    created, and no offset moved."""
    statement = parse(text)
    if statement is None:
        raise StreamqlError("INTERNAL_ERROR", "a statement that is not ours reached the engine")
    return statement_types()[type(statement)].run(spark, statement, text)
