"""Where a MERGE has its parts: enough to know where a splice may go, no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import chain, key_at, outermost
from streamql.dialect.text.tokens import NameParts, Token, name_part


@dataclass(frozen=True)
class Insertion:
    """A WHEN NOT MATCHED [BY TARGET] … THEN INSERT … clause: tokens [first, after), `insert` the index of INSERT."""

    first: int
    insert: int
    after: int


@dataclass(frozen=True)
class Merge:
    """Where a MERGE has its parts; `verb` is the index of MERGE.

    `source_name` is what the source's columns are qualified with; `source` is its tokens [first, after).
    """

    verb: int
    target: NameParts
    target_alias: str | None
    source_name: str | None
    source: tuple[int, int]
    insertions: tuple[Insertion, ...]


def read_merge(cursor: Cursor, verb: int) -> Merge | None:
    """Returns the MERGE whose first token is at `verb`; None if it is not a MERGE, or not one that Spark could read."""
    tokens = cursor.tokens
    if key_at(tokens, verb) != "MERGE":
        return None
    index = verb + 1
    if key_at(tokens, index) == "WITH":
        index += 3
    if key_at(tokens, index) != "INTO":
        return None
    target, index = chain(tokens, index + 1)
    alias, index = _alias(tokens, index, "USING")
    using = index
    on = next((i for i in outermost(tokens, using) if tokens[i].key == "ON"), None)
    if not target or key_at(tokens, using) != "USING" or on is None:
        return None
    return Merge(
        verb, target, alias, _source_name(cursor, using + 1, on), (using + 1, on), tuple(_insertions(tokens, on + 1))
    )


def _alias(tokens: list[Token], index: int, following: str) -> tuple[str | None, int]:
    """`[AS] alias` before the keyword `following`, and the index of that keyword (or of what stands there instead)."""
    if key_at(tokens, index) == following:
        return None, index
    index += key_at(tokens, index) == "AS"
    alias = name_part(tokens[index]) if index < len(tokens) else None
    return alias, index + 1


def _source_name(cursor: Cursor, first: int, on: int) -> str | None:
    """Returns what qualifies the source's columns: its alias, which stands just before ON, or the last part of its name."""
    tokens = cursor.tokens
    parts, after = chain(tokens, first)
    if key_at(tokens, first) == "(":
        after = cursor.closers.get(first, first) + 1
    last = name_part(tokens[on - 1]) if on > after and key_at(tokens, on - 2) != "WITH" else None
    return last or (parts[-1] if parts else None)


def _insertions(tokens: list[Token], start: int) -> Iterator[Insertion]:
    """Yields the clauses that insert. WHEN and THEN of CASE expressions are not theirs."""
    places: list[int] = []
    cases = 0
    thens: dict[int, int] = {}
    for index in outermost(tokens, start):
        key = tokens[index].key if key_at(tokens, index - 1) != "." else ""
        cases = max(0, cases + {"CASE": 1, "END": -1}.get(key, 0))
        if cases == 0 and key == "WHEN":
            places.append(index)
        elif cases == 0 and key == "THEN" and places:
            thens.setdefault(places[-1], index)
    for first, after in pairwise((*places, len(tokens) - 1)):
        is_not_matched = key_at(tokens, first + 1) == "NOT" and key_at(tokens, first + 2) == "MATCHED"
        by_source = key_at(tokens, first + 3) == "BY" and key_at(tokens, first + 4) == "SOURCE"
        then = thens.get(first)
        if is_not_matched and not by_source and then is not None and key_at(tokens, then + 1) == "INSERT":
            yield Insertion(first, then + 1, after)
