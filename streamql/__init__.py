"""Table streams over Delta Lake on Spark: SELECT shows the net row changes since an offset, DML moves it exactly once."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _version
from typing import TYPE_CHECKING

from streamql.errors import StreamqlError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from streamql.features.tablestore.reader import StreamReader as StreamReader

try:
    __version__ = _version("streamql")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0.0.0"

__all__ = [
    "StreamReader",
    "StreamqlError",
    "__version__",
    "conf_lines",
    "configure",
    "has_data",
    "session",
    "sql",
    "transaction",
]

if not TYPE_CHECKING:  # with it, a type checker would take every name for an attribute of the module

    def __getattr__(name: str) -> object:
        """Imports `StreamReader` when it is asked for: it needs PySpark."""
        if name == "StreamReader":
            from streamql.features.tablestore.reader import StreamReader

            return StreamReader
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Returns what completion offers: the public names, and no module that happens to be imported."""
    return sorted(__all__)


def session(data: str | Path = "streamql-data", conf: dict[str, str] | None = None) -> SparkSession:
    """Returns an embedded Spark session whose tables, streams and metastore live in the directory `data`.

    Raises JAVA_NOT_FOUND, JAR_BUILD_FAILED.
    """
    from streamql.extension.embedded import start_ahead

    start_ahead(data, conf or {})  # Java starts while PySpark is imported
    from streamql.sessions import session as make

    return make(data, conf)


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Adds Delta Lake and streamql to a session builder of your own."""
    from streamql.sessions import configure as add

    return add(builder)


def conf_lines(connectors: str = "") -> dict[str, str]:
    """Returns the Spark settings that a session made elsewhere needs. `connectors`: names of optional parts, with commas between."""
    from streamql.extension.settings import conf_lines as lines

    return lines(connectors)


def sql(
    text: str, spark: SparkSession | None = None, args: Mapping[str, object] | Sequence[object] | None = None
) -> DataFrame:
    """Runs one SQL statement, ours or Spark's, like `spark.sql`; without `spark`, in the active session or else an embedded one.

    `args`: values for the parameters in the text, by name (`:name`) or in their order (`?`). Raises StreamqlError for what streamql
    refuses, Spark's own exceptions for the rest.
    """
    from streamql.sessions import run_sql

    return run_sql(text, spark, args)


def has_data(stream: str, spark: SparkSession | None = None) -> bool:
    """Returns whether a statement has something to consume in a stream, as the SQL function `stream_has_data` does. False if there are no
    changes.

    `stream`: its name as SQL has it, such as `orders_stream` or `shop.orders_stream`. Without `spark`, it asks the session that `sql`
    takes. It uses only the log of the source, and does not move the stream. Raises STREAM_NOT_FOUND, STREAM_STALE, and whatever else a
    SELECT from the stream raises.
    """
    from streamql.sessions import has_data as asked

    return asked(stream, spark)


def transaction(spark: SparkSession | None = None) -> AbstractContextManager[SparkSession]:
    """Returns a transaction block as a `with` statement: BEGIN TRANSACTION, then COMMIT, or ROLLBACK if the body raises.

    The DML statements of the body see one pinned interval of each stream that they read. The offsets move once, at the end. If some
    statements committed before the body raised, they are not undone: the transaction stays partially committed, and a note on the
    exception says so. If the same body runs again, it skips these statements and runs the others. Raises INVALID_TRANSACTION_STATE
    inside another transaction.
    """
    from streamql.sessions import transaction as block

    return block(spark)
