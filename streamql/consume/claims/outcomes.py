"""Derives the outcome of a claim, and the streams that advance, from the outcomes of its statements. Pure."""

from __future__ import annotations

from typing import Literal

from streamql.catalog.states import Claim, ClaimedStatement

ClaimOutcome = Literal["CONSUMED", "FAILED", "PARTIALLY_COMMITTED"]
"""CONSUMED: all statements committed. FAILED: none did, and none can. PARTIALLY_COMMITTED: some did, and the others cannot."""


def outcome_of(claim: Claim) -> ClaimOutcome:
    """Returns the outcome of a claim that ends without COMMIT. All its statements must be resolved. The claim of a transaction is never
    CONSUMED here, because more statements might have followed before COMMIT."""
    if not claim.done:
        return "FAILED"
    is_whole = not claim.is_transaction and len(claim.done) == len(claim.statements)
    return "CONSUMED" if is_whole else "PARTIALLY_COMMITTED"


def moves(claim: Claim, uuid: str) -> bool:
    """Returns whether a stream advances when its claim ends as consumed: a statement that read it must be done. A claim without statements
    is that of a query, which advances all its streams."""
    return not claim.statements or any(claim.reads(s, uuid) and s.outcome != "fenced" for s in claim.statements)


def left_out(claim: Claim) -> ClaimedStatement | None:
    """Returns a statement that failed in an earlier run of a transaction and whose changes a COMMIT of this run would lose. None: there is
    no such statement.

    A stream that it read will advance, because other statements that read the stream are done. It was neither run again nor withdrawn. No
    later run wrote into its target by another statement, as it would if the user had corrected the script.
    """
    done = {s.fingerprint for s in claim.done}
    moving = [uuid for uuid in claim.intervals if any(claim.reads(s, uuid) for s in claim.done)]
    for s in claim.statements:
        if s.outcome != "fenced" or s.withdrawn or s.entered >= claim.number or s.fingerprint in done:
            continue
        is_replaced = any(d.writes_where(s.path, s.target) and d.entered > s.entered for d in claim.done)
        if not is_replaced and any(claim.reads(s, uuid) for uuid in moving):
            return s
    return None
