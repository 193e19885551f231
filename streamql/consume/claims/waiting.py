"""Waiting for a stream that another statement has claimed, and recovery of claims whose owners are gone."""

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

_waited_for: dict[int, StreamState] = {}
"""The streams that this process waits for, by the ids of the threads that wait."""


def waited_for() -> list[StreamState]:
    """Returns the streams that statements of this process wait for now, as they last read them: each has a claim."""
    return list(_waited_for.values())


def never(_: Claim) -> bool:
    """Returns whether the caller resumes a claim: it resumes none."""
    return False


def wait_until_free(
    spark: SparkSession, state: StreamState, *, give_up: bool = False, resumes: Callable[[Claim], bool] = never
) -> StreamState:
    """Returns the stream once no claim is on it. Waits, and recovers a claim whose owner is gone.

    `resumes`: a partially committed claim for which it returns True is returned with its stream, and the caller takes it over. `give_up`:
    a claim that is partially committed or in doubt is returned with its stream, and the caller ends it. Raises STREAM_BUSY,
    STREAM_NOT_FOUND, CONSUMPTION_IN_DOUBT, CONSUMPTION_PARTIALLY_COMMITTED.
    """
    deadline = time.monotonic() + seconds(spark, BUSY_TIMEOUT)
    pause = POLL_SECONDS_MIN
    catalog = catalog_of(spark)
    waiting = Waiting(spark)
    known = catalog.last_read(spark, state.stream.uuid)
    if known is not None and known.claim is None:
        return known  # the commit of the caller's change is refused if this is no longer so
    try:
        while True:
            now = catalog.by_uuid(spark, state.stream.uuid)  # an old heartbeat would look like that of a dead process
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
                    if e.code in ("CONSUMPTION_IN_DOUBT", "CATALOG_UNREADABLE") and give_up:
                        return now
                    raise
                continue  # the stream is free, or has a new claim: a caller that does not wait may also try once more
            if time.monotonic() > deadline or waiting.is_cancelled():
                raise busy(now)
            _waited_for[threading.get_ident()] = now
            time.sleep(pause)
            pause = min(pause * 1.5, POLL_SECONDS_MAX)
    finally:
        _waited_for.pop(threading.get_ident(), None)


def recover(spark: SparkSession, claim: Claim, why: str) -> None:
    """Resolves a claim whose owner is gone, and ends it unless it is partially committed. Raises CONSUMPTION_IN_DOUBT, also if a target
    can be neither read nor fenced."""
    resolved, problem = resolve_reachable(spark, claim, any_failure=True)
    if problem is not None:
        raise problem
    try:
        finish(spark, resolved, why)
    except ClaimTaken:  # another process recovered it at the same time
        return
    except StreamqlError as e:
        if e.code != "CLAIM_LOST":  # the same, and a statement of it is done
            raise


def check_recovered(spark: SparkSession, state: StreamState) -> None:
    """Raises CATALOG_UNREADABLE if a claim is unchanged after its recovery: only some of its streams have it, which no streamql writes."""
    now, claim = catalog_of(spark).by_uuid(spark, state.stream.uuid), state.claim
    if now is not None and claim is not None and holds(now, claim):
        raise edited(now, "not all of the streams that its claim is on have it")
