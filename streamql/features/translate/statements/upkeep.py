"""Upkeep of tables: OPTIMIZE, VACUUM, RESTORE, DESCRIBE HISTORY, and TRUNCATE of a partition."""

from __future__ import annotations

import re

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import TokenType
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, System, Translated
from streamql.features.translate.ordinary.expressions import expression_to_spark
from streamql.features.translate.statements.restored import restored
from streamql.features.translate.text.names import sql_name

_PART = r"(?:\w+|`[^`]+`)"
_NAME = rf"{_PART}(?:\.{_PART})*"
_UPKEEP = (
    rf"(?:DESC|DESCRIBE) HISTORY {_NAME}(?: LIMIT \d+)?",
    rf"(?:DESC|DESCRIBE)(?: TABLE)?(?: EXTENDED| FORMATTED)? {_NAME}",
    rf"(?:DESC|DESCRIBE) (?:SCHEMA|DATABASE|FUNCTION)(?: EXTENDED)? {_NAME}",
    rf"RESTORE TABLE {_NAME} TO (?:TIMESTAMP AS OF '[^']*'|VERSION AS OF \d+)",
    rf"OPTIMIZE {_NAME}(?: WHERE .+?)?(?: ZORDER BY .+)?",
    rf"VACUUM {_NAME}(?: RETAIN \d+ HOURS?)?(?: DRY RUN)?",
)
"""What Delta Lake and Spark have of ClickZetta's statements on one table, with one space between the words."""
_UPKEEP_WORDS = ("RESTORE", "OPTIMIZE", "VACUUM", "DESC", "DESCRIBE")
_SPARK = re.compile(f"(?:{'|'.join(_UPKEEP)})", re.IGNORECASE | re.DOTALL)
_ACTIONS = ("ALL", "PURGE", "COMPACT")
"""What Databend's OPTIMIZE TABLE does: COMPACT is what OPTIMIZE does, PURGE what VACUUM does, ALL both."""
_OWN = ("DYNAMIC", "MATERIALIZED", "STREAM", "EXTERNAL", "STORAGE")


def truncate_partition(text: str, context: Context) -> Translated | None:
    """Returns TRUNCATE TABLE t PARTITION (condition) as DELETE; None: it is another statement. Raises NotTranslatedError."""
    cursor = Cursor(text)
    if not cursor.take("TRUNCATE", "TABLE"):
        return None
    notes: tuple[str, ...] = (
        ("IF EXISTS was left out: Spark's DELETE needs the table",) if cursor.take("IF", "EXISTS") else ()
    )
    table, _ = cursor.name("the name of a table")
    if not cursor.take("PARTITION", "("):
        return None
    conditions: list[str] = []
    while not conditions or cursor.take(","):
        condition = cursor.raw("a condition", lambda: cursor.at(",") or cursor.at(")"))
        expression, of_expression = expression_to_spark(condition, context)
        conditions.append(expression)
        notes = (*notes, *of_expression)
    cursor.expect(")")
    cursor.expect_end()
    return Translated((f"DELETE FROM {sql_name(table)} WHERE {' AND '.join(conditions)}",), notes)


def restore(text: str, context: Context) -> Translated | None:
    """Returns RESTORE TABLE to a time that is not a plain literal; None: it is another statement. Raises NotTranslatedError."""
    cursor = Cursor(text)
    if context.system is not System.CLICKZETTA or not cursor.take("RESTORE", "TABLE"):
        return None
    table, _ = cursor.name("the name of a table")
    if not cursor.take("TO", "TIMESTAMP", "AS", "OF") or cursor.at_string():
        return None
    time = cursor.raw("a time", cursor.at_end)
    return Translated((restored(sql_name(table), time, context, "RESTORE"),))


def check_upkeep(text: str, context: Context) -> Translated | None:
    """Raises NotTranslatedError for upkeep of ClickZetta's in a form that Spark and Delta Lake do not have."""
    cursor = Cursor(text)
    if context.system is not System.CLICKZETTA or not cursor.at_any(_UPKEEP_WORDS):
        return None
    if cursor.at("RESTORE", "DYNAMIC", "TABLE") or cursor.at("RESTORE", "MATERIALIZED", "VIEW"):
        hint = "RESTORE TABLE for the tables that it reads, then REFRESH DYNAMIC TABLE"
        raise NotTranslatedError("RESTORE of a dynamic table: it holds the rows of its query", hint)
    words = " ".join(cursor.text[token.start : token.end] for token in cursor.tokens if token.type is not TokenType.END)
    if any(cursor.key(ahead) in _OWN for ahead in (1, 2)) or _SPARK.fullmatch(words.replace(" . ", ".")):
        return None
    if cursor.key() in ("DESC", "DESCRIBE") and cursor.key(1) in ("SELECT", "WITH", "FROM", "QUERY", "INDEX", "PIPE"):
        return None
    if cursor.at("OPTIMIZE", "TABLE") or cursor.at("VACUUM", "TABLE"):
        return None  # `optimize` takes the word TABLE out
    form = "DESC HISTORY" if cursor.key(1) == "HISTORY" else cursor.key()
    hint = "write the form of Delta Lake, such as DESC HISTORY t LIMIT 10, OPTIMIZE t or VACUUM t"
    raise NotTranslatedError(f"{form} of this form: Delta Lake has none", hint)


def keep_upkeep(text: str, context: Context) -> Translated | None:
    """Returns upkeep of ClickZetta's as it is written, behind `check_upkeep`; None: it is another statement."""
    is_upkeep = context.system is System.CLICKZETTA and Cursor(text).at_any(_UPKEEP_WORDS)
    return Translated((text,)) if is_upkeep else None


def optimize(text: str, _context: Context) -> Translated | None:
    """Returns OPTIMIZE TABLE and VACUUM TABLE without the word TABLE, which Delta Lake does not take; None: it is another statement."""
    cursor = Cursor(text)
    is_vacuum = cursor.take("VACUUM", "TABLE")
    if not is_vacuum and not cursor.take("OPTIMIZE", "TABLE"):
        return None
    table, _ = cursor.name("the name of a table")
    verb = "VACUUM" if is_vacuum or cursor.at("PURGE") else "OPTIMIZE"
    kept = ""
    if is_vacuum and cursor.take("RETAIN"):
        kept = f" RETAIN {cursor.advance().text} HOURS"
        _ = cursor.take("HOURS") or cursor.take("HOUR")
    if is_vacuum and cursor.take("DRY", "RUN"):
        kept += " DRY RUN"
    action = cursor.advance().key if not is_vacuum and cursor.at_any(_ACTIONS) else ""
    rest = text[cursor.token.start :].rstrip()
    notes = () if cursor.at_end() else (f"{rest} was left out: {verb} of Delta Lake has no such clause",)
    after = (f"VACUUM {sql_name(table)}",) if action == "ALL" else ()
    return Translated((f"{verb} {sql_name(table)}{kept}", *after), notes)
