"""DML that Spark spells otherwise: UPDATE … FROM, DELETE … USING, INSERT ALL and INSERT FIRST."""

from __future__ import annotations

from sqlglot import exp

from streamql.translate.dialects import WRITTEN
from streamql.translate.model import NotTranslatedError
from streamql.translate.subqueries import BECAME_MERGE as SUBQUERY_BECAME_MERGE
from streamql.translate.subqueries import as_merge_of_subquery, check_no_subquery

_ONE_SOURCE = "name one table or subquery there, and write MERGE INTO … USING … ON … WHEN MATCHED THEN …"
_OVERWRITE_ONE = "write INSERT OVERWRITE t SELECT … UNION ALL SELECT … for this table"
BECAME_MERGE = "{} became MERGE, which fails if several rows of the source match one row of the target"


def changed_rows(tree: exp.Update | exp.Delete) -> tuple[str, str] | None:
    """Returns UPDATE or DELETE as MERGE, and the note; None: the statement reads no other table. Raises NotTranslatedError."""
    verb = tree.key.upper()
    if tree.args.get("order") or tree.args.get("limit"):
        raise NotTranslatedError(f"{verb} with ORDER BY or LIMIT: Spark has none", "select the rows in WHERE")
    merge, note = as_merge(tree), BECAME_MERGE.format("UPDATE … FROM" if verb == "UPDATE" else "DELETE … USING")
    if merge is None:
        merge, note = as_merge_of_subquery(tree), SUBQUERY_BECAME_MERGE.format(verb)
    ctes = tree.args.get("with_")
    if merge is None and ctes is not None:
        raise NotTranslatedError(f"WITH before {verb}: Spark has none", "write MERGE, which can have WITH before it")
    return (f"{_sql(ctes)} {merge}" if ctes is not None else merge, note) if merge is not None else None


def check_merge(tree: exp.Merge) -> None:
    """Raises NotTranslatedError if a condition of MERGE has a subquery."""
    whens = tree.args["whens"].expressions if tree.args.get("whens") else []
    check_no_subquery([tree.args["on"]] if tree.args.get("on") else [], "ON of MERGE")
    check_no_subquery([w.args["condition"] for w in whens if w.args.get("condition")], "a condition of MERGE")


def as_merge(tree: exp.Update | exp.Delete) -> str | None:
    """UPDATE … FROM or DELETE … USING as MERGE; None: the statement reads no other table. Raises NotTranslatedError."""
    if isinstance(tree, exp.Update):
        origin = tree.args.get("from_")
        sources = [origin.this] if origin is not None else []
        action = f"UPDATE SET {', '.join(_sql(e) for e in tree.expressions)}"
    else:
        sources = tree.args.get("using") or []
        action = "DELETE"
    if not isinstance(tree.this, exp.Expr):
        raise NotTranslatedError("DELETE of rows of several tables", "write one DELETE for each table")
    if not sources:
        return None
    where = tree.args.get("where")
    if len(sources) > 1 or sources[0].args.get("joins") or where is None:
        words = "UPDATE … FROM" if isinstance(tree, exp.Update) else "DELETE … USING"
        raise NotTranslatedError(f"{words} with several sources, or without WHERE", _ONE_SOURCE)
    check_no_subquery([where.this, *tree.expressions], "the conditions and values of MERGE")
    return f"MERGE INTO {_sql(tree.this)} USING {_sql(sources[0])} ON {_sql(where.this)} WHEN MATCHED THEN {action}"


def as_multi_insert(tree: exp.MultitableInserts, overwrites: bool = False) -> str:
    """INSERT ALL or INSERT FIRST as Spark's FROM … INSERT …: one statement, which reads its source once.

    `overwrites`: INSERT OVERWRITE ALL or FIRST. Raises NotTranslatedError if it writes a table twice.
    """
    is_first = str(tree.args.get("kind") or "").upper() == "FIRST"
    earlier: list[str] = []
    clauses: list[str] = []
    targets: set[str] = set()
    where = ""
    for item in tree.expressions:
        condition = item.args.get("expression")
        if condition is not None or item.args.get("else_"):
            others = earlier if is_first or condition is None else []
            tests = [f"NOT coalesce({test}, false)" for test in others]
            if condition is not None:
                earlier.append(f"({_sql(condition)})")
                tests.append(earlier[-1])
            where = f" WHERE {' AND '.join(tests)}"
        target = _target(item.this)
        if overwrites and target in targets:
            raise NotTranslatedError(f"INSERT OVERWRITE that names the table {target} twice", _OVERWRITE_ONE)
        targets.add(target)
        clauses.append(_insert(item.this, overwrites) + where)  # several INTO behind one WHEN share its condition
    source = tree.args["source"]
    return f"FROM ({_sql(source.unnest())})\n" + "\n".join(clauses)


def _target(insert: exp.Expr) -> str:
    table = insert.find(exp.Table)
    return ".".join(part.name.lower() for part in table.parts) if table is not None else ""


def _insert(insert: exp.Expr, overwrites: bool) -> str:
    """`INTO t [(columns)] [VALUES (…)]` as INSERT INTO t SELECT … or INSERT OVERWRITE t SELECT …"""
    rows = insert.args.get("expression")
    values = "*"
    if isinstance(rows, exp.Values) and rows.expressions:
        row = rows.expressions[0]
        values = ", ".join(_sql(e) for e in (row.expressions if isinstance(row, exp.Tuple) else [row]))
    elif rows is not None:
        values = ", ".join(_sql(e) for e in rows.expressions) or "*"
    return f"INSERT {'OVERWRITE' if overwrites else 'INTO'} {_sql(insert.this)} SELECT {values}"


def _sql(node: exp.Expr) -> str:
    return node.sql(WRITTEN, normalize_functions=False)
