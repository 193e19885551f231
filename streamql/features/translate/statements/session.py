"""SET of a variable, USE and EXPLAIN."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, System, Translated
from streamql.features.translate.ordinary.expressions import constant_to_spark
from streamql.features.translate.ordinary.transpile import to_spark
from streamql.features.translate.wording import LEAVE_OUT, ONE_PART, SESSION
from streamql.names import quote_if_needed


def set_variable(text: str, context: Context) -> Translated | None:
    """Returns SET x = value as a variable of Spark's; None: it is another statement. Raises NotTranslatedError."""
    cursor = Cursor(text)
    if not cursor.take("SET"):
        return None
    has_word = cursor.take("VARIABLE")
    if context.system is System.CLICKZETTA or (context.system is System.DATABEND and not has_word):
        raise NotTranslatedError(f"SET: {SESSION}", LEAVE_OUT)
    if cursor.at("("):
        raise NotTranslatedError("SET of several variables: Spark declares one at a time", "write SET for each of them")
    name, _ = cursor.single_name("the name of a variable")
    cursor.expect("=")
    value = cursor.raw("a value", cursor.at_end)
    default, notes = constant_to_spark(value, context)
    return Translated((f"DECLARE OR REPLACE VARIABLE {quote_if_needed(name)} = {default}",), tuple(notes))


def use(text: str, context: Context) -> Translated | None:
    """Returns USE of a schema; None: it is another statement. Raises StreamqlError for a statement that ends too early."""
    cursor = Cursor(text)
    if not cursor.take("USE"):
        return None
    has_word = cursor.take("DATABASE") or cursor.take("SCHEMA")
    name, _ = cursor.name("the name of a schema")
    cursor.expect_end()
    notes = context.once(ONE_PART.format(name[0])) if len(name) > 1 else ()
    is_kept = not has_word and len(name) == 1
    return Translated((text if is_kept else f"USE {quote_if_needed(name[-1])}",), notes)


def explain(text: str, context: Context) -> Translated | None:
    """Returns EXPLAIN of the translated statement; None: it is another statement. Raises NotTranslatedError."""
    cursor = Cursor(text)
    if not cursor.take("EXPLAIN"):
        return None
    if cursor.at("ANALYZE"):
        raise NotTranslatedError("EXPLAIN ANALYZE: Spark's EXPLAIN runs nothing", "EXPLAIN FORMATTED")
    if cursor.take("USING"):
        cursor.advance()
    explained = to_spark(text[cursor.token.start :], context)
    return Translated((f"EXPLAIN {explained.statements[0]}",), explained.notes)
