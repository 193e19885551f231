"""ALTER DYNAMIC TABLE and CREATE OR ALTER STREAM: several names and settings at once become a statement for each."""

from __future__ import annotations

from streamql.dialect import quote_string
from streamql.dialect.statements import CreateStream
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.splices import Splice, apply
from streamql.dialect.text.tokens import TokenType
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import Translated
from streamql.features.translate.streams.own import by_streamql
from streamql.features.translate.text.lenient import is_streamql, parse_leniently
from streamql.features.translate.text.names import sql_name
from streamql.features.translate.wording import NO_SCHEDULER, NO_WAREHOUSE

_OBJECTS = (("DYNAMIC", "TABLE"), ("MATERIALIZED", "VIEW"))
_LEFT_OUT = {
    "WAREHOUSE": NO_WAREHOUSE,
    "INITIALIZATION_WAREHOUSE": NO_WAREHOUSE,
    "SCHEDULER": NO_SCHEDULER,
}
_KEPT = ("TARGET_LAG", "COMMENT", "REFRESH_MODE")
_SESSION = "COPY SESSION was left out: a refresh runs in the process and as the user that starts it"
_OR_ALTER = "CREATE OR ALTER became CREATE IF NOT EXISTS: a stream that exists keeps its source and its mode"


def alter_dynamic(text: str, _context: Context) -> Translated | None:
    """Returns a statement for each name and setting; None: it is another statement, or streamql has it as it is written."""
    cursor = Cursor(text)
    found = next((words for words in _OBJECTS if cursor.take("ALTER", *words)), None)
    if found is None or is_streamql(text):
        return None
    head = f"ALTER {' '.join(found)}{' IF EXISTS' if cursor.take('IF', 'EXISTS') else ''}"
    names = [cursor.name("the name of a dynamic table")[0]]
    while cursor.take(","):
        names.append(cursor.name("the name of a dynamic table")[0])
    actions, notes = _actions(cursor)
    statements = tuple(f"{head} {sql_name(name)} {action}" for name in names for action in actions)
    if not statements or not all(is_streamql(statement) for statement in statements):
        return None
    return Translated(statements, tuple(notes))


def _actions(cursor: Cursor) -> tuple[list[str], list[str]]:
    """Returns the actions behind the names, and notes; no actions: streamql has none of this form."""
    if cursor.take("REFRESH"):
        notes = [_SESSION] if cursor.take("COPY", "SESSION") else []
        return (["REFRESH"] if cursor.at_end() else []), notes
    if not cursor.take("SET"):
        action = cursor.raw("an action", cursor.at_end)
        return ([action] if cursor.at_end() else []), []
    actions: list[str] = []
    notes = []
    while not cursor.at_end():
        key = cursor.advance().key
        cursor.take("=")
        value = cursor.advance()
        if key in _LEFT_OUT:
            notes.append(f"{key} was left out: {_LEFT_OUT[key]}")
        elif key in _KEPT and value.type is not TokenType.END:
            actions.append(f"SET {key} = {value.text}")
        else:
            return [], []
        cursor.take(",")
    return actions, notes


def or_alter_stream(text: str) -> str:
    """Returns CREATE OR ALTER STREAM as CREATE STREAM IF NOT EXISTS; any other text stays."""
    cursor = Cursor(text)
    if not cursor.take("CREATE", "OR", "ALTER", "STREAM"):
        return text
    words = Splice(cursor.tokens[1].start, cursor.tokens[3].end, "STREAM IF NOT EXISTS")
    return apply(text, [words])


def or_alter(text: str, context: Context) -> Translated | None:
    """Returns CREATE OR ALTER STREAM as CREATE STREAM and ALTER STREAM, which sets the comment; None: it is another statement."""
    respelled = or_alter_stream(text)
    if respelled == text:
        return None
    statement, _, _ = parse_leniently(respelled)
    created = by_streamql(respelled, context)
    if created is None or not isinstance(statement, CreateStream):
        return None
    statements = created.statements
    if statement.comment is not None:
        comment = quote_string(statement.comment)
        statements = (*statements, f"ALTER STREAM {sql_name(statement.name)} SET COMMENT = {comment}")
    return Translated(statements, (*created.notes, _OR_ALTER))
