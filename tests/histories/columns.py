"""Types of columns with pools of literals, and the canonical Python form of any value Spark hands back.

A pool lists what a column of that column_type may hold, each as (SQL literal, the value in canonical form). The awkward
values are on purpose: NaN, -0.0, empty and NULL things, equal maps written in another order, strings differing by case.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from pyspark.sql.types import VariantVal

from tests.lines import COPIES_VARIANTS

NAN: Final = "NaN"
"""Stands for every not-a-number, so that Python's == agrees with SQL's <=> on it."""

NEGATIVE_ZERO_DIFFERS: Final = False
"""Whether 0.0 -> -0.0 is a change. Spark's <=> says it is none."""


VARIANT_FLOAT: Final = 14 << 2
"""The first byte of a variant that is a FLOAT."""


def canonical(value: object) -> Hashable:
    """A value collected from Spark in a form whose == and hash mean `the same value in SQL, null-safe`, except that
    strings compare by code points whatever their collation."""
    if isinstance(value, float):
        if math.isnan(value):
            return NAN
        return "-0.0" if NEGATIVE_ZERO_DIFFERS and value == 0 and math.copysign(1, value) < 0 else value + 0.0
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, dict):
        return ("map", frozenset((canonical(k), canonical(v)) for k, v in value.items()))
    if isinstance(value, list):
        return ("array", tuple(canonical(v) for v in value))
    if isinstance(value, tuple):  # a Row too
        return ("struct", tuple(canonical(v) for v in value))
    if isinstance(value, VariantVal):
        is_float = value.value[0] == VARIANT_FLOAT  # Python has one type for a float and a double
        return ("variant", is_float, _typed(value.toPython()))
    if isinstance(value, Hashable):
        return value
    raise TypeError(f"no canonical form for {type(value).__name__}: {value!r}")


def _typed(value: object) -> Hashable:
    """A variant's value with the type of each part: a date is not a string, and 1 is neither 1.0 nor true."""
    if isinstance(value, dict):
        return ("object", frozenset((k, _typed(v)) for k, v in value.items()))
    if isinstance(value, list):
        return ("array", tuple(_typed(v) for v in value))
    is_local = isinstance(value, dt.datetime) and value.tzinfo is None
    return (type(value).__name__, is_local, canonical(value))


@dataclass(frozen=True)
class ColumnType:
    """A data type in SQL, and its pool of (literal, canonical value)."""

    name: str
    sql_type: str
    pool: tuple[tuple[str, Hashable], ...]
    wider: str | None = None

    def literal(self, index: int) -> str:
        """The SQL literal at `index`, counted round the pool."""
        return f"CAST({self.pool[index % len(self.pool)][0]} AS {self.sql_type})"

    def value(self, index: int) -> Hashable:
        """The canonical value at `index`, counted round the pool."""
        return self.pool[index % len(self.pool)][1]

    def sql_at(self, index_sql: str) -> str:
        """SQL that picks from the pool by an integer expression, as `value` does."""
        cases = " ".join(f"WHEN {i} THEN {self.literal(i)}" for i in range(len(self.pool)))
        return f"CASE ({index_sql}) % {len(self.pool)} {cases} END"


def _column_type(name: str, sql_type: str, pool: list[tuple[str, object]], wider: str | None = None) -> ColumnType:
    return ColumnType(name, sql_type, tuple((sql, canonical(v)) for sql, v in [*pool, ("NULL", None)]), wider)


def _local(epoch_s: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(epoch_s)  # noqa: DTZ006 - naive local time is what PySpark's collect() gives


def _ntz(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


_ALL = (
    _column_type("smallint", "SMALLINT", [("1", 1), ("0", 0), ("-32768", -32768)], "int"),
    _column_type("int", "INT", [("1", 1), ("0", 0), ("2147483647", 2147483647)], "bigint"),
    _column_type("bigint", "BIGINT", [("1", 1), ("0", 0), ("1099511627776", 1 << 40)]),
    _column_type("float", "FLOAT", [("1.5", 1.5), ("'NaN'", math.nan), ("0", 0.0), ("-0.25", -0.25)], "double"),
    _column_type(
        "double",
        "DOUBLE",
        [("1.5", 1.5), ("'NaN'", math.nan), ("0", 0.0), ("'-0.0'", -0.0), ("'-Infinity'", -math.inf)],
    ),
    _column_type(
        "decimal",
        "DECIMAL(10,2)",
        [("1.5", Decimal("1.5")), ("0", Decimal(0)), ("-99999999.99", Decimal("-99999999.99"))],
        "decimal_wide",
    ),
    _column_type(
        "decimal_wide", "DECIMAL(20,4)", [("1.5", Decimal("1.5")), ("123456789012.25", Decimal("123456789012.25"))]
    ),
    _column_type("string", "STRING", [("'a'", "a"), ("'A'", "A"), ("''", ""), ("'ä'", "ä"), ("'a '", "a ")]),
    _column_type("varchar", "VARCHAR(8)", [("'v'", "v"), ("'V'", "V")]),
    _column_type("binary", "BINARY", [("X'00'", b"\x00"), ("X''", b""), ("X'00FF'", b"\x00\xff")]),
    _column_type("boolean", "BOOLEAN", [("true", True), ("false", False)]),
    _column_type("date", "DATE", [("'2024-02-29'", dt.date(2024, 2, 29)), ("'1582-10-15'", dt.date(1582, 10, 15))]),
    _column_type(
        "timestamp",
        "TIMESTAMP",
        [("timestamp_seconds(1700000000)", _local(1700000000)), ("timestamp_seconds(86400)", _local(86400))],
    ),
    _column_type(
        "timestamp_ntz",
        "TIMESTAMP_NTZ",
        [
            ("'2024-01-01 00:00:00.000001'", _ntz("2024-01-01 00:00:00.000001")),
            ("'2024-01-01'", _ntz("2024-01-01")),
        ],
    ),
    _column_type(
        "struct",
        "STRUCT<x: INT, y: STRING>",
        [
            ("named_struct('x', 1, 'y', 'q')", (1, "q")),
            ("named_struct('x', NULL, 'y', 'q')", (None, "q")),
            ("named_struct('x', NULL, 'y', NULL)", (None, None)),
        ],
    ),
    _column_type(
        "array",
        "ARRAY<DOUBLE>",
        [("array(1, 2)", [1.0, 2.0]), ("array()", []), ("array(NULL)", [None]), ("array('NaN')", [math.nan])],
    ),
    _column_type(
        "map",
        "MAP<STRING, INT>",
        [
            ("map('x', 1, 'y', 2)", {"x": 1, "y": 2}),
            ("map('y', 2, 'x', 1)", {"y": 2, "x": 1}),
            ("map()", {}),
            ("map('x', NULL)", {"x": None}),
        ],
    ),
    _column_type(
        "variant",
        "VARIANT",
        [
            ("""parse_json('{"a":1,"b":[true,null]}')""", VariantVal.parseJson('{"a":1,"b":[true,null]}')),
            ("""parse_json('{"b":[true,null],"a":1}')""", VariantVal.parseJson('{"a":1,"b":[true,null]}')),
            ("parse_json('null')", VariantVal.parseJson("null")),
            ("""parse_json('"a"')""", VariantVal.parseJson('"a"')),
        ],
    ),
)

COLUMN_TYPES: Final = {c.name: c for c in _ALL if c.name != "variant" or COPIES_VARIANTS}
