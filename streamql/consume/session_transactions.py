"""The transaction of each session: BEGIN, COMMIT, ROLLBACK and ROLLBACK STATEMENT. What a transaction does is in `transaction`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.consume.transaction import Transaction
from streamql.delta.jvm import session_id, sessions_in_transaction, set_in_transaction
from streamql.errors import StreamqlError
from streamql.settings import TRANSACTION_TIMEOUT

log = logging.getLogger("streamql")

_open: dict[str, Transaction] = {}
_open_lock = threading.Lock()
_lost: set[str] = set()
"""Sessions whose open transaction was lost when the previous Python process of this JVM died."""


def inherit(spark: SparkSession) -> None:
    """Notes the sessions whose transactions a dead Python process held. This process replaces that one. The next statement of such a
    session raises an error, because it must not run outside of the transaction."""
    _lost.update(sessions_in_transaction(spark))


def current(spark: SparkSession) -> Transaction | None:
    """Returns the open transaction of a session; None: none is open.

    Raises INVALID_TRANSACTION_STATE if the transaction was idle for too long, or was lost with the process that held it. It is raised until
    ROLLBACK or BEGIN.
    """
    if _lost and session_id(spark) in _lost:
        raise StreamqlError(
            "INVALID_TRANSACTION_STATE",
            "the transaction was lost: the Python process that held it ended",
            hint="ROLLBACK; then run it again from BEGIN TRANSACTION: what it has done is skipped",
        )
    transaction = _find(spark)
    if transaction is not None and transaction.has_expired:
        raise StreamqlError(
            "INVALID_TRANSACTION_STATE",
            f"the transaction was idle for longer than {TRANSACTION_TIMEOUT.key}, and was given up",
            hint="run it again from BEGIN TRANSACTION: what it has done is skipped. Or ROLLBACK",
        )
    return transaction


def is_open(spark: SparkSession) -> bool:
    """Returns whether a session has a transaction that has not ended: open, idle for too long, or lost."""
    return _find(spark) is not None or session_id(spark) in _lost


def pending_on_failure(spark: SparkSession, writer: Mapping[str, str] | None) -> AbstractContextManager[None]:
    """Makes a statement of the session's transaction pending if the body raises an error. The body looks up the statement's streams.

    `writer`: {"key": `Command.key`, "text": `Command.text`} of the statement; None: it is a query, which is never pending.
    """
    transaction = _find(spark)
    return (
        nullcontext()
        if transaction is None or writer is None
        else transaction.pending_on_failure(writer["key"], writer["text"])
    )


def refuse_in_transaction(spark: SparkSession, what: str) -> None:
    """Raises INVALID_TRANSACTION_STATE if a transaction is open. `what`: the refused statement, for the message."""
    if is_open(spark):
        raise StreamqlError(
            "INVALID_TRANSACTION_STATE", f"{what} inside of a transaction", hint="COMMIT or ROLLBACK first"
        )


def refuse_own(spark: SparkSession, state: StreamState) -> None:
    """Raises INVALID_TRANSACTION_STATE if the session's own transaction has claimed the stream: the statement would wait for itself."""
    transaction = _find(spark)
    if transaction is not None and transaction.holds(state.stream.uuid):
        raise StreamqlError(
            "INVALID_TRANSACTION_STATE",
            f"the open transaction holds stream {state.name}",
            hint="COMMIT or ROLLBACK first",
        )


def _find(spark: SparkSession) -> Transaction | None:
    if not _open:  # most statements run outside of a transaction: they do not ask the JVM for the session's id
        return None
    with _open_lock:
        return _open.get(session_id(spark))


def begin(spark: SparkSession) -> None:
    """Opens a transaction. Raises INVALID_TRANSACTION_STATE if one is open."""
    old = _find(spark)
    if old is not None and old.has_expired:
        _forget(spark, old)
    _lost.discard(session_id(spark))
    with _open_lock:
        if session_id(spark) in _open:
            raise StreamqlError(
                "INVALID_TRANSACTION_STATE", "a transaction is open in this session", hint="COMMIT or ROLLBACK it first"
            )
        _open[session_id(spark)] = Transaction(spark)
    set_in_transaction(spark, True)


def commit(spark: SparkSession) -> None:
    """Ends the open transaction: the offsets advance. If a statement keeps it from that, it stays open."""
    transaction = current(spark) or _none("COMMIT")
    with _forgotten_if_lost(spark, transaction):
        transaction.commit()
    _forget(spark, transaction)


def rollback(spark: SparkSession) -> None:
    """Ends the open transaction: the offsets stay."""
    # If the process that held the transaction's claim is dead, the next consumer of its streams resolves the claim.
    if session_id(spark) in _lost:
        _lost.discard(session_id(spark))
        set_in_transaction(spark, False)
        return
    transaction = _find(spark) or _none("ROLLBACK")
    try:
        transaction.rollback()
    finally:
        _forget(spark, transaction)


def rollback_statement(spark: SparkSession) -> None:
    """Withdraws the statement that failed last, so that COMMIT no longer waits for it. The transaction stays open."""
    transaction = current(spark) or _none("ROLLBACK STATEMENT")
    with _forgotten_if_lost(spark, transaction):
        transaction.withdraw()


@contextmanager
def _forgotten_if_lost(spark: SparkSession, transaction: Transaction) -> Iterator[None]:
    """Ends the session's transaction if the body raises CLAIM_LOST. Any other error leaves the transaction open."""
    try:
        yield
    except StreamqlError as e:
        if e.code == "CLAIM_LOST":
            _forget(spark, transaction)
        raise


def abandon(spark: SparkSession) -> None:
    """Ends the transaction of a session that is closed, as ROLLBACK does. An error of the rollback is logged."""
    _lost.discard(session_id(spark))
    transaction = _find(spark)
    if transaction is None:
        set_in_transaction(spark, False)
        return
    try:
        transaction.rollback()
    except StreamqlError as e:
        log.warning("a session was closed inside a transaction: %s", e)
    finally:
        _forget(spark, transaction)


def _none(what: str) -> Transaction:
    raise StreamqlError(
        "INVALID_TRANSACTION_STATE",
        f"{what}: no transaction is open in this session",
        hint="BEGIN TRANSACTION opens one",
    )


def _forget(spark: SparkSession, transaction: Transaction) -> None:
    transaction.close()
    with _open_lock:
        if _open.get(session_id(spark)) is transaction:
            _open.pop(session_id(spark))
    set_in_transaction(spark, False)
