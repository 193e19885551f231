"""The types of a script's columns, as far as the translation of `column[…]` depends on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import chain
from streamql.dialect.text.tokens import NameParts, name_part
from streamql.features.translate.model import System
from streamql.features.translate.text.created import take_create
from streamql.features.translate.text.names import lowered

VARIANT = "VARIANT"
_NESTED = ("MAP", "STRUCT", "TUPLE")


def column_types(statements: Iterable[str], system: System) -> dict[str, str]:
    """Returns VARIANT, ARRAY, MAP, STRUCT or another word for each column that a CREATE TABLE of the script names, in lower case.

    Columns of one name and of different types are left out.
    """
    found: dict[str, set[str]] = {}
    for text in statements:
        for name, type_word in _columns(Cursor(text), system):
            found.setdefault(name, set()).add(type_word)
    return {name: types.pop() for name, types in found.items() if len(types) == 1}


def table_columns(statements: Iterable[str], system: System) -> dict[NameParts, dict[str, str]]:
    """Returns the columns of each table that a CREATE TABLE of the script lists, in lower case, and the words of their types."""
    found: dict[NameParts, dict[str, str]] = {}
    for text in statements:
        cursor = Cursor(text)
        if take_create(cursor) == "TABLE" and (columns := dict(_columns(Cursor(text), system))):
            found[lowered(chain(cursor.tokens, cursor.index)[0])] = columns
    return found


def _columns(cursor: Cursor, system: System) -> Iterator[tuple[str, str]]:
    """Yields the columns of a CREATE TABLE with their types."""
    if take_create(cursor) != "TABLE":
        return
    while not cursor.at_end() and not cursor.at("(") and not cursor.at("AS"):
        cursor.advance()
    closing = cursor.closers.get(cursor.index)
    if closing is None:
        return
    is_start = True
    cursor.advance()
    while cursor.index < closing:
        name = name_part(cursor.token) if is_start else None
        if name is not None:
            yield name.lower(), _type_word(cursor.key(1), cursor.key(2), system)
        is_start = cursor.at(",")
        cursor.index = cursor.closers.get(cursor.index, cursor.index) + 1


def _type_word(key: str, following: str, system: System) -> str:
    if key in ("VARIANT", "JSON", "JSONB"):
        return VARIANT
    if key in ("ARRAY", "OBJECT") and system is System.SNOWFLAKE and following not in ("(", "<"):
        return VARIANT
    return "STRUCT" if key == "TUPLE" else key
