"""streamql's own statements: recognized, and parsed without clauses that streamql refuses and that no result depends on."""

from __future__ import annotations

from collections.abc import Callable

from streamql.dialect import parse
from streamql.dialect.statements import Statement
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.splices import Splice, apply
from streamql.dialect.text.tokens import line_and_column
from streamql.errors import StreamqlError
from streamql.features.translate.wording import (
    EXTENSION,
    NO_KEYS,
    NO_POLICY,
    NO_SCHEDULER,
    NO_TAGS,
    NO_WAREHOUSE,
    PERMISSIONS,
)


def _value(cursor: Cursor) -> None:
    cursor.take("=")
    cursor.advance()


def _nothing(cursor: Cursor) -> None:
    """Reads nothing: the clause is its keywords."""


def _policy(cursor: Cursor) -> None:
    cursor.name("the name of a policy")
    if cursor.take("USING"):
        _list(cursor)


def _list(cursor: Cursor) -> None:
    if cursor.at("("):
        cursor.index = cursor.closers.get(cursor.index, cursor.index) + 1


_TYPE = "the type "
_LEFT_OUT_MAX = 100
_LEFT_OUT: tuple[tuple[tuple[str, ...], Callable[[Cursor], None], str], ...] = (
    (("COPY", "GRANTS"), _nothing, PERMISSIONS),
    (("COPY", "TAGS"), _nothing, NO_TAGS),
    (("SCHEDULER",), _value, NO_SCHEDULER),
    (("WITH", "MASKING", "POLICY"), _policy, NO_POLICY),
    (("MASKING", "POLICY"), _policy, NO_POLICY),
    (("WITH", "PROJECTION", "POLICY"), _policy, NO_POLICY),
    (("PROJECTION", "POLICY"), _policy, NO_POLICY),
    (("NOT", "NULL"), _nothing, "the query says which columns are NULL"),
    (("PRIMARY", "KEY"), _nothing, NO_KEYS),
    (("UNIQUE",), _nothing, NO_KEYS),
    (("WITH", "TAG"), _list, NO_TAGS),
    (("TAG",), _list, NO_TAGS),
    (("TRANSIENT",), _nothing, "a dynamic table needs its history"),
    (("ENABLE", "QUERY", "REWRITE"), _nothing, "streamql does not rewrite queries"),
    (("REQUIRE", "USER"), _nothing, "a refresh runs as the user who starts it"),
    (("INITIALIZATION_WAREHOUSE",), _value, NO_WAREHOUSE),
    (("WAREHOUSE",), _value, NO_WAREHOUSE),
    (("NAME",), _value, "transactions have no names"),
    (
        ("DATA_RETENTION_TIME_IN_DAYS",),
        _value,
        "PROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 7 days') sets it",
    ),
    (("MAX_DATA_EXTENSION_TIME_IN_DAYS",), _value, EXTENSION),
)
"""Clauses that no result depends on: keywords, how the rest of the clause is read, and why it is left out."""


def parse_leniently(text: str) -> tuple[Statement | None, str, list[str]]:
    """Returns the statement (None: it is not one of streamql's), its text without the clauses that were left out, and a note for each.

    Raises StreamqlError for a clause that cannot be left out.
    """
    notes: list[str] = []
    while True:
        try:
            return parse(text), text, notes
        except StreamqlError as problem:
            shorter = _without_clause(text, problem) if len(notes) < _LEFT_OUT_MAX else None
            if shorter is None:
                raise
            text, note = shorter
            notes.append(note)


def is_streamql(text: str, if_refused: bool = False) -> bool:
    """Returns whether the statement is one of streamql's as it is written. `if_refused`: the answer for one that streamql refuses."""
    try:
        return parse(text) is not None
    except StreamqlError:
        return if_refused


def _without_clause(text: str, problem: StreamqlError) -> tuple[str, str] | None:
    """Returns the text without the clause that was refused, and the note; None: it cannot be left out."""
    cursor = Cursor(text)
    place = (problem.line, problem.column)
    while not cursor.at_end() and line_and_column(text, cursor.token.start) != place:
        cursor.advance()
    if problem.message.startswith(_TYPE):
        return _without_type(cursor)
    for keywords, read, why in _LEFT_OUT:
        start = cursor.token.start
        if cursor.key(-1) not in ("SET", "UNSET") and cursor.take(*keywords):
            read(cursor)
            end = cursor.token.start if not cursor.at_end() else len(text)
            if cursor.at(",") or cursor.at(")"):  # of a column: the space before the clause goes, too
                start = max(token.end for token in cursor.tokens if token.end <= start)
            return apply(text, [Splice(start, end, "")]).rstrip(), f"{' '.join(keywords)} was left out: {why}"
    return None


def _without_type(cursor: Cursor) -> tuple[str, str]:
    """Returns the text without the type of a dynamic table's column, at which the cursor stands."""
    first, start = cursor.token, cursor.tokens[cursor.index - 1].end
    cursor.advance()
    if cursor.at("("):
        cursor.index = cursor.closers.get(cursor.index, cursor.index) + 1
    end = cursor.tokens[cursor.index - 1].end
    note = (
        f"the type {cursor.text[first.start : end]} of a column was left out: the query gives the columns their types"
    )
    return apply(cursor.text, [Splice(start, end, "")]), note
