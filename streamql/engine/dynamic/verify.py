"""The proof that a dynamic table equals its query: both are read at the versions of its last refresh, and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.store import catalog_of
from streamql.consume import wait_until_free
from streamql.delta.images import select
from streamql.delta.table import DeltaTable
from streamql.errors import StreamqlError
from streamql.names import quote
from streamql.sources.dynamic import DynamicTable
from streamql.sources.query import QuerySource, parts_of
from streamql.sources.query_texts import REFUSED
from streamql.sources.refresh import open_refresh


@dataclass(frozen=True)
class Verified:
    """How a table compares with its query. `missing`: rows that the table lacks. `unexpected`: rows that it has and the query has not.
    `positions`: the versions of the tables that the query was computed at."""

    rows: int
    missing: int
    unexpected: int
    positions: Mapping[str, int]


def verify(spark: SparkSession, table: DynamicTable) -> Verified:
    """Computes the query again. Raises DYNAMIC_TABLE_NOT_VERIFIABLE if the table was never filled, its rows differ from run to run, or a
    table that it reads was replaced; and what Spark raises if VACUUM has taken files of those versions."""
    state = catalog_of(spark).by_uuid(spark, table.stream_id)
    assert state is not None
    state = wait_until_free(spark, state)
    assert isinstance(state.stream.source, QuerySource)
    if state.offset.initial:
        raise _not_verifiable(table, "it was not refreshed since it was made, or since a source was replaced")
    opened = open_refresh(spark, state.stream.source)
    if opened.whole.varies is not None:
        raise _not_verifiable(table, f"its query {REFUSED[opened.whole.varies]}, so that each run has other rows")
    if not opened.is_same:
        raise _not_verifiable(table, "a table that it reads was replaced")
    positions = parts_of(state.offset.position)
    versions = {t.ref.table_id: positions[part] for part, t in opened.tables.items()}
    backing = DeltaTable(spark, table.backing.path)
    columns = [quote(c) for c in table.columns]
    stored = select(backing.rows(backing.latest()), columns).persist()
    expected = select(opened.whole.rows(versions), columns).persist()
    try:
        return Verified(stored.count(), _only_in(expected, stored), _only_in(stored, expected), positions)
    finally:
        stored.unpersist()
        expected.unpersist()


def _only_in(one: DataFrame, other: DataFrame) -> int:
    """How many rows, duplicates counted, one has and the other has not."""
    return one.exceptAll(other).count()


def _not_verifiable(table: DynamicTable, why: str) -> StreamqlError:
    return StreamqlError(
        "DYNAMIC_TABLE_NOT_VERIFIABLE",
        f"{table.name} cannot be compared with its query: {why}",
        hint=f"REFRESH {table.label} {table.name}, and then VERIFY",
    )
