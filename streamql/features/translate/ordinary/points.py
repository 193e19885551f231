"""Points in time, AT (TIMESTAMP => expression) and the like: streamql's own clause, around an expression of the source system."""

from __future__ import annotations

import re

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.splices import Splice, apply
from streamql.dialect.text.tokens import scan
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import System
from streamql.features.translate.ordinary.expressions import expression_to_spark
from streamql.features.translate.wording import POINT_WORDS

_DATE = re.compile(r"'\s*\d{4}-\d")
_ZONE = re.compile(r"(?:[+-]\d\d:?\d\d|Z)\s*'")
_TYPES_WITH_ZONE = frozenset(("TIMESTAMP_LTZ", "TIMESTAMP_TZ", "TO_TIMESTAMP_LTZ", "TO_TIMESTAMP_TZ"))
_UTC = "Snowflake reads a time without a zone in AT and BEFORE as UTC; here it is in the session's time zone"


def points_to_spark(text: str, context: Context) -> tuple[str, list[str]]:
    """Returns the statement with the expressions of its points in time, AT (TIMESTAMP => expression), in Spark SQL, and notes."""
    cursor = Cursor(text)
    splices = []
    notes: list[str] = []
    for index, token in enumerate(cursor.tokens):
        closing = cursor.closers.get(index + 1)
        if token.key not in POINT_WORDS or closing is None or cursor.tokens[index + 3].key != "=>":
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
