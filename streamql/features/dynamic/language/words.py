"""The two words for a table that a query defines: DYNAMIC TABLE and MATERIALIZED VIEW."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor

TYPES: tuple[tuple[str, str], ...] = (("DYNAMIC", "TABLE"), ("MATERIALIZED", "VIEW"))
LISTS: tuple[tuple[str, str], ...] = (("DYNAMIC", "TABLES"), ("MATERIALIZED", "VIEWS"))
"""What SHOW lists, in the order of TYPES."""


def at_type(cursor: Cursor) -> bool:
    """Returns whether DYNAMIC TABLE or MATERIALIZED VIEW comes next."""
    return any(cursor.at(*keywords) for keywords in TYPES)


def take_type(cursor: Cursor) -> bool:
    """Step over DYNAMIC TABLE or MATERIALIZED VIEW; True: it was MATERIALIZED VIEW."""
    return _take(cursor, TYPES)


def take_list(cursor: Cursor) -> bool:
    """Step over DYNAMIC TABLES or MATERIALIZED VIEWS; True: it was MATERIALIZED VIEWS."""
    return _take(cursor, LISTS)


def type_words(is_materialized_view: bool) -> str:
    """Returns the keywords of the type."""
    return " ".join(TYPES[is_materialized_view])


def name_of(is_materialized_view: bool) -> str:
    """Returns what errors call the name of one."""
    return f"the name of the {type_words(is_materialized_view).lower()}"


def _take(cursor: Cursor, choices: tuple[tuple[str, str], ...]) -> bool:
    for number, keywords in enumerate(choices):
        if cursor.take(*keywords):
            return bool(number)
    raise cursor.expected(" or ".join(" ".join(keywords) for keywords in choices))
