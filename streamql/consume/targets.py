"""The targets of consuming statements: finds them, makes them ready to be fenced, and makes the records of statements in a claim."""

from __future__ import annotations

import time
from collections.abc import Iterable

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, ClaimedStatement
from streamql.catalog.store import catalog_of
from streamql.consume.claims.errors import partially_committed
from streamql.consume.claims.steps import Changed
from streamql.consume.claims.waiting import wait_until_free
from streamql.delta.command import CREATE, Command, Target
from streamql.delta.table import DeltaTable
from streamql.delta.txns import SET_TRANSACTION_RETENTION
from streamql.errors import StreamqlError
from streamql.reading import parse_read
from streamql.settings import AT_LEAST_ONCE, NON_DELTA_TARGETS, choice
from streamql.shared import constants

MARK = constants("properties")["reserved"]
"""The table property that marks an empty table as a reservation. Its value is the id of the consumption that made the table."""

TEXT_CHARACTERS_MAX = 4000
"""How many characters of a statement's text the ledger keeps."""

RESERVE_LOOKS = 10
RESERVE_PAUSE_SECONDS = 0.2

_OPERATIONS = {
    "AppendData": "INSERT",
    "OverwriteByExpression": "INSERT OVERWRITE",
    "OverwritePartitionsDynamic": "INSERT OVERWRITE",
    "DeltaDynamicPartitionOverwriteCommand": "INSERT OVERWRITE",
    "InsertIntoHadoopFsRelationCommand": "INSERT",
    "InsertIntoDataSourceCommand": "INSERT",
    "SaveIntoDataSourceCommand": "WRITE",
}
"""The names that users know of Spark's plan nodes. Other nodes keep Spark's name."""


def find_target(spark: SparkSession, command: Command, i: int) -> Target:
    """Looks up where statement `i` of the command writes. Raises UNSUPPORTED_TARGET."""
    target = command.target(i)
    if target.format != "delta" and (target.is_created or choice(spark, NON_DELTA_TARGETS) != AT_LEAST_ONCE):
        raise StreamqlError(
            "UNSUPPORTED_TARGET",
            f"{target.name} is not a Delta table: streamql cannot tell whether a statement has written there, "
            "so a stream could not move exactly once",
            hint="write into a Delta table (CREATE TABLE … USING delta); "
            f"or INSERT after SET {NON_DELTA_TARGETS.key} = {AT_LEAST_ONCE}, and a crash may deliver changes twice",
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


def runs_plain(target: Target) -> bool:
    """Returns whether the statement runs without a claim because it cannot write: REPLACE TABLE of a table that does not exist, or a
    creation of a table that exists. Spark then raises its error, or does nothing (IF NOT EXISTS, mode ignore)."""
    if target.operation == "REPLACE":
        return not target.exists
    return target.operation == "EXISTS" or (target.operation == CREATE and target.exists and not target.is_reserved)


def prepare(spark: SparkSession, command: Command, i: int, target: Target, consumption_id: str) -> Target:
    """Returns the target once it has a table, whose log can be fenced. For CREATE TABLE AS it creates an empty table with a mark, which
    reserves the name.

    Raises `Changed` if another statement made, filled or dropped a table of the name at the same time. Raises UNSUPPORTED_TARGET, before it
    creates a table, if the new table would forget transactions.
    """
    if target.forgets:
        default = f"spark.databricks.delta.properties.defaults.{SET_TRANSACTION_RETENTION.removeprefix('delta.')}"
        hint = f"leave {SET_TRANSACTION_RETENTION} out of the table's properties, and RESET {default} if it is set"
        raise _forgetful(target, target.forgets, hint)
    if target.is_reserved:
        if target.mark != consumption_id:  # otherwise an earlier attempt of this consumption made the reservation
            _wait_for_reservation(spark, target)
        waited_for = command.target(i)
        if not waited_for.is_reserved:
            raise Changed
        return waited_for
    if target.exists:
        return target
    try:
        command.reserve(i, consumption_id)
    except Exception:
        # Another statement may be creating the table: its files, which made `reserve` fail, are there before the metastore has its name.
        for _ in range(RESERVE_LOOKS):
            if command.target(i).exists:
                raise Changed from None
            time.sleep(RESERVE_PAUSE_SECONDS)
        raise
    made = command.target(i)
    if not made.is_reserved or made.mark != consumption_id:
        raise Changed
    return made


def _wait_for_reservation(spark: SparkSession, target: Target) -> None:
    for state in catalog_of(spark).all(spark):
        if state.claim is not None and state.claim.consumption_id == target.mark:
            wait_until_free(spark, state)


def claimed_statement(
    spark: SparkSession, command: Command, i: int, target: Target, numbering_stream: str, ordinal: int
) -> ClaimedStatement:
    """Returns the record of statement `i` of the command in a claim, in which it has the number `ordinal`. Raises `Changed` if the target
    changed since it was looked up, and UNSUPPORTED_TARGET."""
    if target.format != "delta":
        return _statement(command, i, target, numbering_stream, ordinal, "", -1)
    seen = DeltaTable(spark, target.path).latest()
    is_same = seen.exists and seen.table_id == target.table_id
    if not is_same and not target.is_created:
        # The statement was analysed with the columns of the former table, so a second look-up of the name would not help.
        raise StreamqlError(
            "CONSUMPTION_FAILED",
            f"{target.name} was replaced or dropped since the statement was analysed",
            hint="run the statement again",
            target=target.name,
        )
    if not is_same or (target.is_reserved and seen.configuration.get(MARK) != target.mark):
        raise Changed
    retention = seen.configuration.get(SET_TRANSACTION_RETENTION)
    if retention is not None:
        hint = f"ALTER TABLE {target.name} UNSET TBLPROPERTIES ('{SET_TRANSACTION_RETENTION}')"
        raise _forgetful(target, retention, hint)
    return _statement(command, i, target, numbering_stream, ordinal, seen.table_id, seen.version)


def _forgetful(target: Target, retention: str, hint: str) -> StreamqlError:
    return StreamqlError(
        "UNSUPPORTED_TARGET",
        f"{target.name} forgets transactions after {retention} ({SET_TRANSACTION_RETENTION}): "
        "streamql could no longer tell whether a consumption committed",
        hint=hint,
        target=target.name,
    )


def _statement(
    command: Command, i: int, target: Target, numbering_stream: str, ordinal: int, table_id: str, seen: int
) -> ClaimedStatement:
    operation = _OPERATIONS.get(target.operation, target.operation)
    return ClaimedStatement(
        ordinal,
        app_id(numbering_stream, ordinal),
        target.path,
        table_id,
        target.name,
        operation,
        command.fingerprint(i),
        seen,
        text=command.text[:TEXT_CHARACTERS_MAX],
        streams=tuple(sorted({parse_read(description).uuid for description in command.reads})),
    )


def check_stands(spark: SparkSession, claim: Claim, done: ClaimedStatement, target: Target) -> None:
    """Checks that a done statement may be skipped. Raises CONSUMPTION_PARTIALLY_COMMITTED if the table that it wrote was dropped, replaced
    or restored since. A target that is not a Delta table is not checked."""
    stands = done.writes_where(target.path, target.name)
    if stands and done.path:
        table = DeltaTable(spark, done.path)
        now = table.latest()
        stands = now.exists and now.table_id == done.table_id
        since = done.seen if done.target_version is None else done.target_version
        stands = stands and not table.was_restored_since(now, since)
    if not stands:
        raise partially_committed(claim, f"{done.target} was replaced, restored or dropped since it was written")


_APP_ID = "streamql"


def app_id(numbering_stream: str, ordinal: int) -> str:
    """Returns the application id under which a statement of a claim commits the claim's commit number to its target's log.
    `numbering_stream`: as `numbering_stream_of` returns it."""
    return f"{_APP_ID}:{numbering_stream}:{ordinal}"


def numbering_stream_of(claim: Claim, uuids: Iterable[str]) -> str:
    """Returns the id of the stream that a claim has its number from (`Claim.number`). Of a new claim it is the lowest of `uuids`, the ids
    of its streams. It stays the same for all statements of the claim and for all processes that resume it: the application ids contain
    it."""
    return claim.statements[0].app_id.split(":")[1] if claim.statements else min(uuids)
