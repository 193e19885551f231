"""The errors of streamql, as they come back to Python in exceptions of Spark."""

from __future__ import annotations

import logging
import re

from streamql.errors import ERROR_CLASSES, StreamqlError
from streamql.registered import registered

_HEAD = re.compile(r"\[([A-Z_]+)\] (.*?)(?: \(line (\d+), column (\d+)\))?(?:\nHint: (.*))?\Z", re.DOTALL)


def as_streamql_error(e: BaseException) -> StreamqlError | None:
    """Returns the error of streamql that an exception of Spark carries; None: it carries none."""
    code = getattr(e, "getCondition", lambda: None)()
    if code not in ERROR_CLASSES:
        return None
    m = _HEAD.match(str(e).split("\n\nJVM stacktrace:")[0].rstrip().removesuffix(";").rstrip())
    if m is None or m.group(1) != code:
        return None
    line, column = (int(g) if g else None for g in m.group(3, 4))
    return StreamqlError(code, m.group(2), hint=(m.group(5) or "").strip(), line=line, column=column)


def silence() -> None:
    """Keeps PySpark from writing every failed query to stderr as JSON. It raises the error in any case."""
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(logger).setLevel(logging.CRITICAL + 1)


def explained(e: Exception) -> Exception | None:
    """Return what a feature puts in the place of an exception of the JVM; None: the exception itself is shown."""
    return next((found for explain in registered("explains") if (found := explain(e)) is not None), None)
