"""SET of ALTER TABLE: change tracking, retention and comment, in any order, with and without commas."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from streamql.dialect import quote_string
from streamql.dialect.cursor import Cursor
from streamql.dialect.statements import NameParts
from streamql.translate.context import sql_name
from streamql.translate.model import NotTranslatedError

_DAYS = re.compile(r"[1-9]\d*\Z", re.ASCII)
_NO_SETTING = "SET {}: Delta Lake has no such setting"
_NO_RETENTION = "DATA_RETENTION_TIME_IN_DAYS of 0: Delta Lake keeps one day at least"
_EXTENSION = (
    "MAX_DATA_EXTENSION_TIME_IN_DAYS was left out: "
    "streamql doctor --fix extends the retention, within spark.streamql.maxRetentionExtension"
)


@dataclass
class Settings:
    """What SET says. None: SET does not say it. `properties`: a list of ClickZetta's, with its parentheses."""

    change_tracking: bool | None = None
    retention_days: int | None = None
    comment: str | None = None
    properties: str = ""
    notes: list[str] = field(default_factory=list)

    def statements(self, table: NameParts) -> list[str]:
        """Returns the statements that set it."""
        name = sql_name(table)
        pairs = (
            [f"'change_tracking' = '{str(self.change_tracking).lower()}'"] if self.change_tracking is not None else []
        )
        pairs += [f"'data_retention_days' = '{self.retention_days}'"] if self.retention_days is not None else []
        found = [f"ALTER TABLE {name} SET PROPERTIES ({', '.join(pairs)})"] if pairs else []
        if self.change_tracking is not None and len(pairs) == 1:
            found = [f"ALTER TABLE {name} SET CHANGE_TRACKING = {str(self.change_tracking).upper()}"]
        found += [f"ALTER TABLE {name} SET TBLPROPERTIES {self.properties}"] if self.properties else []
        found += [f"COMMENT ON TABLE {name} IS {quote_string(self.comment)}"] if self.comment is not None else []
        return found


def read_settings(cursor: Cursor) -> Settings:
    """Returns what stands behind SET. Raises NotTranslatedError for settings that Delta Lake does not have."""
    settings = Settings()
    first = cursor.found()
    while not cursor.at_end():
        if cursor.take("OPTIONS", "("):
            while not cursor.take(")"):
                _read_option(cursor, settings)
                cursor.take(",")
        elif cursor.at_any(("PROPERTIES", "TBLPROPERTIES")) and cursor.key(1) == "(":
            closing = cursor.closers.get(cursor.index + 1, cursor.index + 1)
            settings.properties = cursor.text[cursor.tokens[cursor.index + 1].start : cursor.tokens[closing].end]
            cursor.index = closing + 1
        else:
            _read_setting(cursor, settings)
        cursor.take(",")
    if not any(
        (
            settings.change_tracking is not None,
            settings.retention_days,
            settings.comment is not None,
            settings.properties,
        )
    ):
        raise NotTranslatedError(_NO_SETTING.format(first), "leave the statement out")
    return settings


def _read_setting(cursor: Cursor, settings: Settings) -> None:
    if cursor.take("CHANGE_TRACKING"):
        cursor.expect("=")
        settings.change_tracking = cursor.boolean("CHANGE_TRACKING")
    elif cursor.take("DATA_RETENTION_TIME_IN_DAYS"):
        cursor.expect("=")
        settings.retention_days = _number(cursor)
    elif cursor.take("MAX_DATA_EXTENSION_TIME_IN_DAYS"):
        cursor.expect("=")
        cursor.advance()
        settings.notes.append(_EXTENSION)
    elif cursor.take("COMMENT"):
        cursor.take("=")
        settings.comment = cursor.string("the comment")
    else:
        raise NotTranslatedError(_NO_SETTING.format(cursor.found()), "leave the statement out")


def _read_option(cursor: Cursor, settings: Settings) -> None:
    """Reads one option of Databend's list."""
    if cursor.take("CHANGE_TRACKING"):
        cursor.expect("=")
        settings.change_tracking = cursor.boolean("CHANGE_TRACKING")
        return
    name = cursor.advance().text
    cursor.expect("=")
    if name.lower() == "data_retention_period_in_hours":
        hours = _number(cursor)
        settings.retention_days = -(-hours // 24)
        if hours % 24:
            settings.notes.append(f"{hours} hours of retention became {settings.retention_days} days")
        return
    cursor.advance()
    settings.notes.append(f"the option {name} was left out: Delta Lake has no such setting")


def _number(cursor: Cursor) -> int:
    text = cursor.advance().text
    if not _DAYS.match(text):
        raise NotTranslatedError(_NO_RETENTION, "set one day at least")
    return int(text)
