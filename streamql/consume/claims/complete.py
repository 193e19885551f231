"""Completes a consumption whose statements are done: what the terms of its streams write besides, before the streams move."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, Joined, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.claims.errors import incomplete
from streamql.consume.claims.outcomes import moves
from streamql.consume.claims.steps import ClaimGone, is_held
from streamql.delta.jvm import sentence
from streamql.errors import StreamqlError
from streamql.terms import Completion, TermType, terms_of

log = logging.getLogger("streamql")

Found = Mapping[str, str]
"""What the checks of rows have found, by stream id, as JSON. It has the streams whose rows this process has read to the end."""

NOTHING_FOUND: Found = {}


def joined(spark: SparkSession, states: Sequence[StreamState]) -> dict[str, Joined]:
    """Returns what is noted of streams with terms before they enter a claim, by their ids. Raises what `TermType.prepare` raises."""
    return {
        s.stream.uuid: Joined(s.sequence + 1, {t.name: t.prepare(spark, s, text) for t, text in terms_of(s.stream)})
        for s in states
        if s.stream.terms
    }


def complete(spark: SparkSession, claim: Claim, found: Found) -> Claim:
    """Lets the terms of the streams that will move write what belongs to the consumption. Returns the claim with what they note for the
    ledger.

    Whichever process ends the claim calls it, so that a dead process leaves nothing out. What was written before is not written again
    (`TermType.complete`). Raises CONSUMPTION_INCOMPLETE, and `ClaimGone` if another process has ended the claim or taken it over.
    """
    noted: dict[str, Mapping[str, Any]] = {}
    for type_, c in _completions(spark, claim, found):
        uuid = c.state.stream.uuid
        try:
            more = type_.complete(c)
        except Exception as e:
            if not is_held(spark, claim):
                raise ClaimGone from e  # it was given up meanwhile, and what it had not written was fenced
            hint = e.hint if isinstance(e, StreamqlError) else ""
            raise incomplete(claim, c.state, type_.name, e, hint) from e
        noted[uuid] = {**noted.get(uuid, {}), **more}
    return replace(claim, noted=noted) if noted else claim


def has_completed(spark: SparkSession, claim: Claim) -> bool:
    """Returns whether a query that consumed by reading has written what the terms of its streams take. Then its streams move, so that this
    is not written a second time. Otherwise it can no longer write it. Raises `ClaimGone`."""
    return any(type_.fence(c) for type_, c in _completions(spark, claim, NOTHING_FOUND))


def abandon(spark: SparkSession, claim: Claim) -> list[str]:
    """Makes sure that a process which is still alive no longer writes what belongs to a consumption besides, because a user gives the
    consumption up. Returns what has been written before, for display. Warns of what cannot be fenced."""
    written: list[str] = []
    for type_, c in _of_terms(spark, claim, NOTHING_FOUND):
        try:
            written += type_.abandon(c)
        except Exception as e:
            log.warning("the %s of %s may still be written: %s", type_.name, c.state.name, sentence(e))
    return written


def _completions(spark: SparkSession, claim: Claim, found: Found) -> list[tuple[TermType, Completion]]:
    """Returns the terms of the streams that will move. Raises `ClaimGone`."""
    with_terms = _of_terms(spark, claim, found)
    if with_terms and not is_held(spark, claim):
        raise ClaimGone
    return with_terms


def _of_terms(spark: SparkSession, claim: Claim, found: Found) -> list[tuple[TermType, Completion]]:
    states = [catalog_of(spark).last_read(spark, uuid) for uuid in claim.intervals if moves(claim, uuid)]
    with_terms = [state for state in states if state is not None and state.stream.uuid in claim.joined]
    return [
        (type_, Completion(spark, claim, s, text, claim.joined[s.stream.uuid], found.get(s.stream.uuid)))
        for s in with_terms
        for type_, text in terms_of(s.stream)
    ]
