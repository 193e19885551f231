"""INSERT ALL and INSERT FIRST, which write into several tables."""

from __future__ import annotations

from sqlglot import exp

from streamql.dialect.text.cursor import Cursor
from streamql.features.translate.dialects.written import sql_of
from streamql.features.translate.model import NotTranslatedError

_OVERWRITE_ONE = "write INSERT OVERWRITE t SELECT … UNION ALL SELECT … for this table"


def overwrites(text: str) -> bool:
    """Returns whether the statement is INSERT OVERWRITE ALL or FIRST; sqlglot reads it as INSERT ALL or FIRST."""
    cursor = Cursor(text)
    return cursor.take("INSERT", "OVERWRITE") and cursor.at_any(("ALL", "FIRST"))


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
                earlier.append(f"({sql_of(condition)})")
                tests.append(earlier[-1])
            where = f" WHERE {' AND '.join(tests)}"
        target = _target(item.this)
        if overwrites and target in targets:
            raise NotTranslatedError(
                f"INSERT OVERWRITE names the table {target} twice: the second part would remove the rows of the first",
                _OVERWRITE_ONE,
            )
        targets.add(target)
        clauses.append(_insert(item.this, overwrites) + where)  # several INTO behind one WHEN share its condition
    source = tree.args["source"]
    return f"FROM ({sql_of(source.unnest())})\n" + "\n".join(clauses)


def _target(insert: exp.Expr) -> str:
    table = insert.find(exp.Table)
    return ".".join(part.name.lower() for part in table.parts) if table is not None else ""


def _insert(insert: exp.Expr, overwrites: bool) -> str:
    """`INTO t [(columns)] [VALUES (…)]` as INSERT INTO t SELECT … or INSERT OVERWRITE t SELECT …"""
    rows = insert.args.get("expression")
    values = "*"
    if isinstance(rows, exp.Values) and rows.expressions:
        row = rows.expressions[0]
        values = ", ".join(sql_of(e) for e in (row.expressions if isinstance(row, exp.Tuple) else [row]))
    elif rows is not None:
        values = ", ".join(sql_of(e) for e in rows.expressions) or "*"
    return f"INSERT {'OVERWRITE' if overwrites else 'INTO'} {sql_of(insert.this)} SELECT {values}"
