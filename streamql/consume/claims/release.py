"""Gives up consumptions that are partially committed or in doubt, when a user moves, drops or replaces a stream of theirs."""

from __future__ import annotations

import logging
from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.consume.claims.resolve import resolve_reachable
from streamql.consume.claims.steps import Change, ClaimGone, ending
from streamql.consume.claims.waiting import wait_until_free
from streamql.model import Offset, shown_position

log = logging.getLogger("streamql")


def force_release(spark: SparkSession, state: StreamState) -> Change:
    """Returns the commit that frees a stream which a user moves, drops or replaces. Waits until no process is at work on it.

    A consumption that is partially committed, in doubt, or unreadable is given up in the same commit as what the user asks for. Between
    two commits, another statement could take the rows that are in already a second time. Raises STREAM_BUSY, STREAM_NOT_FOUND.
    """
    is_resolved = False
    while True:
        found = wait_until_free(spark, state, give_up=True)
        claim = found.claim
        if claim is None:
            return Change([found], [found])
        outcome, why = "PARTIALLY_COMMITTED", "given up by a user"
        if not claim.is_partially_committed:
            claim, problem = resolve_reachable(spark, claim, any_failure=True)
            if problem is None and not is_resolved:  # a log can resolve it by now
                is_resolved = True
                continue
            outcome, why = "IN_DOUBT", "its entry was edited" if problem is None else problem.message
        try:
            return ending(spark, claim, outcome, why)
        except ClaimGone:
            continue


def with_others_advanced(last: Change, moved: StreamState) -> Change:
    """Returns the change that also advances the other streams of a consumption that is given up.

    For a user who moves one stream to the end of the interval that the consumption took of it: then its rows arrived. A single statement is
    in whole or not at all, so what it took of its other streams arrived as well. Of a block with several statements this does not follow,
    and the other streams stay.
    """
    claim, uuid = last.claim, moved.stream.uuid
    if claim is None or claim.is_block or len(claim.statements) != 1:
        return last
    interval = claim.intervals[uuid]
    if moved.offset.position != interval.through or interval.after == interval.through:  # its beginning, then, as well
        return last
    others = [s for s in last.after if s.stream.uuid != uuid]
    ends = {s.stream.uuid: s.next(offset=Offset(claim.intervals[s.stream.uuid].through)) for s in others}
    return replace(last, after=[ends.get(s.stream.uuid, s) for s in last.after])


def warn_of_release(last: Change, uuid: str) -> None:
    """Warns, of a consumption that was given up, what of it is in its targets, and where its other streams are now."""
    if last.claim is not None and last.claim.done:
        log.warning(
            "a consumption of %s was given up, and what it wrote is in %s: do not take these changes there again",
            last.claim.owner.who,
            last.claim.where_done,
        )
    unknown = next((e for e in last.events if e["outcome"] == "IN_DOUBT"), None)
    if unknown is not None:
        log.warning("a consumption in doubt was given up: %s", unknown["error"])
    for before, after in zip(last.before, last.after, strict=True):
        if after.stream.uuid != uuid:
            did = "delivers again from" if after.offset == before.offset else "was moved along, to"
            log.warning(
                "the consumption that was given up held %s as well, which %s %s",
                after.name,
                did,
                shown_position(after.offset.position),
            )
