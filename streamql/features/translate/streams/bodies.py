"""The statements inside CREATE TASK, ALTER TASK and CREATE PIPE."""

from __future__ import annotations

from streamql.dialect import split
from streamql.dialect.text.cursor import Cursor


def statements_inside(text: str) -> list[str]:
    """Returns the statements behind AS, without the BEGIN and END around them; empty: the statement has none."""
    cursor = Cursor(text)
    found = statements_behind(cursor) if cursor.take("CREATE") else None
    return [] if found is None else found[1]


def statements_behind(cursor: Cursor) -> tuple[int, list[str], bool] | None:
    """Returns where the text behind the next AS begins, its statements, and whether BEGIN and END are around them; None: there is none."""
    text = cursor.text
    while not cursor.at_end() and not cursor.at("AS"):
        cursor.index = cursor.closers.get(cursor.index, cursor.index) + 1
    if not cursor.take("AS") or cursor.at_end():
        return None
    tokens, start = cursor.tokens, cursor.token.start
    if cursor.at("BEGIN") and tokens[-2].key == "END":
        inner = text[tokens[cursor.index].end : tokens[-2].start]
        return start, [fragment.text for fragment in split(inner)], True
    return start, [text[start:]], False
