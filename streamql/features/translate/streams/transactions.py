"""Transactions of a script: streamql's consume streams, and refuse statements that the other systems allow there."""

from __future__ import annotations

from streamql.dialect.statements import (
    BeginTransaction,
    CommitTransaction,
    RollbackStatement,
    RollbackTransaction,
    Statement,
)
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import StatementType, key_at, shape
from streamql.errors import StreamqlError
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import Translated
from streamql.features.translate.text.lenient import is_streamql, parse_leniently
from streamql.features.translate.text.names import lowered
from streamql.features.translate.text.relations import sources_of

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
    return () if _reads_what_may_be_a_stream(cursor, context) else (_PLAIN_IN_TRANSACTION,)


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
    """Returns whether a statement reads a stream, or is one of streamql's, which may."""
    return _reads_what_may_be_a_stream(Cursor(text), context) or is_streamql(text, if_refused=True)


def _reads_what_may_be_a_stream(cursor: Cursor, context: Context) -> bool:
    """Returns whether a statement reads a relation that the script does not create as a table or a dynamic table."""
    names = {lowered(relation.parts) for relation in sources_of(cursor)}
    return not names <= context.created | context.dynamic
