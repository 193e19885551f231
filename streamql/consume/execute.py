"""One claimed statement: run by its owner, over the target that was claimed, with the claim's number."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

from streamql.catalog.states import Claim, ClaimedStatement
from streamql.consume.binding import changes_of, tokens_of
from streamql.delta.command import ClaimedWrite, Command, Target
from streamql.delta.jvm import JavaObject
from streamql.errors import StreamqlError

log = logging.getLogger("streamql")


def execute(command: Command, i: int, claim: Claim, statement: ClaimedStatement, target: Target) -> JavaObject:
    """Runs statement `i` of the command; its rows. `target`: as it was when the claim was made. Raises CONSUMPTION_FAILED if that is no
    longer there, and what the statement raises."""
    if not statement.path:
        return command.execute(i)
    # The name may stand for another table now, or for one with rows, which must not be replaced. Whether the table at the path is the one
    # that was claimed, the statement's transaction finds out.
    if target.is_reserved and command.target(i) != target:
        raise StreamqlError(
            "CONSUMPTION_FAILED",
            f"{statement.target} was replaced, dropped or written meanwhile",
            hint="run the statement again",
        )
    # What an earlier statement of the claim has read may have been removed since: this one must not write less.
    counted = (
        {t.text: claim.counted[t.uuid] for t in tokens_of(command) if t.uuid in claim.counted} if claim.done else {}
    )
    expected = json.dumps(counted) if counted else ""
    claimed = ClaimedWrite(
        statement.app_id,
        claim.commit_number,
        statement.path,
        statement.table_id,
        statement.seen,
        target.is_reserved,
        expected,
    )
    return command.execute(i, claimed)


def counted(command: Command, i: int, statement: ClaimedStatement) -> ClaimedStatement:
    """Returns a statement that this process has run, with the rows it took. If they cannot be counted, the statement is done all the
    same."""
    if statement.outcome != "done":
        return statement
    try:
        return replace(statement, changes=changes_of(command, i))
    except Exception as e:
        log.debug("rows were not counted: %s", e)
        return statement


def warn_of_reservation(claim: Claim, target: Target) -> None:
    """Warns that a failed statement leaves an empty table. It is never dropped: its log keeps the statement from committing
    after all, and a process that has taken the name over meanwhile would lose a table."""
    if target.mark == claim.consumption_id:
        log.warning(
            "%s stays, empty: run the statement again, or a corrected one; or DROP TABLE it",
            target.name,
        )
