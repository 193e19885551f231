"""`SELECT *` of a stream: the columns that the source system shows, in the place of those that streamql shows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from streamql.dialect.text.tokens import NameParts
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import System
from streamql.features.translate.queries.relations import cte_of, name_of, sources_of
from streamql.features.translate.text.shield import Shielded

_SHOWN = ("__change_type", "__commit_version", "__commit_timestamp")
"""What `SELECT *` of a stream shows here before the columns of its source."""
_METADATA = {
    System.SNOWFLAKE: ("METADATA$ACTION", "METADATA$ISUPDATE", "METADATA$ROW_ID"),
    System.DATABEND: ("change$action", "change$row_id", "change$is_update"),
}
"""What `SELECT *` of a stream shows there behind the columns of its source."""
_STAR_IN_DML = "* of the stream became the columns of its source, without the columns of the change"
_CHANGES = re.compile(r"\bCHANGES\b", re.IGNORECASE)


def expand_stars(tree: exp.Expr, context: Context, shielded: Shielded, feeds_table: bool = False) -> list[str]:
    """Makes `*` of a stream show what the source system shows, in place; the notes.

    Databend leaves the columns of the change out of what INSERT and CREATE TABLE AS write. `feeds_table`: a statement
    of the kind writes the rows of the query.
    """
    metadata = _METADATA.get(context.system)
    if metadata is None:
        return []
    stars = _Stars(context, shielded, metadata)
    written = list(_written(tree, feeds_table)) if context.system is System.DATABEND else []
    # Which columns a SELECT shows has to be known before one of them changes.
    dropping = {id(select): stars.relations(select) for select in written if stars.shows_changes(select)}
    into = list(_plain_inserts(tree, stars)) if context.system is System.DATABEND else []
    for select in list(tree.find_all(exp.Select)):
        stars.expand(select, dropping.get(id(select)))
    for insert in into:
        insert.set("expression", exp.Select(expressions=[_without(exp.Star(), metadata)]))
    return [_STAR_IN_DML] if dropping or into else []


def _written(tree: exp.Expr, feeds_table: bool) -> Iterator[exp.Select]:
    """Yields the SELECTs whose columns the statement writes into a table."""
    is_dml = isinstance(tree, exp.Insert) or (isinstance(tree, exp.Create) and tree.args.get("kind") == "TABLE")
    query = tree.args.get("expression") if is_dml else tree if feeds_table else None
    if isinstance(query, exp.Query):
        yield from _leaves(query)


def _leaves(query: exp.Expr) -> Iterator[exp.Select]:
    """Yields the SELECTs that give a query its columns."""
    query = query.unnest()
    if isinstance(query, exp.SetOperation):
        yield from _leaves(query.left)
        yield from _leaves(query.right)
    elif isinstance(query, exp.Select):
        yield query


def _plain_inserts(tree: exp.Expr, stars: _Stars) -> Iterator[exp.Expr]:
    """Yields the INTO of an INSERT ALL or INSERT FIRST that take all columns of a query, if it shows changes."""
    if isinstance(tree, exp.MultitableInserts) and any(stars.shows_changes(s) for s in _leaves(tree.args["source"])):
        yield from (item.this for item in tree.expressions if item.this.args.get("expression") is None)


class _Stars:
    """Which SELECT of a statement shows all columns of a stream, and what it has to show."""

    def __init__(self, context: Context, shielded: Shielded, metadata: tuple[str, ...]) -> None:
        self._context = context
        self._shielded = shielded
        self._metadata = metadata

    def relations(self, select: exp.Select) -> list[exp.Expr]:
        """Returns the relations whose columns of the change a * of the SELECT shows."""
        return [
            relation for relation in sources_of(select) if self._is_starred(select, relation) and self._has(relation)
        ]

    def shows_changes(self, select: exp.Select) -> bool:
        """Returns whether a * of the SELECT shows columns of the change."""
        return bool(self.relations(select))

    def expand(self, select: exp.Select, dropped: list[exp.Expr] | None) -> None:
        """Changes the SELECT in place. `dropped`: the relations whose columns of the change its * leaves out; None: of none."""
        streams = [r for r in self.relations(select) if isinstance(r, exp.Table) and self._is_stream(r)]
        if streams and _is_bare(select):
            _columns_of_change(select, () if dropped else self._metadata)
            return
        names_them = not dropped or self._names_them(select)
        for table in streams:
            # Spark finds no hidden column that WHERE names too, beside a *.
            plain = table.copy()
            plain.set("alias", None)
            inner = exp.Select(expressions=[exp.Star()]).from_(plain)
            _columns_of_change(inner, self._metadata if names_them else ())
            alias = exp.TableAlias(this=exp.to_identifier(self._alias(table)))
            table.replace(exp.Subquery(this=inner, alias=alias))
        if dropped and (names_them or len(dropped) > len(streams)):
            for star in _stars_of(select):
                _without(star, self._metadata)

    def _has(self, relation: exp.Expr) -> bool:
        """Returns whether a relation has columns of a change: a stream, CHANGES, or a query that shows those of one."""
        if isinstance(relation, exp.Subquery):
            return any(self.shows_changes(select) for select in _leaves(relation))
        if not isinstance(relation, exp.Table):
            return False
        cte = cte_of(relation, self._name(relation))
        if cte is not None:
            return any(self.shows_changes(select) for select in _leaves(cte.this))
        return self._is_stream(relation)

    def _is_stream(self, table: exp.Table) -> bool:
        if _CHANGES.search(self._shielded.hidden.get(table.name, "")):
            return True
        name = self._name(table)
        return cte_of(table, name) is None and self._context.is_stream(name)

    def _is_starred(self, select: exp.Select, relation: exp.Expr) -> bool:
        name = self._alias(relation)
        for projection in select.expressions:
            is_star = isinstance(projection, exp.Star)
            if is_star or (isinstance(projection.this, exp.Star) and projection.text("table").lower() == name.lower()):
                return True
        return False

    def _alias(self, relation: exp.Expr) -> str:
        return relation.alias or (self._name(relation)[-1] if isinstance(relation, exp.Table) else "")

    def _name(self, table: exp.Table) -> NameParts:
        return name_of(table, self._shielded.reads)

    def _names_them(self, select: exp.Select) -> bool:
        """Returns whether the SELECT names a column of the change."""
        names = {name for name, text in self._shielded.hidden.items() if text in self._metadata}
        return any(column.name in names for column in select.find_all(exp.Column))


def _is_bare(select: exp.Select) -> bool:
    """Returns whether the SELECT is `SELECT * FROM name`."""
    given = {key for key, value in select.args.items() if value}
    stars = [e for e in select.expressions if isinstance(e, exp.Star) and not any(e.args.values())]
    return given <= {"expressions", "from_"} and len(stars) == len(select.expressions) == 1


def _stars_of(select: exp.Select) -> list[exp.Star]:
    found = [e if isinstance(e, exp.Star) else e.this for e in select.expressions]
    return [star for star in found if isinstance(star, exp.Star)]


def _columns_of_change(select: exp.Select, metadata: tuple[str, ...]) -> None:
    """Takes the columns that a stream shows here out of the *, and puts those of the source system behind it."""
    star = select.expressions[0]
    _without(star, _SHOWN)
    shown = [exp.column(exp.Identifier(this=name, quoted=False)) for name in metadata]
    select.set("expressions", [star, *shown])


def _without(star: exp.Star, names: tuple[str, ...]) -> exp.Star:
    """Adds names to those that a * leaves out."""
    added = [exp.Identifier(this=name, quoted=False) for name in names]
    star.set("except_", [*(star.args.get("except_") or []), *added])
    return star
