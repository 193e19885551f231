"""MERGE as users write it for streams: INSERT VALUES without columns, columns of a target row that is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamql.dialect.rewrites.rule import Edit, SparkStatement, StatementRule
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.merge import Insertion, Merge
from streamql.dialect.text.shape import chain, key_at, outermost
from streamql.dialect.text.splices import Splice
from streamql.dialect.text.tokens import NameParts, Token, name_part
from streamql.errors import counted
from streamql.names import quote


def _from_stream(statement: SparkStatement) -> Edit:
    """Completes a MERGE that reads a stream. The catalog is asked for streams only here."""
    merge = statement.merge
    if merge is None or not _reads_stream(statement, merge):
        return Edit()
    nulls, warnings = _null_target_columns(statement.cursor, merge)
    return Edit((*_name_columns(statement, merge), *nulls), warnings)


def _columns(statement: SparkStatement) -> Edit:
    """Gives INSERT VALUES of any MERGE the columns of its target: Spark's grammar wants them."""
    return Edit() if statement.merge is None else Edit(_name_columns(statement, statement.merge))


_WORDS = re.compile("MERGE", re.IGNORECASE)
MERGE_FROM_STREAM = StatementRule("MERGE from a stream", _WORDS, _from_stream)
MERGE_COLUMNS = StatementRule("columns of INSERT VALUES in MERGE", _WORDS, _columns, is_of_rejected=True)


def _reads_stream(statement: SparkStatement, merge: Merge) -> bool:
    """Returns whether the source is a stream, or a subquery or CTE before it reads one."""
    ctes = _cte_names(statement.cursor.tokens, merge.verb)
    sources = (r.parts for r in statement.relations if r.first < merge.source[1])
    return any(statement.is_stream(parts) for parts in sources if len(parts) > 1 or parts[0].lower() not in ctes)


def _cte_names(tokens: list[Token], verb: int) -> set[str]:
    """Returns the names that a leading WITH defines, in lower case."""
    places = (i for i in outermost(tokens, 0, verb) if key_at(tokens, i - 1) in ("WITH", "RECURSIVE", ","))
    return {part.lower() for part in (name_part(tokens[i]) for i in places) if part is not None}


def _name_columns(statement: SparkStatement, merge: Merge) -> list[Splice]:
    """Returns the splices that give every `INSERT VALUES (…)` the target's columns. SYNTAX_ERROR where the counts differ."""
    splices = []
    cursor, tokens = statement.cursor, statement.cursor.tokens
    for insertion in merge.insertions:
        values = insertion.insert + 1
        last = cursor.closers.get(values + 1) if key_at(tokens, values) == "VALUES" else None
        if last is None:
            continue
        columns = statement.columns_of(merge.target)
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


def _null_target_columns(cursor: Cursor, merge: Merge) -> tuple[list[Splice], list[str]]:
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
