"""PRIMARY KEY … RELY in CREATE TABLE becomes a table property, because Delta takes no such constraint.

    CREATE TABLE t (id INT PRIMARY KEY RELY, v STRING)         CREATE TABLE t (PRIMARY KEY (id) RELY) AS SELECT …

The second form has no counterpart in Spark, whose CREATE TABLE AS has no list. A key without RELY stays Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamql.dialect.rewrites.rejected import at_created
from streamql.dialect.rewrites.rule import Edit, SparkStatement, StatementRule
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import chain, key_at, outermost
from streamql.dialect.text.splices import Splice
from streamql.dialect.text.tokens import name_part, quote_string
from streamql.errors import StreamqlError
from streamql.features.keys.language.constraint import read_columns, take_rely
from streamql.misspelt import suggestion
from streamql.sources.tables.primary_key import PRIMARY_KEY, property_text

_LISTS = ("TBLPROPERTIES", "PROPERTIES")


@dataclass(frozen=True)
class _Key:
    """A constraint: the tokens [first, after), and its columns. `is_element`: it stands in the list as an element of its own."""

    first: int
    after: int
    columns: tuple[str, ...]
    is_element: bool


def _find(statement: SparkStatement) -> Edit:
    cursor = statement.cursor
    if not at_created(cursor, "TABLE") or not cursor.at("("):
        return Edit()
    opening = cursor.index
    closing = cursor.closers.get(opening)
    if closing is None:
        return Edit()
    elements = list(_elements(cursor, opening, closing))
    keys = [key for first, end in elements if (key := _key(cursor, first, end)) is not None]
    if not keys:
        return Edit()
    if len(keys) > 1:
        raise cursor.error(
            "a table has one PRIMARY KEY, and this is a second one",
            hint="write PRIMARY KEY (a, b) RELY behind the columns for a key of several columns",
            token=cursor.tokens[keys[1].first],
        )
    (key,) = keys
    _check(cursor, key, elements)
    return Edit((_cut(cursor, key, elements, opening, closing), _property(cursor, key, closing)))


CREATED_KEY = StatementRule("PRIMARY KEY", re.compile(r"\bRELY\b", re.IGNORECASE), _find)


def _elements(cursor: Cursor, opening: int, closing: int) -> Iterator[tuple[int, int]]:
    """Yields the elements of a list of columns: the indices of their first tokens and behind their last ones."""
    first, depth = opening + 1, 0
    for index in range(opening + 1, closing + 1):
        text = cursor.tokens[index].text
        if index == closing or (depth == 0 and text == ","):
            yield first, index
            first = index + 1
        elif text in ("(", "[", "{"):
            depth += 1
        elif text in (")", "]", "}"):
            depth -= 1
        else:
            depth += text.count("<") - text.count(">") if set(text) <= {"<", ">"} else 0


def _key(cursor: Cursor, first: int, end: int) -> _Key | None:
    """Returns the key that an element of the list declares; None: it declares none that streams may rely on."""
    at = next(
        (
            i
            for i in range(first, end - 1)
            if key_at(cursor.tokens, i) == "PRIMARY" and key_at(cursor.tokens, i + 1) == "KEY"
        ),
        None,
    )
    if at is None:
        return None
    start = at - 2 if at - 2 >= first and key_at(cursor.tokens, at - 2) == "CONSTRAINT" else at
    reader = Cursor(cursor.text, cursor.tokens, at + 2)
    if start == first and reader.at("("):
        columns = read_columns(reader)
        return _Key(first, end, columns, True) if take_rely(reader) and reader.index == end else None
    column = name_part(cursor.tokens[first])
    if start == first or column is None or not take_rely(reader):
        return None
    return _Key(start, reader.index, (column,), False)


def misspelt_rely(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for a word behind PRIMARY KEY in CREATE TABLE that is nearly RELY. None: there is none."""
    if not at_created(Cursor(cursor.text, cursor.tokens), "TABLE"):
        return None
    for at, _ in enumerate(cursor.tokens):
        if key_at(cursor.tokens, at) != "PRIMARY" or key_at(cursor.tokens, at + 1) != "KEY":
            continue
        behind = cursor.closers.get(at + 2, at + 1) + 1
        reader = Cursor(cursor.text, cursor.tokens, behind)
        take_rely(reader)
        if not reader.at("RELY") and (hint := suggestion(reader.key(), ("RELY",))):
            return reader.expected("RELY", hint)
    return None


def _check(cursor: Cursor, key: _Key, elements: Sequence[tuple[int, int]]) -> None:
    """Raises INVALID_PROPERTY for a column that the list does not have. A list without columns belongs to a query."""
    names = [str(name_part(cursor.tokens[first])) for first, _ in elements if first != key.first]
    for column in key.columns if names else ():
        if column.lower() not in (name.lower() for name in names):
            hint = suggestion(column, names) or f"the columns are {', '.join(names)}"
            token = cursor.tokens[key.first]
            raise cursor.error(
                f"the key has the column {column}, which the table lacks",
                hint=hint,
                token=token,
                code="INVALID_PROPERTY",
            )


def _cut(cursor: Cursor, key: _Key, elements: Sequence[tuple[int, int]], opening: int, closing: int) -> Splice:
    tokens = cursor.tokens
    if not key.is_element:
        return Splice(tokens[key.first].start, tokens[key.after - 1].end, "")
    if len(elements) == 1:
        return Splice(tokens[opening].start, tokens[closing].end, "")
    if key.first == elements[0][0]:
        return Splice(tokens[key.first].start, tokens[key.after].end, "")
    return Splice(tokens[key.first - 1].start, tokens[key.after - 1].end, "")


def _property(cursor: Cursor, key: _Key, closing: int) -> Splice:
    """Returns the splice that adds the property: to the statement's own list, or as a list of its own."""
    entry = f"{quote_string(PRIMARY_KEY)} = {quote_string(property_text(key.columns))}"
    tokens = cursor.tokens
    for index in outermost(tokens, closing + 1):
        if tokens[index].key in ("AS", "SELECT"):
            break
        if tokens[index].key in _LISTS and key_at(tokens, index + 1) == "(":
            place = tokens[index + 1].end
            return Splice(place, place, f"{entry}, ")
    after = closing + 1
    if key_at(tokens, after) == "USING":
        after = chain(tokens, after + 1)[1]
    place = tokens[after - 1].end
    return Splice(place, place, f" TBLPROPERTIES ({entry})")
