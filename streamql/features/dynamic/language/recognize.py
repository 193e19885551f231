"""Whether the first words of a text are those of a statement about dynamic tables or materialized views."""

from __future__ import annotations

from streamql.dialect.grammar import Grammar, Parse
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import EXPLAIN_OPTIONS
from streamql.errors import StreamqlError
from streamql.features.dynamic.language.about import (
    parse_describe_dynamic,
    parse_drop_dynamic,
    parse_explain_refresh,
    parse_refresh_dynamic,
    parse_show_create_dynamic,
    parse_show_dynamic,
    parse_show_history,
    parse_verify_dynamic,
)
from streamql.features.dynamic.language.alter import parse_alter_dynamic
from streamql.features.dynamic.language.create import parse_create_dynamic
from streamql.features.dynamic.language.phrases import BEFORE_TYPE, PHRASES
from streamql.features.dynamic.language.refused import MODIFIERS, OTHER_VERBS
from streamql.features.dynamic.language.words import LISTS, TYPES, at_type


def _recognize(cursor: Cursor) -> Parse | None:
    """Returns the function that parses the statement; None: it is about something else. Starts at the first token, and moves the cursor."""
    verb = cursor.advance().key
    if verb == "CREATE":
        return _recognize_create(cursor)
    if verb == "SHOW":
        return _recognize_show(cursor)
    if verb in ("DESC", "DESCRIBE"):
        return _recognize_describe(cursor)
    if verb == "EXPLAIN":
        if cursor.at_any(EXPLAIN_OPTIONS):
            cursor.advance()
        return parse_explain_refresh if cursor.take("REFRESH") and at_type(cursor) else None
    return _PLAIN[verb] if verb in _PLAIN and at_type(cursor) else None


_PLAIN: dict[str, Parse] = {
    "DROP": parse_drop_dynamic,
    "ALTER": parse_alter_dynamic,
    "REFRESH": parse_refresh_dynamic,
    "VERIFY": parse_verify_dynamic,
}


def _recognize_create(cursor: Cursor) -> Parse | None:
    if cursor.at("OR") and cursor.key(1) in ("REPLACE", *OTHER_VERBS):
        cursor.index += 2
    if cursor.at_any(MODIFIERS):
        cursor.advance()
    return parse_create_dynamic if at_type(cursor) or cursor.at("DYNAMIC", "ICEBERG", "TABLE") else None


def _recognize_show(cursor: Cursor) -> Parse | None:
    if any(cursor.at(*keywords) for keywords in LISTS):
        return parse_show_dynamic
    if cursor.take("CREATE"):
        return parse_show_create_dynamic if at_type(cursor) else None
    return parse_show_history if at_type(cursor) and cursor.key(2) == "REFRESH" else None


def _recognize_describe(cursor: Cursor) -> Parse | None:
    if not at_type(cursor):
        return None
    cursor.index += 2
    # Without a name it is a column of a table that is named dynamic, or materialized.
    return parse_describe_dynamic if cursor.at_name() and not cursor.at("AS", "JSON") else None


# --- what is nearly one of them

_MIXED = {("DYNAMIC", "VIEW"): TYPES[0], ("MATERIALIZED", "TABLE"): TYPES[1]}
"""Words of one type with the other's, and the type that they are nearest to."""


def _mixed_type(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for DYNAMIC VIEW and MATERIALIZED TABLE."""
    for phrase in BEFORE_TYPE:
        size = len(phrase)
        meant = _MIXED.get((cursor.key(size), cursor.key(size + 1)))
        if meant is not None and cursor.at(*phrase):
            return cursor.not_a_statement(size + 2, (*phrase, *meant), cursor.tokens[size])
    return None


def _without_type(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for SHOW REFRESH HISTORY, which lacks the type of the table."""
    if not cursor.at("SHOW", "REFRESH", "HISTORY"):
        return None
    hint = "write SHOW DYNAMIC TABLE REFRESH HISTORY FOR name"
    return cursor.error("REFRESH HISTORY needs the type of the table", hint=hint, token=cursor.tokens[1])


GRAMMAR = Grammar(
    frozenset(("CREATE", "SHOW", "DESC", "DESCRIBE", "EXPLAIN", *_PLAIN)),
    _recognize,
    PHRASES,
    (_mixed_type, _without_type),
    sources=TYPES,
)
