"""Ordinary SQL of another system as Spark SQL, by sqlglot. streamql's own clauses inside it stay as they are."""

from __future__ import annotations

import logging
import re
from email.utils import parsedate_to_datetime
from itertools import pairwise

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import ParseError, SqlglotError, UnsupportedError

from streamql.dialect.cursor import Cursor
from streamql.dialect.splices import Splice, apply
from streamql.dialect.tokens import scan
from streamql.translate.changes_of_tables import as_multi_insert, changed_rows, check_merge
from streamql.translate.context import Context, lowered, sql_name, tracking
from streamql.translate.dialects import READ, WRITTEN
from streamql.translate.grammar import to_grammar
from streamql.translate.kept_comments import with_comments
from streamql.translate.lexical import is_same_sql
from streamql.translate.model import NotTranslatedError, System, Translated
from streamql.translate.queries import adapt_queries, unknown_functions
from streamql.translate.respelled import overwrites
from streamql.translate.shield import shield
from streamql.translate.spelling import spelled
from streamql.translate.tables import Adapted, adapt_create
from streamql.translate.values import adapt_values
from streamql.translate.variants import adapt_elements

_UNKNOWN = "the translator does not know this statement"
_TABLE_TIMESTAMP = "SYSTEM$STREAM_GET_TABLE_TIMESTAMP returns a TIMESTAMP here, not nanoseconds"
_BACKLOG = "SYSTEM$STREAM_BACKLOG"
_OTHER_BACKLOG = "SYSTEM$STREAM_BACKLOG became stream_backlog, which has columns of its own"
_KEY_WORDS = (("DISABLE", "NOVALIDATE"), ("ENABLE", "VALIDATE"))
"""What ClickZetta says of a primary key, with RELY behind it; the note on the key covers it."""
_MAIL_TIME = re.compile(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}")
_DATE = re.compile(r"'\s*\d{4}-\d")
_ZONE = re.compile(r"(?:[+-]\d\d:?\d\d|Z)\s*'")
_TYPES_WITH_ZONE = frozenset(("TIMESTAMP_LTZ", "TIMESTAMP_TZ", "TO_TIMESTAMP_LTZ", "TO_TIMESTAMP_TZ"))
_UTC = "Snowflake reads a time without a zone in AT and BEFORE as UTC; here it is in the session's time zone"
_ARGUMENT = re.compile(
    r"Argument '(?P<argument>\w+)' is not supported for expression '(?P<function>\w+)' when targeting .*"
)
"""What sqlglot says of an argument that its generator does not write."""
_POINT_WORDS = ("AT", "BEFORE", "END")
_DROPPED = ("TABLE", "VIEW", "SCHEMA", "DATABASE")
_WITHOUT_LENGTH = (
    exp.DType.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ,
    exp.DType.TIMESTAMPNTZ,
    exp.DType.TIMESTAMPTZ,
    exp.DType.DATETIME,
    exp.DType.TIME,
    exp.DType.BINARY,
    exp.DType.VARBINARY,
)
"""Types that have a length or a precision in other systems, and none in Spark."""
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

logging.getLogger("sqlglot").addHandler(logging.NullHandler())


def to_spark(text: str, context: Context, feeds_table: bool = False) -> Translated:
    """Returns the statement in Spark SQL. Raises NotTranslatedError, and StreamqlError for a clause that streamql refuses.

    `feeds_table`: it is the query of a statement that writes the rows into a table.
    """
    system = context.system
    text, left_out = spelled(text, system)
    pointed, notes = points_to_spark(_words_of_spark(text, system), context)
    shielded = shield(pointed)
    tree = _parse(shielded.text, system)
    notes += to_grammar(tree, context)
    notes += adapt_queries(tree, context, shielded, feeds_table)
    sql, more, after = _adapted(tree, text, context)
    notes = [*left_out, *notes, *more]
    if is_same_sql(sql, shielded.text):
        sql = shielded.text
    notes += _function_notes(tree)
    notes += [_OTHER_BACKLOG] if _BACKLOG in text.upper() else []
    notes += (
        [_TABLE_TIMESTAMP] if "SYSTEM$STREAM_GET_TABLE_TIMESTAMP" in map(str.upper, shielded.hidden.values()) else []
    )
    return Translated((*with_comments(text, [shielded.restore(sql)]), *after), tuple(notes))


def expression_to_spark(text: str, context: Context) -> tuple[str, list[str]]:
    """Returns an expression, such as that of a point in time, and its notes. Raises NotTranslatedError."""
    tree = _parse(f"SELECT {text}", context.system)
    notes = _adapted_values(tree, context)
    sql = _generate(tree, False).removeprefix("SELECT ")
    return text if is_same_sql(sql, text) else sql, notes


def columns_to_spark(text: str, context: Context) -> tuple[list[exp.Expr], list[str]]:
    """Returns the columns of a list such as `a NUMBER, b STRING` as Delta Lake has them, and notes. Raises NotTranslatedError."""
    tree = _parse(f"CREATE TABLE _columns ({text})", context.system)
    if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Schema):
        raise NotTranslatedError(_UNKNOWN)
    notes = adapt_create(tree, context).notes
    return tree.this.expressions, notes


def constant_to_spark(text: str, context: Context) -> tuple[str, list[str]]:
    """Returns the value of a variable, an expression or `(SELECT expression)`, and its notes.

    Raises NotTranslatedError for a query over tables.
    """
    tree = _parse(f"SELECT {text}", context.system)
    if len(tree.expressions) != 1 or tree.args.get("from_"):
        raise NotTranslatedError("SET of what is not one value", "write SET x = expression")
    notes = _adapted_values(tree, context)
    value = tree.expressions[0]
    while isinstance(value, exp.Subquery | exp.Paren):
        value = value.this
    if isinstance(value, exp.Select) and not value.args.get("from_") and len(value.expressions) == 1:
        value = value.expressions[0].unalias()
    if value.find(exp.Query):
        raise NotTranslatedError("SET of a query over tables", "DECLARE VARIABLE x TYPE; SET VAR x = (SELECT …)")
    return _generate(value, False), notes


def _adapted_values(tree: exp.Expr, context: Context) -> list[str]:
    notes = [*adapt_values(tree, context), *adapt_elements(tree, context)]
    return [*notes, *_function_notes(tree)]


def points_to_spark(text: str, context: Context) -> tuple[str, list[str]]:
    """Returns the statement with the expressions of its points in time, AT (TIMESTAMP => expression), in Spark SQL, and notes."""
    cursor = Cursor(text)
    splices = []
    notes: list[str] = []
    for index, token in enumerate(cursor.tokens):
        closing = cursor.closers.get(index + 1)
        if token.key not in _POINT_WORDS or closing is None or cursor.tokens[index + 3].key != "=>":
            continue
        if cursor.tokens[index + 2].key in ("TIMESTAMP", "OFFSET"):
            start, end = cursor.tokens[index + 4].start, cursor.tokens[closing - 1].end
            expression, of_expression = expression_to_spark(text[start:end], context)
            splices.append(Splice(start, end, expression))
            notes += of_expression
            if context.system is System.SNOWFLAKE and cursor.tokens[index + 2].key == "TIMESTAMP":
                notes += _zone_notes(text[start:end], context)
    return apply(text, splices), notes


def _zone_notes(text: str, context: Context) -> tuple[str, ...]:
    """Returns the note on a time that names no zone, of the first one in a script."""
    keys = {token.key for token in scan(text)}
    has_zone = keys & _TYPES_WITH_ZONE or _ZONE.search(text)
    return () if has_zone or not _DATE.search(text) else context.once(_UTC)


def _words_of_spark(text: str, system: System) -> str:
    """ClickZetta's PROPERTIES (…) as TBLPROPERTIES (…), Databend's UPDATE * as UPDATE SET *, Snowflake's backlog as stream_backlog."""
    cursor = Cursor(text)
    tokens = cursor.tokens
    splices = [splice for index in range(2, len(tokens)) for splice in _backlog(cursor, index)]
    for token, following in pairwise(tokens):
        if (
            system is System.CLICKZETTA
            and tokens[0].key == "CREATE"
            and (token.key, following.key) == ("PROPERTIES", "(")
        ):
            splices.append(Splice(token.start, token.end, "TBLPROPERTIES"))
        elif system is System.CLICKZETTA and (token.key, following.key) in _KEY_WORDS:
            splices.append(Splice(token.start, following.end, ""))
        elif system is System.DATABEND and (token.key, following.key) == ("UPDATE", "*"):
            splices.append(Splice(token.start, token.end, "UPDATE SET"))
        elif system is System.CLICKZETTA and token.key == "RELY" and splices:
            splices.append(Splice(token.start, token.end, ""))
    return apply(text, splices)


def _backlog(cursor: Cursor, index: int) -> list[Splice]:
    """`TABLE(SYSTEM$STREAM_BACKLOG('s'))` as `stream_backlog('s')`; `index`: of the function's name."""
    tokens, closing = cursor.tokens, cursor.closers.get(index - 1)
    if tokens[index].key != _BACKLOG or tokens[index - 2].key != "TABLE" or closing is None:
        return []
    return [
        Splice(tokens[index - 2].start, tokens[index].end, "stream_backlog"),
        Splice(tokens[closing].start, tokens[closing].end, ""),
    ]


def _parse(text: str, system: System) -> exp.Expr:
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # it warns of what becomes a Command, which is refused below
    try:
        trees = sqlglot.parse(text, read=READ[system])
    except ParseError as problem:
        raise NotTranslatedError(_parse_problem(problem, system)) from None
    except (SqlglotError, ValueError) as problem:
        raise NotTranslatedError(_first_line(problem)) from None
    except (IndexError, AttributeError, TypeError):  # its builders of functions expect other numbers of arguments
        raise NotTranslatedError(f"sqlglot cannot parse this as SQL of {system.title}") from None
    finally:
        logger.setLevel(level)
    tree = trees[0] if len(trees) == 1 else None
    if tree is None or isinstance(tree, exp.Command):
        raise NotTranslatedError(_UNKNOWN)
    for parameter in tree.find_all(exp.Parameter, exp.Placeholder):
        if parameter.parent is not None:
            raise NotTranslatedError(
                f"{parameter.sql(READ[system])} is a parameter or a stage", "write a literal, or a path"
            )
    _adapt_times(tree)
    for data_type in tree.find_all(exp.DataType):
        if data_type.this in _WITHOUT_LENGTH:
            data_type.set("expressions", [])
    return tree


def _adapt_times(tree: exp.Expr) -> None:
    """Times as mail has them, 'Fri, 01 May 2015 16:20:00 -0700', as Spark reads them."""
    for literal in tree.find_all(exp.Literal):
        if literal.is_string and isinstance(literal.parent, exp.Cast) and _MAIL_TIME.fullmatch(literal.name):
            literal.replace(exp.Literal.string(parsedate_to_datetime(literal.name).isoformat(" ")))


def _generate(tree: exp.Expr, pretty: bool) -> str:
    try:
        return tree.sql(
            WRITTEN, pretty=pretty, normalize_functions=False, unsupported_level=ErrorLevel.RAISE, max_text_width=110
        )
    except (UnsupportedError, ValueError, IndexError) as problem:
        raise NotTranslatedError(_first_line(problem)) from None


def _adapted(tree: exp.Expr, text: str, context: Context) -> tuple[str, list[str], tuple[str, ...]]:
    """Returns the SQL of a statement, its notes, and the statements to run after it. `text`: of the source."""
    pretty = "\n" in text
    if isinstance(tree, exp.Create):
        adapted = adapt_create(tree, context)
        after = (*_settings(tree, adapted, context), *adapted.after)
        return _generate(tree, pretty), adapted.notes, after
    if isinstance(tree, exp.MultitableInserts):
        return as_multi_insert(tree, overwrites(text)), [], ()
    if isinstance(tree, exp.Update | exp.Delete) and (merge := changed_rows(tree)) is not None:
        return merge[0], [merge[1]], ()
    if isinstance(tree, exp.Merge):
        check_merge(tree)
    if isinstance(tree, exp.Drop):
        return _generate(_dropped(tree), pretty), [], ()
    if isinstance(tree, exp.TruncateTable) and tree.args.get("exists"):
        tree.set("exists", False)
        return _generate(tree, pretty), ["IF EXISTS was left out: Spark's TRUNCATE TABLE needs the table"], ()
    if not isinstance(tree, _PLAIN):
        raise NotTranslatedError(_UNKNOWN)
    return _generate(tree, pretty), [], ()


def _settings(create: exp.Create, adapted: Adapted, context: Context) -> list[str]:
    """Returns what a CREATE says and Spark's cannot: ALTER TABLE behind it, or for a view for the tables that it reads."""
    table = create.find(exp.Table)
    name = tuple(part.name for part in table.parts) if table is not None else ()
    if lowered(name) in context.views:
        tables = context.untracked([name]) if adapted.change_tracking else []
        context.tracked.update(lowered(t) for t in tables)
        return [tracking(t) for t in tables]
    pairs = ["'change_tracking' = 'true'"] if adapted.change_tracking else []
    pairs += [f"'data_retention_days' = '{adapted.retention_days}'"] if adapted.retention_days else []
    if adapted.change_tracking:
        context.tracked.add(lowered(name))
    return [f"ALTER TABLE {sql_name(name)} SET PROPERTIES ({', '.join(pairs)})"] if pairs else []


def _dropped(tree: exp.Drop) -> exp.Drop:
    what = str(tree.args.get("kind") or "").upper()
    if what not in _DROPPED:
        raise NotTranslatedError(f"Spark has no DROP {what} of this form")
    if what in ("TABLE", "VIEW"):
        tree.set("cascade", False)
    tree.set("constraints", False)
    return tree


def _function_notes(tree: exp.Expr) -> list[str]:
    return [f"Spark has no function {name}: define one, or use another" for name in unknown_functions(tree)]


def _parse_problem(problem: ParseError, system: System) -> str:
    first = problem.errors[0] if problem.errors else {}
    found = first.get("highlight")
    place = f" at {found}" if found else ""
    return f"sqlglot cannot parse this as SQL of {system.title}{place}"


def _first_line(problem: Exception) -> str:
    line = next((line.strip() for line in str(problem).splitlines() if line.strip()), _UNKNOWN).rstrip(".")
    if found := _ARGUMENT.fullmatch(line):
        return f"Spark has no {found['function'].upper()} with the argument {found['argument']}"
    return line.replace("_Written", "Spark")
