"""The relations that a query in sqlglot's tree reads, and what their names mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from streamql.dialect.text.tokens import NameParts


def sources_of(select: exp.Select) -> Iterator[exp.Expr]:
    """Yields the relations that a SELECT reads itself."""
    origin = select.args.get("from_")
    if origin is not None:
        yield origin.this
    for join in select.args.get("joins") or []:
        yield join.this
    yield from select.args.get("laterals") or []


def cte_of(table: exp.Table, name: NameParts) -> exp.CTE | None:
    """Returns the CTE that the name of a relation means; None: it means a table, a view or a stream."""
    if len(name) != 1:
        return None
    node: exp.Expr | None = table
    left: exp.Expr | None = None  # the query whose WITH was searched from one of its CTEs
    while node is not None:
        around = node.parent
        if isinstance(around, exp.With):
            ctes = around.expressions
            visible = ctes[: (node.index or 0) + bool(around.args.get("recursive"))]
            node = left = around.parent
        else:
            with_ = node.args.get("with_") if node is not left else None
            visible = with_.expressions if with_ is not None else []
            node = around
        for cte in reversed(visible):
            if cte.alias.lower() == name[0].lower():
                return cte if isinstance(cte, exp.CTE) else None
    return None


def name_of(table: exp.Table, reads: Mapping[str, NameParts]) -> NameParts:
    """Returns the name of a relation. `reads`: the table or stream of each that a placeholder stands for."""
    return reads.get(table.name) or tuple(part.name for part in table.parts)
