"""The errors of consumptions that cannot continue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from streamql.catalog.states import Claim, ClaimedStatement, StreamState
from streamql.consume.claims.owner import is_of_this_host, is_suspended
from streamql.delta.jvm import sentence
from streamql.durations import in_words
from streamql.errors import StreamqlError, counted
from streamql.model import offset_clause, offset_form
from streamql.names import Name
from streamql.settings import BUSY_TIMEOUT
from streamql.times import now_ms


def busy(state: StreamState) -> StreamqlError:
    """Returns the error for a stream that another statement consumes."""
    assert state.claim is not None
    owner = state.claim.owner
    age = in_words(max(0, now_ms() - state.claim.started_at_ms))
    lease = state.claim.lease_seconds
    way = f"a statement that waits longer than its lease of {lease:g} s takes over, as does streamql doctor --fix"
    if is_suspended(owner):
        elsewhere = f". Its process is suspended: {way}"
    else:
        elsewhere = "" if is_of_this_host(owner) else f". Should it have died there: {way}"
    return StreamqlError(
        "STREAM_BUSY",
        f"stream {state.name} is being consumed by {owner.who}, process {owner.pid}, since {age}",
        hint=f"run the statement again later, or SET {BUSY_TIMEOUT.key} = 10min to wait longer{elsewhere}",
        stream=str(state.name),
        consumption_id=state.claim.consumption_id,
    )


def contended() -> StreamqlError:
    """Returns the error for a statement whose streams others changed each time that it tried to claim them."""
    return StreamqlError("STREAM_BUSY", "others keep taking the stream", hint="run the statement again")


def edited(state: StreamState, what: str) -> StreamqlError:
    """Returns the error for a claim that was changed by another program than streamql."""
    return StreamqlError(
        "CATALOG_UNREADABLE",
        f"the entry of stream {state.name} was edited: {what}",
        hint=f"ALTER STREAM {state.name} SET OFFSET {offset_form(state.offset.position)}, the last one that its targets have",
        stream=str(state.name),
    )


def gone(name: str) -> StreamqlError:
    """Returns the error for a stream that was there when the statement was analysed."""
    return StreamqlError(
        "STREAM_NOT_FOUND", f"stream {name} was dropped or replaced meanwhile", hint="run the statement again"
    )


def moved(state: StreamState) -> StreamqlError:
    """Returns the error for a stream whose offset moved since a transaction read it."""
    return StreamqlError(
        "STREAM_MOVED",
        f"another consumer moved stream {state.name} since this transaction read it",
        hint="ROLLBACK, then run the transaction again",
        stream=str(state.name),
    )


def committed(claim: Claim) -> StreamqlError:
    """Returns the error for a ROLLBACK after a COMMIT that came through, though it reported an error."""
    return StreamqlError(
        "TRANSACTION_COMMITTED",
        "ROLLBACK: the transaction was committed, its changes are in and its streams moved",
        hint="SELECT * FROM streamql.consumptions shows it",
        consumption_id=claim.consumption_id,
    )


def no_query() -> StreamqlError:
    """Returns the error for a query that consumes in a transaction."""
    return StreamqlError(
        "UNSUPPORTED_CLAUSE",
        "WITH CONSUME cannot stand in a transaction: what was shown cannot be shown again",
        hint="consume by INSERT INTO … SELECT, or run the query outside of the transaction",
    )


def is_refusal(e: BaseException) -> bool:
    """Returns whether a statement was refused for what it says (SQLSTATE of classes 0A, 22, 42), or since what it would write is there
    already; a stream that went away was there when it was analysed."""
    if not isinstance(e, StreamqlError) or e.code == "STREAM_NOT_FOUND":
        return False
    return e.sqlstate[:2] in ("0A", "22", "42") or e.code == "STATEMENT_COMMITTED"


def not_whole(failed: int, last: str) -> StreamqlError:
    """Returns the error for a COMMIT after statements that failed and were not run again; `last`: the one that failed last."""
    which = "" if failed == 1 else ", the last one"
    return StreamqlError(
        "INVALID_TRANSACTION_STATE",
        f"COMMIT: {counted(failed, 'statement')} of the transaction failed{which}: {last}",
        hint="run it again; or withdraw it with ROLLBACK STATEMENT, then COMMIT; or end the transaction with ROLLBACK",
    )


def ended() -> StreamqlError:
    """Returns the error for a statement of a transaction that has ended."""
    return StreamqlError(
        "INVALID_TRANSACTION_STATE", "the transaction was ended meanwhile", hint="run it again from BEGIN"
    )


def nothing_failed() -> StreamqlError:
    """Returns the error for a ROLLBACK STATEMENT in a transaction without a statement that failed."""
    return StreamqlError(
        "INVALID_TRANSACTION_STATE",
        "ROLLBACK STATEMENT: COMMIT waits for no statement of the transaction",
        hint="COMMIT, or ROLLBACK",
    )


def not_withdrawn(done: ClaimedStatement) -> StreamqlError:
    """Returns the error for a ROLLBACK STATEMENT after a statement that reported an error and is in."""
    return StreamqlError(
        "STATEMENT_COMMITTED",
        f"ROLLBACK STATEMENT: the statement into {done.target} reported an error, and committed (version {done.target_version})",
        hint=f"do not run it again: its rows are in. Or ROLLBACK, and RESTORE {done.target}",
        statement=done.text,
    )


def arrived(done: ClaimedStatement, what: str) -> StreamqlError:
    """Returns the error for a statement of a transaction into a target that an earlier one wrote, of which its caller may not know."""
    return StreamqlError(
        "STATEMENT_COMMITTED",
        f"an earlier statement of the transaction into {done.target} {what} (version {done.target_version})",
        hint="leave this one out, if it was meant to replace it: what it wrote is in; else run this one once more. Or ROLLBACK, and "
        f"RESTORE {done.target}",
        statement=done.text,
    )


def not_run_again(failed: ClaimedStatement) -> StreamqlError:
    """Returns the error for a COMMIT without a statement that failed in an earlier run of the transaction: the others would move the stream
    without it."""
    return StreamqlError(
        "INVALID_TRANSACTION_STATE",
        f"COMMIT: the statement into {failed.target} failed in an earlier run of the transaction, and was not run in this one",
        hint="run it, or another one into the same table; or withdraw it by ROLLBACK STATEMENT, then COMMIT",
    )


def partially_committed(claim: Claim, what: str) -> StreamqlError:
    """Returns the error for a transaction of which some statements are in and others not."""
    return StreamqlError(
        "CONSUMPTION_PARTIALLY_COMMITTED",
        f"a transaction of {claim.owner.who} did not end, and {len(claim.done)} of its "
        f"statements committed, into {claim.where_done}: {what}",
        hint="run the same transaction again: what is done is skipped. Or RESTORE the targets, then ALTER STREAM … RELEASE",
        consumption_id=claim.consumption_id,
        targets=[s.path for s in claim.done],
    )


def half_way(name: Name, claim: Claim) -> StreamqlError:
    """Returns what is said of a stream whose transaction stopped half way, where its status is shown."""
    return StreamqlError(
        "CONSUMPTION_PARTIALLY_COMMITTED",
        f"a transaction of {claim.owner.who} stopped half way: it has written {claim.where_done}, and no other statement may "
        "consume the stream",
        hint=f"run the same transaction again: what is done is skipped. Or RESTORE the targets, then ALTER STREAM {name} RELEASE",
        consumption_id=claim.consumption_id,
    )


def rolled_back(claim: Claim, names: Sequence[str]) -> StreamqlError:
    """Returns the error for the ROLLBACK of a transaction of which statements have committed. `names`: of its streams."""
    done = len(claim.done)
    stay = "its rows stay" if done == 1 else "their rows stay"
    streams = f"stream {names[0]} has" if len(names) == 1 else f"streams {', '.join(names)} have"
    return StreamqlError(
        "CONSUMPTION_PARTIALLY_COMMITTED",
        f"ROLLBACK undoes no statement that has committed: {counted(done, 'statement')} wrote {claim.where_done}, and {stay}; "
        f"{streams} not moved, and no other statement may consume {'it' if len(names) == 1 else 'them'}",
        hint="run the same transaction again: what is done is skipped. Or RESTORE the targets, then ALTER STREAM "
        f"{names[0] if names else '…'} RELEASE",
        consumption_id=claim.consumption_id,
        targets=[s.path for s in claim.done],
    )


@contextmanager
def with_recovery_hint(claim: Claim | None) -> Iterator[None]:
    """Returns where a transaction waits for a stream with others claimed and written already (`claim`: none, if the waiting statement reads
    those too): each of two transactions may hold the streams of the other one. The hint says how to recover: commit what is done of one."""
    try:
        yield
    except StreamqlError as e:
        if claim is None or not claim.done or e.code not in ("STREAM_BUSY", "CONSUMPTION_PARTIALLY_COMMITTED"):
            raise
        both = (
            "Should that one wait for this one, and no statement that is left read the streams of those that are done: ROLLBACK, "
            "then BEGIN, the statements that are done (they are skipped), COMMIT"
        )
        raise StreamqlError(
            e.code, e.message, hint=f"{e.hint}. {both}", line=e.line, column=e.column, **e.facts
        ) from None


def fenced(claim: Claim, failure: BaseException | None) -> StreamqlError:
    """Returns the error for a statement whose claim another process took and ended while it ran. `failure`: what the statement raised,
    which is often Delta's message for a number that is in the log already."""
    said = "" if failure is None else f" (the statement said: {sentence(failure)})"
    return lost(claim, f"another process took this one for dead while the statement ran, and fenced it{said}")


def lost_without_commit(claim: Claim, outcome: str | None) -> StreamqlError:
    """Returns the error for a COMMIT or ROLLBACK whose claim others took; `outcome`: what the ledger says of it, None: another process has
    it."""
    if outcome is None:
        return lost(claim, f"its data IS in {claim.where_done}; run the transaction again: what is done is skipped")
    return lost_with_data(claim, "it was given up meanwhile (RELEASE, SET OFFSET, DROP)")


def lost_with_data(claim: Claim, why: str) -> StreamqlError:
    """Returns the error for a consumption whose claim others took and ended, though data of it is in: the user must check."""
    return StreamqlError(
        "CLAIM_LOST",
        f"consumption {claim.consumption_id} lost its claim: {why}; its data IS in {claim.where_done}",
        hint="before you run it again, check whether the stream still shows these changes: if so, RESTORE the targets, or "
        "ALTER STREAM … SET OFFSET behind them; SELECT * FROM streamql.consumptions tells who moved it",
        consumption_id=claim.consumption_id,
    )


def lost(claim: Claim, why: str) -> StreamqlError:
    """Returns the error for a consumption whose claim others took."""
    return StreamqlError(
        "CLAIM_LOST",
        f"consumption {claim.consumption_id} lost its claim: {why}",
        hint="run the statement again; SELECT * FROM streamql.consumptions tells who took the changes",
        consumption_id=claim.consumption_id,
    )


def in_doubt(
    claim: Claim, statement: ClaimedStatement, why: str, names: Mapping[str, str], *, is_unreachable: bool = False
) -> StreamqlError:
    """Returns the error for a consumption that no log can resolve. `claim`: with those of its statements resolved that a log can resolve.
    `names`: of its streams, by id. `is_unreachable`: the target could not be read or written just now, and may be later."""
    moving = {uuid: i for uuid, i in claim.intervals.items() if i.after != i.through}
    is_whole = not claim.is_block and len(claim.statements) == 1 and bool(moving)
    kept = {min(moving): moving[min(moving)]} if is_whole else claim.intervals  # it moves the others along
    along = " (its other streams move along)" if len(kept) < len(claim.intervals) else ""
    arrived = "; ".join(
        f"ALTER STREAM {names.get(u, '…')} SET OFFSET {offset_clause(i.through)}" for u, i in kept.items()
    )
    again = "run the statement again once it can be; only if it never can: " if is_unreachable else ""
    others = f"; others of its statements committed, into {claim.where_done}" if claim.done else ""
    undo = f"RESTORE {', '.join(s.target for s in claim.done)}, then " if claim.done else ""
    release = f"{undo}ALTER STREAM {names.get(min(claim.intervals), '…')} RELEASE"
    return StreamqlError(
        "CONSUMPTION_IN_DOUBT",
        f"whether consumption {claim.consumption_id} into {statement.target} committed is not known: {why} ({statement.path}){others}",
        hint=f"{again}check whether the rows arrived; if so, {arrived}{along}; if not, {release}",
        consumption_id=claim.consumption_id,
        path=statement.path,
    )
