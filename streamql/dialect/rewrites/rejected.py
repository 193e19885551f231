"""What Spark's parser rejects in its own statements, and other systems write: types without a length, PROPERTIES, CHANGE_TRACKING."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamql.dialect.properties import skip_name
from streamql.dialect.rewrites.rule import Edit, SparkStatement, StatementRule
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import chain, key_at, outermost
from streamql.dialect.text.splices import Splice
from streamql.dialect.text.tokens import Token

_CHARACTER_TYPES = ("VARCHAR", "CHAR", "CHARACTER")
_AFTER_INNER_TYPE = (">", ",", "VARYING", "NOT", "COMMENT", "COLLATE")
_CONSTRAINTS = (("PRIMARY", "KEY"), ("FOREIGN", "KEY"), ("UNIQUE", "("), ("CHECK", "("))


def _table_properties(statement: SparkStatement) -> Edit:
    """PROPERTIES of CREATE TABLE and ALTER TABLE become TBLPROPERTIES, and so does CHANGE_TRACKING = TRUE of CREATE TABLE."""
    return Edit(_properties(statement.cursor))


TABLE_PROPERTIES = StatementRule(
    "PROPERTIES, CHANGE_TRACKING",
    re.compile("PROPERTIES|CHANGE_TRACKING", re.IGNORECASE),
    _table_properties,
    is_of_rejected=True,
)


def _properties(cursor: Cursor) -> list[Splice]:
    cursor.index = 0
    if cursor.at_any(("CREATE", "REPLACE")):
        return _created_properties(cursor)
    if not cursor.take("ALTER") or not (cursor.take("TABLE") or cursor.take("VIEW")):
        return []
    if not skip_name(cursor) or not (cursor.take("SET") or cursor.take("UNSET")) or not cursor.at("PROPERTIES"):
        return []
    token = cursor.token
    return [Splice(token.start, token.end, "TBLPROPERTIES")]


def _created_properties(cursor: Cursor) -> list[Splice]:
    if not at_created(cursor, "TABLE"):
        return []
    for index in outermost(cursor.tokens, cursor.index):
        token, after = cursor.tokens[index], key_at(cursor.tokens, index + 1)
        if token.key in ("AS", "SELECT"):
            break
        if token.key == "PROPERTIES" and after == "(":
            return [Splice(token.start, token.end, "TBLPROPERTIES")]
        if token.key == "CHANGE_TRACKING" and after == "=":
            value = cursor.tokens[index + 2]
            return [Splice(token.start, value.end, f"TBLPROPERTIES ('change_tracking' = {value.text})")]
    return []


def at_created(cursor: Cursor, *types: str) -> bool:
    """Steps to what follows the name that a CREATE statement gives; False if it makes nothing of these types."""
    cursor.index = 0
    cursor.take("CREATE")
    cursor.take("OR")
    for word in ("REPLACE", "GLOBAL", "TEMPORARY", "TEMP", "EXTERNAL"):
        cursor.take(word)
    if not any(cursor.take(word) for word in types):
        return False
    cursor.take("IF", "NOT", "EXISTS")
    return skip_name(cursor)


# --- types: find where each type starts, then walk it


def _character_types(statement: SparkStatement) -> Edit:
    """VARCHAR, CHAR and CHARACTER [VARYING] without a length become STRING, wherever a type stands."""
    return Edit(_strings(statement.cursor))


CHARACTER_TYPES = StatementRule(
    "types of characters", re.compile("CHAR", re.IGNORECASE), _character_types, is_of_rejected=True
)


def _strings(cursor: Cursor) -> list[Splice]:
    tokens = cursor.tokens
    if not any(token.key in _CHARACTER_TYPES for token in tokens):
        return []
    splices: dict[int, Splice] = {}
    for start in (*_cast_types(tokens), *_column_types(cursor)):
        for splice in _rewrite_type(tokens, start):
            splices[splice.start] = splice
    return list(splices.values())


def _rewrite_type(tokens: list[Token], start: int) -> Iterator[Splice]:
    """Yields the splices within the type at `start`, through ARRAY<…>, MAP<…> and STRUCT<…>."""
    yield from _rewrite_word(tokens, start)
    depth = 0
    for index in range(start + 1, len(tokens)):
        depth += {"<": 1, ">": -1}.get(tokens[index].key, 0)
        if depth <= 0:
            return
        # A field named `char` has a colon or its type behind it.
        if key_at(tokens, index + 1) in _AFTER_INNER_TYPE:
            yield from _rewrite_word(tokens, index)


def _rewrite_word(tokens: list[Token], index: int) -> Iterator[Splice]:
    token = tokens[index]
    if token.key not in _CHARACTER_TYPES:
        return
    is_varying = token.key != "VARCHAR" and key_at(tokens, index + 1) == "VARYING"
    last = index + is_varying
    if key_at(tokens, last + 1) != "(":
        yield Splice(token.start, tokens[last].end, "STRING")
    elif is_varying:
        yield Splice(token.start, tokens[last].end, "VARCHAR")


def _cast_types(tokens: list[Token]) -> Iterator[int]:
    """Yields where types start in CAST(… AS type), TRY_CAST(… AS type) and …::type."""
    calls: list[bool] = []
    for index, token in enumerate(tokens):
        if token.key == "(":
            calls.append(key_at(tokens, index - 1) in ("CAST", "TRY_CAST"))
        elif token.key == ")" and calls:
            calls.pop()
        elif token.key == "::" or (token.key == "AS" and calls and calls[-1]):
            yield index + 1


def _column_types(cursor: Cursor) -> Iterator[int]:
    """Yields where the types of column definitions start, in CREATE TABLE, CREATE VIEW … USING and ALTER TABLE."""
    cursor.index = 0
    if cursor.take("ALTER", "TABLE"):
        if skip_name(cursor):
            yield from _altered_types(cursor)
        return
    if at_created(cursor, "TABLE", "VIEW") and cursor.at("("):
        yield from _listed_types(cursor, cursor.index + 1, cursor.closers.get(cursor.index))


def _listed_types(cursor: Cursor, first: int, last: int | None = None) -> Iterator[int]:
    """Yields the types of `name type …, name type …` in the tokens [first, last)."""
    depth = 0
    yield from _defined_type(cursor.tokens, first)
    for index in outermost(cursor.tokens, first, last):
        key = cursor.tokens[index].key
        depth = max(0, depth + {"<": 1, ">": -1}.get(key, 0))
        if key == "," and depth == 0:
            yield from _defined_type(cursor.tokens, index + 1)


def _defined_type(tokens: list[Token], first: int) -> Iterator[int]:
    """Yields the type of the definition `name[.name …] type`; a constraint has none."""
    keys = (key_at(tokens, first), key_at(tokens, first + 1))
    parts, after = chain(tokens, first)
    if parts and keys not in _CONSTRAINTS and after < len(tokens):
        yield after


def _altered_types(cursor: Cursor) -> Iterator[int]:
    """Yields the types in ADD COLUMN[S], REPLACE COLUMNS, ALTER|CHANGE COLUMN."""
    tokens = cursor.tokens
    if cursor.take("ADD") or cursor.take("REPLACE"):
        if not (cursor.take("COLUMNS") or cursor.take("COLUMN")):
            return
        cursor.take("(")
        yield from _listed_types(cursor, cursor.index)
        return
    if not (cursor.take("ALTER") or cursor.take("CHANGE")):
        return
    cursor.take("COLUMN")
    for index in outermost(tokens, cursor.index):
        if tokens[index].key == "TYPE":
            yield index + 1
    _, after = chain(tokens, cursor.index)
    yield from _defined_type(tokens, after)
