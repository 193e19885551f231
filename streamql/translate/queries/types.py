"""The types of expressions, as far as the translation of their functions and elements depends on them."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from streamql.translate.facts.column_types import VARIANT
from streamql.translate.facts.context import Context
from streamql.translate.model import System

__all__ = ["ARRAY", "ARRAY_FUNCTIONS", "DATE", "VARIANT", "is_element", "type_of", "types_of_columns"]

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


def types_of_columns(tree: exp.Expr, context: Context) -> dict[str, str]:
    """Returns the words of the columns' types that the script or the statement itself says."""
    return {**context.column_types, **dict(_aliases(tree))}


def _aliases(tree: exp.Expr) -> Iterator[tuple[str, str]]:
    """Yields the columns to which the statement itself gives a type that is known: PARSE_JSON(x) AS v."""
    if any(call.name.startswith("VARIANT_EXPLODE") for call in tree.find_all(exp.Anonymous)):
        yield "value", VARIANT
    for alias in tree.find_all(exp.Alias):
        if type_word := type_of(alias.this, {}, None):
            yield alias.alias.lower(), type_word


def type_of(base: exp.Expr, types: dict[str, str], system: System | None) -> str:
    """Returns the word of the base's type; empty: the script does not say it."""
    base = base.unnest()
    if isinstance(base, _VARIANTS) or is_element(base):
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
    """Returns whether an expression is an element of a VARIANT: a path, or a call of variant_get."""
    is_call = isinstance(node, exp.Anonymous) and node.name.upper() in _OF_VARIANT
    return is_call or isinstance(node, exp.JSONExtract)
