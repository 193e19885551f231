"""The head of a CREATE statement: its modifiers, the type of the object, and where the name of the object stands."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import chain
from streamql.dialect.text.tokens import NameParts
from streamql.features.translate.text.names import lowered

MODIFIERS = ("TRANSIENT", "TEMPORARY", "TEMP", "LOCAL", "GLOBAL", "VOLATILE", "SECURE", "RECURSIVE")
"""Words that may stand between CREATE and the type of the object."""
_TYPES = ("TABLE", "VIEW", "STREAM", "SCHEMA", "DATABASE")


def take_create(cursor: Cursor) -> str:
    """Reads the head of a CREATE up to the name, and returns TABLE, VIEW, STREAM, SCHEMA or DATABASE.

    Returns an empty text for another statement: the caller then uses another cursor.
    """
    if not cursor.take("CREATE"):
        return ""
    while cursor.at_any(("OR", "REPLACE", *MODIFIERS)):
        cursor.advance()
    if cursor.at("TABLE", "STREAM"):
        cursor.advance()
    type_word = cursor.advance().key
    if type_word not in _TYPES:
        return ""
    cursor.take("IF", "NOT", "EXISTS")
    return type_word


def created(cursor: Cursor) -> tuple[str, NameParts]:
    """Returns the type of the object that a statement creates, and its name in lower case; both are empty for another statement."""
    type_word = take_create(cursor)
    return (type_word, lowered(chain(cursor.tokens, cursor.index)[0])) if type_word else ("", ())
