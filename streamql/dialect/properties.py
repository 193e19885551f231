"""ALTER TABLE … SET [TBL]PROPERTIES with a key of ours, and ALTER TABLE … SET CHANGE_TRACKING = TRUE."""

from __future__ import annotations

from streamql.dialect.statements import SetTableProperties
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import Token, TokenType, name_part, string_value
from streamql.misspelt import did_you_mean, taken_for
from streamql.shared import constants

PROPERTIES_GRAMMAR = "ALTER TABLE name SET PROPERTIES ('change_tracking' = 'true' [, 'data_retention_days' = 'n'])"
TRACKING_GRAMMAR = "ALTER TABLE name SET CHANGE_TRACKING = TRUE"
CREATION_GRAMMAR = (
    "CREATE [OR REPLACE] TABLE name … TBLPROPERTIES ('change_tracking' = 'true' [, 'data_retention_days' = 'n']) …"
)

_CHANGE_TRACKING, _RETENTION_DAYS = _OURS = (
    constants("properties")["changeTracking"],
    constants("properties")["retentionDays"],
)
_LISTS = ("PROPERTIES", "TBLPROPERTIES")
_PARTS = ("change", "trac", "king", "data_", "reten", "tion_", "_day")
"""Parts of our keys, by which the prefilter knows a misspelt one: one of them is left whole by the two mistakes that one may have."""


def skip_name(cursor: Cursor) -> bool:
    """Step over a name of Spark's (bare and backquoted parts); False, and no step, when none stands here."""
    index = cursor.index
    while name_part(cursor.token) is not None:
        cursor.advance()
        if not cursor.take("."):
            return True
    cursor.index = index
    return False


def is_set_table_properties(cursor: Cursor) -> bool:
    """Returns whether `TABLE name SET …` follows and names one of our keys. Moves the cursor."""
    if not (cursor.take("TABLE") and skip_name(cursor) and cursor.take("SET")):
        return False
    if cursor.at("CHANGE_TRACKING"):
        return True
    return cursor.at_any(_LISTS) and cursor.key(1) == "(" and _has_our_key(cursor)


def _has_our_key(cursor: Cursor) -> bool:
    """Returns whether one of our keys, or a misspelling of one, stands at a key's place in the list that follows."""
    tokens, start = cursor.tokens, cursor.index + 1
    return any(
        _written(tokens[index + 1]) in _OURS or _meant(tokens, index + 1) is not None
        for index in range(start, len(tokens) - 1)
        if index == start or tokens[index].key == ","
    )


def _meant(tokens: list[Token], index: int) -> str | None:
    """Returns the key of ours that a key is a misspelling of; None: it is ours, or the user's own. Keys with dots are Delta's or the
    user's."""
    written = _written(tokens[index])
    is_bare = index + 1 < len(tokens) and tokens[index + 1].key == "."
    if written in _OURS or is_bare or "." in written or not any(part in written for part in _PARTS):
        return None
    return taken_for(written, _OURS)


def _written(token: Token) -> str:
    """Returns a property's key as the token has it, in lower case; ASCII only and without escapes, as the prefilter sees it."""
    text = token.text.strip("'\"`")
    return text.lower() if text.isascii() else text


def parse_set_table_properties(cursor: Cursor) -> SetTableProperties:
    """Returns the statement from its first token. Raises SYNTAX_ERROR, INVALID_PROPERTY."""
    cursor.grammar = PROPERTIES_GRAMMAR
    cursor.expect("ALTER", "TABLE")
    table, table_span = cursor.name("the name of the table")
    cursor.expect("SET")
    if cursor.take("CHANGE_TRACKING"):
        cursor.grammar = TRACKING_GRAMMAR
        cursor.expect("=")
        return SetTableProperties(table, change_tracking=cursor.boolean("CHANGE_TRACKING"), table_span=table_span)
    cursor.advance()
    cursor.expect("(")
    properties = _Properties(cursor)
    properties.read()
    return SetTableProperties(
        table, properties.change_tracking, properties.data_retention_days, properties.others, table_span
    )


class _Properties:
    """The list of properties, read key by key."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.change_tracking: bool | None = None
        self.data_retention_days: int | None = None
        self.others: dict[str, str] = {}

    def read(self) -> None:
        """`key [=] value, …)`; the opening parenthesis is read."""
        seen: set[str] = set()
        while True:
            token = self.cursor.token
            key = self._key()
            if key in seen:
                raise self.cursor.error(f"property {key} is given twice", token=token, code="INVALID_PROPERTY")
            seen.add(key)
            self.cursor.take("=")
            if key == _CHANGE_TRACKING:
                self.change_tracking = self.cursor.boolean(key)
            elif key == _RETENTION_DAYS:
                self.data_retention_days = self._days()
            else:
                self.others[key] = read_value(self.cursor, key)
            if self.cursor.take(")"):
                return
            self.cursor.expect(",", hint="properties are separated by commas, the list ends with )")

    def _key(self) -> str:
        """Returns a key: a string, or parts with dots between them (delta.appendOnly); ours in lower case."""
        cursor = self.cursor
        meant = _meant(cursor.tokens, cursor.index)
        if meant is not None:
            message = f"{_written(cursor.token)} is not a property of streamql"
            raise cursor.error(message, hint=did_you_mean(f"'{meant}'"), code="INVALID_PROPERTY")
        if _written(cursor.token) in _OURS and cursor.key(1) != ".":
            return _written(cursor.advance())
        return read_key(cursor)

    def _days(self) -> int:
        token = self.cursor.token
        days = self.cursor.integer()
        if days is None or days < 1:
            message = f"data_retention_days takes a whole number of days from 1, found {token.text or token.type.value}"
            hint = "write 'data_retention_days' = '7'"
            raise self.cursor.error(message, hint=hint, token=token, code="INVALID_PROPERTY")
        return days


def read_key(cursor: Cursor) -> str:
    """Returns the key of a property: a string, or parts with dots between them (delta.appendOnly)."""
    if cursor.at_string():
        return string_value(cursor.advance())
    parts = []
    while True:
        part = name_part(cursor.token)
        if part is None:
            raise cursor.expected("a property")
        cursor.advance()
        parts.append(part)
        if not cursor.take("."):
            return ".".join(parts)


def read_value(cursor: Cursor, key: str) -> str:
    """Returns the value of a property: a string, a number, TRUE or FALSE."""
    if cursor.at_string():
        return cursor.string("the value")
    if cursor.at_any(("TRUE", "FALSE")):
        return cursor.advance().text.lower()
    if cursor.token.type is TokenType.NUMBER:
        return cursor.advance().text
    raise cursor.expected(f"the value of {key}: a string, a number, TRUE or FALSE", f"write '{key}' = '…'")
