"""ClickZetta's pipes that insert from a query or read Kafka. Those that copy files are in `refusals.objects`."""

from __future__ import annotations

import re

from streamql.dialect.text.cursor import Cursor
from streamql.errors import StreamqlError
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import Refused
from streamql.features.translate.text.names import sql_name
from streamql.features.translate.text.relations import relations_of
from streamql.features.translate.wording import KAFKA_TABLE

_NO_PIPES = "streamql has no pipes"


def pipe_refused(text: str, body: list[str], context: Context) -> Refused | None:
    """Returns why a pipe is not translated, and the command that replaces it; None: the statement is another one.

    `body`: the statements behind AS.
    """
    cursor = Cursor(text)
    if not cursor.take("CREATE"):
        return None
    cursor.take("OR", "REPLACE")
    if not cursor.take("PIPE") or not body:
        return None
    if any(token.key == "READ_KAFKA" for token in Cursor(body[0]).tokens):
        return Refused(_NO_PIPES, KAFKA_TABLE)
    if not Cursor(body[0]).at("INSERT"):
        return None
    cursor.take("IF", "NOT", "EXISTS")
    try:
        name, _ = cursor.name("the name of the pipe")
    except StreamqlError:
        return None
    file = (re.sub(r"\W+", "_", name[-1]) or "pipe") + ".sql"
    read = dict.fromkeys(sql_name(r.parts) for r in relations_of(Cursor(body[0])) if context.is_stream(r.parts))
    conditions = "".join(f" --when-has-data {stream}" for stream in read)
    hint = f"put the statement after AS into {file}, then type: streamql run {file} --every 1min{conditions}"
    return Refused(_NO_PIPES, hint)
