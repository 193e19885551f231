"""The heartbeat of a claim: a commit to the catalog four times during each lease, while the claim's owner works on it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.claims.steps import held_states
from streamql.settings import LEASE, seconds

B = TypeVar("B", bound="Beating")


class Beating:
    """Calls `beat` four times during each lease, in a thread of its own, until it returns False or the body ends. A context manager."""

    def __init__(self, spark: SparkSession, beat: Callable[[], bool]) -> None:
        self._beat = beat
        self._stop = threading.Event()
        self._pause = max(0.2, seconds(spark, LEASE) / 4)
        self._thread = threading.Thread(target=self._run, name="streamql-heartbeat", daemon=True)

    def __enter__(self: B) -> B:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            try:
                if not self._beat():
                    return
            except Exception:  # one missed beat does no harm, because a lease has four
                continue


def heartbeat(
    spark: SparkSession, claim: Callable[[], Claim | None], is_active: Callable[[], bool] = lambda: True
) -> Beating:
    """Shows other processes that the owner of a claim is alive, while a statement runs or a transaction is open.

    `claim`: a function that returns the claim as it is now, because each statement of a transaction changes it. `is_active`: when it
    returns False, the heartbeat stops.
    """

    def beat() -> bool:
        if not is_active():
            return False
        now = claim()
        held = None if now is None else held_states(spark, now)
        # None: the owner is replacing the claim just now, or has lost it, which its next step on the claim will report.
        if held is not None:
            catalog_of(spark).commit(spark, held, [_beaten(s) for s in held], [])
        return True

    return Beating(spark, beat)


def _beaten(state: StreamState) -> StreamState:
    assert state.claim is not None
    return replace(state, claim=replace(state.claim, heartbeat=state.claim.heartbeat + 1))
