"""The statements inside CREATE TASK and CREATE PIPE."""

from __future__ import annotations

from streamql.dialect import split
from streamql.dialect.text.cursor import Cursor


def statements_inside(text: str) -> list[str]:
    """Returns the statements behind AS, without the BEGIN and END around them; empty: the statement has none."""
    cursor = Cursor(text)
    if not cursor.take("CREATE"):
        return []
    while not cursor.at_end() and not cursor.at("AS"):
        cursor.index = cursor.closers.get(cursor.index, cursor.index) + 1
    if not cursor.take("AS") or cursor.at_end():
        return []
    tokens = cursor.tokens
    if cursor.at("BEGIN") and tokens[-2].key == "END":
        inner = text[tokens[cursor.index].end : tokens[-2].start]
        return [fragment.text for fragment in split(inner)]
    return [text[cursor.token.start :]]
