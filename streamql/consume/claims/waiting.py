"""Waits for a stream that another statement has claimed, and recovers claims whose owners are dead."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.claims.errors import busy, edited, gone, partially_committed
from streamql.consume.claims.liveness import POLL_SECONDS_MAX, POLL_SECONDS_MIN, is_abandoned
from streamql.consume.claims.resolve import ClaimTaken, finish, resolve_reachable
from streamql.consume.claims.steps import holds
from streamql.delta.jvm import Waiting
from streamql.errors import StreamqlError
from streamql.settings import BUSY_TIMEOUT, seconds

_CAN_BE_GIVEN_UP = ("CONSUMPTION_IN_DOUBT", "CONSUMPTION_INCOMPLETE", "CATALOG_UNREADABLE")

_waited_for: dict[int, StreamState] = {}
"""The streams that this process waits for, by the id of the waiting thread."""


def waited_for() -> list[StreamState]:
    """Returns the streams that statements of this process wait for now, as these last read them. Each has a claim."""
    return list(_waited_for.values())


def never(_: Claim) -> bool:
    """Returns False: the caller of `wait_until_free` resumes no claim."""
    return False


def wait_until_free(
    spark: SparkSession, state: StreamState, *, give_up: bool = False, resumes: Callable[[Claim], bool] = never
) -> StreamState:
    """Waits until no claim is on the stream, and returns the stream. Recovers a claim whose owner is dead.

    `resumes`: if it returns True for a partially committed claim, the stream is returned with that claim, and the caller takes the claim
    over. `give_up`: if the claim is partially committed, in doubt or incomplete, the stream is returned with it, and the caller ends the
    claim. Raises STREAM_BUSY, STREAM_NOT_FOUND, CONSUMPTION_IN_DOUBT, CONSUMPTION_INCOMPLETE, CONSUMPTION_PARTIALLY_COMMITTED.
    """
    deadline = time.monotonic() + seconds(spark, BUSY_TIMEOUT)
    pause = POLL_SECONDS_MIN
    catalog = catalog_of(spark)
    waiting = Waiting(spark)
    known = catalog.last_read(spark, state.stream.uuid)
    if known is not None and known.claim is None:
        return known  # if another process has claimed it since, the caller's commit is refused
    try:
        while True:
            # Read from the catalog, because an old heartbeat would look like that of a dead process.
            now = catalog.by_uuid(spark, state.stream.uuid)
            if now is None:
                raise gone(str(state.name))
            if now.claim is None or (now.claim.is_partially_committed and resumes(now.claim)):
                return now
            if now.claim.is_partially_committed:
                if give_up:
                    return now
                raise partially_committed(now.claim, f"stream {now.name} waits for it")
            why = is_abandoned(spark, now.claim)
            if why is not None:
                try:
                    recover(spark, now.claim, why)
                    check_recovered(spark, now)
                except StreamqlError as e:
                    if e.code in _CAN_BE_GIVEN_UP and give_up:
                        return now
                    raise
                # The stream is free, or has a new claim. It is read again before the deadline counts: a busyTimeout of 0 is enough.
                continue
            if time.monotonic() > deadline or waiting.is_cancelled():
                raise busy(now)
            _waited_for[threading.get_ident()] = now
            time.sleep(pause)
            pause = min(pause * 1.5, POLL_SECONDS_MAX)
    finally:
        _waited_for.pop(threading.get_ident(), None)


def recover(spark: SparkSession, claim: Claim, why: str) -> None:
    """Resolves a claim whose owner is dead, and ends it unless it is partially committed. `why`: the error for the ledger. Raises
    CONSUMPTION_IN_DOUBT if no log can resolve a statement, or a target cannot be read or fenced."""
    resolved, problem = resolve_reachable(spark, claim, any_failure=True)
    if problem is not None:
        raise problem
    try:
        finish(spark, resolved, why)
    except ClaimTaken:  # another process recovered it at the same time
        return
    except StreamqlError as e:
        if e.code != "CLAIM_LOST":  # also recovered by another process; a statement of the claim is done
            raise


def check_recovered(spark: SparkSession, state: StreamState) -> None:
    """Raises CATALOG_UNREADABLE if a stream still has the same claim after its recovery. Then only some of the claim's streams have it. As
    streamql always writes a claim to all of its streams, another program must have edited the catalog."""
    now, claim = catalog_of(spark).by_uuid(spark, state.stream.uuid), state.claim
    if now is not None and claim is not None and holds(now, claim):
        raise edited(now, "not all of the streams that its claim is on have it")
