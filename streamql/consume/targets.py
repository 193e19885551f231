"""Where a consuming statement writes: found, made ready to be fenced, and noted down for the claim."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession

from streamql.catalog.states import ClaimedStatement
from streamql.catalog.store import catalog_of
from streamql.consume.claims import wait_until_free
from streamql.delta.command import Command, Target
from streamql.delta.table import DeltaTable
from streamql.delta.txns import SET_TRANSACTION_RETENTION
from streamql.errors import StreamqlError

MARK = "streamql.reserved"
"""Table property of a reservation: the id of the consumption that made it."""

RESERVE_LOOKS = 10
RESERVE_PAUSE_SECONDS = 0.2

_OPERATIONS = {
    "AppendData": "INSERT",
    "OverwriteByExpression": "INSERT OVERWRITE",
    "OverwritePartitionsDynamic": "INSERT OVERWRITE",
    "DeltaDynamicPartitionOverwriteCommand": "INSERT OVERWRITE",
}
"""Spark's plan nodes by the names people know; others stand for themselves."""


def find_target(command: Command) -> Target:
    """Where the statement writes, looked up now. Raises UNSUPPORTED_TARGET."""
    target = command.target(0)
    if target.kind != "delta":
        raise StreamqlError(
            "UNSUPPORTED_TARGET",
            f"{target.name} is no Delta table: what is written there cannot be told from what is not, "
            "so a stream could not move exactly once",
            hint="write into a Delta table (CREATE TABLE … USING delta)",
            target=target.name,
        )
    if target.operation == "WRITE" and not target.exists:
        raise StreamqlError(
            "UNSUPPORTED_TARGET",
            f"there is no table at {target.path} yet: a write by path cannot make one and consume a stream",
            hint="make the table first, or CREATE TABLE … LOCATION … AS SELECT … FROM the stream",
            target=target.path,
        )
    return target


def runs_plain(target: Target | None) -> bool:
    """Whether Spark shall say its error, or do nothing (IF NOT EXISTS over a table that is there)."""
    if target is None:
        return False
    return (target.operation == "CTAS" and target.exists) or (target.operation == "REPLACE" and not target.exists)


def prepare(spark: SparkSession, command: Command, target: Target, consumption_id: str) -> Target | None:
    """The target with a table in place that can be fenced: CREATE TABLE AS reserves its name by an empty marked table.

    None: somebody else made a table of the name at the same time; look again.
    """
    if target.is_reserved:
        _wait_for_reservation(spark, target)
        return command.target(0)
    if target.exists:
        return target
    try:
        command.reserve(0, consumption_id)
    except Exception:
        for _ in range(RESERVE_LOOKS):  # the other one's files are there before its name is
            if command.target(0).exists:
                return None
            time.sleep(RESERVE_PAUSE_SECONDS)
        raise
    return command.target(0)


def _wait_for_reservation(spark: SparkSession, target: Target) -> None:
    for state in catalog_of(spark).all(spark):
        if state.claim is not None and state.claim.consumption_id == target.mark:
            wait_until_free(spark, state)


def claimed_statement(spark: SparkSession, command: Command, target: Target, lead: str) -> ClaimedStatement | None:
    """What a claim keeps of the statement; None: the target is not any more what it was a moment ago. Raises UNSUPPORTED_TARGET."""
    app_id = f"streamql:{lead}:0"
    seen = DeltaTable(spark, target.path).latest()
    is_same = seen.exists and seen.table_id == target.table_id
    if not is_same or (target.is_reserved and seen.configuration.get(MARK) != target.mark):
        return None
    retention = seen.configuration.get(SET_TRANSACTION_RETENTION)
    if retention is not None:
        raise StreamqlError(
            "UNSUPPORTED_TARGET",
            f"{target.name} forgets transactions after {retention} ({SET_TRANSACTION_RETENTION}): "
            "a consumption could not be told from one that never was",
            hint=f"ALTER TABLE {target.name} UNSET TBLPROPERTIES ('{SET_TRANSACTION_RETENTION}')",
            target=target.name,
        )
    operation = target.operation.removesuffix("_RESERVED")
    operation = _OPERATIONS.get(operation, operation)
    return ClaimedStatement(
        0, app_id, target.path, seen.table_id, target.name, operation, command.fingerprint(0), seen.version
    )
