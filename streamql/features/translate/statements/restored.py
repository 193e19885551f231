"""RESTORE TABLE to a time, which Delta Lake takes as a literal."""

from __future__ import annotations

from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError
from streamql.features.translate.ordinary.expressions import expression_to_spark
from streamql.features.translate.text.lexical import time_literal

_LITERALS = "RESTORE TABLE t TO TIMESTAMP AS OF '…', or TO VERSION AS OF n"


def restored(table: str, time: str, context: Context, statement: str) -> str:
    """Returns the RESTORE of a table to a time of the source system. `statement`: what the error names. Raises NotTranslatedError if the
    time is not a literal."""
    expression, _ = expression_to_spark(time, context)  # the notes are on functions, which no literal has
    literal = time_literal(expression)
    if literal is None:
        raise NotTranslatedError(f"{statement} to an expression: Delta Lake takes a literal", _LITERALS)
    return f"RESTORE TABLE {table} TO TIMESTAMP AS OF {literal}"
