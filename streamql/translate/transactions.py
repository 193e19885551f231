"""Transactions of a script: streamql's consume streams, and refuse statements that the other systems allow there."""

from __future__ import annotations

from collections.abc import Iterable

from streamql.dialect import parse
from streamql.dialect.cursor import Cursor
from streamql.dialect.shape import Relation, StatementType, key_at, shape
from streamql.dialect.statements import (
    BeginTransaction,
    CommitTransaction,
    NameParts,
    RollbackStatement,
    RollbackTransaction,
    Statement,
)
from streamql.errors import StreamqlError
from streamql.translate.context import Context, lowered
from streamql.translate.lenient import parse_leniently
from streamql.translate.model import Translated
from streamql.translate.shield import relations_of

_PLAIN_IN_TRANSACTION = (
    "in a transaction each statement that writes must read a stream here: move this one before BEGIN or behind COMMIT"
)
_CONSUMES_ALONE = "WITH CONSUME is refused in a transaction here: move this statement before BEGIN or behind COMMIT"
_LEFT_OUT = "{} was left out: transactions of streamql consume streams, this one reads none, and each statement commits by itself"


def notes_in_transaction(text: str, context: Context) -> tuple[str, ...]:
    """Returns what is to say of a statement between BEGIN and COMMIT: that streamql refuses it there, or nothing."""
    cursor = Cursor(text)
    if any(token.key == "CONSUME" for token in cursor.tokens):
        return (_CONSUMES_ALONE,)
    if shape(cursor.tokens).type is not StatementType.DML:
        return ()
    is_plain = all(lowered(r.parts) in context.created for r in _reads(cursor))
    return (_PLAIN_IN_TRANSACTION,) if is_plain else ()


def without_streams(statements: list[str], context: Context) -> frozenset[int]:
    """Returns the places of each BEGIN and COMMIT between which no statement can read a stream.

    A transaction that rolls back is not among them: without it, its statements would stay committed.
    """
    found: set[int] = set()
    begin: int | None = None
    for index, text in enumerate(statements):
        statement = _parsed(text)
        if isinstance(statement, BeginTransaction):
            begin = index
        elif isinstance(statement, RollbackTransaction | RollbackStatement):
            begin = None
        elif isinstance(statement, CommitTransaction) and begin is not None:
            if not any(_may_read_stream(inner, context) for inner in statements[begin + 1 : index]):
                found |= {begin, index}
            begin = None
    return frozenset(found)


def left_out(text: str) -> Translated:
    """Returns BEGIN or COMMIT without a counterpart."""
    words = " ".join(token.key for token in Cursor(text).tokens if token.key)
    return Translated((), (_LEFT_OUT.format(words),))


def _parsed(text: str) -> Statement | None:
    if key_at(Cursor(text).tokens, 0) not in ("BEGIN", "START", "COMMIT", "ROLLBACK"):
        return None
    try:
        return parse_leniently(text)[0]
    except StreamqlError:
        return None


def _may_read_stream(text: str, context: Context) -> bool:
    """Returns whether a statement reads a stream, or a relation that may be one."""
    cursor = Cursor(text)
    ctes = {
        (token.text.lower(),)
        for index, token in enumerate(cursor.tokens)
        if key_at(cursor.tokens, index + 1) == "AS" and key_at(cursor.tokens, index + 2) == "("
    }
    names = [lowered(r.parts) for r in _reads(cursor)]
    return any(name not in ctes and not _is_no_stream(name, context) for name in names) or _is_ours(text)


def _is_no_stream(name: NameParts, context: Context) -> bool:
    return name in context.created or name in context.dynamic


def _is_ours(text: str) -> bool:
    try:
        return parse(text) is not None
    except StreamqlError:
        return True


def _reads(cursor: Cursor) -> Iterable[Relation]:
    """Returns the relations that a statement reads, without the target of DELETE."""
    verb = shape(cursor.tokens).verb
    target = verb + 2 if key_at(cursor.tokens, verb) == "DELETE" and key_at(cursor.tokens, verb + 1) == "FROM" else -1
    return [r for r in relations_of(cursor) if r.first != target]
