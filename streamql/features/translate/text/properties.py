"""The statement that sets streamql's properties of a table: change tracking, and how long its history is kept."""

from __future__ import annotations

import re
from itertools import pairwise

from streamql.dialect.text.tokens import NameParts, TokenType, scan, string_value
from streamql.errors import counted
from streamql.features.translate.text.names import sql_name

COLUMN_DEFAULTS = ("delta.feature.allowColumnDefaults", "supported")
"""The property of a Delta table whose columns have defaults."""
_IDLE = {
    "data_lifecycle": "the property data_lifecycle has no effect here: delete old rows by a script that streamql run runs",
    "mv_const_tables": "the property mv_const_tables has no effect here: a refresh also follows the changes of these tables",
}
"""Properties of ClickZetta's that do something there, and nothing here."""
_DAYS = re.compile(r"[1-9]\d*\Z", re.ASCII)


def idle_notes(text: str) -> list[str]:
    """Returns a note for each property in the text that does something in the source system, and nothing here."""
    pairs = pairwise(scan(text))
    names = [string_value(name).lower() for name, sign in pairs if name.type is TokenType.STRING and sign.key == "="]
    return [_IDLE[name] for name in names if name in _IDLE]


def retention_days(text: str) -> int | None:
    """Returns a retention that a script gives as a number; None: it is less than Delta Lake keeps, or not a number."""
    return int(text) if _DAYS.match(text) else None


def days_of_hours(text: str) -> tuple[int | None, list[str]]:
    """Returns a retention that a script gives in hours as whole days, and the note on it; None: it is not a number from 1."""
    hours = retention_days(text)
    if hours is None:
        return None, []
    days = -(-hours // 24)
    note = f"{counted(hours, 'hour')} of retention became {counted(days, 'day')}"
    return days, [note] if hours % 24 else []


def set_properties(table: NameParts, change_tracking: bool | None, retention_days: int | None) -> list[str]:
    """Returns the statement that sets the properties; no statement if there are none. None leaves a property as it is."""
    pairs = [f"'change_tracking' = '{str(change_tracking).lower()}'"] if change_tracking is not None else []
    pairs += [f"'data_retention_days' = '{retention_days}'"] if retention_days is not None else []
    return [f"ALTER TABLE {sql_name(table)} SET PROPERTIES ({', '.join(pairs)})"] if pairs else []


def tracking(table: NameParts) -> str:
    """Returns the statement that switches change tracking on."""
    return set_properties(table, True, None)[0]
