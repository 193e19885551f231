"""MERGE as users write it for streams: INSERT VALUES without columns, columns of a target row that is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import chain, key_at, outermost
from streamql.dialect.text.splices import Splice
from streamql.dialect.text.tokens import NameParts, Token, name_part
from streamql.errors import counted
from streamql.names import quote

ColumnsOf = Callable[[NameParts], Sequence[str]]


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


def name_columns(cursor: Cursor, merge: Merge, columns_of: ColumnsOf) -> list[Splice]:
    """Returns the splices that give every `INSERT VALUES (…)` the target's columns. SYNTAX_ERROR where the counts differ."""
    splices = []
    tokens = cursor.tokens
    for insertion in merge.insertions:
        values = insertion.insert + 1
        last = cursor.closers.get(values + 1) if key_at(tokens, values) == "VALUES" else None
        if last is None:
            continue
        columns = columns_of(merge.target)
        if not columns:
            continue
        commas = sum(tokens[i].key == "," for i in outermost(tokens, values + 2, last))
        count = commas + 1 if last > values + 2 else 0
        if count != len(columns):
            message = f"{'.'.join(merge.target)} has {counted(len(columns), 'column')}, VALUES has {count}"
            hint = f"give a value for each of {', '.join(columns)}; or name the columns: INSERT (column, …) VALUES (…)"
            raise cursor.error(message, hint=hint, token=tokens[values])
        at = tokens[insertion.insert].end
        splices.append(Splice(at, at, f" ({', '.join(quote(c) for c in columns)})"))
    return splices


def null_target_columns(cursor: Cursor, merge: Merge) -> tuple[list[Splice], list[str]]:
    """Returns the splices that put NULL for columns of the target in WHEN NOT MATCHED, and what to warn of."""
    splices: list[Splice] = []
    written: dict[str, str] = {}
    source = merge.source_name or "the source"
    for insertion in merge.insertions:
        for first, after, column in _target_columns(cursor, merge, insertion):
            start, end = cursor.tokens[first].start, cursor.tokens[after - 1].end
            splices.append(Splice(start, end, "NULL"))
            written.setdefault(cursor.text[start:end], f"{source}.{column}")
    if not written:
        return splices, []
    is_or_are = "is" if len(written) == 1 else "are"
    warning = (
        f"In WHEN NOT MATCHED there is no row of the target, so {', '.join(written)} {is_or_are} NULL; "
        f"you probably meant {', '.join(written.values())}."
    )
    return splices, [warning]


def _target_columns(cursor: Cursor, merge: Merge, insertion: Insertion) -> Iterator[tuple[int, int, str]]:
    """Yields the references to the target's columns in the clause: tokens [first, after) and the column."""
    tokens = cursor.tokens
    qualifiers = _qualifiers(merge)
    index = insertion.first
    while index < insertion.after:
        is_column_list = index == insertion.insert + 1
        is_subquery = key_at(tokens, index + 1) in ("SELECT", "WITH", "FROM", "VALUES")
        if tokens[index].key == "(" and (is_column_list or is_subquery):
            index = cursor.closers.get(index, index) + 1
            continue
        parts, after = chain(tokens, index)
        lowered = tuple(part.lower() for part in parts)
        size = next((len(q) for q in qualifiers if lowered[: len(q)] == q and len(parts) > len(q)), 0)
        if size and key_at(tokens, after) != "(":
            while key_at(tokens, after) == "[":
                after = cursor.closers.get(after, after) + 1
            yield index, after, ".".join(parts[size:])
        index = max(after, index + 1)


def _qualifiers(merge: Merge) -> list[NameParts]:
    """Returns what the target's columns may be qualified with, in lower case: its alias or, without one, its name.

    An alias hides the name in Spark, and the name may then be a column of the source.
    """
    if merge.target_alias is not None:
        names: list[NameParts] = [(merge.target_alias,)]
    else:
        names = [merge.target[start:] for start in range(len(merge.target))]
    source = (merge.source_name or "").lower()
    lowered = (tuple(part.lower() for part in name) for name in names)
    return [name for name in lowered if name != (source,)]
