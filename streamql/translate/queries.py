"""Queries in sqlglot's tree: FLATTEN, maps, stages, and functions that Spark does not have."""

from __future__ import annotations

import re

from sqlglot import exp

from streamql.translate.context import Context
from streamql.translate.dialects import WRITTEN
from streamql.translate.functions import FUNCTIONS
from streamql.translate.model import NotTranslatedError, System
from streamql.translate.shield import Shielded
from streamql.translate.stream_columns import expand_stars
from streamql.translate.values import adapt_values
from streamql.translate.variants import adapt_elements

_IN_GRAMMAR = ("try_cast", "timestampdiff", "timestampadd", "identifier")
"""What Spark's grammar has, and SHOW FUNCTIONS does not list."""
_CALL = re.compile(r"(\w+)\(")
_VARIANTS = (exp.ParseJSON, exp.JSONExtract, exp.Cast, exp.Anonymous, exp.GetExtract)
_NOT_CALLS = (exp.Cast, exp.Case, exp.And, exp.Or, exp.Not, exp.In, exp.Between, exp.Exists, exp.Interval, exp.Extract)


def adapt_queries(tree: exp.Expr, context: Context, shielded: Shielded, feeds_table: bool) -> list[str]:
    """Changes the queries of a statement in place; the notes. Raises NotTranslatedError.

    `feeds_table`: another statement writes the rows of this query into a table.
    """
    notes = expand_stars(tree, context, shielded, feeds_table)
    if context.system is not System.CLICKZETTA:  # its EXPLODE is Spark's
        _adapt_flatten(tree)
    notes += adapt_values(tree, context)
    if context.system is System.DATABEND:
        _adapt_maps(tree)
    notes += adapt_elements(tree, context)
    for table in tree.find_all(exp.Table):
        if table.sql().startswith("@"):
            raise NotTranslatedError(
                "files of a stage", "read the files by their path: SELECT * FROM json.`path/*.json`"
            )
    return list(dict.fromkeys(notes))


# --- values


def _adapt_maps(tree: exp.Expr) -> None:
    """Databend's `{'key': value}`, which sqlglot reads as Snowflake's object, as a map."""
    for struct in list(tree.find_all(exp.Struct)):
        pairs = struct.expressions
        if pairs and all(isinstance(pair, exp.PropertyEQ) for pair in pairs):
            keys = [exp.Literal.string(pair.name) for pair in pairs]
            values = [pair.expression.copy() for pair in pairs]
            struct.replace(exp.VarMap(keys=exp.Array(expressions=keys), values=exp.Array(expressions=values)))


# --- FLATTEN


def _adapt_flatten(tree: exp.Expr) -> None:
    for rows in list(tree.find_all(exp.TableFromRows)):
        if isinstance(rows.this, exp.Explode):
            rows.replace(exp.Lateral(this=rows.this, alias=rows.args.get("alias")))
    for lateral in tree.find_all(exp.Lateral):
        explode = lateral.this
        if not isinstance(explode, exp.Explode) or lateral.args.get("view"):
            continue
        if explode.expressions or (isinstance(explode.this, exp.Kwarg) and explode.this.this.name.upper() != "INPUT"):
            raise NotTranslatedError(
                "FLATTEN with PATH, OUTER, RECURSIVE or MODE", "use variant_explode or variant_explode_outer"
            )
        flattened = explode.this.expression if isinstance(explode.this, exp.Kwarg) else explode.this
        if isinstance(flattened, exp.Func) and not isinstance(flattened, _VARIANTS):
            flattened = exp.cast(flattened, exp.DType.VARIANT)  # an ARRAY of Spark's
        lateral.set("this", exp.Anonymous(this="VARIANT_EXPLODE", expressions=[flattened.copy()]))
        alias = lateral.args.get("alias")
        name = alias.this if alias is not None and alias.this is not None else exp.to_identifier("_flattened")
        columns = [exp.to_identifier(column) for column in ("index", "key", "value")]
        lateral.set("alias", exp.TableAlias(this=name, columns=columns))


# --- functions


def unknown_functions(tree: exp.Expr) -> list[str]:
    """Returns the functions of a statement, as it is written for Spark, that neither Spark nor streamql has."""
    found: dict[str, None] = {}
    for function in tree.find_all(exp.Func):
        if isinstance(function, _NOT_CALLS):
            continue
        call = _CALL.match(function.sql(WRITTEN, normalize_functions=False))
        name = call.group(1) if call is not None else ""
        if (
            name
            and name.lower() not in FUNCTIONS
            and name.lower() not in _IN_GRAMMAR
            and not name.startswith("streamql_name_")
        ):
            found[name] = None
    return list(found)
