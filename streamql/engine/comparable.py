"""Rows of two tables, compared exactly and with their duplicates."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType

from streamql.names import quote


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


def only_in(one: DataFrame, other: DataFrame) -> int:
    """Returns how many rows `one` has and `other` does not have, counting duplicates."""
    return one.exceptAll(other).count()
