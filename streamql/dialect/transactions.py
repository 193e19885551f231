"""BEGIN, COMMIT, ROLLBACK and ROLLBACK STATEMENT, in the spellings of other systems."""

from __future__ import annotations

from collections.abc import Callable

from streamql.dialect.statements import BeginTransaction, CommitTransaction, RollbackStatement, RollbackTransaction
from streamql.dialect.text.cursor import Cursor

TRANSACTION_GRAMMAR = "BEGIN TRANSACTION; statements that consume streams; [ROLLBACK STATEMENT;] COMMIT | ROLLBACK"

Transaction = BeginTransaction | CommitTransaction | RollbackTransaction | RollbackStatement

_WORDS = ("TRANSACTION", "TRAN", "WORK")
_STATEMENTS: dict[str, Callable[[], Transaction]] = {
    "BEGIN": BeginTransaction,
    "START": BeginTransaction,
    "COMMIT": CommitTransaction,
    "ROLLBACK": RollbackTransaction,
}


def recognize_transaction(cursor: Cursor) -> Callable[[Cursor], Transaction] | None:
    """Returns the rule for a statement of a transaction; None: BEGIN … END is a script of Spark's."""
    verb = cursor.advance().key
    if cursor.at_any(_WORDS) or (verb == "ROLLBACK" and cursor.at("STATEMENT")):
        return _parse_transaction
    return _parse_transaction if verb != "START" and (cursor.at_end() or cursor.at(";")) else None


def _parse_transaction(cursor: Cursor) -> Transaction:
    cursor.grammar = TRANSACTION_GRAMMAR
    verb = cursor.advance().key
    if verb == "ROLLBACK" and cursor.at("STATEMENT"):
        cursor.advance()
        return RollbackStatement()
    if cursor.at_any(_WORDS):
        cursor.advance()
    return _STATEMENTS[verb]()
