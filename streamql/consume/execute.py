"""One claimed statement: run by its owner, over the target that was claimed, with the claim's number."""

from __future__ import annotations

import logging
from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, ClaimedStatement
from streamql.consume.binding import changes_of
from streamql.delta.command import Command, Numbered, Target
from streamql.delta.jvm import JavaObject
from streamql.delta.table import DeltaTable
from streamql.errors import StreamqlError

log = logging.getLogger("streamql")


def execute(
    spark: SparkSession, command: Command, i: int, claim: Claim, statement: ClaimedStatement, target: Target
) -> JavaObject:
    """Runs statement `i` of the command; its rows. `target`: as it was when the claim was made. Raises CONSUMPTION_FAILED if that is no
    longer there, and what the statement raises."""
    if not statement.path:
        return command.execute(i)
    now = DeltaTable(spark, statement.path).latest()
    is_same = now.exists and now.table_id == statement.table_id
    if (
        is_same and target.is_reserved
    ):  # another statement may have written into the empty table, which must not be replaced then
        is_same = command.target(i) == target
    if not is_same:
        raise StreamqlError(
            "CONSUMPTION_FAILED",
            f"{statement.target} was replaced, dropped or written meanwhile",
            hint="run the statement again",
        )
    number = Numbered(statement.app_id, claim.commit_number, statement.path, statement.seen)
    return command.execute(i, number, target.is_reserved)


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
