"""Verifies that a dynamic table equals its query: computes the query at the versions of the last refresh, and compares the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState
from streamql.consume import wait_until_free
from streamql.delta.neutral import dynamic_session
from streamql.delta.table import DeltaTable
from streamql.engine.comparable import comparable, only_in
from streamql.errors import StreamqlError
from streamql.features.dynamic.source.backing import hidden_stream, query_of
from streamql.features.dynamic.source.refresh import REPLACED, open_refresh
from streamql.features.dynamic.source.table import DynamicTable
from streamql.sources.views.positions import parts_of
from streamql.sources.views.texts import reason_text

ATTEMPTS_MAX = 10
"""How often the versions are read again because the table was refreshed meanwhile."""


@dataclass(frozen=True)
class Verified:
    """The result of a comparison. `rows`: of the table. `missing`: rows that only the query has. `unexpected`: rows that only the table
    has. `positions`: the versions of the source tables at which the query was computed."""

    rows: int
    missing: int
    unexpected: int
    positions: Mapping[str, int]


def verify(spark: SparkSession, table: DynamicTable) -> Verified:
    """Computes the query again, and compares. Raises DYNAMIC_TABLE_NOT_VERIFIABLE if the table was never filled, its rows differ from run
    to run, or a table that it reads was replaced. Raises STREAM_BUSY, and Spark's error if VACUUM has removed files of those versions."""
    spark = dynamic_session(spark)  # refreshes compute the query in such a session, too
    backing = DeltaTable(spark, table.backing.path)
    for _ in range(ATTEMPTS_MAX):
        latest = backing.latest()
        state = wait_until_free(spark, hidden_stream(spark, table))
        if backing.latest().version == latest.version:  # otherwise a refresh has committed in between
            return _compared(spark, table, state, backing.rows(latest))
    raise StreamqlError("STREAM_BUSY", f"other processes keep refreshing {table.name}", hint="run the statement again")


def _compared(spark: SparkSession, table: DynamicTable, state: StreamState, rows: DataFrame) -> Verified:
    if state.offset.initial:
        raise _not_verifiable(
            table, "it has not been refreshed since it was created, or since a table that it reads was replaced"
        )
    opened = open_refresh(spark, query_of(state))
    if opened.query.varies is not None:
        why = f"its query {reason_text(opened.query.varies)}, so its rows differ from run to run"
        raise _not_verifiable(
            table, why, f"CREATE OR REPLACE {table.label} {table.name} AS …, with a query that does not use it"
        )
    if opened.replaced is not None:
        raise _not_verifiable(table, REPLACED[opened.replaced])
    positions = parts_of(state.offset.position)
    versions = {t.ref.table_id: positions[part] for part, t in opened.tables.items()}
    stored = comparable(rows, table.columns).persist()
    expected = comparable(opened.query.rows(versions), table.columns).persist()
    try:
        return Verified(stored.count(), only_in(expected, stored), only_in(stored, expected), positions)
    finally:
        stored.unpersist()
        expected.unpersist()


def _not_verifiable(table: DynamicTable, why: str, hint: str = "") -> StreamqlError:
    return StreamqlError(
        "DYNAMIC_TABLE_NOT_VERIFIABLE",
        f"{table.name} cannot be compared with its query: {why}",
        hint=hint or f"REFRESH {table.label} {table.name}, and then VERIFY",
    )
