"""What consumers are told who cannot go on."""

from __future__ import annotations

from streamql.catalog.states import Claim, ClaimedStatement, StreamState
from streamql.catalog.store import now_ms
from streamql.errors import StreamqlError
from streamql.settings import BUSY_TIMEOUT


def busy(state: StreamState) -> StreamqlError:
    """The error for a stream that somebody else consumes."""
    assert state.claim is not None
    owner = state.claim.owner
    age = max(0, now_ms() - state.claim.started_at_ms) // 1000
    return StreamqlError(
        "STREAM_BUSY",
        f"stream {state.name} is being consumed by {owner.who}, process {owner.pid}, since {age} s",
        hint=f"run the statement again later, or SET {BUSY_TIMEOUT.key} = 10min to wait longer",
        stream=str(state.name),
        consumption_id=state.claim.consumption_id,
    )


def moved(state: StreamState) -> StreamqlError:
    """The error for a stream whose offset is not any more where a transaction has seen it."""
    return StreamqlError(
        "STREAM_MOVED",
        f"another consumer moved stream {state.name} since this transaction read it",
        hint="ROLLBACK, then run the transaction again",
        stream=str(state.name),
    )


def committed(claim: Claim) -> StreamqlError:
    """The error for a ROLLBACK after a COMMIT that came through, though it reported an error."""
    return StreamqlError(
        "INVALID_TRANSACTION_STATE",
        "ROLLBACK: the transaction was committed, its changes are in and its streams moved",
        hint="SELECT * FROM streamql.consumptions shows it",
        consumption_id=claim.consumption_id,
    )


def unfinished(claim: Claim, what: str) -> StreamqlError:
    """The error for a transaction of which some statements are in and others not."""
    return StreamqlError(
        "CONSUMPTION_UNFINISHED",
        f"a transaction of {claim.owner.who} did not come to its end, and {len(claim.done)} of its "
        f"statements committed, into {claim.where_done}: {what}",
        hint="run the same transaction again: what is done is skipped. Or RESTORE the targets, then ALTER STREAM … RELEASE",
        consumption_id=claim.consumption_id,
        targets=[s.path for s in claim.done],
    )


def lost(claim: Claim, why: str) -> StreamqlError:
    """The error for a consumption whose claim others took."""
    return StreamqlError(
        "CLAIM_LOST",
        f"consumption {claim.consumption_id} lost its claim: {why}",
        hint="run the statement again; SELECT * FROM streamql.consumptions tells who took the changes",
        consumption_id=claim.consumption_id,
    )


def undecided(claim: Claim, statement: ClaimedStatement, why: str) -> StreamqlError:
    """The error for a consumption of which no log can tell."""
    return StreamqlError(
        "CONSUMPTION_UNDECIDED",
        f"whether consumption {claim.consumption_id} into {statement.target} committed cannot be told: {why} ({statement.path})",
        hint="look whether the rows arrived; if so, ALTER STREAM … SET OFFSET VERSION n, if not, ALTER STREAM … RELEASE",
        consumption_id=claim.consumption_id,
        path=statement.path,
    )
