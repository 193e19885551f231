"""What the outcomes of a claim's statements mean for the claim and its streams. Pure."""

from __future__ import annotations

from typing import Literal

from streamql.catalog.states import Claim, ClaimedStatement

ClaimOutcome = Literal["CONSUMED", "FAILED", "PARTIALLY_COMMITTED"]
"""CONSUMED: all statements committed. FAILED: none did, and none can. PARTIALLY_COMMITTED: some did, and the others cannot."""


def outcome_of(claim: Claim) -> ClaimOutcome:
    """Returns the outcome of a claim whose statements are resolved and whose owner ends it without COMMIT. A block without COMMIT is never
    CONSUMED, because more statements might have followed."""
    if not claim.done:
        return "FAILED"
    is_whole = not claim.is_block and len(claim.done) == len(claim.statements)
    return "CONSUMED" if is_whole else "PARTIALLY_COMMITTED"


def moves(claim: Claim, uuid: str) -> bool:
    """Returns whether the end of a consumed claim advances a stream: a statement that read the stream is done."""
    return not claim.statements or any(claim.reads(s, uuid) and s.outcome != "fenced" for s in claim.statements)


def left_out(claim: Claim) -> ClaimedStatement | None:
    """Returns a statement that failed in an earlier run of a block and that COMMIT of this run would lose; None: there is none.

    Its stream moves, because other statements that read it are done. It was not run again, no later run wrote into its target by
    another statement (the script was corrected), and it was not withdrawn.
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
