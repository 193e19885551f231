"""Whether two row images hold equal values: null-safe, NaN = NaN, and of every type that Delta has. Writes SQL, runs nothing."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType

from streamql.names import quote


def equal(left: str, right: str, kind: DataType) -> str:
    """SQL that is TRUE where the two values of a type are the same value, or both NULL; never NULL."""
    return f"{comparable(left, kind)} <=> {comparable(right, kind)}"


def comparable(value: str, kind: DataType, depth: int = 0) -> str:
    """The value as something that `<=>` compares exactly: Spark compares no maps and no variants, and collated strings loosely."""
    if not _needs_help(kind):
        return value
    item = f"item{depth}"
    if isinstance(kind, StringType):
        return f"({value} COLLATE UTF8_BINARY)"
    if isinstance(kind, VariantType):
        # to_json tells 1 from "1" but not a long from a double of the same value; schema_of_variant does.
        return f"IF({value} IS NULL, NULL, struct(to_json({value}), schema_of_variant({value})))"
    if isinstance(kind, ArrayType):
        return f"transform({value}, {item} -> {comparable(item, kind.elementType, depth + 1)})"
    if isinstance(kind, MapType):
        parts = [
            comparable(f"{item}.key", kind.keyType, depth + 1),
            comparable(f"{item}.value", kind.valueType, depth + 1),
        ]
        return f"array_sort(transform(map_entries({value}), {item} -> struct({parts[0]} AS k, {parts[1]} AS v)))"
    if isinstance(kind, StructType):
        fields = [comparable(f"{value}.{quote(f.name)}", f.dataType, depth) for f in kind.fields]
        named = ", ".join(f"{text} AS f{i}" for i, text in enumerate(fields))
        return f"IF({value} IS NULL, NULL, struct({named}))"
    raise AssertionError(kind)


def _needs_help(kind: DataType) -> bool:
    if isinstance(kind, StringType):
        return getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY"
    if isinstance(kind, ArrayType):
        return _needs_help(kind.elementType)
    if isinstance(kind, StructType):
        return any(_needs_help(f.dataType) for f in kind.fields)
    return isinstance(kind, (MapType, VariantType))
