"""Names that a command line gives: of a database, of streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.catalog.states import StreamState


def use_statement(database: str) -> str:
    """Returns the statement that makes a database the current one; `database` is as it stands behind --database: with backquotes or
    without."""
    name = database if "`" in database else ".".join(f"`{part}`" for part in database.split("."))
    return f"USE {name}"


def use_database(spark: SparkSession, database: str | None) -> None:
    """Makes a database the current one, where one was named. Raises what Spark raises."""
    from streamql.sessions import run_sql

    if database is not None:
        run_sql(use_statement(database), spark)


def streams_named(spark: SparkSession, names: Sequence[str]) -> list[StreamState]:
    """Returns the streams of these names, as SQL writes them. Raises STREAM_NOT_FOUND, SYNTAX_ERROR."""
    from streamql.dialect import parse_name
    from streamql.engine.reads import need_stream

    return [need_stream(spark, parse_name(name)) for name in names]
