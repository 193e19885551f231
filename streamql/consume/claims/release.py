"""Gives up consumptions that are partially committed or in doubt, because a user moves, drops or replaces one of their streams."""

from __future__ import annotations

import logging
from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, StreamState
from streamql.consume.claims.complete import abandon
from streamql.consume.claims.resolve import resolve_reachable
from streamql.consume.claims.steps import Change, ClaimGone, ending
from streamql.consume.claims.waiting import wait_until_free
from streamql.model import Offset, shown_position

log = logging.getLogger("streamql")


def force_release(spark: SparkSession, state: StreamState) -> Change:
    """Returns the change of the catalog that releases a stream which a user moves, drops or replaces. Waits until no process works on it.

    The caller adds to this change what the user asks for, and commits both at once. Between two commits, another statement could claim the
    released stream and write rows a second time that are already in their target. Only a consumption that is partially committed or in
    doubt, or whose entry was edited, is given up. Raises STREAM_BUSY, STREAM_NOT_FOUND.
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
            if problem is None and not is_resolved:  # the logs can resolve it now: `wait_until_free` ends it
                is_resolved = True
                continue
            outcome, why = "IN_DOUBT", _why(claim) if problem is None else problem.message
        # A process whose lease has expired may be alive, and about to write the rest. The stream is free only when it can no longer do so.
        written = abandon(spark, claim)
        try:
            change = ending(spark, claim, outcome, why)
        except ClaimGone:
            continue
        for what in written:
            log.warning("a consumption that was given up has written %s: these rows may come again", what)
        return change


def _why(claim: Claim) -> str:
    """Returns why a claim is given up whose statements the logs resolve."""
    return "what belongs to it besides could not be written" if claim.done else "its entry was edited"


def with_others_advanced(last: Change, moved: StreamState) -> Change:
    """Returns the change with the other streams of a given-up consumption advanced as well, if the user said that its rows arrived. `last`:
    the change that `force_release` returned. `moved`: the user's stream with its new offset.

    The user says so by moving the stream to the end of the interval that the consumption took of it. A single statement commits completely
    or not at all, so its rows from the other streams arrived, too. For several statements that does not follow, and the other streams stay.
    """
    claim, uuid = last.claim, moved.stream.uuid
    if claim is None or claim.is_transaction or len(claim.statements) != 1:
        return last
    interval = claim.intervals[uuid]
    # If the interval is empty, its end is also its begin, and the new offset does not tell whether the rows arrived.
    if moved.offset.position != interval.through or interval.after == interval.through:
        return last
    others = [s for s in last.after if s.stream.uuid != uuid]
    ends = {s.stream.uuid: s.next(offset=Offset(claim.intervals[s.stream.uuid].through)) for s in others}
    return replace(last, after=[ends.get(s.stream.uuid, s) for s in last.after])


def warn_of_release(last: Change, uuid: str) -> None:
    """Warns which targets hold rows of a consumption that was given up, and where the offsets of its other streams are now."""
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
