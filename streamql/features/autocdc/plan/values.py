"""SQL expressions that compare values and put them together, by their types."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType

from streamql.dialect import quote_string
from streamql.features.autocdc.plan.columns import Column
from streamql.names import quote, quote_if_needed


@dataclass(frozen=True)
class Leaf:
    """A column of another type than STRUCT, or such a field within one. `path`: the name of the column, then of the fields. `is_missing`:
    the target does not have the column yet."""

    path: tuple[str, ...]
    type: DataType
    is_missing: bool = False

    def of(self, table: str = "") -> str:
        """Returns its value in a row of a relation."""
        names = ".".join(map(quote, self.path))
        return f"{table}.{names}" if table else names

    @property
    def name(self) -> str:
        """Returns its name, as SQL text: `'address.city'`."""
        return quote_string(".".join(map(quote_if_needed, self.path)))


def leaves(path: tuple[str, ...], data_type: DataType, *, is_missing: bool = False) -> list[Leaf]:
    """Returns the values that a column holds, those of a struct one by one."""
    if not isinstance(data_type, StructType):
        return [Leaf(path, data_type, is_missing)]
    return [leaf for f in data_type for leaf in leaves((*path, f.name), f.dataType, is_missing=is_missing)]


def leaves_of(columns: Iterable[Column], missing: Container[Column] = ()) -> list[Leaf]:
    """Returns the values that columns of the target hold. `missing`: columns that the target does not have yet."""
    return [leaf for c in columns for leaf in leaves((c.name,), c.type, is_missing=c in missing)]


def of_leaves(path: tuple[str, ...], data_type: DataType, values: Mapping[tuple[str, ...], str]) -> str:
    """Returns a column, put together from the values that it holds. A struct without values is NULL."""
    if not isinstance(data_type, StructType):
        return values[path]
    fields = [(f.name, of_leaves((*path, f.name), f.dataType, values)) for f in data_type]
    is_null = " AND ".join(f"({value}) IS NULL" for _, value in fields) or "true"
    made = ", ".join(f"{quote_string(name)}, {value}" for name, value in fields)
    return f"if({is_null}, NULL, named_struct({made}))"


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
    if not values:
        return "1"
    return "named_struct(" + ", ".join(f"'{i}', {comparable(v, t)}" for i, (v, t) in enumerate(values)) + ")"


def same_as_stored(columns: Sequence[Column], missing: Container[Column] = ()) -> str:
    """Returns whether a row of the target (t) has the values of a row of the source (s), in the target's types. `missing`: columns that
    the target does not have yet, which are NULL there."""
    own = together([("NULL" if c in missing else f"t.{c.sql}", c.type) for c in columns])
    return f"{own} <=> {together([(f'CAST(s.{c.sql} AS {ddl(c.type)})', c.type) for c in columns])}"


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
