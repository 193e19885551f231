"""CREATE STREAM … CLONE: a new stream that begins where another one stands."""

from __future__ import annotations

from streamql.dialect import quote_string
from streamql.dialect.text.cursor import Cursor
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, Translated
from streamql.features.translate.text.names import lowered, sql_name
from streamql.features.translate.text.properties import tracking

_NOTE = "CLONE became AT (STREAM => …): the new stream begins where the other one stands"


def clone_stream(text: str, context: Context) -> Translated | None:
    """Returns the stream with the offset of the other one; None: it is another statement. Raises NotTranslatedError."""
    cursor = Cursor(text)
    if not cursor.take("CREATE"):
        return None
    head = "CREATE OR REPLACE" if cursor.take("OR", "REPLACE") else "CREATE"
    if not cursor.take("STREAM"):
        return None
    suffix = " IF NOT EXISTS" if cursor.take("IF", "NOT", "EXISTS") else ""
    name, _ = cursor.name("the name of a stream")
    if not cursor.take("CLONE"):
        return None
    cloned, _ = cursor.name("the name of a stream")
    cursor.take("COPY", "GRANTS")
    cursor.expect_end()
    source = context.streams.get(lowered(cloned))
    point = f"AT (STREAM => {quote_string(sql_name(cloned))})"
    if source is None:
        hint = f"CREATE STREAM {sql_name(name)} ON TABLE … {point}"
        raise NotTranslatedError("CLONE: the script does not say which table the stream is on", hint)
    mode = f" APPEND_ONLY = {'TRUE' if source.mode.value == 'APPEND_ONLY' else 'FALSE'}" if source.mode else ""
    on = f"ON {source.source_type} {sql_name(source.source)}"
    text = f"{head} STREAM{suffix} {sql_name(name)} {on} {point}{mode}"
    tables = context.untracked(context.sources_of_stream(source))
    context.track(tables)
    return Translated((*(tracking(table) for table in tables), text), (_NOTE,))
