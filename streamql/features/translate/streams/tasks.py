"""Tasks: CREATE TASK and ALTER TASK … MODIFY AS with their statements translated; the other statements about tasks stay as they are."""

from __future__ import annotations

from collections.abc import Callable

from streamql.dialect import parse
from streamql.dialect.text.cursor import Cursor
from streamql.features.translate.model import NotTranslatedError, Refused, Result, Translated
from streamql.features.translate.rendering import line_of_body
from streamql.features.translate.streams.bodies import statements_behind

_ALTERED = "CREATE OR ALTER became CREATE OR REPLACE, which forgets what the task has run"
_SCHEDULER = "streamql scheduler runs tasks, and has to be started"
_VERBS = ("ALTER", "DROP", "EXECUTE", "DESC", "DESCRIBE")


def task(text: str, translate: Callable[[str], Result]) -> Result | None:
    """Returns what becomes of a statement about a task; None: it is about something else. `translate`: translates a statement of its body.
    Raises NotTranslatedError, and what the parser says of the statement."""
    cursor = Cursor(text)
    verb = cursor.advance().key
    if verb == "CREATE":
        alters = cursor.take("OR", "ALTER")
        cursor.take("OR", "REPLACE")
        return _with_body(cursor, alters, translate) if cursor.at("TASK") else None
    is_ours = cursor.at("TASK") if verb in _VERBS else verb == "SHOW" and cursor.at("TASKS")
    if not is_ours:
        return None
    while verb == "ALTER" and not cursor.at_end() and not cursor.at("MODIFY", "AS"):
        cursor.advance()
    return _with_body(cursor, False, translate) if cursor.at("MODIFY", "AS") else _checked(text, ())


def _with_body(cursor: Cursor, alters: bool, translate: Callable[[str], Result]) -> Result:
    """Returns a statement with the statements of its body translated. The cursor is somewhere before AS."""
    text = cursor.text
    found = statements_behind(cursor)
    if found is None:
        raise NotTranslatedError("the task has no statements", "write AS and the statements; a task has no CLONE")
    start, inside, is_block = found
    results = [translate(statement) for statement in inside]
    refused = next((r for r in results if isinstance(r, Refused)), None)
    if refused is not None:
        lines = tuple(line_of_body(s, r) for s, r in zip(inside, results, strict=True))
        return Refused(f"a statement of the task: {refused.reason}", refused.hint, lines)
    made = [r for r in results if isinstance(r, Translated)]
    statements = [s for r in made for s in r.statements]
    body = (
        statements[0]
        if len(statements) == 1 and not is_block
        else "BEGIN\n" + "".join(f"  {s};\n" for s in statements) + "END"
    )
    head = text[:start]
    notes = [_SCHEDULER] if cursor.tokens[0].key == "CREATE" else []
    if alters:
        at = cursor.tokens[2]
        head = f"{head[: at.start]}REPLACE{head[at.end :]}"
        notes.append(_ALTERED)
    return _checked(head + body, (*notes, *dict.fromkeys(n for r in made for n in r.notes)))


def _checked(text: str, notes: tuple[str, ...]) -> Translated:
    """Returns a statement as it is, if streamql takes it. Raises StreamqlError."""
    parse(text)
    return Translated((text,), notes)
