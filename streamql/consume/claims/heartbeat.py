"""The heartbeat of a claim: a commit of the catalog four times a lease, while its owner is at work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.claims.steps import held_states
from streamql.settings import LEASE, seconds


class Heartbeat:
    """Shows other processes, while a statement runs or a transaction is open, that the owner of a claim is alive.

    `claim`: returns the claim as it is now, because each statement of a block changes it. `goes_on`: when it returns False, the
    heartbeat ends.
    """

    def __init__(
        self, spark: SparkSession, claim: Callable[[], Claim | None], goes_on: Callable[[], bool] = lambda: True
    ) -> None:
        self._spark = spark
        self._claim = claim
        self._goes_on = goes_on
        self._stop = threading.Event()
        self._pause = max(0.2, seconds(spark, LEASE) / 4)
        self._thread = threading.Thread(target=self._beat, name="streamql-heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        catalog = catalog_of(self._spark)
        while not self._stop.wait(self._pause) and self._goes_on():
            try:
                claim = self._claim()
                held = None if claim is None else held_states(self._spark, claim)
                if held is not None:  # else its owner is changing it, or lost it, which the owner finds out
                    catalog.commit(self._spark, held, [_beaten(s) for s in held], [])
            except Exception:  # a missed beat does no harm: the lease only says when others may resolve the claim
                continue


def _beaten(state: StreamState) -> StreamState:
    assert state.claim is not None
    return replace(state, claim=replace(state.claim, heartbeat=state.claim.heartbeat + 1))
