"""SQL expressions that compare values and put them together, by their types."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType

from streamql.dialect import quote_string
from streamql.names import quote


def comparable(value: str, data_type: DataType) -> str:
    """Returns an expression that is `<=>` for two values exactly if they are equal.

    Maps have no order and are not compared by Spark, so their entries are sorted. A variant is compared as JSON. A string with a
    collation is compared byte by byte: an update that only changes the case of letters is an update.
    """
    if _is_compared(data_type):
        return value
    if isinstance(data_type, MapType):
        key, entry = comparable("e.key", data_type.keyType), comparable("e.value", data_type.valueType)
        return f"array_sort(transform(map_entries({value}), e -> named_struct('k', {key}, 'v', {entry})))"
    if isinstance(data_type, VariantType):
        return f"to_json({value})"
    if isinstance(data_type, ArrayType):
        return f"transform({value}, x -> {comparable('x', data_type.elementType)})"
    if isinstance(data_type, StructType):
        fields = [(f"{value}.{quote(f.name)}", f.dataType) for f in data_type]
        return f"if({value} IS NULL, NULL, {together(fields)})"
    return f"CAST({value} AS BINARY)"


def _is_compared(data_type: DataType) -> bool:
    """Returns whether Spark's `<=>` compares values of the type exactly."""
    if isinstance(data_type, ArrayType):
        return _is_compared(data_type.elementType)
    if isinstance(data_type, StructType):
        return all(_is_compared(f.dataType) for f in data_type)
    has_collation = isinstance(data_type, StringType) and data_type.simpleString() != "string"
    return not isinstance(data_type, MapType | VariantType) and not has_collation


def together(values: Sequence[tuple[str, DataType]]) -> str:
    """Returns one expression for several values, which is equal if all of them are."""
    return "named_struct(" + ", ".join(f"'{i}', {comparable(v, t)}" for i, (v, t) in enumerate(values)) + ")"


def coalesced(new: str, old: str, data_type: DataType) -> str:
    """Returns the new value, with the old one in the place of each NULL, also in the fields of a struct."""
    if not isinstance(data_type, StructType):
        return f"coalesce({new}, {old})"
    fields = []
    for f in data_type:
        name = quote(f.name)
        fields.append(f"{quote_string(f.name)}, {coalesced(f'{new}.{name}', f'{old}.{name}', f.dataType)}")
    return f"if({new} IS NULL, {old}, if({old} IS NULL, {new}, named_struct({', '.join(fields)})))"


def ddl(data_type: DataType) -> str:
    """Returns a type as Spark SQL takes it in the columns of a table."""
    if isinstance(data_type, StructType):
        return f"struct<{', '.join(f'{quote(f.name)}: {ddl(f.dataType)}' for f in data_type)}>"
    if isinstance(data_type, ArrayType):
        return f"array<{ddl(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"map<{ddl(data_type.keyType)}, {ddl(data_type.valueType)}>"
    return data_type.simpleString()
