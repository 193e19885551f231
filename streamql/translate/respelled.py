"""Words that streamql's parser or sqlglot would misread or drop, spelled so that both read what the source says."""

from __future__ import annotations

from streamql.dialect.cursor import Cursor
from streamql.dialect.splices import Splice, apply

_MODIFIERS = ("TRANSIENT", "TEMPORARY", "TEMP", "LOCAL", "GLOBAL", "VOLATILE")
_MANAGED = "WITH MANAGED ACCESS was left out: permissions are those of the catalog and the storage"
_OR_ALTER = "OR ALTER became IF NOT EXISTS: an existing {} stays as it is, so change it by ALTER {}"


def respelled(text: str) -> tuple[str, tuple[str, ...]]:
    """Returns the statement in other words, and the notes on what differs."""
    cursor = Cursor(text)
    if cursor.at("BEGIN", "NAME"):
        return apply(text, [Splice(cursor.token.end, cursor.token.end, " TRANSACTION")]), ()
    text, notes = _without_or_alter(cursor)
    shorter = _without_managed_access(Cursor(text))
    return (text, notes) if shorter is None else (shorter, (*notes, _MANAGED))


def _without_managed_access(cursor: Cursor) -> str | None:
    """Returns CREATE SCHEMA without the clause; None: it is another statement, or has none."""
    if not cursor.take("CREATE"):
        return None
    while cursor.at_any(("OR", "REPLACE", *_MODIFIERS)):
        cursor.advance()
    if not cursor.at("SCHEMA"):
        return None
    while not cursor.at_end() and not cursor.at("WITH", "MANAGED", "ACCESS"):
        cursor.advance()
    if cursor.at_end():
        return None
    words = Splice(cursor.token.start, cursor.tokens[cursor.index + 2].end, "")
    return apply(cursor.text, [words]).rstrip()


def _without_or_alter(cursor: Cursor) -> tuple[str, tuple[str, ...]]:
    """CREATE OR ALTER keeps the rows of a table, which CREATE OR REPLACE drops."""
    if not cursor.take("CREATE") or not cursor.at("OR", "ALTER"):
        return cursor.text, ()
    words = Splice(cursor.token.start, cursor.tokens[cursor.index + 2].start, "")
    cursor.take("OR", "ALTER")
    while cursor.at_any(_MODIFIERS):
        cursor.advance()
    if cursor.at("VIEW"):
        return apply(cursor.text, [Splice(words.start, words.end, "OR REPLACE ")]), ()
    if not cursor.at_any(("TABLE", "SCHEMA", "DATABASE")):
        return cursor.text, ()
    kind = cursor.token
    after = Splice(kind.end, kind.end, "" if cursor.at(kind.key, "IF") else " IF NOT EXISTS")
    return apply(cursor.text, [words, after]), (_OR_ALTER.format(kind.key.lower(), kind.key),)


def overwrites(text: str) -> bool:
    """Returns whether the statement is INSERT OVERWRITE ALL or FIRST; sqlglot reads it as INSERT ALL or FIRST."""
    cursor = Cursor(text)
    return cursor.take("INSERT", "OVERWRITE") and cursor.at_any(("ALL", "FIRST"))
