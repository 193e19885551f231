"""Queries in sqlglot's tree: the changes that make a query Spark's, in their order."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from streamql.dialect.text.tokens import NameParts
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, System
from streamql.features.translate.queries.aliases import expand_aliases
from streamql.features.translate.queries.arrays import adapt_arrays
from streamql.features.translate.queries.comparisons import adapt_comparisons
from streamql.features.translate.queries.dates import adapt_dates
from streamql.features.translate.queries.flatten import adapt_flatten
from streamql.features.translate.queries.regexes import adapt_regexes
from streamql.features.translate.queries.stream_columns import expand_stars
from streamql.features.translate.queries.values import adapt_values
from streamql.features.translate.queries.variant_functions import adapt_variant_functions
from streamql.features.translate.queries.variants import adapt_elements
from streamql.features.translate.text.shield import Shielded
from streamql.features.translate.wording import NO_STAGES


def adapt_queries(tree: exp.Expr, context: Context, shielded: Shielded, feeds_table: bool) -> list[str]:
    """Changes the queries of a statement in place; the notes. Raises NotTranslatedError.

    `feeds_table`: another statement writes the rows of this query into a table.
    """
    notes = expand_aliases(tree, context, shielded.reads)
    notes += expand_stars(tree, context, shielded, feeds_table)
    notes += adapt_flatten(tree, context.system)
    if context.system is not System.CLICKZETTA:  # its VALUES are Spark's
        _name_columns(tree)
    notes += adapt_expressions(tree, context, shielded.reads)
    for table in tree.find_all(exp.Table):
        if table.sql().startswith("@"):
            raise NotTranslatedError(f"files of a stage: {NO_STAGES}", "SELECT * FROM json.`path/*.json`")
    return list(dict.fromkeys(notes))


def adapt_expressions(tree: exp.Expr, context: Context, reads: Mapping[str, NameParts]) -> list[str]:
    """Changes the expressions of a statement in place; the notes. Raises NotTranslatedError.

    `reads`: the table or stream behind each placeholder.
    """
    adapt_variant_functions(tree)
    notes = adapt_values(tree, context)
    if context.system is System.DATABEND:
        _adapt_maps(tree)
    notes += adapt_dates(tree, context)
    adapt_regexes(tree, context)
    notes += adapt_elements(tree, context)
    notes += adapt_arrays(tree, context)
    return [*notes, *adapt_comparisons(tree, context, reads)]


def _adapt_maps(tree: exp.Expr) -> None:
    """Databend's `{'key': value}`, which sqlglot reads as Snowflake's object, as a map."""
    for struct in list(tree.find_all(exp.Struct)):
        pairs = struct.expressions
        if pairs and all(isinstance(pair, exp.PropertyEQ) for pair in pairs):
            keys = [exp.Literal.string(pair.name) for pair in pairs]
            values = [pair.expression.copy() for pair in pairs]
            struct.replace(exp.VarMap(keys=exp.Array(expressions=keys), values=exp.Array(expressions=values)))


def _name_columns(tree: exp.Expr) -> None:
    """Names the columns of VALUES: Snowflake and Databend call them column1, column2, …; Spark calls them col1, col2, …"""
    for values in tree.find_all(exp.Values):
        alias, rows = values.args.get("alias"), values.expressions
        if not isinstance(values.parent, exp.From | exp.Join) or not rows or (alias and alias.columns):
            continue
        size = len(rows[0].expressions) if isinstance(rows[0], exp.Tuple) else 1
        names = [exp.to_identifier(f"column{number}") for number in range(1, size + 1)]
        this = alias.this if alias else exp.to_identifier("_values")
        values.set("alias", exp.TableAlias(this=this, columns=names))
