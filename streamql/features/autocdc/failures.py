"""The errors that AUTO CDC INTO raises while its events are read."""

from __future__ import annotations

import re

from streamql.errors import StreamqlError
from streamql.features.autocdc.plan.events import FAILED

_RAISED = re.compile(
    rf"\[USER_RAISED_EXCEPTION\] {FAILED} (?P<code>[A-Z_.]+) (?P<says>[^\n]*?)(?: SQLSTATE: \w+)?$", re.MULTILINE
)
_HINTS = {
    "AUTO_CDC_CONFLICT": "let SEQUENCE BY order the events, as by STRUCT(time, number); or find the key that has two rows",
    "AUTO_CDC_CONFLICT.SNAPSHOT": "name more columns behind KEYS, so that each row has a key of its own",
    "AUTO_CDC_ORDER.SNAPSHOT": "nothing was changed: let SEQUENCE BY give one time, which is later than all rows of the target",
    "AUTO_CDC_ORDER": "nothing was changed: write APPLY AS DELETE WHEN condition, or a sequence that every event has",
}


def explained(e: Exception) -> StreamqlError | None:
    """Returns the error that events have raised. None: the exception has another cause."""
    found = _RAISED.search(str(e))
    if found is None:
        return None
    return StreamqlError(found["code"].partition(".")[0], found["says"].strip(), hint=_HINTS[found["code"]])
