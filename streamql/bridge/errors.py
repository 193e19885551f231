"""Our errors, on their way back from Spark to Python."""

from __future__ import annotations

import logging
import re

from streamql.errors import ERROR_CLASSES, StreamqlError

_HEAD = re.compile(r"\[([A-Z_]+)\] (.*?)(?: \(line (\d+), column (\d+)\))?(?:\nHint: (.*))?\Z", re.DOTALL)


def as_streamql_error(e: BaseException) -> StreamqlError | None:
    """Returns the error of ours that Spark's exception carries across the JVM; None: it is Spark's own."""
    code = getattr(e, "getCondition", lambda: None)()
    if code not in ERROR_CLASSES:
        return None
    m = _HEAD.match(str(e).split("\n\nJVM stacktrace:")[0].rstrip().removesuffix(";").rstrip())
    if m is None or m.group(1) != code:
        return None
    line, column = (int(g) if g else None for g in m.group(3, 4))
    return StreamqlError(code, m.group(2), hint=(m.group(5) or "").strip(), line=line, column=column)


def silence() -> None:
    """PySpark writes every failed query to stderr, as JSON, besides raising it: here it does not."""
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
