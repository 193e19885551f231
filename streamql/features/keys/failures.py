"""The error that images with one key raise while they are read."""

from __future__ import annotations

import re

from streamql.errors import StreamqlError

_RAISED = re.compile(r"\[KEY_NOT_UNIQUE\] (?P<says>[^\n]*)\nHint: (?P<hint>[^\n]*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)


def explained(e: BaseException) -> StreamqlError | None:
    """Returns KEY_NOT_UNIQUE if that is what rows raised. None: the exception has another cause."""
    found = _RAISED.search(str(e))
    return None if found is None else StreamqlError("KEY_NOT_UNIQUE", found["says"], hint=found["hint"])
