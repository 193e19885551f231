"""`FROM t CHANGES (INFORMATION => …) AT|BEFORE (…) [END (…)] [alias]` becomes a call of a table function.

    streamql_changes('`db`.`t`', 'STANDARD' | 'APPEND_ONLY', '<type>', <value>, <is BEFORE>[, '<type>', <value>])

With IDENTITY => KEY, its word stands behind the mode: 'STANDARD KEY'.

Spark's own `CHANGES FROM VERSION …` and `FROM t changes` (an alias) stay as they are.
"""

from __future__ import annotations

import re

from streamql.dialect.create import read_identity
from streamql.dialect.points import POINT_GRAMMAR, point_in_parentheses
from streamql.dialect.rewrites.rule import Clause, ClauseRule, SparkStatement
from streamql.dialect.statements import PointInTime
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import Relation, key_at
from streamql.dialect.text.splices import Splice
from streamql.dialect.text.tokens import NameParts, Token, name_part, quote_string
from streamql.names import quote

CHANGES_GRAMMAR = (
    f"FROM table CHANGES (INFORMATION => DEFAULT | APPEND_ONLY [, IDENTITY => KEY]) {POINT_GRAMMAR} [END (…)] [alias]"
)

_PARAMETERS = ("INFORMATION", "IDENTITY")
_PARAMETERS_HINT = "write INFORMATION => DEFAULT or APPEND_ONLY, and perhaps IDENTITY => KEY"
_MODES = {"DEFAULT": "STANDARD", "APPEND_ONLY": "APPEND_ONLY"}
# Words that may follow a relation and so are not its alias.
# fmt: off
_NO_ALIAS = frozenset((
    "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS",
    "NATURAL", "SEMI", "ANTI", "ON", "USING", "UNION", "INTERSECT", "EXCEPT", "MINUS", "LATERAL", "WINDOW", "QUALIFY",
    "CLUSTER", "DISTRIBUTE", "SORT", "TABLESAMPLE", "PIVOT", "UNPIVOT", "SELECT", "INSERT", "MAP", "REDUCE", "WHEN",
    "WITH", "WATERMARK", "EXACT", "APPROX", "END", "THEN", "ELSE", "AT", "BEFORE", "DO",
))
# fmt: on


def _find(statement: SparkStatement, relation: Relation) -> Clause | None:
    """Returns the clause of a change query at the relation; None if it is not a change query.

    Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_POINT_IN_TIME.
    """
    cursor, tokens, after = statement.cursor, statement.cursor.tokens, relation.after
    if key_at(tokens, after) != "CHANGES" or key_at(tokens, after + 1) != "(":
        return None
    if key_at(tokens, after + 2) not in _PARAMETERS or key_at(tokens, after + 3) in (")", ","):
        return None  # an alias `changes`, perhaps with a column alias `information`
    reader = Cursor(cursor.text, tokens, after + 2, CHANGES_GRAMMAR)
    mode = _read_mode(reader)
    start = reader.token
    if not reader.at_any(("AT", "BEFORE")):
        raise reader.expected("AT or BEFORE", f"say from where: {POINT_GRAMMAR}")
    reader.advance()
    points = [_point(reader, start.key == "BEFORE", start)]
    if reader.at("END", "("):
        points.append(_point(reader, False, reader.advance()))
    call = _call(relation.parts, mode, points)
    if relation.is_source:
        call = f"(SELECT * FROM {call})"  # MERGE's USING takes a name or a query
    alias = "" if has_alias(reader) else f" AS {quote(relation.parts[-1])}"
    splice = Splice(tokens[relation.first].start, tokens[reader.index - 1].end, call + alias)
    return Clause(reader.index, (splice,))


CHANGE_QUERY = ClauseRule("CHANGES", re.compile("CHANGES", re.IGNORECASE), _find)


def _point(reader: Cursor, before: bool, start: Token) -> PointInTime:
    point = point_in_parentheses(reader, before, start)
    if point.type == "POSITIONS":
        what = f"CHANGES {start.key} (OFFSET => positions)"
        raise reader.refused(what, "CHANGES takes a version or a time", f"say from where: {POINT_GRAMMAR}", start)
    return point


def _read_mode(reader: Cursor) -> str:
    """Returns the mode, and behind it the identity if one is named."""
    found = dict[str, str]()
    while True:
        parameter = reader.key()
        if parameter not in _PARAMETERS:
            raise reader.expected_one_of(_PARAMETERS, _PARAMETERS_HINT)
        if parameter in found:
            raise reader.error(f"{parameter} is named twice", hint=_PARAMETERS_HINT)
        reader.advance()
        reader.expect("=>", hint=_PARAMETERS_HINT)
        found[parameter] = (
            _information(reader) if parameter == "INFORMATION" else read_identity(reader, "IDENTITY => KEY")
        )
        if not reader.take(","):
            break
    if "INFORMATION" not in found:
        raise reader.expected("INFORMATION", _PARAMETERS_HINT)
    reader.expect(")")
    return " ".join(found[p] for p in _PARAMETERS if p in found)


def _information(reader: Cursor) -> str:
    word = reader.key()
    if word not in _MODES:
        raise reader.expected_one_of(_MODES, "DEFAULT gives net row changes, APPEND_ONLY only the inserts")
    reader.advance()
    return _MODES[word]


def has_alias(reader: Cursor) -> bool:
    """Returns whether the next token is the alias of the relation that ends before it."""
    return name_part(reader.token) is not None and not reader.at_any(_NO_ALIAS)


def _call(parts: NameParts, mode: str, points: list[PointInTime]) -> str:
    arguments = [quoted_parts(parts), quote_string(mode)]
    for point, has_side in zip(points, (True, False), strict=False):
        arguments += [quote_string(point.type), value_of(point)]
        if has_side:
            arguments.append("true" if point.before else "false")
    return f"streamql_changes({', '.join(arguments)})"


def value_of(point: PointInTime) -> str:
    """Returns the value of a point in time as an argument of a function."""
    if point.stream is not None:
        return quoted_parts(point.stream)
    return point.expression if point.expression is not None else str(point.version)


def quoted_parts(parts: NameParts) -> str:
    """Returns a name as a string literal: its parts in backquotes with dots between them; parse_name reads it back."""
    return quote_string(".".join(quote(part) for part in parts))
