"""Aliases of SELECT in WHERE, which Snowflake and Databend read there, and Spark does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from streamql.dialect.text.tokens import NameParts
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import System
from streamql.features.translate.queries.relations import cte_of, name_of, sources_of

_UNITS = (exp.Column, exp.Literal, exp.Cast, exp.JSONExtract, exp.Anonymous)
"""What needs no parentheses beside an operator."""
_MAY_BE_ALIAS = (
    "if {0} in WHERE is the alias, write its expression there: Spark's WHERE does not read aliases of SELECT"
)


def expand_aliases(tree: exp.Expr, context: Context, reads: Mapping[str, NameParts]) -> list[str]:
    """Writes the expressions of aliases into WHERE, in place; a note on names that may be those of columns.

    `reads`: the table or stream behind each placeholder.
    """
    if context.system is System.CLICKZETTA:
        return []
    notes: dict[str, None] = {}
    for select in tree.find_all(exp.Select):
        where = select.args.get("where")
        aliases = dict(_aliases(select))
        if where is None or not aliases:
            continue
        columns = _columns(select, context, reads)
        for _ in aliases:  # the expression of one may have another one in it
            for column in list(where.find_all(exp.Column)):
                name = column.name.lower()
                if name not in aliases or column.table or column.parent_select is not select:
                    continue
                if columns is None:
                    notes[_MAY_BE_ALIAS.format(name)] = None
                elif name not in columns:
                    value = aliases[name].copy()
                    column.replace(value if isinstance(value, _UNITS) else exp.paren(value))
    return list(notes)


def _aliases(select: exp.Select) -> Iterator[tuple[str, exp.Expr]]:
    """Yields the aliases whose expressions WHERE can have. `UPPER(a) AS a` is not one: WHERE reads the column a."""
    for alias in select.expressions:
        if isinstance(alias, exp.Alias) and not alias.this.find(exp.AggFunc, exp.Window, exp.Query):
            name = alias.alias.lower()
            if all(column.name.lower() != name for column in alias.find_all(exp.Column)):
                yield name, alias.this


def _columns(select: exp.Select, context: Context, reads: Mapping[str, NameParts]) -> set[str] | None:
    """Returns the names of the columns that the SELECT reads; None: the script does not say them all."""
    found: set[str] = set()
    for relation in sources_of(select):
        columns = _columns_of(relation, context, reads)
        if not columns:
            return None
        found |= columns
    return found


def _columns_of(relation: exp.Expr, context: Context, reads: Mapping[str, NameParts]) -> set[str]:
    """Returns the names of a relation's columns; empty: the script does not say them all."""
    if isinstance(relation, exp.Subquery):
        query = relation.unnest()
        if not isinstance(query, exp.Query) or query.is_star:
            return set()
        return {projection.alias_or_name.lower() for projection in query.selects}
    if not isinstance(relation, exp.Table):
        return set()
    name = name_of(relation, reads)
    cte = cte_of(relation, name)
    return set(context.columns_of(name)) if cte is None else set()
