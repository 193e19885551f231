"""A statement's DataFrame as names and rows: in a form that Python can hold without loss, and not all at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    UserDefinedType,
    VariantType,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streamql.console.render.formats import Row

_AS_THEY_ARE = (StringType, NumericType, BooleanType, BinaryType, NullType, VariantType, UserDefinedType)
"""All other plain types (dates, timestamps, intervals) are cast to text by Spark: Python's have other ranges, time zones or none."""


@dataclass(frozen=True)
class Result:
    """Columns and a DataFrame whose values Python can show; `is_local`: the rows are in memory anyway, as a command's are."""

    names: list[str]
    numeric: list[bool]
    frame: DataFrame
    is_local: bool

    def first(self, count: int) -> Sequence[Row]:
        """At most `count` rows; 0: all."""
        if self.is_local or not count:
            rows = self.frame.collect()
            return rows[:count] if count else rows
        return self.frame.limit(count).collect()

    def rows(self) -> Iterable[Row]:
        """Returns all rows; of a query's, the driver holds two partitions at a time."""
        return self.frame.collect() if self.is_local else self.frame.toLocalIterator(prefetchPartitions=True)


def result_of(frame: DataFrame, *, is_local: bool) -> Result:
    """Returns the result of a statement that ran."""
    schema = frame.schema
    numeric = [isinstance(field.dataType, NumericType) for field in schema]
    return Result([field.name for field in schema], numeric, _portable(frame, schema), is_local)


def _portable(frame: DataFrame, schema: StructType) -> DataFrame:
    """Returns the frame with every value that Python cannot hold cast to text.

    A FLOAT becomes the DOUBLE with the same shortest digits, by way of text: else 1.1 would show as 1.100000023841858.
    """
    if not any(_needs_cast(field.dataType) for field in schema):
        return frame
    positions = [f"c{n}" for n in range(len(schema))]  # names may repeat, hold dots or nothing at all
    numbered = frame.toDF(*positions)
    columns = []
    for position, field in zip(positions, schema, strict=True):
        column = numbered[position]
        if _needs_cast(field.dataType):
            column = column.cast(portable_type(field.dataType, FloatType()))
            if _holds_float(field.dataType):
                column = column.cast(portable_type(field.dataType, DoubleType()))
        columns.append(column)
    return numbered.select(*columns)


def _needs_cast(data_type: DataType) -> bool:
    return portable_type(data_type, DoubleType()) != data_type


def portable_type(data_type: DataType, floats: DataType) -> DataType:
    """Returns the type in which a value travels; `floats` is what FLOAT becomes: FloatType stands for the way by text."""
    if isinstance(data_type, FloatType):
        return StringType() if isinstance(floats, FloatType) else floats
    if isinstance(data_type, ArrayType):
        return ArrayType(portable_type(data_type.elementType, floats), data_type.containsNull)
    if isinstance(data_type, MapType):
        key, value = portable_type(data_type.keyType, floats), portable_type(data_type.valueType, floats)
        return MapType(key, value, data_type.valueContainsNull)
    if isinstance(data_type, StructType):
        return StructType(
            [StructField(f.name, portable_type(f.dataType, floats), f.nullable) for f in data_type.fields]
        )
    return data_type if isinstance(data_type, _AS_THEY_ARE) else StringType()


def _holds_float(data_type: DataType) -> bool:
    return portable_type(data_type, DoubleType()) != portable_type(data_type, FloatType())
