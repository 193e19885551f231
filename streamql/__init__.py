"""Table streams over Delta Lake on Spark: SELECT shows the net row changes since a bookmark, DML moves it exactly once."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _version
from typing import TYPE_CHECKING

from streamql.errors import StreamqlError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

try:
    __version__ = _version("streamql")
except PackageNotFoundError:  # a source tree that nobody installed
    __version__ = "0.0.0"

__all__ = ["StreamqlError", "__version__", "conf_lines", "configure", "session", "sql"]


def session(data: str | Path = "streamql-data", conf: dict[str, str] | None = None) -> SparkSession:
    """An embedded Spark session whose tables, streams and metastore live in the directory `data`.

    Raises JAVA_NOT_FOUND, JAR_BUILD_FAILED.
    """
    from streamql.sessions import session as make

    return make(data, conf)


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Adds Delta Lake and streamql to a session builder of your own."""
    from streamql.sessions import configure as add

    return add(builder)


def conf_lines() -> dict[str, str]:
    """The Spark settings that a session made elsewhere needs."""
    from streamql.sessions import conf_lines as lines

    return lines()


def sql(text: str, spark: SparkSession | None = None) -> DataFrame:
    """Runs one SQL statement, ours or Spark's, like `spark.sql`; without `spark`, in the active session or else an embedded one.

    Raises StreamqlError for what streamql refuses, Spark's own exceptions for the rest.
    """
    from streamql.sessions import run_sql

    return run_sql(text, spark)
