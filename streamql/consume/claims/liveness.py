"""Tells whether the owner of a claim still works on it: by its process if that ran on this host, else by the claim's heartbeat."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, Owner
from streamql.catalog.store import catalog_of
from streamql.consume.claims.owner import is_dead, is_running_here
from streamql.settings import LEASE, seconds

log = logging.getLogger("streamql")

POLL_SECONDS_MIN = 0.05
POLL_SECONDS_MAX = 1.0


class Owned(Protocol):
    """Work of a process that shows by heartbeats that it is alive: a claim, or a run of a task."""

    @property
    def owner(self) -> Owner:
        """Returns the process."""

    @property
    def consumption_id(self) -> str:
        """Returns what `owner.running` calls the work."""

    @property
    def heartbeat(self) -> int:
        """Returns how often the process has shown that it is alive."""

    @property
    def lease_seconds(self) -> float:
        """Returns after how many seconds without a heartbeat others may take the work over."""


_watched: dict[str, tuple[int, float]] = {}
"""consumption id → (number of the heartbeat, when this process first saw that number, on its monotonic clock)."""
_watched_lock = threading.Lock()


def is_abandoned(spark: SparkSession, claim: Owned) -> str | None:
    """Returns why other processes may resolve the claim: its process is dead, or its heartbeat has not changed for the lease. None: they
    may not resolve it yet. Of a process on another host, only repeated calls find that its heartbeat does not change."""
    here = is_running_here(claim.owner, claim.consumption_id)
    if here is not None:
        return None if here else "its statement ended without being resolved"
    if is_dead(claim.owner):
        return f"process {claim.owner.pid} ended before its statement did"
    lease = max(seconds(spark, LEASE), claim.lease_seconds)
    with _watched_lock:
        beat, since = _watched.get(claim.consumption_id, (-1, 0.0))
        if beat != claim.heartbeat:
            _watched[claim.consumption_id] = (claim.heartbeat, time.monotonic())
            return None
        still = time.monotonic() - since
    return f"no sign of life from {claim.owner.host}:{claim.owner.pid} for {still:.0f} s" if still > lease else None


def watch(spark: SparkSession, claims: Sequence[Claim]) -> None:
    """Waits for a lease, so that `is_abandoned` can then answer for owners whose process this host does not see. Returns earlier once the
    heartbeat of each claim has changed, or the claim has ended."""
    silent = [c for c in claims if not is_abandoned(spark, c) and is_running_here(c.owner, c.consumption_id) is None]
    if not silent:
        return
    lease = max(max(seconds(spark, LEASE), c.lease_seconds) for c in silent)
    log.warning("%d consumption(s) under way are watched for a sign of life, up to %.0f s", len(silent), lease)
    deadline = time.monotonic() + lease + POLL_SECONDS_MIN
    while silent and time.monotonic() < deadline:
        time.sleep(min(POLL_SECONDS_MAX, lease / 8))
        held = {s.claim.consumption_id: s.claim for s in catalog_of(spark).all(spark) if s.claim is not None}
        silent = [c for c in silent if c.consumption_id in held and held[c.consumption_id].heartbeat == c.heartbeat]
