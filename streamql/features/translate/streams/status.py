"""Databend's call that shows the status of a stream."""

from __future__ import annotations

from streamql.dialect import quote_string
from streamql.dialect.text.cursor import Cursor
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import System, Translated


def stream_status(text: str, context: Context) -> Translated | None:
    """Databend's CALL system$stream_status('s') as a query of stream_status."""
    cursor = Cursor(text)
    if context.system is not System.DATABEND or not cursor.take("CALL") or not cursor.take("SYSTEM$STREAM_STATUS", "("):
        return None
    stream = cursor.string("the name of a stream")
    cursor.expect(")")
    cursor.expect_end()
    return Translated((f"SELECT * FROM stream_status({quote_string(stream)})",))
