"""Statements that stay Spark's but need splices: change queries, tables AT a point, WITH CONSUME, names with $, MERGE from
a stream."""

from __future__ import annotations

import re
from collections.abc import Callable

from streamql.dialect.rewrites.as_of import as_of_splice
from streamql.dialect.rewrites.changes import changes_splice
from streamql.dialect.rewrites.consume import Options, check_batch_size, consumed_names, read_options
from streamql.dialect.rewrites.merge import ColumnsOf, Merge, name_columns, null_target_columns, read_merge
from streamql.dialect.statements import Rewrite
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import Relation, StatementType, key_at, outermost, relations, shape
from streamql.dialect.text.splices import Splice, apply
from streamql.dialect.text.tokens import NameParts, Token, TokenType, name_part, unterminated
from streamql.names import quote

IsStream = Callable[[NameParts], bool]

_MAY_CHANGE = re.compile(
    r"CHANGES|CONSUME|MERGE|MAX_BATCH_SIZE|SYSTEM\$STREAM_|METADATA\$|CHANGE\$|=>", re.IGNORECASE | re.ASCII
)
FUNCTIONS = {
    "SYSTEM$STREAM_HAS_DATA": "stream_has_data",
    "SYSTEM$STREAM_GET_TABLE_TIMESTAMP": "stream_table_timestamp",
}
# fmt: off
COLUMNS = {name.upper(): name for name in (
    "METADATA$ACTION", "METADATA$ISUPDATE", "METADATA$ROW_ID", "change$action", "change$is_update", "change$row_id",
)}
# fmt: on


def rewrite(text: str, is_stream: IsStream, columns_of: ColumnsOf) -> Rewrite | None:
    """Returns the statement with its splices, or None when nothing is to be done.

    `is_stream` tells whether a name as written is a stream, `columns_of` the column names of a MERGE's target (empty
    if they are not known); both are asked only where the answer matters. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE,
    INVALID_ARGUMENT, INVALID_POINT_IN_TIME, and whatever the two callbacks raise.
    """
    if not _MAY_CHANGE.search(text):
        return None
    cursor = Cursor(text)
    tokens = cursor.tokens
    if unterminated(tokens) is not None:
        return None
    statement = shape(tokens)
    merge = read_merge(cursor, statement.verb)
    found = list(relations(tokens, None if merge is None else statement.verb))
    splices = dollar_names(tokens)
    asked: list[tuple[Relation, Options]] = []
    for relation in found:
        table_read = changes_splice(cursor, relation) or as_of_splice(cursor, relation)
        if table_read is not None:
            splices += table_read
            continue
        options = read_options(cursor, relation, statement)
        if options is None:
            continue
        asked.append((relation, options))
        splices += options.splices
        splices += _batch_size(cursor, relation, options, is_stream)
    warnings: list[str] = []
    if merge is not None and _reads_stream(tokens, found, merge, is_stream):
        nulls, warnings = null_target_columns(cursor, merge)
        splices += [*name_columns(cursor, merge, columns_of), *nulls]
    if not splices:
        return None
    names = consumed_names(asked) if statement.type is StatementType.QUERY and not statement.is_explained else ()
    return Rewrite(apply(text, splices), bool(names), tuple(warnings), names)


def dollar_names(tokens: list[Token]) -> list[Splice]:
    """Returns the splices for Snowflake's and Databend's names with a $, which Spark cannot read unquoted."""
    splices = []
    for index, token in enumerate(tokens):
        if token.type is not TokenType.WORD or "$" not in token.text:
            continue
        if token.key in FUNCTIONS and key_at(tokens, index + 1) == "(":
            splices.append(Splice(token.start, token.end, FUNCTIONS[token.key]))
        elif token.key in COLUMNS:
            splices.append(Splice(token.start, token.end, quote(COLUMNS[token.key])))
    return splices


def _batch_size(cursor: Cursor, relation: Relation, options: Options, is_stream: IsStream) -> list[Splice]:
    """MAX_BATCH_SIZE is checked where it is a stream's. Spark takes no options in MERGE's USING: a subquery does."""
    if not options.has_batch_size or (options.consume is None and not is_stream(relation.parts)):
        return []
    check_batch_size(cursor, relation)
    if not relation.is_source:
        return []
    tokens = cursor.tokens
    start, end = tokens[relation.first].start, tokens[options.after - 1].end
    follows = key_at(tokens, options.after) == "AS" or (
        name_part(tokens[options.after]) is not None and tokens[options.after].key != "ON"
    )
    alias = "" if follows else f" AS {quote(relation.parts[-1])}"
    return [Splice(start, start, "(SELECT * FROM "), Splice(end, end, f"){alias}")]


def _reads_stream(tokens: list[Token], found: list[Relation], merge: Merge, is_stream: IsStream) -> bool:
    """Returns whether the source is a stream, or a subquery or CTE before it reads one."""
    ctes = _cte_names(tokens, merge.verb)
    sources = (r.parts for r in found if r.first < merge.source[1])
    return any(is_stream(parts) for parts in sources if len(parts) > 1 or parts[0].lower() not in ctes)


def _cte_names(tokens: list[Token], verb: int) -> set[str]:
    """Returns the names that a leading WITH defines, in lower case."""
    places = (i for i in outermost(tokens, 0, verb) if key_at(tokens, i - 1) in ("WITH", "RECURSIVE", ","))
    return {part.lower() for part in (name_part(tokens[i]) for i in places) if part is not None}
