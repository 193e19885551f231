"""Points in time, `AT | BEFORE (point_type => value)`, and names inside string literals."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Literal

from streamql.dialect.statements import PointInTime
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import NameParts, Token, quote_string, span, string_value
from streamql.errors import StreamqlError

POINT_GRAMMAR = "{AT | BEFORE} (TIMESTAMP => expression | OFFSET => -seconds | VERSION => n | STREAM => 'stream')"

POSITIONS_EXAMPLE = """'{"0": 17, "1": 20}'"""
"""A position in a source of several parts, as statements spell it."""

_NUMBER_MAX = 2**63 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")

_REFUSED = {
    "STATEMENT": "Delta's log does not know statement ids",
    "SNAPSHOT": "Delta tables have versions, not snapshots",
    "TASK": "there are no tasks here",
}


def point_in_parentheses(cursor: Cursor, before: bool, start: Token) -> PointInTime:
    """`(point_type => value)`; `start` is the token that the point's span starts with.

    Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE for STATEMENT, SNAPSHOT and TASK, INVALID_POINT_IN_TIME for a negative
    version and for a JSON object that is not a position.
    """
    cursor.expect("(", hint=POINT_GRAMMAR)
    point_type = cursor.token.key
    if point_type in _REFUSED:
        hint = f"name a version or a time instead: {POINT_GRAMMAR}"
        word = start.key if start.key == "END" else "BEFORE" if before else "AT"
        raise cursor.refused(f"{word} ({point_type} => …)", _REFUSED[point_type], hint)
    if point_type not in _READERS:
        raise cursor.expected_one_of(_READERS, POINT_GRAMMAR)
    cursor.advance()
    if not cursor.take("=>"):
        raise cursor.expected("=>", f"write {point_type} => value")
    point = _positions(cursor, before) if point_type == "OFFSET" else None
    if point is None:
        expression, version, stream = _READERS[point_type](cursor)
        point = PointInTime(_POINT_TYPES[point_type], before, expression, version, stream)
    if cursor.at(","):
        raise cursor.error(
            "a point in time is one of TIMESTAMP, OFFSET, VERSION and STREAM, this names two", hint=POINT_GRAMMAR
        )
    cursor.expect(")", hint=POINT_GRAMMAR)
    return replace(point, span=span(cursor.text, start.start, cursor.tokens[cursor.index - 1].end))


def _positions(cursor: Cursor, before: bool) -> PointInTime | None:
    """Returns the point that `OFFSET => '{…}'` names; None: the value is an expression in seconds."""
    if not cursor.at_string() or not string_value(cursor.token).lstrip().startswith("{"):
        return None
    if before:
        hint = f"write AT (OFFSET => {POSITIONS_EXAMPLE})"
        raise cursor.error("BEFORE has no meaning for positions", hint=hint, code="INVALID_POINT_IN_TIME")
    return positions_point(cursor, f"write AT (OFFSET => {POSITIONS_EXAMPLE})")


def positions_point(cursor: Cursor, hint: str) -> PointInTime:
    """Returns the string literal that comes next as a position in a source of several parts. Raises INVALID_POINT_IN_TIME."""
    token = cursor.token
    positions = parse_positions(cursor.string("a position"))
    if positions is None:
        message = "a position is a JSON object of partition and offset, or of table and version, each once: whole numbers from 0"
        raise cursor.error(message, hint=hint, token=token, code="INVALID_POINT_IN_TIME")
    return PointInTime("POSITIONS", positions=positions)


def parse_positions(text: str) -> tuple[tuple[str, int], ...] | None:
    """Returns the (part, number) pairs of a JSON object such as {"0": 17, "1": 20} or {"db.orders": 17}; None: the text is not such an
    object.

    Parts that are numbers come first, ordered as numbers, then all others, ordered as text. What the parts mean is for the source
    to check. An object without parts is not a position: it would place a stream before everything, which a typing error should not.
    """
    try:
        pairs: object = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, tuple) or not pairs or not all(_is_position(*pair) for pair in pairs):
        return None
    positions = dict(pairs)
    return tuple(sorted(positions.items(), key=_order)) if len(positions) == len(pairs) else None


def _is_position(part: str, number: object) -> bool:
    # type(): True is an int too. No catalog can store a lone surrogate.
    is_number = type(number) is int and 0 <= number <= _NUMBER_MAX
    return is_number and bool(part) and _SURROGATE.search(part) is None


def _order(position: tuple[str, int]) -> tuple[bool, int, str, str]:
    part = position[0]
    is_number = part.isascii() and part.isdigit()
    digits = part.lstrip("0") if is_number else ""
    return not is_number, len(digits), digits, part


PointType = Literal["TIMESTAMP", "OFFSET", "VERSION", "STREAM"]
_Value = tuple[str | None, int | None, NameParts | None]


def _expression(cursor: Cursor) -> _Value:
    return cursor.raw("an expression", lambda: cursor.at_any((",", ")"))), None, None


def _version(cursor: Cursor) -> _Value:
    return None, version_number(cursor), None


def _stream(cursor: Cursor) -> _Value:
    if cursor.at_string() and cursor.token.text[0] != '"':
        return None, None, quoted_name(cursor)
    return None, None, cursor.name("the name of a stream")[0]


_READERS = {"TIMESTAMP": _expression, "OFFSET": _expression, "VERSION": _version, "STREAM": _stream}
_POINT_TYPES: dict[str, PointType] = {
    "TIMESTAMP": "TIMESTAMP",
    "OFFSET": "OFFSET",
    "VERSION": "VERSION",
    "STREAM": "STREAM",
}


def version_number(cursor: Cursor) -> int:
    """Returns a table version: a whole number from 0, bare or quoted."""
    token = cursor.token
    version = cursor.integer()
    if version is None:
        negative = cursor.at("-")
        code = "INVALID_POINT_IN_TIME" if negative else "SYNTAX_ERROR"
        message = (
            "versions count from 0, this one is negative"
            if negative
            else f"expected a version number, found {cursor.found()}"
        )
        raise cursor.error(
            message, hint="write the version as a whole number; DESCRIBE HISTORY lists them", token=token, code=code
        )
    return version


def quoted_name(cursor: Cursor) -> NameParts:
    """Returns a name inside a string literal, such as 'db.s2'."""
    token = cursor.token
    text = cursor.string("a name")
    try:
        return parse_name(text)
    except StreamqlError as problem:
        raise cursor.error(problem.message, hint=problem.hint, token=token) from None


def parse_name(text: str) -> NameParts:
    """Returns the parts of a name, as SQL text spells it: `db.s`, `` `a b`.s ``.

    Raises SYNTAX_ERROR without line and column: those within a name are not those of the statement that holds it.
    """
    cursor = Cursor(text, grammar="[[catalog.]schema.]name")
    try:
        parts, _ = cursor.name("a name")
        cursor.expect_end()
    except StreamqlError as problem:
        message = f"{quote_string(text)} does not hold a name: {problem.message}"
        raise StreamqlError(problem.code, message, hint=problem.hint) from None
    return parts
