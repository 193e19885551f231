"""Short statements that Spark has in another form: DROP SCHEMA, TRUNCATE of a partition, and ClickZetta's upkeep of tables."""

from __future__ import annotations

import re

from streamql.dialect import quote_string
from streamql.dialect.cursor import Cursor
from streamql.dialect.tokens import TokenType
from streamql.translate.context import Context, sql_name
from streamql.translate.model import NotTranslatedError, System, Translated
from streamql.translate.transpile import expression_to_spark

_CASCADE = "CASCADE was added: in {} DROP {} also drops the tables inside"
_NAME = r"(?:\.?(?:\w+|`[^`]+`))+"
_UPKEEP = (
    rf"(?:DESC|DESCRIBE) HISTORY {_NAME}(?: LIMIT \d+)?",
    rf"(?:DESC|DESCRIBE)(?: TABLE)?(?: EXTENDED| FORMATTED)? {_NAME}",
    rf"(?:DESC|DESCRIBE) (?:SCHEMA|DATABASE|FUNCTION)(?: EXTENDED)? {_NAME}",
    rf"RESTORE TABLE {_NAME} TO (?:TIMESTAMP|VERSION) AS OF .+",
    rf"OPTIMIZE {_NAME}(?: WHERE .+?)?(?: ZORDER BY .+)?",
    rf"VACUUM {_NAME}(?: RETAIN \d+ HOURS?)?(?: DRY RUN)?",
    rf"ANALYZE TABLE {_NAME} COMPUTE STATISTICS.*",
)
"""What Delta Lake and Spark have of ClickZetta's statements on one table, with one space between the words."""
_UPKEEP_WORDS = ("RESTORE", "OPTIMIZE", "VACUUM", "ANALYZE", "DESC", "DESCRIBE")
_SPARK = re.compile(f"(?:{'|'.join(_UPKEEP)})", re.IGNORECASE | re.DOTALL)
_OWN = ("DYNAMIC", "MATERIALIZED", "STREAM", "EXTERNAL", "STORAGE")


def utility(text: str, context: Context) -> Translated | None:
    """Returns the translation of a short statement; None: it is another one, or stays as it is. Raises NotTranslatedError."""
    for rule in (_drop_schema, _describe_schema, _truncate, _stream_status, _check_upkeep):
        found = rule(Cursor(text), context)
        if found is not None:
            return found
    return None


def _drop_schema(cursor: Cursor, context: Context) -> Translated | None:
    if not cursor.take("DROP") or not cursor.at_any(("SCHEMA", "DATABASE")):
        return None
    word = cursor.advance().key
    exists = " IF EXISTS" if cursor.take("IF", "EXISTS") else ""
    name = sql_name(cursor.name("the name of a schema")[0])
    if not cursor.at_end() or context.system is System.CLICKZETTA:
        return None
    note = _CASCADE.format(context.system.title, word)
    return Translated((f"DROP {word}{exists} {name} CASCADE",), (note,))


def _describe_schema(cursor: Cursor, _context: Context) -> Translated | None:
    if not cursor.at_any(("DESC", "DESCRIBE")) or cursor.key(1) not in ("SCHEMA", "DATABASE"):
        return None
    cursor.index += 2
    extended = " EXTENDED" if cursor.take("EXTENDED") else ""
    name, _ = cursor.name("the name of a schema")
    return Translated((f"DESCRIBE SCHEMA{extended} {sql_name(name)}",)) if cursor.at_end() else None


def _truncate(cursor: Cursor, context: Context) -> Translated | None:
    """TRUNCATE TABLE t PARTITION (condition) as DELETE: Delta Lake does not truncate partitions."""
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


def _stream_status(cursor: Cursor, context: Context) -> Translated | None:
    """Databend's CALL system$stream_status('s') as a query of stream_status."""
    if context.system is not System.DATABEND or not cursor.take("CALL") or not cursor.take("SYSTEM$STREAM_STATUS", "("):
        return None
    stream = cursor.string("the name of a stream")
    cursor.expect(")")
    cursor.expect_end()
    return Translated((f"SELECT * FROM stream_status({quote_string(stream)})",))


def _check_upkeep(cursor: Cursor, context: Context) -> Translated | None:
    """Raises NotTranslatedError for upkeep of ClickZetta's in a form that Spark and Delta Lake do not have."""
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
        return None  # a rule writes these anew
    form = "DESC HISTORY" if cursor.key(1) == "HISTORY" else cursor.key()
    hint = "write the form of Delta Lake, such as DESC HISTORY t LIMIT 10, OPTIMIZE t or VACUUM t"
    raise NotTranslatedError(f"{form} of this form: Delta Lake has none", hint)
