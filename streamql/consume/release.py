"""A consumption that nobody goes on with gives way to what a person says about its stream."""

from __future__ import annotations

import logging
from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.consume.claims import Ending, ending, wait_until_free
from streamql.consume.decide import judge_what_can_be
from streamql.model import Offset

log = logging.getLogger("streamql")


def give_way(spark: SparkSession, state: StreamState) -> Ending:
    """A stream that is to be moved, dropped or replaced, once nobody is at work on it; with the giving up of a consumption that is
    partially committed, or that no log can decide, or none that can be read. That goes into the same commit: between two, others could
    take a second time what is in already. Raises STREAM_BUSY, STREAM_NOT_FOUND."""
    is_judged = False
    while True:
        found = wait_until_free(spark, state, give_up=True)
        claim = found.claim
        if claim is None:
            return Ending([found], [found], [])
        outcome, why = "PARTIALLY_COMMITTED", "given up by a person"
        if not claim.is_partially_committed:
            claim, problem = judge_what_can_be(spark, claim, whatever=True)
            if problem is None and not is_judged:  # a log can decide it by now
                is_judged = True
                continue
            outcome, why = "IN_DOUBT", "somebody edited its entry" if problem is None else problem.message
        last = ending(spark, claim, outcome, why)
        if last is not None:
            return last


def moving_along(last: Ending, moved: StreamState) -> Ending:
    """Where a person moves a stream to the end of what a given up consumption took of it, its rows have arrived. A single statement is in
    whole or not at all: what it took of its other streams has arrived too, and they move along, so that nobody takes it again."""
    claim, uuid = last.claim, moved.stream.uuid
    if claim is None or claim.is_block or len(claim.statements) != 1:
        return last
    interval = claim.intervals[uuid]
    if moved.offset.position != interval.through or interval.after == interval.through:  # its beginning, then, as well
        return last
    others = [s for s in last.after if s.stream.uuid != uuid]
    ends = {s.stream.uuid: s.next(offset=Offset(claim.intervals[s.stream.uuid].through)) for s in others}
    return replace(last, after=[ends.get(s.stream.uuid, s) for s in last.after])


def tell_of_freed(last: Ending, uuid: str) -> None:
    """Says of a consumption that gave way what of it is in its targets, and where its other streams are now: these were not spoken of."""
    if last.claim is not None and last.claim.done:
        log.warning(
            "a consumption of %s was given up, and what it wrote is in %s: whoever takes these changes again must know",
            last.claim.owner.who,
            last.claim.where_done,
        )
    unknown = next((e for e in last.events if e["outcome"] == "IN_DOUBT"), None)
    if unknown is not None:
        log.warning("a consumption was given up of which nobody knows whether it arrived: %s", unknown["error"])
    for before, after in zip(last.before, last.after, strict=True):
        if after.stream.uuid != uuid:
            did = "delivers again from" if after.offset == before.offset else "was moved along, to"
            log.warning(
                "the consumption that was given up held %s as well, which %s version %d",
                after.name,
                did,
                after.offset.position,
            )
