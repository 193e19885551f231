"""The relations that a statement reads."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import Relation, key_at, relations, shape
from streamql.dialect.text.tokens import NameParts, name_part
from streamql.features.translate.text.names import lowered

_WITH_FROM = frozenset(("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY"))
"""Functions that have FROM between their arguments."""


def relations_of(cursor: Cursor) -> list[Relation]:
    """Returns the names that stand where a relation is read, also behind USING of MERGE and DELETE; CTEs are among them."""
    verb = shape(cursor.tokens).verb
    return list(relations(cursor.tokens, verb if key_at(cursor.tokens, verb) in ("MERGE", "DELETE") else None))


def sources_of(cursor: Cursor) -> list[Relation]:
    """Returns the relations that a statement reads, without its CTEs and without the target of DELETE."""
    tokens = cursor.tokens
    verb = shape(tokens).verb
    target = verb + 2 if key_at(tokens, verb) == "DELETE" and key_at(tokens, verb + 1) == "FROM" else -1
    ctes = _ctes(cursor)
    return [
        r
        for r in relations_of(cursor)
        if r.first != target and lowered(r.parts) not in ctes and not _is_argument(cursor, r)
    ]


def names_read(query: str) -> list[NameParts]:
    """Returns the names of the relations that a query reads, without its CTEs."""
    return [relation.parts for relation in sources_of(Cursor(query))]


def _ctes(cursor: Cursor) -> frozenset[NameParts]:
    """Returns the names of the CTEs, in lower case: `name AS (` or `name (columns) AS (` behind WITH or a comma."""
    tokens = cursor.tokens
    found: set[NameParts] = set()
    for index, token in enumerate(tokens):
        name = name_part(token)
        if name is None or key_at(tokens, index - 1) not in ("WITH", "RECURSIVE", ","):
            continue
        after = cursor.closers.get(index + 1, index) + 1
        words = (key_at(tokens, after + 1), key_at(tokens, after + 2))
        if key_at(tokens, after) == "AS" and (words[0] == "(" or "MATERIALIZED" in words):
            found.add((name.lower(),))
    return frozenset(found)


def _is_argument(cursor: Cursor, relation: Relation) -> bool:
    """Returns whether a name behind FROM is an argument of a function, as in EXTRACT (YEAR FROM day)."""
    around = [opening for opening, closing in cursor.closers.items() if opening < relation.first < closing]
    return bool(around) and key_at(cursor.tokens, max(around) - 1) in _WITH_FROM
