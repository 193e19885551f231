"""The types of expressions, as far as the translation of their functions and elements depends on them."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from streamql.features.translate.facts.column_types import VARIANT
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, System

__all__ = ["ARRAY", "ARRAY_FUNCTIONS", "DATE", "VARIANT", "is_element", "no_type", "type_of", "types_of_columns"]

ARRAY = "ARRAY"
DATE = "DATE"
_ARRAYS = (exp.Array, exp.Split, exp.ArrayAgg, exp.StringToArray, exp.ArraySlice, exp.ArrayConcat)
_VARIANTS = (exp.ParseJSON, exp.JSONExtract)
_DATES = (exp.CurrentDate, exp.TsOrDsToDate, exp.LastDay, exp.DateFromParts)
ARRAY_FUNCTIONS = (
    exp.ArraySize,
    exp.ArrayToString,
    exp.ArrayContains,
    exp.ArraySlice,
    exp.ArrayPosition,
    exp.ToArray,
    exp.ArrayIntersect,
    exp.ArrayExcept,
    exp.ArrayOverlaps,
    exp.ArrayAppend,
    exp.ArrayPrepend,
    exp.ArrayConcat,
    exp.ArrayDistinct,
    exp.ArrayCompact,
    exp.ArrayRemove,
    exp.ArrayMin,
    exp.ArrayMax,
    exp.ArrayInsert,
)
"""Functions of which `arrays` adapts the arguments."""
_OF_VARIANT = ("VARIANT_GET", "TRY_VARIANT_GET")
_MADE = ("TO_VARIANT_OBJECT", "PARSE_JSON", "TRY_PARSE_JSON")


_SHAPES = "a column STRING with the shapes as WKT"
_ABSENT = {
    exp.DType.HLLSKETCH: (  # see `dialects.read`
        "BITMAP",
        "one row for each value and COUNT(DISTINCT x), or a BINARY of bitmap_construct_agg(bitmap_bit_position(x))",
    ),
    exp.DType.GEOGRAPHY: ("GEOGRAPHY", _SHAPES),
    exp.DType.GEOMETRY: ("GEOMETRY", _SHAPES),
    exp.DType.FILE: ("FILE", "a column STRING with the path"),
    exp.DType.DECFLOAT: ("DECFLOAT", "DECIMAL(38, 10), or DOUBLE"),
    exp.DType.INTERVAL: ("INTERVAL", "a column BIGINT of seconds, and MAKE_DT_INTERVAL(0, 0, 0, x) in queries"),
}

_IN_BINARY = {"BITMAP": ", and Spark's functions of bitmaps keep 32,768 bits in a BINARY"}


def no_type(data_type: exp.DataType, where: str) -> NotTranslatedError | None:
    """Returns the refusal of a type that no column of Delta Lake has; None: it has the type. `where`: what has the type {}."""
    key = exp.DType.INTERVAL if isinstance(data_type.this, exp.Interval) else data_type.this
    if key is exp.DType.USERDEFINED:
        return NotTranslatedError(f"{where.format(data_type.sql())}: Delta Lake has no such type")
    if key not in _ABSENT:
        return None
    name, hint = _ABSENT[key]
    return NotTranslatedError(f"{where.format(name)}: Delta Lake has no such type{_IN_BINARY.get(name, '')}", hint)


def types_of_columns(tree: exp.Expr, context: Context) -> dict[str, str]:
    """Returns the words of the columns' types that the script or the statement itself says."""
    return {**context.column_types, **dict(_aliases(tree, context.column_types))}


def _aliases(tree: exp.Expr, columns: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the columns to which the statement itself gives a type that is known: PARSE_JSON(x) AS v."""
    if any(call.name.startswith("VARIANT_EXPLODE") for call in tree.find_all(exp.Anonymous)):
        yield "value", VARIANT
    for alias in tree.find_all(exp.Alias):
        name = alias.alias.lower()
        if type_word := type_of(alias.this, {}, None):
            yield name, type_word
        elif name not in columns and type_of(alias.this, columns, None) == VARIANT:
            yield name, VARIANT  # another name of a VARIANT column


def type_of(base: exp.Expr, types: dict[str, str], system: System | None) -> str:
    """Returns the word of the base's type; empty: the script does not say it."""
    base = base.unnest()
    is_made = isinstance(base, exp.Anonymous) and base.name.upper() in _MADE
    if isinstance(base, _VARIANTS) or is_made or is_element(base):
        return VARIANT
    if isinstance(base, exp.Cast):
        data_type = base.to
        is_open = data_type.this in (exp.DType.ARRAY, exp.DType.OBJECT) and not data_type.expressions
        return VARIANT if is_open or data_type.this in (exp.DType.VARIANT, exp.DType.JSON) else str(data_type.this.name)
    if isinstance(base, _ARRAYS):
        return ARRAY
    if isinstance(base, _DATES):
        return DATE
    if isinstance(base, exp.Column):
        # Arrays and objects of Snowflake are VARIANT, unless they name the types of their elements.
        return types.get(base.name.lower(), VARIANT if system is System.SNOWFLAKE else "")
    return ""


def is_element(node: exp.Expr) -> bool:
    """Returns whether an expression is an element of a VARIANT: a path, or a call of variant_get without a type."""
    is_call = isinstance(node, exp.Anonymous) and node.name.upper() in _OF_VARIANT and len(node.expressions) == 2
    return is_call or isinstance(node, exp.JSONExtract)
