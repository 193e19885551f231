"""Verifies that a dynamic table equals its query: computes the query at the versions of the last refresh, and compares the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType

from streamql.catalog.states import StreamState
from streamql.consume import wait_until_free
from streamql.delta.neutral import dynamic_session
from streamql.delta.table import DeltaTable
from streamql.errors import StreamqlError
from streamql.features.dynamic.source.backing import hidden_stream, query_of
from streamql.features.dynamic.source.refresh import REPLACED, open_refresh
from streamql.features.dynamic.source.table import DynamicTable
from streamql.names import quote
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
        return Verified(stored.count(), _only_in(expected, stored), _only_in(stored, expected), positions)
    finally:
        stored.unpersist()
        expected.unpersist()


def comparable(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Returns some columns of rows, with values that EXCEPT compares exactly. EXCEPT does not support maps and variants, and compares
    strings by their collation, so these are converted."""
    types = {f.name.lower(): f.dataType for f in rows.schema.fields}
    return rows.select(*(_value(rows[quote(c)], types[c.lower()]).alias(f"c{i}") for i, c in enumerate(columns)))


def _value(value: Column, of: DataType) -> Column:
    if isinstance(of, MapType):
        entries = F.transform(
            F.map_entries(value), lambda e: F.struct(_value(e["key"], of.keyType), _value(e["value"], of.valueType))
        )
        return F.array_sort(entries)
    if isinstance(of, ArrayType) and _is_odd(of):
        return F.transform(value, lambda e: _value(e, of.elementType))
    if isinstance(of, StructType) and _is_odd(of):
        fields = [_value(value.getField(f.name), f.dataType).alias(f"f{i}") for i, f in enumerate(of.fields)]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(of, VariantType):
        return F.struct(F.schema_of_variant(value), F.to_json(value))
    if isinstance(of, StringType):
        return value.cast("binary")
    return value


def _is_odd(of: DataType) -> bool:
    """Returns whether a type has a map, a variant or a string in it, which must be converted."""
    if isinstance(of, ArrayType):
        return _is_odd(of.elementType)
    if isinstance(of, StructType):
        return any(_is_odd(f.dataType) for f in of.fields)
    return isinstance(of, MapType | VariantType | StringType)


def _only_in(one: DataFrame, other: DataFrame) -> int:
    """Returns how many rows `one` has and `other` does not have, counting duplicates."""
    return one.exceptAll(other).count()


def _not_verifiable(table: DynamicTable, why: str, hint: str = "") -> StreamqlError:
    return StreamqlError(
        "DYNAMIC_TABLE_NOT_VERIFIABLE",
        f"{table.name} cannot be compared with its query: {why}",
        hint=hint or f"REFRESH {table.label} {table.name}, and then VERIFY",
    )
