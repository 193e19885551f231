"""SET of ALTER TABLE: change tracking, retention and comment, in any order, with and without commas."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamql.dialect import quote_string
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import NameParts
from streamql.features.translate.model import NotTranslatedError
from streamql.features.translate.text.names import sql_name
from streamql.features.translate.text.properties import days_of_hours, idle_notes, retention_days, set_properties
from streamql.features.translate.wording import EXTENSION, LEAVE_OUT, RETENTION_MIN

_NO_SETTING = "SET {}: Delta Lake has no such setting"
_EXTENSION = f"MAX_DATA_EXTENSION_TIME_IN_DAYS was left out: {EXTENSION}"


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
        found = set_properties(table, self.change_tracking, self.retention_days)
        if self.change_tracking is not None and self.retention_days is None:
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
            settings.notes += idle_notes(settings.properties)
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
        raise NotTranslatedError(_NO_SETTING.format(first), LEAVE_OUT)
    return settings


def _read_setting(cursor: Cursor, settings: Settings) -> None:
    if cursor.take("CHANGE_TRACKING"):
        cursor.expect("=")
        settings.change_tracking = cursor.boolean("CHANGE_TRACKING")
    elif cursor.take("DATA_RETENTION_TIME_IN_DAYS"):
        cursor.expect("=")
        settings.retention_days = _retention(cursor)
    elif cursor.take("MAX_DATA_EXTENSION_TIME_IN_DAYS"):
        cursor.expect("=")
        cursor.advance()
        settings.notes.append(_EXTENSION)
    elif cursor.take("COMMENT"):
        cursor.take("=")
        settings.comment = cursor.string("the comment")
    else:
        raise NotTranslatedError(_NO_SETTING.format(cursor.found()), LEAVE_OUT)


def _read_option(cursor: Cursor, settings: Settings) -> None:
    """Reads one option of Databend's list."""
    if cursor.take("CHANGE_TRACKING"):
        cursor.expect("=")
        settings.change_tracking = cursor.boolean("CHANGE_TRACKING")
        return
    name = cursor.advance().text
    cursor.expect("=")
    if name.lower() == "data_retention_period_in_hours":
        settings.retention_days, notes = days_of_hours(str(_retention(cursor)))
        settings.notes += notes
        return
    cursor.advance()
    settings.notes.append(f"the option {name} was left out: Delta Lake has no such setting")


def _retention(cursor: Cursor) -> int:
    text = cursor.advance().text
    found = retention_days(text)
    if found is None:
        raise NotTranslatedError(f"a retention of {text}: {RETENTION_MIN}", "set one day at least")
    return found
