"""Elements of a VARIANT: `v['field']`, `v[0]` and GET(v, …) as variant_get. Spark's brackets are for arrays, maps and structs."""

from __future__ import annotations

from sqlglot import exp

from streamql.features.translate.dialects.written import sql_of
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import System
from streamql.features.translate.queries.types import ARRAY, VARIANT, type_of, types_of_columns

_UNKNOWN = "{} was kept: if it reads a VARIANT, write VARIANT_GET({}, {})"
_DYNAMIC = "{} was kept: if it reads a VARIANT, Spark needs variant_get, whose path is a literal"
_FROM_ONE = "{} was kept: Databend counts the elements of an ARRAY from 1, Spark from 0"


def adapt_elements(tree: exp.Expr, context: Context) -> list[str]:
    """Changes `v['a'][0]` and the like in place; the notes on those whose type the script does not say."""
    notes: list[str] = []
    types = types_of_columns(tree, context)
    for node in reversed(list(tree.find_all(exp.Bracket, exp.GetExtract))):
        if isinstance(node.parent, exp.Bracket | exp.GetExtract) and node.arg_key == "this":
            continue  # a part of a longer path
        notes += _adapt(node, types, context)
    _adapt_casts(tree)
    return notes


def _as_get(node: exp.Expr) -> exp.Expr:
    """GET(a, i), which sqlglot would write as a path, in the place of its node."""
    if not isinstance(node, exp.GetExtract):
        return node
    get = exp.Anonymous(this="GET", expressions=[node.this.copy(), node.expression.copy()])
    node.replace(get)
    return get


def _adapt(node: exp.Expr, types: dict[str, str], context: Context) -> list[str]:
    keys: list[exp.Expr] = []
    base, top = node, node
    while isinstance(base, exp.Bracket | exp.GetExtract):
        found = [base.expression] if isinstance(base, exp.GetExtract) else base.expressions
        if len(found) != 1 or isinstance(found[0], exp.Slice):
            return []
        keys.insert(0, found[0])
        base = base.this
    while isinstance(top.parent, exp.Dot) and isinstance(top.parent.expression, exp.Identifier):
        top = top.parent
        keys.append(exp.Literal.string(top.expression.name))
    type_word = type_of(base, types, context.system)
    if not type_word and isinstance(node, exp.GetExtract) and keys[0].is_string:
        type_word = VARIANT
    written = sql_of(_as_get(node.copy()))
    path = _path(keys)
    if type_word == VARIANT and path is not None:
        top.replace(exp.Anonymous(this="VARIANT_GET", expressions=[base.copy(), exp.Literal.string(path)]))
        return []
    if type_word == ARRAY and len(keys) == 1 and context.system is not System.CLICKZETTA:
        node.replace(exp.Anonymous(this="GET", expressions=[base.copy(), _from_zero(keys[0], context.system)]))
        return []
    _as_get(node)
    if type_word == VARIANT:
        return [_DYNAMIC.format(written)]
    if type_word:
        return []
    if context.system is System.DATABEND and not keys[0].is_string:
        return [_FROM_ONE.format(written)]
    if keys[0].is_string and path is not None:
        of_base = sql_of(base)
        return [_UNKNOWN.format(written, of_base, sql_of(exp.Literal.string(path)))]
    return []


def _from_zero(index: exp.Expr, system: System) -> exp.Expr:
    if system is not System.DATABEND:
        return index.copy()
    if index.is_int:
        return exp.Literal.number(int(index.name) - 1)
    return exp.Sub(this=exp.paren(index.copy()), expression=exp.Literal.number(1))


def _path(keys: list[exp.Expr]) -> str | None:
    """Returns the path of variant_get; None: a key is not a literal, or cannot be written in one."""
    steps = []
    for key in keys:
        if key.is_int:
            steps.append(f"[{key.name}]")
        elif key.is_string and not set(key.name) & set("'\"\\"):
            steps.append(f'["{key.name}"]')
        else:
            return None
    return "$" + "".join(steps)


def _adapt_casts(tree: exp.Expr) -> None:
    """`a::ARRAY` without a type of its elements, which is a VARIANT here."""
    for cast in tree.find_all(exp.Cast):
        data_type = cast.to
        if data_type.this is exp.DType.ARRAY and not data_type.expressions:
            data_type.replace(exp.DataType.build("variant"))
