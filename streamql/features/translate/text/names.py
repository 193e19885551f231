"""Names of tables, views and streams: compared as Spark compares them, and written as a statement spells them."""

from __future__ import annotations

from streamql.dialect.text.tokens import NameParts
from streamql.names import quote_if_needed


def lowered(name: NameParts) -> NameParts:
    """Returns the name in lower case."""
    return tuple(part.lower() for part in name)


def is_same(one: NameParts, other: NameParts) -> bool:
    """Returns whether two names in lower case can mean one object: the shorter one is the end of the longer one."""
    size = min(len(one), len(other))
    return size > 0 and one[-size:] == other[-size:]


def sql_name(parts: NameParts) -> str:
    """Returns the name as a statement spells it."""
    return ".".join(quote_if_needed(part) for part in parts)
