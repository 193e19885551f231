"""`FROM t AT | END (STREAM => 's') [alias]` and `FROM t AT | BEFORE (VERSION => …) [alias]` become calls of a table function.

    streamql_as_of('`db`.`t`', 'BEGIN' | 'END', '`db`.`s`', '<place of the table>', '<place of the point>')
    streamql_as_of('`db`.`t`', '[BEFORE ]VERSION | TIMESTAMP | OFFSET', <value>, …)

Spark's own `VERSION AS OF …` and `FROM t at (a, b)` (an alias with column names) stay as they are.
"""

from __future__ import annotations

import re

from streamql.dialect.points import POINT_GRAMMAR, point_in_parentheses
from streamql.dialect.rewrites.changes import has_alias, quoted_parts, value_of
from streamql.dialect.rewrites.rule import Clause, ClauseRule, SparkStatement
from streamql.dialect.statements import PointInTime
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import Relation, key_at
from streamql.dialect.text.splices import Splice
from streamql.dialect.text.tokens import Token, line_and_column, quote_string
from streamql.names import quote

AS_OF_GRAMMAR = "FROM table {AT | END} (STREAM => 'stream') [alias]"
AT_POINT_GRAMMAR = "FROM table {AT | BEFORE} (TIMESTAMP => expression | OFFSET => -seconds | VERSION => n) [alias]"

_POINT_TYPES = ("STREAM", "VERSION", "TIMESTAMP", "OFFSET", "STATEMENT")


def _find(statement: SparkStatement, relation: Relation) -> Clause | None:
    """Returns the clause of a table that is read at a point; None: no point follows the relation.

    Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_POINT_IN_TIME.
    """
    cursor, tokens, after = statement.cursor, statement.cursor.tokens, relation.after
    if not _is_point(tokens, after) or key_at(tokens, relation.first - 2) == "DELETE":
        return None
    reader = Cursor(cursor.text, tokens, after, f"{AS_OF_GRAMMAR}, or {AT_POINT_GRAMMAR}")
    start = reader.advance()
    _check_word(reader, start)
    point = point_in_parentheses(reader, start.key == "BEFORE", start)
    _check_point(reader, point, start)
    places = (tokens[relation.first], start)
    arguments = [
        quoted_parts(relation.parts),
        quote_string(_name_of(point, start)),
        value_of(point),
        *(quote_string("{}:{}".format(*line_and_column(cursor.text, t.start))) for t in places),
    ]
    call = f"streamql_as_of({', '.join(arguments)})"
    if relation.is_source:
        call = f"(SELECT * FROM {call})"  # MERGE's USING takes a name or a query
    alias = "" if has_alias(reader) else f" AS {quote(relation.parts[-1])}"
    splice = Splice(tokens[relation.first].start, tokens[reader.index - 1].end, call + alias)
    return Clause(reader.index, (splice,))


TABLE_AT_POINT = ClauseRule("table AT | BEFORE | END", re.compile("=>"), _find)


def _is_point(tokens: list[Token], index: int) -> bool:
    word, opening, point_type, arrow = (key_at(tokens, index + ahead) for ahead in range(4))
    is_word = word in ("AT", "BEFORE", "END")
    return is_word and opening == "(" and point_type in _POINT_TYPES and arrow == "=>"


def _check_word(reader: Cursor, start: Token) -> None:
    """Raises UNSUPPORTED_CLAUSE for the words that a point of this type does not take."""
    point_type = reader.key(1)
    if start.key == "BEFORE" and point_type == "STREAM":
        why = "a table is read at the begin or at the end of what the stream shows"
        hint = "write AT (STREAM => …) for the begin, END (STREAM => …) for the end"
        raise reader.refused("BEFORE (STREAM => …) behind a table", why, hint, start)
    if start.key == "END" and point_type != "STREAM":
        hint = f"write AT ({point_type} => …)"
        raise reader.refused(f"END ({point_type} => …) behind a table", "END takes a stream here", hint, start)


def _check_point(reader: Cursor, point: PointInTime, start: Token) -> None:
    if point.type == "POSITIONS":
        what = f"{start.key} (OFFSET => positions) behind a table"
        raise reader.refused(what, "a table is read at a version or a time", f"say when: {POINT_GRAMMAR}", start)
    if _is_point(reader.tokens, reader.index):
        hint = "t CHANGES (INFORMATION => DEFAULT) AT (…) END (…) shows the changes between two points"
        raise reader.refused("a second point behind a table", "a table is read at one point", hint)


def _name_of(point: PointInTime, start: Token) -> str:
    if point.type == "STREAM":
        return "END" if start.key == "END" else "BEGIN"
    return f"BEFORE {point.type}" if point.before else point.type
