"""The error that a row raises which violates an expectation."""

from __future__ import annotations

import re

from streamql.errors import StreamqlError

_RAISED = re.compile(
    r"\[EXPECTATION_VIOLATED\] (?P<says>[^\n]*)\nHint: (?P<hint>[^\n]*?)(?: SQLSTATE: \w+)?$", re.MULTILINE
)


def explained(e: BaseException) -> StreamqlError | None:
    """Returns EXPECTATION_VIOLATED if that is what a row raised. None: the exception has another cause."""
    found = _RAISED.search(str(e))
    return None if found is None else StreamqlError("EXPECTATION_VIOLATED", found["says"], hint=found["hint"])
