"""Errors of Spark in an export: which ones a retry may cure, and which error of streamql the user gets for one."""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException

from streamql.errors import StreamqlError
from streamql.features.tablestore.records.rows import explained

_LASTING = re.compile(
    r"No space left|Permission denied|AccessDenied|Forbidden|OutOfMemoryError|\[[A-Z_]+\] |FileNotFound"
)
_TRANSIENT = re.compile(
    r"ConcurrentTransaction|IOException"
    r"|SocketTimeout|SocketException|Connection (?:reset|refused|closed)|[Tt]imed out|TimeoutException|ExecutorLost|FetchFailed"
    r"|SlowDown|Service ?Unavailable|Internal ?Error|status code:? 5\d\d|UnknownHost|Throttl"
)


def is_transient(error: Exception) -> bool:
    """Returns whether storage or the network failed for a moment, by the text of the error. Bad input, missing files and full disks are
    not transient.

    After a run was killed, its Spark process may still commit the output to a Delta table. That is a concurrent transaction for the next
    run, whose retry then finds the rows.
    """
    if isinstance(error, StreamqlError | AnalysisException) or explained(error) is not None:
        return False
    text = str(error)
    return _TRANSIENT.search(text) is not None and _LASTING.search(text) is None


def translated(error: Exception, what: str) -> StreamqlError | None:
    """Returns the error of streamql for an error of Spark. None: there is none. `what`: what was read, for the message."""
    found = explained(error)
    if found is not None:
        return found
    if "FileNotFoundException" in str(error) or "[FAILED_READ_FILE.FILE_NOT_EXIST]" in str(error):
        return StreamqlError(
            "STREAM_STALE",
            f"VACUUM removed files of {what} while they were read",
            hint="begin with a later version or time; data_retention_days of the table keeps files for longer",
        )
    return None
