"""DROP and DESCRIBE of a schema or a database."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import NameParts
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import System, Translated
from streamql.features.translate.text.names import sql_name
from streamql.features.translate.wording import ONE_PART

_CASCADE = "CASCADE was added: in {} DROP {} also drops the tables inside"


def in_catalog(name: NameParts, context: Context) -> tuple[str, tuple[str, ...]]:
    """Returns the name of a schema without the source system's database, and a note on that, once a script."""
    return sql_name(name[-1:]), context.once(ONE_PART.format(name[0])) if len(name) > 1 else ()


def drop_schema(text: str, context: Context) -> Translated | None:
    """Returns DROP SCHEMA with CASCADE, which the other systems imply; None: it is another statement."""
    cursor = Cursor(text)
    if not cursor.take("DROP") or not cursor.at_any(("SCHEMA", "DATABASE")):
        return None
    word = cursor.advance().key
    exists = " IF EXISTS" if cursor.take("IF", "EXISTS") else ""
    name, _ = cursor.name("the name of a schema")
    if not cursor.at_end() or context.system is System.CLICKZETTA:
        return None
    schema, notes = in_catalog(name, context)
    note = _CASCADE.format(context.system.title, word)
    return Translated((f"DROP {word}{exists} {schema} CASCADE",), (*notes, note))


def describe_schema(text: str, context: Context) -> Translated | None:
    """Returns DESCRIBE SCHEMA; None: it is another statement."""
    cursor = Cursor(text)
    if not cursor.at_any(("DESC", "DESCRIBE")) or cursor.key(1) not in ("SCHEMA", "DATABASE"):
        return None
    cursor.index += 2
    extended = " EXTENDED" if cursor.take("EXTENDED") else ""
    name, _ = cursor.name("the name of a schema")
    if not cursor.at_end():
        return None
    schema, notes = in_catalog(name, context)
    return Translated((f"DESCRIBE SCHEMA{extended} {schema}",), notes)
