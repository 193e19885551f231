"""UPDATE and DELETE with a subquery in WHERE, as MERGE: Delta Lake allows no subquery in either."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from streamql.features.translate.dialects.written import sql_of
from streamql.features.translate.model import NotTranslatedError
from streamql.features.translate.wording import WRITE_MERGE

_MERGE_OF_REST = "write MERGE INTO … USING … ON … WHEN NOT MATCHED BY SOURCE THEN …"
_SIMPLE = frozenset(("expressions", "from_", "joins", "laterals", "where", "distinct", "kind", "hint"))
"""The clauses of a SELECT to which a condition can be moved, or from which one can be taken, without a change of its meaning."""


@dataclass(frozen=True)
class _Keys:
    """The rows that a subquery selects. `compared`: an expression of the target, and the expression of the subquery that equals it."""

    query: exp.Query
    compared: list[tuple[exp.Expr, exp.Expr]]


def as_merge_of_subquery(tree: exp.Update | exp.Delete) -> str | None:
    """Returns MERGE for IN (SELECT …) and EXISTS (SELECT …); None: the statement has no subquery. Raises NotTranslatedError."""
    verb = tree.key.upper()
    where = tree.args.get("where")
    check_no_subquery(tree.expressions, f"SET of {verb}")
    if where is None or where.find(exp.Query) is None:
        return None
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this.unnest()]
    tests = [part for part in parts if part.find(exp.Query)]
    if len(tests) > 1:
        raise NotTranslatedError(f"several subqueries in {verb}: Delta Lake allows no subquery in {verb}", WRITE_MERGE)
    keys = _keys(tests[0].unnest(), verb, tree.this.alias_or_name)
    source, conditions = _source(keys)
    conditions += [sql_of(part) for part in parts if part is not tests[0]]
    action = (
        "DELETE" if isinstance(tree, exp.Delete) else f"UPDATE SET {', '.join(sql_of(e) for e in tree.expressions)}"
    )
    return (
        f"MERGE INTO {sql_of(tree.this)} USING ({source}) AS _source ON {' AND '.join(conditions)} "
        f"WHEN MATCHED THEN {action}"
    )


def check_no_subquery(nodes: list[exp.Expr], where: str) -> None:
    """Raises NotTranslatedError if one of the expressions has a subquery; `where`: the clause that they stand in."""
    if any(node.find(exp.Query) for node in nodes):
        raise NotTranslatedError(f"a subquery in {where}: Delta Lake allows none there", WRITE_MERGE)


def _keys(test: exp.Expr, verb: str, target: str) -> _Keys:
    """Returns what the test IN, = ANY or EXISTS selects. Raises NotTranslatedError for a test of another form."""
    if isinstance(test, exp.Not) or isinstance(test.args.get("expression"), exp.All):
        raise NotTranslatedError(f"NOT with a subquery in {verb}: Delta Lake allows no subquery there", _MERGE_OF_REST)
    if isinstance(test, exp.In) and test.args.get("query") is not None:
        query, outer = test.args["query"].unnest(), test.this.unnest()
    elif isinstance(test, exp.EQ) and isinstance(test.expression, exp.Any):
        query, outer = test.expression.this.unnest(), test.this.unnest()
    elif isinstance(test, exp.Exists):
        query, outer = test.this.unnest(), None
    else:
        raise NotTranslatedError(f"a subquery in {verb}: Delta Lake allows none there", WRITE_MERGE)
    if outer is None:
        return _correlated(query, [], verb, target)
    if outer.find(exp.Query):
        raise NotTranslatedError(f"a subquery in {verb}: Delta Lake allows none there", WRITE_MERGE)
    outers = outer.expressions if isinstance(outer, exp.Tuple) else [outer]
    inner = [e.unalias() for e in query.expressions] if isinstance(query, exp.Select) else []
    if not _refers_to(query, query, target):
        # Only columns can lose their names: another clause may name what an expression is called.
        is_plain = _is_simple(query) and len(inner) == len(outers)
        is_plain = is_plain and all(type(e) is exp.Column and not e.is_star for e in query.expressions)
        return _Keys(query, list(zip(outers, inner if is_plain else [exp.Null() for _ in outers], strict=True)))
    if len(inner) != len(outers):
        raise NotTranslatedError(f"a subquery in {verb} that reads a column of the target", WRITE_MERGE)
    return _correlated(query, list(zip(outers, inner, strict=True)), verb, target)


def _correlated(query: exp.Query, compared: list[tuple[exp.Expr, exp.Expr]], verb: str, target: str) -> _Keys:
    """Takes the comparisons with the target out of the subquery's WHERE."""
    problem = NotTranslatedError(
        f"a subquery in {verb} that is not compared with the target by source.column = target.column", WRITE_MERGE
    )
    where = query.args.get("where")
    if not _is_simple(query) or where is None or query.find(exp.AggFunc):
        raise problem
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this.unnest()]
    kept: list[exp.Expr] = []
    compared = list(compared)
    for part in parts:
        if not _refers_to(part, query, target):
            kept.append(part.copy())
            continue
        sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
        outer = [side for side in sides if _is_of_target(side, target)]
        inner = [side for side in sides if not _refers_to(side, query, target)]
        if len(outer) != 1 or len(inner) != 1:
            raise problem
        compared.append((outer[0], inner[0]))
    if not compared or any(_refers_to(inner, query, target) for _, inner in compared):
        raise problem
    bare = query.copy()
    bare.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
    if _refers_to(bare.args.get("from_") or bare, query, target) or any(
        _refers_to(join, query, target) for join in bare.args.get("joins") or []
    ):
        raise problem
    return _Keys(bare, compared)


def _is_simple(query: exp.Query) -> bool:
    return isinstance(query, exp.Select) and {key for key, value in query.args.items() if value} <= _SIMPLE


def _source(keys: _Keys) -> tuple[str, list[str]]:
    """Returns the query whose rows MERGE reads, each once, and the conditions that compare them with the target."""
    names = [f"_key_{number}" for number in range(1, len(keys.compared) + 1)]
    query = keys.query.copy()
    if not isinstance(keys.compared[0][1], exp.Null):
        selected = [exp.alias_(inner.copy(), name) for name, (_, inner) in zip(names, keys.compared, strict=True)]
        query.set("expressions", selected)
        query.set("distinct", exp.Distinct())
        source = sql_of(query)
    else:
        source = f"SELECT DISTINCT * FROM ({sql_of(query)}) AS _keys({', '.join(names)})"
    pairs = zip(names, keys.compared, strict=True)
    return source, [f"{sql_of(outer)} = _source.{name}" for name, (outer, _) in pairs]


def _refers_to(node: exp.Expr, query: exp.Query, target: str) -> bool:
    """Returns whether a column inside a subquery names the target, and not a relation of the subquery."""
    relations = {r.alias_or_name.lower() for r in query.find_all(exp.Table, exp.Subquery, exp.CTE)}
    if target.lower() in relations:
        return False
    return any(column.table.lower() == target.lower() for column in node.find_all(exp.Column))


def _is_of_target(node: exp.Expr, target: str) -> bool:
    """Returns whether all columns of an expression name the target."""
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(column.table.lower() == target.lower() for column in columns)
