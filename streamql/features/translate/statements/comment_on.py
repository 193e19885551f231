"""COMMENT ON: Spark has it for tables and schemas, and other statements for views, columns, streams and dynamic tables."""

from __future__ import annotations

from streamql.dialect import quote_string
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import chain
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, Translated
from streamql.features.translate.text.names import sql_name
from streamql.features.translate.wording import LEAVE_OUT
from streamql.names import quote_if_needed

_IF_EXISTS = "IF EXISTS was left out: Spark's COMMENT ON has none, and fails if there is no such object"
_FORMS = {
    ("DYNAMIC", "TABLE"): "ALTER DYNAMIC TABLE {} SET COMMENT = {}",
    ("MATERIALIZED", "VIEW"): "ALTER MATERIALIZED VIEW {} SET COMMENT = {}",
    ("STREAM",): "ALTER STREAM {} SET COMMENT = {}",
    ("TABLE",): "COMMENT ON TABLE {} IS {}",
    ("SCHEMA",): "COMMENT ON SCHEMA {} IS {}",
    ("DATABASE",): "COMMENT ON SCHEMA {} IS {}",
    ("VIEW",): "ALTER VIEW {} SET TBLPROPERTIES ('comment' = {})",
}


def comment_on(text: str, _context: Context) -> Translated | None:
    """Returns the translation of COMMENT ON; None: it is another statement. Raises NotTranslatedError, StreamqlError."""
    cursor = Cursor(text)
    if not cursor.take("COMMENT"):
        return None
    notes = (_IF_EXISTS,) if cursor.take("IF", "EXISTS") else ()
    if not cursor.take("ON"):
        return None
    if cursor.take("COLUMN"):
        parts, cursor.index = chain(cursor.tokens, cursor.index)
        if len(parts) < 2:
            raise NotTranslatedError("COMMENT ON COLUMN without a table: Spark needs its name", "write table.column")
        where = f"{sql_name(parts[:-1])} ALTER COLUMN {quote_if_needed(parts[-1])}"
        return Translated((f"ALTER TABLE {where} COMMENT {_comment(cursor)}",), notes)
    for words, form in _FORMS.items():
        if cursor.take(*words):
            name, _ = cursor.name("a name")
            return Translated((form.format(sql_name(name), _comment(cursor)),), notes)
    raise NotTranslatedError(f"COMMENT ON {cursor.found()}: Spark has no such object", LEAVE_OUT)


def _comment(cursor: Cursor) -> str:
    cursor.expect("IS")
    comment = cursor.string("the comment")
    cursor.expect_end()
    return quote_string(comment)
