"""Names of three parts: the first is a database of the source system there, and a catalog in Spark."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import chain, key_at
from streamql.dialect.text.tokens import NameParts
from streamql.features.translate.facts.context import Context
from streamql.features.translate.text.relations import relations_of
from streamql.names import quote_if_needed

_BEFORE_A_TARGET = frozenset(("INTO", "OVERWRITE", "UPDATE", "TABLE", "VIEW", "STREAM", "EXISTS", "CLONE"))
_CATALOGS_OF_SPARK = ("spark_catalog", "system")
_PARTS = 3
_NOTE = "the first part of {0}.{1}.{2} names a catalog in Spark: leave it out, or configure a catalog {0}"


def catalog_notes(text: str, context: Context) -> tuple[str, ...]:
    """Returns a note for the first name of each database in the script."""
    cursor = Cursor(text)
    tokens = cursor.tokens
    targets = [chain(tokens, i + 1)[0] for i, token in enumerate(tokens[:-1]) if token.key in _BEFORE_A_TARGET]
    read = [r.parts for r in relations_of(cursor) if key_at(tokens, r.after) != "("]
    return tuple(note for name in (*targets, *read) for note in _notes(name, context))


def _notes(name: NameParts, context: Context) -> tuple[str, ...]:
    if len(name) != _PARTS or name[0].lower() in _CATALOGS_OF_SPARK:
        return ()
    is_first = context.once(f"catalog {name[0].lower()}")
    return (_NOTE.format(*map(quote_if_needed, name)),) if is_first else ()
