"""Parts of statements as Spark has them: an expression, the value of a variable, the columns of a list."""

from __future__ import annotations

from sqlglot import exp

from streamql.features.translate.dialects.functions import function_notes
from streamql.features.translate.dialects.parsing import UNKNOWN, parse_sql
from streamql.features.translate.dialects.written import sql_of
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError
from streamql.features.translate.ordinary.create import adapt_create
from streamql.features.translate.queries.adapt import adapt_expressions
from streamql.features.translate.queries.grammar import to_grammar
from streamql.features.translate.text.lexical import is_same_sql


def expression_to_spark(text: str, context: Context) -> tuple[str, list[str]]:
    """Returns an expression, such as that of a point in time, and its notes. Raises NotTranslatedError."""
    tree = parse_sql(f"SELECT {text}", context.system)
    if not tree.expressions:
        raise NotTranslatedError("an expression is missing", "write the expression")
    notes = _adapted_values(tree, context)
    sql = sql_of(tree).removeprefix("SELECT ")
    return text if is_same_sql(sql, text) else sql, notes


def columns_to_spark(text: str, context: Context) -> tuple[list[exp.Expr], list[str]]:
    """Returns the columns of a list such as `a NUMBER, b STRING` as Delta Lake has them, and notes. Raises NotTranslatedError."""
    tree = parse_sql(f"CREATE TABLE _columns ({text})", context.system)
    if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Schema):
        raise NotTranslatedError(UNKNOWN)
    notes = [*_adapted_values(tree, context), *adapt_create(tree, context).notes]
    return tree.this.expressions, notes


def constant_to_spark(text: str, context: Context) -> tuple[str, list[str]]:
    """Returns the value of a variable, an expression or `(SELECT expression)`, and its notes.

    Raises NotTranslatedError for a query over tables.
    """
    tree = parse_sql(f"SELECT {text}", context.system)
    if len(tree.expressions) != 1 or tree.args.get("from_"):
        raise NotTranslatedError(
            "SET of several values, or of columns: a variable takes one value", "write SET x = expression"
        )
    notes = _adapted_values(tree, context)
    value = tree.expressions[0]
    while isinstance(value, exp.Subquery | exp.Paren):
        value = value.this
    if isinstance(value, exp.Select) and not value.args.get("from_") and len(value.expressions) == 1:
        value = value.expressions[0].unalias()
    if value.find(exp.Query):
        raise NotTranslatedError(
            "SET of a query over tables: DECLARE VARIABLE takes an expression",
            "DECLARE VARIABLE x TYPE; SET VAR x = (SELECT …)",
        )
    return sql_of(value), notes


def _adapted_values(tree: exp.Expr, context: Context) -> list[str]:
    notes = [*to_grammar(tree, context), *adapt_expressions(tree, context, {})]
    return [*notes, *function_notes(tree)]
