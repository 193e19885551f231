"""Whether two row images hold equal values: null-safe, NaN = NaN, and of every type that Delta has. Builds columns, runs nothing."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType


def equal(left: Column, right: Column, kind: DataType) -> Column:
    """TRUE where the two values of a type are the same value, or both NULL; never NULL."""
    return comparable(left, kind).eqNullSafe(comparable(right, kind))


def comparable(value: Column, kind: DataType) -> Column:
    """The value as something that `<=>` compares exactly: Spark compares no maps and no variants, and collated strings loosely."""
    if not _needs_help(kind):
        return value
    if isinstance(kind, StringType):
        return F.collate(value, "UTF8_BINARY")
    if isinstance(kind, VariantType):
        # to_json tells 1 from "1" but not a long from a double of the same value; schema_of_variant does.
        return F.when(
            value.isNotNull(), F.struct(F.to_json(value).alias("json"), F.schema_of_variant(value).alias("schema"))
        )
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda item: comparable(item, kind.elementType))
    if isinstance(kind, MapType):
        entries = F.transform(
            F.map_entries(value),
            lambda e: F.struct(
                comparable(e["key"], kind.keyType).alias("key"), comparable(e["value"], kind.valueType).alias("value")
            ),
        )
        return F.array_sort(entries)
    if isinstance(kind, StructType):
        # By position: names inside a struct may need quoting or differ in case only.
        parts = [comparable(value.getField(f.name), f.dataType).alias(f"f{i}") for i, f in enumerate(kind.fields)]
        return F.when(value.isNotNull(), F.struct(*parts))
    raise AssertionError(kind)


def _needs_help(kind: DataType) -> bool:
    if isinstance(kind, StringType):
        return getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY"
    if isinstance(kind, ArrayType):
        return _needs_help(kind.elementType)
    if isinstance(kind, StructType):
        return any(_needs_help(f.dataType) for f in kind.fields)
    return isinstance(kind, (MapType, VariantType))
