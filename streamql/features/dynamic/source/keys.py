"""The keys by which a dynamic table recognizes rows of the tables that it reads: those that the tables declare when it is created."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, DoubleType, FloatType, StringType

from streamql.model import TableSource
from streamql.sources.registry import identified
from streamql.sources.tables.primary_key import is_declared
from streamql.sources.tables.source_type import open_named
from streamql.sources.tables.table import OpenTable


class SourceKey(NamedTuple):
    """The key of a table. `table`: the name of its part (`positions.part_of`), which stays when the table is replaced."""

    table: str
    columns: tuple[str, ...]


def keys_of(tables: Iterable[tuple[str, TableSource]]) -> dict[str, SourceKey]:
    """Returns the keys of those tables whose rows are recognized by one, by table id. `tables`: pairs (part, table)."""
    return {table.table_id: SourceKey(part, table.key) for part, table in tables if table.key}


def open_by_key(spark: SparkSession, table: TableSource) -> OpenTable:
    """Opens a table that the query of a new dynamic table reads. If it declares a key, its rows are recognized by that. Raises
    INVALID_PROPERTY, STREAM_SOURCE_MISSING."""
    found = open_named(spark, table)
    if not is_declared(found.snapshot.configuration):
        return found
    keyed = identified(spark, found.ref, "KEY")
    assert isinstance(keyed, TableSource)
    types = {f.name: f.dataType for f in found.table.schema(found.snapshot).fields}
    return open_named(spark, keyed) if all(_is_exact(types[column]) for column in keyed.key) else found


def _is_exact(data_type: DataType) -> bool:
    """Returns whether equal values of a type are identical. A refresh does not update key columns, so 0.0 would never become -0.0."""
    if isinstance(data_type, StringType):
        return data_type.isUTF8BinaryCollation()
    return not isinstance(data_type, FloatType | DoubleType)
