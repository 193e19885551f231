"""CREATE TABLE … (columns) AS query: Spark takes no list of columns there, so the query gives them their names and types."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from streamql.features.translate.dialects.written import sql_of
from streamql.features.translate.model import NotTranslatedError

_PLAIN = frozenset(("expressions", "from_", "joins", "laterals", "where", "with_", "kind"))
"""The clauses beside which the columns of a SELECT can be renamed: none of them names what an expression is called."""


def columns_into_query(create: exp.Create, note: Callable[[str], None]) -> list[str]:
    """Moves the list of columns into the query, in place. Returns the statements that set defaults and comments afterwards.

    `note` takes what was left out. Raises NotTranslatedError for identity columns and conditions.
    """
    table, columns = create.this.this, create.this.expressions
    other = next((c for c in columns if not isinstance(c, exp.ColumnDef | exp.Identifier | exp.Column)), None)
    if other is not None:
        raise NotTranslatedError(
            f"CREATE TABLE AS with {sql_of(other)}: Spark does not take it there",
            "write CREATE TABLE, then INSERT INTO",
        )
    create.set("this", table)
    if not columns:
        return []
    after: list[str] = []
    for column in columns:
        for constraint in column.args.get("constraints") or []:
            after += _afterwards(table, column, constraint.args.get("kind"), note)
    if after and create.args.get("exists"):
        note("DEFAULT and COMMENT of columns were left out: an existing table would get them too")
        after = []
    create.set("expression", _with_columns(create.expression, columns))
    return after


def _afterwards(table: exp.Expr, column: exp.Expr, what: exp.Expr | None, note: Callable[[str], None]) -> list[str]:
    """Returns the statement that a constraint of a column becomes; empty: it was left out."""
    where = f"ALTER TABLE {sql_of(table)} ALTER COLUMN {sql_of(column.this)}"
    if isinstance(what, exp.DefaultColumnConstraint):
        return [f"{where} SET DEFAULT {sql_of(what.this)}"]
    if isinstance(what, exp.CommentColumnConstraint):
        return [f"{where} COMMENT {sql_of(what.this)}"]
    if isinstance(what, exp.GeneratedAsIdentityColumnConstraint):
        raise NotTranslatedError(
            "CREATE TABLE AS with an identity column: Spark does not take its definition there",
            "write CREATE TABLE, then INSERT INTO",
        )
    words = sql_of(what) if what is not None else "a constraint"
    note(f"{words} of {column.name} was left out: CREATE TABLE AS takes its columns from the query")
    return []


def _with_columns(query: exp.Query, columns: list[exp.Expr]) -> exp.Select:
    """Returns a query with the rows of the given one, whose columns have these names and types."""
    selected = query.expressions if isinstance(query, exp.Select) else []
    is_plain = {key for key, value in query.args.items() if value} <= _PLAIN
    named = {e.alias.lower() for e in selected if e.alias}
    read = {column.name.lower() for column in query.find_all(exp.Column)}
    if is_plain and len(selected) == len(columns) and not any(e.is_star for e in selected) and not named & read:
        renamed = query.copy()
        pairs = zip(selected, columns, strict=True)
        renamed.set("expressions", [_as_column(e.unalias().copy(), column) for e, column in pairs])
        assert isinstance(renamed, exp.Select)
        return renamed
    names = [_name(column) for column in columns]
    inner = exp.Subquery(
        this=query.unnest().copy(),
        alias=exp.TableAlias(this=exp.to_identifier("_query"), columns=[name.copy() for name in names]),
    )
    pairs = zip(names, columns, strict=True)
    return exp.Select(expressions=[_as_column(exp.column(n.copy()), c) for n, c in pairs]).from_(inner)


def _as_column(value: exp.Expr, column: exp.Expr) -> exp.Expr:
    data_type = column.args.get("kind") if isinstance(column, exp.ColumnDef) else None
    if data_type is not None:
        value = exp.Cast(this=value, to=data_type.copy())
    elif isinstance(value, exp.Column) and value.name == column.name:
        return value
    return exp.alias_(value, _name(column).copy())


def _name(column: exp.Expr) -> exp.Identifier:
    name = column.this if isinstance(column, exp.ColumnDef | exp.Column) else column
    assert isinstance(name, exp.Identifier)
    return name
