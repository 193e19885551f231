"""DROP and DESCRIBE of a schema or a database."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor
from streamql.translate.facts.context import Context
from streamql.translate.model import System, Translated
from streamql.translate.text.names import sql_name

_CASCADE = "CASCADE was added: in {} DROP {} also drops the tables inside"


def drop_schema(text: str, context: Context) -> Translated | None:
    """Returns DROP SCHEMA with CASCADE, which the other systems imply; None: it is another statement."""
    cursor = Cursor(text)
    if not cursor.take("DROP") or not cursor.at_any(("SCHEMA", "DATABASE")):
        return None
    word = cursor.advance().key
    exists = " IF EXISTS" if cursor.take("IF", "EXISTS") else ""
    name = sql_name(cursor.name("the name of a schema")[0])
    if not cursor.at_end() or context.system is System.CLICKZETTA:
        return None
    note = _CASCADE.format(context.system.title, word)
    return Translated((f"DROP {word}{exists} {name} CASCADE",), (note,))


def describe_schema(text: str, _context: Context) -> Translated | None:
    """Returns DESCRIBE SCHEMA; None: it is another statement."""
    cursor = Cursor(text)
    if not cursor.at_any(("DESC", "DESCRIBE")) or cursor.key(1) not in ("SCHEMA", "DATABASE"):
        return None
    cursor.index += 2
    extended = " EXTENDED" if cursor.take("EXTENDED") else ""
    name, _ = cursor.name("the name of a schema")
    return Translated((f"DESCRIBE SCHEMA{extended} {sql_name(name)}",)) if cursor.at_end() else None
