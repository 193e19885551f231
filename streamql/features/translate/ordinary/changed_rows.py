"""UPDATE … FROM and DELETE … USING as MERGE, and what MERGE itself must not have."""

from __future__ import annotations

from sqlglot import exp

from streamql.features.translate.dialects.written import sql_of
from streamql.features.translate.model import NotTranslatedError
from streamql.features.translate.ordinary.subqueries import as_merge_of_subquery, check_no_subquery
from streamql.features.translate.wording import WRITE_MERGE

_ONE_SOURCE = f"name one table or subquery there, and {WRITE_MERGE}"
_UPDATE_BECAME_MERGE = (
    "UPDATE … FROM became MERGE, which fails if several rows of the source match one row of the target"
)
_DELETE_BECAME_MERGE = "DELETE … USING became MERGE: Delta Lake's DELETE reads one table"
_SUBQUERY_BECAME_MERGE = "{0} with a subquery became MERGE: Delta Lake allows no subquery in {0}"


def changed_rows(tree: exp.Update | exp.Delete) -> tuple[str, str] | None:
    """Returns UPDATE or DELETE as MERGE, and the note; None: the statement reads no other table. Raises NotTranslatedError."""
    verb = tree.key.upper()
    if tree.args.get("order") or tree.args.get("limit"):
        raise NotTranslatedError(f"{verb} with ORDER BY or LIMIT: Spark has none", "select the rows in WHERE")
    merge, note = as_merge(tree), _UPDATE_BECAME_MERGE if verb == "UPDATE" else _DELETE_BECAME_MERGE
    if merge is None:
        merge, note = as_merge_of_subquery(tree), _SUBQUERY_BECAME_MERGE.format(verb)
    ctes = tree.args.get("with_")
    if merge is None and ctes is not None:
        raise NotTranslatedError(f"WITH before {verb}: Spark has none", "write MERGE, which can have WITH before it")
    return (f"{sql_of(ctes)} {merge}" if ctes is not None else merge, note) if merge is not None else None


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
        action = f"UPDATE SET {', '.join(sql_of(e) for e in tree.expressions)}"
    else:
        sources = tree.args.get("using") or []
        action = "DELETE"
    if not isinstance(tree.this, exp.Expr):
        raise NotTranslatedError(
            "DELETE from several tables: Spark deletes from one", "write one DELETE for each table"
        )
    if not sources:
        return None
    where = tree.args.get("where")
    if len(sources) > 1 or sources[0].args.get("joins") or where is None:
        words = "UPDATE … FROM" if isinstance(tree, exp.Update) else "DELETE … USING"
        raise NotTranslatedError(
            f"{words} with several sources, or without WHERE: MERGE takes one source and a condition", _ONE_SOURCE
        )
    check_no_subquery([where.this, *tree.expressions], "the conditions and values of MERGE")
    return (
        f"MERGE INTO {sql_of(tree.this)} USING {sql_of(sources[0])} ON {sql_of(where.this)} WHEN MATCHED THEN {action}"
    )
