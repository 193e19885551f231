"""One statement from Python: in whose session it runs, and our errors as our own exceptions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streamql.errors import ERROR_CLASSES, StreamqlError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HEAD = re.compile(r"\[([A-Z_]+)\] (.*?)(?: \(line (\d+), column (\d+)\))?(?:\nHint: (.*))?\Z", re.DOTALL)


def run_sql(text: str, spark: SparkSession | None = None) -> DataFrame:
    """Runs one statement in `spark`, else in the active session, else in an embedded one. Raises StreamqlError and Spark's own."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from streamql.bridge.handler import install

    if spark is None:
        spark = SparkSession.getActiveSession()
    if spark is None:
        from streamql.session import session

        spark = session()
    install(spark)
    try:
        return spark.sql(text)
    except PySparkException as e:
        ours = as_streamql_error(e)
        if ours is None:
            raise
        raise ours from None


def as_streamql_error(e: BaseException) -> StreamqlError | None:
    """The error of ours that Spark's exception carries across the JVM; None: it is Spark's own."""
    code = getattr(e, "getCondition", lambda: None)()
    if code not in ERROR_CLASSES:
        return None
    m = _HEAD.match(str(e).split("\n\nJVM stacktrace:")[0].rstrip().removesuffix(";").rstrip())
    if m is None or m.group(1) != code:
        return None
    line, column = (int(g) if g else None for g in m.group(3, 4))
    return StreamqlError(code, m.group(2), hint=(m.group(5) or "").strip(), line=line, column=column)
