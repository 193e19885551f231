"""BEGIN, COMMIT, ROLLBACK and ROLLBACK STATEMENT: which session has a transaction block open."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.consume.blocks import Block
from streamql.delta.jvm import session_id, sessions_in_block, set_in_block
from streamql.errors import StreamqlError
from streamql.settings import TRANSACTION_TIMEOUT

log = logging.getLogger("streamql")

_blocks: dict[str, Block] = {}
_blocks_lock = threading.Lock()
_lost: set[str] = set()
"""Sessions whose open transaction went with the Python process before this one."""


def inherit(spark: SparkSession) -> None:
    """Takes the place of a Python process that died: sessions with an open transaction get an error and do not continue outside of it."""
    _lost.update(sessions_in_block(spark))


def current(spark: SparkSession) -> Block | None:
    """Returns the open transaction of a session. Raises INVALID_TRANSACTION_STATE where it had been idle for too long, until ROLLBACK or
    BEGIN, or was lost with the process that held it."""
    if _lost and session_id(spark) in _lost:
        raise StreamqlError(
            "INVALID_TRANSACTION_STATE",
            "the transaction was lost: the Python process that held it ended",
            hint="ROLLBACK; then run it again from BEGIN TRANSACTION: what it has done is skipped",
        )
    block = _find(spark)
    if block is not None and block.has_expired:
        raise StreamqlError(
            "INVALID_TRANSACTION_STATE",
            f"the transaction was idle for longer than {TRANSACTION_TIMEOUT.key}, and was given up",
            hint="run it again from BEGIN TRANSACTION: what it has done is skipped. Or ROLLBACK",
        )
    return block


def is_open(spark: SparkSession) -> bool:
    """Returns whether a session has a transaction that has not ended."""
    return _find(spark) is not None or session_id(spark) in _lost


def pending_on_failure(spark: SparkSession, writer: Mapping[str, str] | None) -> AbstractContextManager[None]:
    """Makes a statement of the session's transaction pending if the body, which looks up its streams, fails. `writer`: the statement's
    `Command.key` and `Command.text`, as `key` and `text`; None: a query, which is never pending."""
    block = _find(spark)
    return nullcontext() if block is None or writer is None else block.pending_on_failure(writer["key"], writer["text"])


def refuse_in_block(spark: SparkSession, what: str) -> None:
    """Refuses a statement that a transaction cannot hold. Raises INVALID_TRANSACTION_STATE."""
    if is_open(spark):
        raise StreamqlError(
            "INVALID_TRANSACTION_STATE", f"{what} inside of a transaction", hint="COMMIT or ROLLBACK first"
        )


def refuse_own(spark: SparkSession, state: StreamState) -> None:
    """Refuses a statement about a stream that the session's own transaction holds. Raises INVALID_TRANSACTION_STATE."""
    block = _find(spark)
    if block is not None and block.holds(state.stream.uuid):
        raise StreamqlError(
            "INVALID_TRANSACTION_STATE",
            f"the open transaction holds stream {state.name}",
            hint="COMMIT or ROLLBACK first",
        )


def _find(spark: SparkSession) -> Block | None:
    if not _blocks:  # the usual case costs nothing
        return None
    with _blocks_lock:
        return _blocks.get(session_id(spark))


def begin(spark: SparkSession) -> None:
    """Opens a transaction. Raises INVALID_TRANSACTION_STATE where one is open."""
    old = _find(spark)
    if old is not None and old.has_expired:
        _forget(spark, old)
    _lost.discard(session_id(spark))
    with _blocks_lock:
        if session_id(spark) in _blocks:
            raise StreamqlError(
                "INVALID_TRANSACTION_STATE", "a transaction is open in this session", hint="COMMIT or ROLLBACK it first"
            )
        _blocks[session_id(spark)] = Block(spark)
    set_in_block(spark, True)


def commit(spark: SparkSession) -> None:
    """Ends the open transaction: the offsets move. Where that fails for its statements, it stays open."""
    block = current(spark) or _none("COMMIT")
    with _forgotten_if_lost(spark, block):
        block.commit()
    _forget(spark, block)


def rollback(spark: SparkSession) -> None:
    """Ends the open transaction: the offsets stay."""
    if session_id(spark) in _lost:  # the process that held its streams is gone: the next consumer recovers them
        _lost.discard(session_id(spark))
        set_in_block(spark, False)
        return
    block = _find(spark) or _none("ROLLBACK")
    try:
        block.rollback()
    finally:
        _forget(spark, block)


def rollback_statement(spark: SparkSession) -> None:
    """Withdraws the statement of the open transaction that failed last: COMMIT no longer waits for it. The transaction stays open."""
    block = current(spark) or _none("ROLLBACK STATEMENT")
    with _forgotten_if_lost(spark, block):
        block.withdraw()


@contextmanager
def _forgotten_if_lost(spark: SparkSession, block: Block) -> Iterator[None]:
    """Ends the session's transaction if its claim turns out to be lost: any other error leaves it open."""
    try:
        yield
    except StreamqlError as e:
        if e.code == "CLAIM_LOST":
            _forget(spark, block)
        raise


def abandon(spark: SparkSession) -> None:
    """Ends the transaction of a session that is closed, as ROLLBACK does; what could not be taken back is logged."""
    _lost.discard(session_id(spark))
    block = _find(spark)
    if block is None:
        set_in_block(spark, False)
        return
    try:
        block.rollback()
    except StreamqlError as e:
        log.warning("a session was closed inside a transaction: %s", e)
    finally:
        _forget(spark, block)


def _none(what: str) -> Block:
    raise StreamqlError(
        "INVALID_TRANSACTION_STATE",
        f"{what}: no transaction is open in this session",
        hint="BEGIN TRANSACTION opens one",
    )


def _forget(spark: SparkSession, block: Block) -> None:
    block.close()
    with _blocks_lock:
        if _blocks.get(session_id(spark)) is block:
            _blocks.pop(session_id(spark))
    set_in_block(spark, False)
