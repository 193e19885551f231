"""What a script says as a whole, found before its statements are translated."""

from __future__ import annotations

from collections.abc import Iterable

from streamql.dialect.statements import CreateByQuery, CreateStream, SetTableProperties, Statement
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import chain, key_at
from streamql.dialect.text.tokens import NameParts
from streamql.errors import StreamqlError
from streamql.features.translate.facts.column_types import column_types, table_columns
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import System
from streamql.features.translate.text.created import take_create
from streamql.features.translate.text.lenient import parse_leniently
from streamql.features.translate.text.names import lowered
from streamql.features.translate.text.relations import names_read, relations_of


def survey(statements: Iterable[str], system: System) -> Context:
    """Returns the facts of a script. A statement that cannot be parsed adds none: the translation reports it."""
    context = Context(system)
    texts = list(statements)
    context.column_types = column_types(texts, system)
    context.columns = table_columns(texts, system)
    for text in texts:
        _note_created(context, Cursor(text))
    parsed = [_parsed(text) for text in texts]
    for statement in parsed:
        if isinstance(statement, CreateStream):
            context.streams[lowered(statement.name)] = statement
        elif isinstance(statement, CreateByQuery):
            context.dynamic.add(lowered(statement.name))
        elif isinstance(statement, SetTableProperties) and statement.change_tracking:
            context.explicit.add(lowered(statement.table))
    for text, statement in zip(texts, parsed, strict=True):
        followed = _followed(text, statement, context)
        context.needed.update(lowered(table) for name in followed for table in context.tables_of(name))
        context.follow(text)
    context.replaced.clear()
    return context


def _parsed(text: str) -> Statement | None:
    try:
        return parse_leniently(text)[0]
    except StreamqlError:
        return None


def _note_created(context: Context, cursor: Cursor) -> None:
    """Takes note of a table or a view that the statement creates."""
    type_word = take_create(cursor)
    if type_word not in ("TABLE", "VIEW"):
        return
    name = lowered(chain(cursor.tokens, cursor.index)[0])
    if type_word == "TABLE":
        context.created.add(name)
        context.has_defaults |= any(token.key == "DEFAULT" for token in cursor.tokens)
    else:
        context.views[name] = frozenset(lowered(relation.parts) for relation in relations_of(cursor))


def _followed(text: str, statement: Statement | None, context: Context) -> list[NameParts]:
    """Returns the relations whose changes the statement follows, or shows."""
    if isinstance(statement, CreateStream):
        return context.sources_of_stream(statement)
    if isinstance(statement, CreateByQuery):
        return names_read(statement.query)
    cursor = Cursor(text)
    return [r.parts for r in relations_of(cursor) if key_at(cursor.tokens, r.after) == "CHANGES"]
