"""Runs one claimed statement. Its commit carries the claim's number, and goes into the target that was claimed or fails."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

from streamql.catalog.states import Claim, ClaimedStatement
from streamql.consume.binding import changes_of, reads_of
from streamql.delta.command import ClaimedWrite, Command, Target
from streamql.delta.jvm import JavaObject
from streamql.errors import StreamqlError

log = logging.getLogger("streamql")


def execute(command: Command, i: int, claim: Claim, statement: ClaimedStatement, target: Target) -> JavaObject:
    """Runs statement `i` of the command, and returns its rows. `target`: its target as it was when the claim was made. Raises
    CONSUMPTION_FAILED if that target is no longer there, and what the statement raises."""
    if not statement.path:
        return command.execute(i)
    # The reserved name may stand for another table now, or for a table with rows, which must not be replaced. That the table at the path
    # is the one that was claimed is checked later, by the statement's own Delta transaction.
    if target.is_reserved and command.target(i) != target:
        raise StreamqlError(
            "CONSUMPTION_FAILED",
            f"{statement.target} was replaced, dropped or written meanwhile",
            hint="run the statement again",
        )
    # Kafka may have removed messages that an earlier statement of the claim has read. Then this statement must fail and not write fewer
    # rows.
    counted = (
        {read.description: claim.counted[read.uuid] for read in reads_of(command) if read.uuid in claim.counted}
        if claim.done
        else {}
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
    """Returns the record of a statement that this process has run, with how many rows it took of each stream. A statement whose rows cannot
    be counted is returned without them: it is done all the same."""
    if statement.outcome != "done":
        return statement
    try:
        return replace(statement, changes=changes_of(command, i))
    except Exception as e:
        log.debug("rows were not counted: %s", e)
        return statement


def warn_of_reservation(claim: Claim, target: Target) -> None:
    """Warns that a failed CREATE TABLE AS leaves the empty table that reserved its name.

    streamql never drops that table. Its log has the fence that keeps the statement from committing later. Another process may also have
    taken the name over meanwhile, and a drop would remove its table.
    """
    if target.mark == claim.consumption_id:
        log.warning(
            "%s stays, empty: run the statement again, or a corrected one; or DROP TABLE it",
            target.name,
        )
