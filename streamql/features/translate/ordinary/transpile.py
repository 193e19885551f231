"""Ordinary SQL of another system as Spark SQL, by sqlglot. streamql's own clauses inside it stay as they are."""

from __future__ import annotations

from sqlglot import exp

from streamql.features.translate.dialects.functions import function_notes
from streamql.features.translate.dialects.parsing import UNKNOWN, parse_sql
from streamql.features.translate.dialects.written import sql_of
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, Translated
from streamql.features.translate.ordinary.changed_rows import changed_rows, check_merge
from streamql.features.translate.ordinary.create import Adapted, adapt_create, without_database
from streamql.features.translate.ordinary.multi_insert import as_multi_insert, overwrites
from streamql.features.translate.ordinary.points import points_to_spark
from streamql.features.translate.queries.adapt import adapt_queries
from streamql.features.translate.queries.grammar import to_grammar
from streamql.features.translate.text.comments import with_comments
from streamql.features.translate.text.lexical import is_same_sql
from streamql.features.translate.text.names import lowered
from streamql.features.translate.text.properties import set_properties, tracking
from streamql.features.translate.text.shield import shield
from streamql.features.translate.text.spelling import spelled_for_sqlglot

_GET_TABLE_TIMESTAMP = "SYSTEM$STREAM_GET_TABLE_TIMESTAMP"
_TABLE_TIMESTAMP = f"{_GET_TABLE_TIMESTAMP} returns a TIMESTAMP here, not nanoseconds"
_NOT_REPLACED = "OR REPLACE became DROP TABLE: Spark's CREATE TABLE … LIKE has none"
_SCHEMAS = ("SCHEMA", "DATABASE")
_DROPPED = ("TABLE", "VIEW", *_SCHEMAS)
_PLAIN = (
    exp.Query,
    exp.Values,
    exp.Insert,
    exp.Merge,
    exp.Describe,
    exp.TruncateTable,
    exp.Comment,
    exp.Update,
    exp.Delete,
)


def to_spark(text: str, context: Context, feeds_table: bool = False) -> Translated:
    """Returns the statement in Spark SQL. Raises NotTranslatedError, and StreamqlError for a clause that streamql refuses.

    `feeds_table`: it is the query of a statement that writes the rows into a table.
    """
    system = context.system
    text, left_out = spelled_for_sqlglot(text, system)
    pointed, notes = points_to_spark(text, context)
    shielded = shield(pointed)
    tree = parse_sql(shielded.text, system)
    notes += to_grammar(tree, context)
    notes += adapt_queries(tree, context, shielded, feeds_table)
    sql, more, after = _adapted(tree, text, context)
    notes = [*left_out, *notes, *more]
    if is_same_sql(sql, shielded.text):
        sql = shielded.text
    notes += function_notes(tree)
    if _GET_TABLE_TIMESTAMP in map(str.upper, shielded.hidden.values()):
        notes.append(_TABLE_TIMESTAMP)
    return Translated((*with_comments(text, [shielded.restore(sql)]), *after), tuple(notes))


def _adapted(tree: exp.Expr, text: str, context: Context) -> tuple[str, list[str], tuple[str, ...]]:
    """Returns the SQL of a statement, its notes, and the statements to run after it. `text`: of the source."""
    pretty = "\n" in text
    if isinstance(tree, exp.Create):
        adapted = adapt_create(tree, context)
        after = (*_settings(tree, adapted, context), *adapted.after)
        if tree.args.get("replace") and tree.find(exp.LikeProperty):  # Spark's LIKE has no OR REPLACE
            tree.set("replace", False)
            dropped = f"DROP TABLE IF EXISTS {sql_of(tree.this)}"
            return dropped, [*adapted.notes, _NOT_REPLACED], (sql_of(tree, pretty), *after)
        return sql_of(tree, pretty), adapted.notes, after
    if isinstance(tree, exp.MultitableInserts):
        return as_multi_insert(tree, overwrites(text)), [], ()
    if isinstance(tree, exp.Update | exp.Delete) and (merge := changed_rows(tree)) is not None:
        return merge[0], [merge[1]], ()
    if isinstance(tree, exp.Merge):
        check_merge(tree)
    if isinstance(tree, exp.Drop):
        notes = without_database(tree, context) if tree.text("kind").upper() in _SCHEMAS else ()
        return sql_of(_dropped(tree), pretty), [*notes], ()
    if isinstance(tree, exp.TruncateTable) and tree.args.get("exists"):
        tree.set("exists", False)
        return sql_of(tree, pretty), ["IF EXISTS was left out: Spark's TRUNCATE TABLE needs the table"], ()
    if not isinstance(tree, _PLAIN):
        raise NotTranslatedError(UNKNOWN)
    return sql_of(tree, pretty), [], ()


def _settings(create: exp.Create, adapted: Adapted, context: Context) -> list[str]:
    """Returns what a CREATE says and Spark's cannot: ALTER TABLE behind it, or for a view for the tables that it reads."""
    table = create.find(exp.Table)
    name = tuple(part.name for part in table.parts) if table is not None else ()
    if lowered(name) in context.views:
        tables = context.untracked([name]) if adapted.change_tracking else []
        context.track(tables)
        return [tracking(table) for table in tables]
    if adapted.change_tracking:
        context.track([name])
    return set_properties(name, adapted.change_tracking or None, adapted.retention_days)


def _dropped(tree: exp.Drop) -> exp.Drop:
    what = str(tree.args.get("kind") or "").upper()
    if what not in _DROPPED:
        raise NotTranslatedError(f"Spark has no DROP {what} of this form")
    if what in ("TABLE", "VIEW"):
        tree.set("cascade", False)
    tree.set("constraints", False)
    return tree
