"""VARIANT columns in what groups or compares whole rows: GROUP BY, DISTINCT, UNION, INTERSECT, EXCEPT, USING, ORDER BY a number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from streamql.dialect.text.tokens import NameParts
from streamql.features.translate.dialects.written import sql_of
from streamql.features.translate.facts.column_types import VARIANT
from streamql.features.translate.facts.context import Context
from streamql.features.translate.queries.relations import cte_of, name_of, sources_of
from streamql.features.translate.queries.types import type_of


def grouped_variants(
    tree: exp.Expr, types: dict[str, str], context: Context, reads: Mapping[str, NameParts]
) -> Iterator[str]:
    """Yields the VARIANT columns that Spark would have to group or compare, as the statement writes them.

    `reads`: the table or stream behind each placeholder.
    """
    rows = _Rows(types, context, reads)
    for select in tree.find_all(exp.Select):
        distinct = select.args.get("distinct")
        if distinct is not None:
            on = distinct.args.get("on")
            yield from rows.among(on.expressions) if on is not None else rows.shown(select)
        yield from _by_group(select, rows)
    for operation in tree.find_all(exp.SetOperation):
        if operation.args.get("distinct") or not isinstance(operation, exp.Union):
            yield from rows.shown(operation)
    for query in tree.find_all(exp.Query):
        order = query.args.get("order")
        yield from _by_number([o.this for o in order.expressions] if order is not None else [], query, rows)
    for join in tree.find_all(exp.Join):
        yield from rows.among(join.args.get("using") or [])
        if "NATURAL" in (join.method or "").upper() and isinstance(join.parent, exp.Select):
            yield from _of_natural_join(join, join.parent, rows)


def _by_group(select: exp.Select, rows: _Rows) -> Iterator[str]:
    group = select.args.get("group")
    if group is None:
        return
    if group.args.get("all"):
        yield from rows.among(e for e in select.expressions if not e.find(exp.AggFunc))
    items = list(_items(group))
    yield from rows.among(items)
    yield from _by_number(items, select, rows)


def _items(group: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the expressions of GROUP BY, and those in its ROLLUP, CUBE and GROUPING SETS."""
    inner = [e for key in ("rollup", "cube", "grouping_sets") for e in group.args.get(key) or []]
    for item in (*group.expressions, *inner):
        if isinstance(item, exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets):
            yield from _items(item)
        else:
            yield item.unnest()


def _by_number(items: list[exp.Expr], query: exp.Expr, rows: _Rows) -> Iterator[str]:
    """Yields the columns among those that items such as `1` stand for."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    shown = query.expressions if isinstance(query, exp.Select) else []
    numbers = [int(item.name) for item in items if isinstance(item, exp.Literal) and item.is_int]
    yield from rows.among(shown[number - 1] for number in numbers if 0 < number <= len(shown))


def _of_natural_join(join: exp.Join, select: exp.Select, rows: _Rows) -> Iterator[str]:
    """Yields the columns that both sides have."""
    others = [relation for relation in sources_of(select) if relation is not join.this]
    on_left = {name.lower() for other in others for name in rows.of_relation(other)}
    yield from (name for name in rows.of_relation(join.this) if name.lower() in on_left)


class _Rows:
    """Which columns of a query, and of the relations that it reads, are a VARIANT."""

    def __init__(self, types: dict[str, str], context: Context, reads: Mapping[str, NameParts]) -> None:
        self._types = types
        self._context = context
        self._reads = reads
        self._within: set[int] = set()

    def among(self, expressions: Iterable[exp.Expr]) -> Iterator[str]:
        """Yields those of the expressions that are a VARIANT."""
        for expression in expressions:
            value = expression.unalias()
            if isinstance(value, exp.Identifier):  # of USING
                value = exp.column(value.copy())
            if type_of(value, self._types, None) == VARIANT:
                yield sql_of(value)

    def shown(self, query: exp.Expr, by_name: bool = False) -> Iterator[str]:
        """Yields the VARIANT columns that a query shows, as it writes them or by their names."""
        query = query.unnest()
        if isinstance(query, exp.SetOperation):
            yield from self.shown(query.left, by_name)
            yield from self.shown(query.right, by_name)
        elif isinstance(query, exp.Select):
            for projection in query.expressions:
                if projection.is_star and not isinstance(projection, exp.Count):
                    yield from self._of_star(projection, query)
                else:
                    found = self.among([projection])
                    yield from (projection.alias_or_name for _ in found) if by_name else found

    def _of_star(self, projection: exp.Expr, select: exp.Select) -> Iterator[str]:
        star = projection if isinstance(projection, exp.Star) else projection.this
        table = projection.text("table").lower()
        left_out = {column.name.lower() for column in star.args.get("except_") or []}
        for relation in sources_of(select):
            if table in ("", relation.alias_or_name.lower()):
                yield from (name for name in self.of_relation(relation) if name.lower() not in left_out)

    def of_relation(self, relation: exp.Expr) -> Iterator[str]:
        """Yields the names of the VARIANT columns of a relation, as far as the script says them."""
        if id(relation) in self._within:  # a CTE that reads itself
            return
        self._within.add(id(relation))
        if isinstance(relation, exp.Subquery):
            yield from self.shown(relation, by_name=True)
        elif isinstance(relation, exp.Lateral):
            yield from ["value"] if relation.this.name.startswith("VARIANT_EXPLODE") else []
        elif isinstance(relation, exp.Table):
            name = name_of(relation, self._reads)
            cte = cte_of(relation, name)
            columns = self._context.columns_of(name) if cte is None else {}
            yield from (column for column, type_word in columns.items() if type_word == VARIANT)
            yield from self.shown(cte.this, by_name=True) if cte is not None else ()
        self._within.discard(id(relation))
