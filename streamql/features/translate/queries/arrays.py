"""Functions of arrays. There an ARRAY is a VARIANT, and counts from 0; Spark's functions take an ARRAY, and count from 1."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from streamql.features.translate.dialects.written import sql_of
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, System
from streamql.features.translate.queries.types import ARRAY, ARRAY_FUNCTIONS, VARIANT, type_of, types_of_columns

_TAKES_ARRAY = "Spark's {} takes an ARRAY: if {} is a VARIANT, write CAST({} AS ARRAY<type>)"
_MULTISET = "{} keeps a value once in Spark, and as often as both arrays have it in Snowflake"
_INSIDE = "Spark puts a VARIANT into a new array: if {0} holds an array already, write {0}"
_SLICE = "ARRAY_SLICE whose bounds are not numbers from 0: Spark's SLICE takes a start and a length"


def adapt_arrays(tree: exp.Expr, context: Context) -> list[str]:
    """Changes the functions in place; the notes. Raises NotTranslatedError."""
    if context.system is System.CLICKZETTA:
        return []
    notes: list[str] = []
    types = types_of_columns(tree, context)
    for node in reversed(list(tree.find_all(*ARRAY_FUNCTIONS))):
        notes += _adapt(node, types, context.system)
    return notes


def _adapt(node: exp.Expr, types: dict[str, str], system: System) -> Iterator[str]:
    value = node.this if node.this is not None else node.expressions[0]
    is_variant = type_of(value, types, system) == VARIANT
    if isinstance(node, exp.ArraySize):
        array = _as_array(value, "VARIANT") if is_variant else value.copy()
        node.replace(exp.Anonymous(this="ARRAY_SIZE", expressions=[array]))
        return
    if isinstance(node, exp.ToArray):
        if is_variant:
            yield _INSIDE.format(sql_of(value))
        return
    if isinstance(node, exp.ArrayToString):
        if is_variant:
            node.set("this", _as_array(value, "STRING"))
        if node.args.get("null_is_empty") and node.args.get("null") is None:
            node.set("null", exp.Literal.string(""))
        return
    if isinstance(node, exp.ArrayContains) and is_variant and (element := _type_of_literal(node.expression)):
        literal = node.expression.this if isinstance(node.expression, exp.Cast) else node.expression
        node.set("expression", literal.copy())
        node.set("this", _as_array(value, element))
        return
    if is_variant:
        name = sql_of(node).partition("(")[0]
        yield _TAKES_ARRAY.format(name, sql_of(value), sql_of(value))
    if node.args.get("is_multiset"):
        yield _MULTISET.format("ARRAY_INTERSECT" if isinstance(node, exp.ArrayIntersect) else "ARRAY_EXCEPT")
    if node.args.get("zero_based"):
        node.replace(_from_one(node))


def _as_array(value: exp.Expr, element: str) -> exp.Expr:
    """Returns a VARIANT as an ARRAY, which is NULL if it holds another value."""
    return exp.TryCast(this=value.copy(), to=exp.DataType.build(f"{ARRAY}<{element}>", dialect="spark"))


def _type_of_literal(value: exp.Expr) -> str:
    """Returns the type as which a literal is compared, also of one that is cast to VARIANT; empty: it is another expression."""
    literal = value.this if isinstance(value, exp.Cast) and value.to.this is exp.DType.VARIANT else value
    if not isinstance(literal, exp.Literal):
        return ""
    return "STRING" if literal.is_string else "DOUBLE"


def _from_one(node: exp.Expr) -> exp.Expr:
    """Returns ARRAY_SLICE and ARRAY_POSITION, which count from 0, as Spark counts."""
    if isinstance(node, exp.ArrayPosition):
        place = exp.Anonymous(this="ARRAY_POSITION", expressions=[node.this.copy(), node.expression.copy()])
        found = exp.Anonymous(this="NULLIF", expressions=[place, exp.Literal.number(0)])
        return exp.paren(exp.Sub(this=found, expression=exp.Literal.number(1)))
    start, end = node.args.get("start"), node.args.get("end")
    if start is None or end is None or not start.is_int or not end.is_int or not 0 <= int(start.name) <= int(end.name):
        raise NotTranslatedError(_SLICE, "write SLICE(a, start, length), whose start is from 1")
    first, size = int(start.name), int(end.name) - int(start.name)
    bounds = [exp.Literal.number(first + 1), exp.Literal.number(size)]
    return exp.Anonymous(this="SLICE", expressions=[node.this.copy(), *bounds])
