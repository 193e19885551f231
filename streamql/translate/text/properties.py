"""The statement that sets streamql's properties of a table: change tracking, and how long its history is kept."""

from __future__ import annotations

import re

from streamql.dialect.statements import NameParts
from streamql.translate.text.names import sql_name

COLUMN_DEFAULTS = ("delta.feature.allowColumnDefaults", "supported")
"""The property of a Delta table whose columns have defaults."""
_DAYS = re.compile(r"[1-9]\d*\Z", re.ASCII)


def retention_days(text: str) -> int | None:
    """Returns a retention that a script gives as a number; None: it is less than Delta Lake keeps, or not a number."""
    return int(text) if _DAYS.match(text) else None


def set_properties(table: NameParts, change_tracking: bool | None, retention_days: int | None) -> list[str]:
    """Returns the statement that sets the properties; no statement if there are none. None leaves a property as it is."""
    pairs = [f"'change_tracking' = '{str(change_tracking).lower()}'"] if change_tracking is not None else []
    pairs += [f"'data_retention_days' = '{retention_days}'"] if retention_days is not None else []
    return [f"ALTER TABLE {sql_name(table)} SET PROPERTIES ({', '.join(pairs)})"] if pairs else []


def tracking(table: NameParts) -> str:
    """Returns the statement that switches change tracking on."""
    return set_properties(table, True, None)[0]
