"""`FROM s WITH CONSUME` and `FROM s WITH (CONSUME = TRUE, MAX_BATCH_SIZE = n)`.

CONSUME is spliced out; the other options stay, in Spark's own syntax for options of a relation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from streamql.dialect.rewrites.rule import Clause, ClauseRule, SparkStatement
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import Relation, Shape, StatementType, key_at, outermost
from streamql.dialect.text.splices import Splice
from streamql.dialect.text.tokens import Token, name_part
from streamql.names import quote

CONSUME_GRAMMAR = "SELECT … FROM stream WITH (CONSUME = TRUE [, MAX_BATCH_SIZE = rows]) [alias]"

_REFUSALS = {
    StatementType.DML: (
        "a DML statement that reads a stream consumes it by itself",
        "leave CONSUME out: the offset moves when the statement commits",
    ),
    StatementType.VIEW: (
        "a view cannot consume",
        "leave CONSUME out here and consume where the view is read: INSERT INTO … SELECT",
    ),
    StatementType.SCRIPT: (
        "a script's queries cannot consume",
        "run the query by itself, or use INSERT INTO … SELECT in the script",
    ),
    StatementType.OTHER: ("only a query can ask for it", "run SELECT … FROM stream WITH CONSUME by itself"),
}


@dataclass
class _Options:
    """What the options behind one relation say, and the splices that take CONSUME out of the text."""

    consume: bool | None = None
    has_batch_size: bool = False
    after: int = 0
    splices: list[Splice] = field(default_factory=list)


@dataclass(frozen=True)
class _Option:
    """One `key [=] value`: tokens [first, after)."""

    key: str
    first: int
    after: int


def _find(statement: SparkStatement, relation: Relation) -> Clause | None:
    """Returns the clause of the options behind a relation; None: CONSUME and MAX_BATCH_SIZE are not among them. Raises as `_read`."""
    options = _read(statement.cursor, relation, statement.shape)
    if options is None:
        return None
    splices = (*options.splices, *_batch_size(statement, relation, options))
    return Clause(options.after, splices, bool(options.consume))


STREAM_OPTIONS = ClauseRule("WITH CONSUME | MAX_BATCH_SIZE", re.compile("CONSUME|MAX_BATCH_SIZE", re.IGNORECASE), _find)


def _read(cursor: Cursor, relation: Relation, statement: Shape) -> _Options | None:
    """Returns the options behind a relation, if CONSUME or MAX_BATCH_SIZE is among them; the cursor lends its text and tokens.

    Raises UNSUPPORTED_CLAUSE for CONSUME in what is not a query, INVALID_ARGUMENT for a value, SYNTAX_ERROR.
    """
    tokens, after = cursor.tokens, relation.after
    _check_place(cursor, relation)
    if key_at(tokens, after) != "WITH":
        return None
    if key_at(tokens, after + 1) == "CONSUME" and not _is_cte(tokens, after):
        _check_type(cursor, tokens[after], statement)
        return _Options(True, False, after + 2, [Splice(tokens[after].start, tokens[after + 1].end, "")])
    last = cursor.closers.get(after + 1) if key_at(tokens, after + 1) == "(" else None
    if last is None:
        return None
    return _read_list(cursor, _split(tokens, after + 1, last), after, last, statement)


def _is_cte(tokens: list[Token], at_with: int) -> bool:
    return key_at(tokens, at_with + 2) == "AS" and key_at(tokens, at_with + 3) == "("


def _check_place(cursor: Cursor, relation: Relation) -> None:
    """Raises for `FROM s x WITH CONSUME`: Spark takes options before the alias only, and so does streamql."""
    tokens = cursor.tokens
    at_with = relation.after + (2 if key_at(tokens, relation.after) == "AS" else 1)
    if key_at(tokens, at_with) != "WITH" or key_at(tokens, relation.after) == "WITH":
        return
    at_word = at_with + (2 if key_at(tokens, at_with + 1) == "(" else 1)
    if key_at(tokens, at_word) == "CONSUME" and not _is_cte(tokens, at_with):
        message = "WITH CONSUME stands right behind the stream's name, before its alias"
        alias = tokens[at_with - 1].text
        raise cursor.error(
            message, hint=f"write FROM {'.'.join(relation.parts)} WITH CONSUME {alias}", token=tokens[at_with]
        )


def _check_type(cursor: Cursor, token: Token, statement: Shape) -> None:
    if statement.type in _REFUSALS:
        why, hint = _REFUSALS[statement.type]
        raise cursor.refused(f"WITH CONSUME in {statement.type.value}", why, hint, token)


def _split(tokens: list[Token], opening: int, last: int) -> list[_Option]:
    """Returns the options between two parentheses."""
    options: list[_Option] = []
    first = opening + 1
    for index in [*(i for i in outermost(tokens, first, last) if tokens[i].key == ","), last]:
        if index > first:
            options.append(_Option(tokens[first].text.strip("'\"`").upper(), first, index))
        first = index + 1
    return options


def _read_list(cursor: Cursor, options: list[_Option], at_with: int, last: int, statement: Shape) -> _Options | None:
    tokens = cursor.tokens
    result = _Options(after=last + 1)
    for place, option in enumerate(options):
        if option.key == "CONSUME":
            if result.consume is not None:
                raise cursor.error("CONSUME is given twice", hint=CONSUME_GRAMMAR, token=tokens[option.first])
            _check_type(cursor, tokens[option.first], statement)
            result.consume = _consume_value(cursor, option)
            result.splices.append(_without(tokens, options, place, at_with, last))
        elif option.key == "MAX_BATCH_SIZE":
            result.has_batch_size = True
    return result if result.consume is not None or result.has_batch_size else None


def _without(tokens: list[Token], options: list[_Option], place: int, at_with: int, last: int) -> Splice:
    """Returns the splice that takes one option and its comma out of the list, or the whole list if nothing else is in it."""
    if len(options) == 1:
        return Splice(tokens[at_with].start, tokens[last].end, "")
    option = options[place]
    if place + 1 < len(options):
        return Splice(tokens[option.first].start, tokens[options[place + 1].first].start, "")
    return Splice(tokens[options[place - 1].after - 1].end, tokens[option.after - 1].end, "")


def _value(cursor: Cursor, option: _Option) -> Cursor:
    value = Cursor(cursor.text, cursor.tokens, option.first + 1, CONSUME_GRAMMAR)
    value.take("=")
    return value


def _consume_value(cursor: Cursor, option: _Option) -> bool:
    value = _value(cursor, option)
    if value.index < option.after:
        token = value.token
        word = token.text.strip("'\"").upper()
        if value.index + 1 == option.after and word in ("TRUE", "FALSE"):
            return word == "TRUE"
        raise value.error(
            f"CONSUME takes TRUE or FALSE, found {value.found()}", hint="write CONSUME = TRUE", code="INVALID_ARGUMENT"
        )
    raise value.expected("TRUE or FALSE", "write CONSUME = TRUE")


def _batch_size(statement: SparkStatement, relation: Relation, options: _Options) -> list[Splice]:
    """MAX_BATCH_SIZE is checked where it is a stream's. Spark takes no options in MERGE's USING: a subquery does."""
    if not options.has_batch_size or (options.consume is None and not statement.is_stream(relation.parts)):
        return []
    _check_batch_size(statement.cursor, relation)
    if not relation.is_source:
        return []
    tokens = statement.cursor.tokens
    start, end = tokens[relation.first].start, tokens[options.after - 1].end
    follows = key_at(tokens, options.after) == "AS" or (
        name_part(tokens[options.after]) is not None and tokens[options.after].key != "ON"
    )
    alias = "" if follows else f" AS {quote(relation.parts[-1])}"
    return [Splice(start, start, "(SELECT * FROM "), Splice(end, end, f"){alias}")]


def _check_batch_size(cursor: Cursor, relation: Relation) -> None:
    """INVALID_ARGUMENT unless MAX_BATCH_SIZE behind the relation is a whole number from 1."""
    opening = relation.after + 1
    for option in _split(cursor.tokens, opening, cursor.closers[opening]):
        if option.key != "MAX_BATCH_SIZE":
            continue
        value = _value(cursor, option)
        token = value.token
        found = (
            cursor.text[token.start : cursor.tokens[option.after - 1].end] if value.index < option.after else "nothing"
        )
        size = value.integer() if value.index < option.after else None
        if size is None or size < 1 or value.index != option.after:
            message = f"MAX_BATCH_SIZE takes a whole number of rows from 1, found {found}"
            raise value.error(message, hint="write MAX_BATCH_SIZE = 10000", token=token, code="INVALID_ARGUMENT")
