"""Makes the errors of consumptions that cannot continue."""

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
    recovery = f"a statement that waits longer than its lease of {lease:g} s takes over, as does streamql doctor --fix"
    if is_suspended(owner):
        elsewhere = f". Its process is suspended: {recovery}"
    else:
        elsewhere = "" if is_of_this_host(owner) else f". Should it have died there: {recovery}"
    return StreamqlError(
        "STREAM_BUSY",
        f"stream {state.name} is being consumed by {owner.who}, process {owner.pid}, since {age}",
        hint=f"run the statement again later, or SET {BUSY_TIMEOUT.key} = 10min to wait longer{elsewhere}",
        stream=str(state.name),
        consumption_id=state.claim.consumption_id,
    )


def contended() -> StreamqlError:
    """Returns the error for a statement whose streams other statements changed each time that it tried to claim them."""
    return StreamqlError("STREAM_BUSY", "others keep taking the stream", hint="run the statement again")


def edited(state: StreamState, what: str) -> StreamqlError:
    """Returns the error for a stream whose entry in the catalog another program than streamql has edited. `what`: what is wrong."""
    return StreamqlError(
        "CATALOG_UNREADABLE",
        f"the entry of stream {state.name} was edited: {what}",
        hint=f"ALTER STREAM {state.name} SET OFFSET {offset_form(state.offset.position)}, the last one that its targets have",
        stream=str(state.name),
    )


def gone(name: str) -> StreamqlError:
    """Returns the error for a stream that existed when the statement was analysed, and no longer does."""
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
    """Returns the error for a ROLLBACK after a COMMIT that has committed although it reported an error."""
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
    """Returns whether an error refuses a statement: for its text (SQLSTATE of classes 0A, 22, 42), or because a done statement may have
    written its rows already (STATEMENT_COMMITTED). STREAM_NOT_FOUND is not a refusal: the stream existed when the statement was
    analysed."""
    if not isinstance(e, StreamqlError) or e.code == "STREAM_NOT_FOUND":
        return False
    return e.sqlstate[:2] in ("0A", "22", "42") or e.code == "STATEMENT_COMMITTED"


def not_whole(failed: int, last: str) -> StreamqlError:
    """Returns the error for a COMMIT while statements that failed were not run again. `failed`: how many. `last`: the text of the one that
    failed last."""
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
    """Returns the error for a ROLLBACK STATEMENT of a statement that committed although it reported an error."""
    return StreamqlError(
        "STATEMENT_COMMITTED",
        f"ROLLBACK STATEMENT: the statement into {done.target} reported an error, and committed (version {done.target_version})",
        hint=f"do not run it again: its rows are in. Or ROLLBACK, and RESTORE {done.target}",
        statement=done.text,
    )


def arrived(done: ClaimedStatement, what: str) -> StreamqlError:
    """Returns the error for a statement of a transaction into a target that an earlier statement wrote. The user may not know that the
    earlier one committed. `what`: how that came about."""
    return StreamqlError(
        "STATEMENT_COMMITTED",
        f"an earlier statement of the transaction into {done.target} {what} (version {done.target_version})",
        hint="leave this one out, if it was meant to replace it: what it wrote is in; else run this one once more. Or ROLLBACK, and "
        f"RESTORE {done.target}",
        statement=done.text,
    )


def not_run_again(failed: ClaimedStatement) -> StreamqlError:
    """Returns the error for a COMMIT if a statement that failed in an earlier run of the transaction was not run in this one. The other
    statements would advance its stream, and its changes would be lost."""
    return StreamqlError(
        "INVALID_TRANSACTION_STATE",
        f"COMMIT: the statement into {failed.target} failed in an earlier run of the transaction, and was not run in this one",
        hint="run it, or another one into the same table; or withdraw it by ROLLBACK STATEMENT, then COMMIT",
    )


def partially_committed(claim: Claim, what: str) -> StreamqlError:
    """Returns the error for a transaction or multi-insert of which some statements committed and others did not. `what`: why this stops the
    caller."""
    return StreamqlError(
        "CONSUMPTION_PARTIALLY_COMMITTED",
        f"a transaction of {claim.owner.who} did not end, and {len(claim.done)} of its "
        f"statements committed, into {claim.where_done}: {what}",
        hint="run the same transaction again: what is done is skipped. Or RESTORE the targets, then ALTER STREAM … RELEASE",
        consumption_id=claim.consumption_id,
        targets=[s.path for s in claim.done],
    )


def half_way(name: Name, claim: Claim) -> StreamqlError:
    """Returns the error that a stream's status shows if a transaction over the stream stopped half way. `name`: of the stream."""
    return StreamqlError(
        "CONSUMPTION_PARTIALLY_COMMITTED",
        f"a transaction of {claim.owner.who} stopped half way: it has written {claim.where_done}, and no other statement may "
        "consume the stream",
        hint=f"run the same transaction again: what is done is skipped. Or RESTORE the targets, then ALTER STREAM {name} RELEASE",
        consumption_id=claim.consumption_id,
    )


def rolled_back(claim: Claim, names: Sequence[str]) -> StreamqlError:
    """Returns the error for a ROLLBACK of a transaction some of whose statements have committed. `names`: the names of its streams."""
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
    """Adds a hint to STREAM_BUSY and CONSUMPTION_PARTIALLY_COMMITTED errors of the body, in which a transaction waits for a stream.

    If the transaction holds other streams and has written already, it may be in a deadlock: each of two transactions waits for a stream of
    the other one. The hint says how to recover: commit the statements of one transaction that are done. `claim`: the transaction's claim.
    None: the waiting statement reads claimed streams too, so that a COMMIT without it would lose its changes, and there is no such hint.
    """
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
    """Returns the error for a statement whose claim another process took over and ended while the statement ran. `failure`: what the
    statement raised; it is often Delta's error for a transaction number that is already in the log."""
    said = "" if failure is None else f" (the statement said: {sentence(failure)})"
    return lost(claim, f"another process took this one for dead while the statement ran, and fenced it{said}")


def incomplete(claim: Claim, state: StreamState, what: str, e: Exception, hint: str) -> StreamqlError:
    """Returns the error for a consumption whose statements are done, if the terms of a stream could not be completed. `what`: the terms."""
    done = f"{claim.where_done} has the rows that it took of {state.name}, and" if claim.done else "it was read, and"
    why = e.message if isinstance(e, StreamqlError) else sentence(e)
    return StreamqlError(
        "CONSUMPTION_INCOMPLETE",
        f"{done} what its {what} take could not be written: {why}",
        hint=f"{hint or 'correct that'}; then the next statement that reads the stream writes it, and moves the stream",
        stream=str(state.name),
        consumption_id=claim.consumption_id,
    )


def lost_without_commit(claim: Claim, outcome: str | None) -> StreamqlError:
    """Returns the error for a COMMIT or ROLLBACK whose claim other processes took over. `outcome`: the claim's outcome in the ledger; None:
    it has not ended, and another process has it."""
    if outcome is None:
        return lost(claim, f"its data IS in {claim.where_done}; run the transaction again: what is done is skipped")
    return lost_with_data(claim, "it was given up meanwhile (RELEASE, SET OFFSET, DROP)")


def lost_with_data(claim: Claim, why: str) -> StreamqlError:
    """Returns the error for a consumption whose claim other processes ended, although some of its statements have committed. The user must
    check whether the stream still shows their changes."""
    return StreamqlError(
        "CLAIM_LOST",
        f"consumption {claim.consumption_id} lost its claim: {why}; its data IS in {claim.where_done}",
        hint="before you run it again, check whether the stream still shows these changes: if so, RESTORE the targets, or "
        "ALTER STREAM … SET OFFSET behind them; SELECT * FROM streamql.consumptions tells who moved it",
        consumption_id=claim.consumption_id,
    )


def lost(claim: Claim, why: str) -> StreamqlError:
    """Returns the error for a consumption whose claim other processes took over."""
    return StreamqlError(
        "CLAIM_LOST",
        f"consumption {claim.consumption_id} lost its claim: {why}",
        hint="run the statement again; SELECT * FROM streamql.consumptions tells who took the changes",
        consumption_id=claim.consumption_id,
    )


def in_doubt(
    claim: Claim, statement: ClaimedStatement, why: str, names: Mapping[str, str], *, is_unreachable: bool = False
) -> StreamqlError:
    """Returns the error for a consumption that no log can resolve.

    `claim`: the claim, with the statements resolved that a log can resolve. `statement`: the one in doubt, and `why` it is. `names`: the
    names of the claim's streams, by id. `is_unreachable`: the target cannot be read or written now, which may pass.
    """
    moving = {uuid: i for uuid, i in claim.intervals.items() if i.after != i.through}
    is_whole = not claim.is_transaction and len(claim.statements) == 1 and bool(moving)
    # Of a single statement, moving one stream moves the others, too (`with_others_advanced`).
    kept = {min(moving): moving[min(moving)]} if is_whole else claim.intervals
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
