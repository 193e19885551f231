"""A VARIANT as an operand: the other systems convert it, and Spark compares, sorts and calculates only with what is cast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from streamql.dialect.text.tokens import NameParts
from streamql.features.translate.dialects.functions import FUNCTIONS
from streamql.features.translate.dialects.written import sql_of
from streamql.features.translate.facts.column_types import VARIANT
from streamql.features.translate.facts.context import Context
from streamql.features.translate.queries.groups import grouped_variants
from streamql.features.translate.queries.types import ARRAY_FUNCTIONS, is_element, type_of, types_of_columns

_NOT_CAST = "Spark neither compares, groups, sorts nor calculates with a VARIANT: cast {} to a type"
_MIXED = (exp.Coalesce, exp.Nullif)
"""Functions whose arguments have one type in Spark."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between)
_OF_TEXT = (
    exp.Like,
    exp.ILike,
    exp.DPipe,
    exp.Upper,
    exp.Lower,
    exp.Trim,
    exp.Length,
    exp.Substring,
    exp.Split,
    exp.SplitPart,
    exp.RegexpLike,
    exp.RegexpReplace,
    exp.TsOrDsToDate,
    exp.StrToTime,
)
"""What takes a text, to which the other systems convert the VARIANT."""
_KEEPING = (
    *ARRAY_FUNCTIONS,
    exp.Cast,
    exp.ToNumber,
    exp.ToDouble,
    exp.ToBoolean,
    exp.ToChar,
    exp.Nvl2,
    exp.Count,
    exp.ArrayAgg,
    exp.AnyValue,
    exp.First,
    exp.Last,
    exp.FirstValue,
    exp.LastValue,
    exp.NthValue,
    exp.Lag,
    exp.Lead,
    exp.Array,
    exp.Struct,
    exp.JSONFormat,
    exp.JSONKeys,
    exp.Typeof,
)
"""Functions that take a VARIANT as it is, or that get a note elsewhere."""
_KEEPING_NAMES = frozenset(
    (
        "VARIANT_GET", "TRY_VARIANT_GET", "VARIANT_EXPLODE", "VARIANT_EXPLODE_OUTER", "TO_VARIANT_OBJECT", "NAMED_STRUCT",
        "STRUCT", "MAP", "TO_JSON", "SCHEMA_OF_VARIANT", "IS_VARIANT_NULL", "ARRAY_SIZE", "GET",
    )
)  # fmt: skip
_OF_NUMBERS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Sum, exp.Avg, exp.Round, exp.Abs)
_OF_ORDER = (exp.Ordered, exp.Min, exp.Max, exp.Distinct, exp.Where, exp.Having, exp.Qualify, exp.Connector)


def adapt_comparisons(tree: exp.Expr, context: Context, reads: Mapping[str, NameParts]) -> list[str]:
    """Casts a VARIANT that stands beside a literal or a cast, in place; a note on others.

    `reads`: the table or stream behind each placeholder.
    """
    types = {**types_of_columns(tree, context), **context.column_types}  # an alias may have the name of another column
    left: dict[str, None] = {}
    for node in list(tree.find_all(exp.JSONExtract, exp.Anonymous, exp.Column)):
        if not _is_variant(node, types) or (node.parent is not None and is_element(node.parent)):
            continue
        inner: exp.Expr = node
        while isinstance(inner.parent, exp.Paren | exp.Alias):
            inner = inner.parent
        around = inner.parent
        if isinstance(around, exp.EQ) and isinstance(around.parent, exp.Update):
            continue  # an assignment: Delta Lake casts what it writes
        if isinstance(around, _MIXED) and all(_is_variant(e, types) for e in _others(inner, around)):
            continue
        data_type = _type_beside(inner, around)
        if data_type is not None:
            inner.replace(exp.cast(inner.copy(), data_type))
        elif _is_operand(inner, around):
            left[sql_of(node)] = None
    left.update(dict.fromkeys(grouped_variants(tree, types, context, reads)))
    return [_NOT_CAST.format(", ".join(left))] if left else []


def _is_variant(node: exp.Expr, types: dict[str, str]) -> bool:
    return is_element(node) or (isinstance(node, exp.Column) and type_of(node, types, None) == VARIANT)


def _is_operand(node: exp.Expr, around: exp.Expr | None) -> bool:
    """Returns whether the node is compared, sorted or calculated with."""
    if isinstance(around, exp.Window):
        return node.arg_key == "partition_by"
    if isinstance(around, exp.Anonymous):
        return around.name.lower() in FUNCTIONS and around.name.upper() not in _KEEPING_NAMES
    if isinstance(around, exp.Case | exp.If):
        return node.arg_key == "this"
    if isinstance(around, (*_COMPARISONS, *_OF_NUMBERS, *_OF_ORDER, exp.Not)):
        return True
    is_function = isinstance(around, exp.Func) and not is_element(around)
    return is_function and not isinstance(around, _KEEPING)


def _type_beside(node: exp.Expr, around: exp.Expr | None) -> exp.DataType | None:
    """Returns the type to which the source system converts the node: a text, or that of the literal or the cast beside it."""
    if isinstance(around, exp.DPipe | exp.Concat) or (isinstance(around, _OF_TEXT) and node.arg_key == "this"):
        return exp.DataType.build("text")
    if not isinstance(around, (*_COMPARISONS, *_MIXED, exp.Case)):
        return None
    if isinstance(around, exp.Case) and node.arg_key != "this":
        return None
    if isinstance(around, exp.In | exp.Between) and node.arg_key != "this":
        return None
    found = {_type_of(other) for other in _others(node, around)}
    words = found.pop() if len(found) == 1 else None
    return exp.DataType.build(words, dialect="spark") if words else None


def _others(node: exp.Expr, around: exp.Expr) -> Iterator[exp.Expr]:
    for argument in ("this", "expression", "low", "high"):
        other = around.args.get(argument)
        if other is not None and other is not node:
            yield other
    yield from (other for other in around.expressions if other is not node)
    yield from (branch.this for branch in around.args.get("ifs") or [])


def _type_of(value: exp.Expr) -> str:
    value = value.unnest()
    if isinstance(value, exp.Neg):
        value = value.this
    if isinstance(value, exp.Boolean):
        return "BOOLEAN"
    if isinstance(value, exp.Literal):
        return "STRING" if value.is_string else "DOUBLE"
    return sql_of(value.to) if isinstance(value, exp.Cast) else ""
