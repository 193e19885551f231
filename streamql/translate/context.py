"""What a script says as a whole: its streams, the tables whose changes something reads, where tracking is switched on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from streamql.dialect.cursor import Cursor
from streamql.dialect.dynamic.statements import CreateDynamicTable
from streamql.dialect.shape import chain, key_at
from streamql.dialect.statements import CreateStream, NameParts, SetTableProperties
from streamql.errors import StreamqlError
from streamql.model import SourceType
from streamql.names import quote_if_needed
from streamql.translate.column_types import column_types
from streamql.translate.lenient import parse_leniently
from streamql.translate.model import System
from streamql.translate.shield import relations_of

_NOT_TABLES = (SourceType.DYNAMIC_TABLE, SourceType.MATERIALIZED_VIEW, SourceType.EXTERNAL_TABLE)
_BEFORE_VIEW = ("OR", "REPLACE", "SECURE", "TEMPORARY", "TEMP", "GLOBAL", "RECURSIVE")
_BEFORE_TABLE = ("OR", "REPLACE", "TRANSIENT", "TEMPORARY", "TEMP", "LOCAL", "GLOBAL", "VOLATILE")


@dataclass
class Context:
    """The facts of one script. Names are in lower case, since Spark compares them so.

    `streams` and `views` are what the script creates: a stream's statement, and the relations that a view reads. `dynamic` are its
    dynamic tables and materialized views. `needed` are the tables whose changes a stream, a dynamic table or a change query reads.
    `explicit` are those for which the script itself switches tracking on, and `tracked` those that are tracked at this statement.
    `created` are the tables that the script creates. `replaced`: the streams in whose place there
    is now a table or a view of that name. `said`: notes that are given once. `column_types`: the
    types of the script's columns, VARIANT and others, for each name that has one. `has_defaults`: some
    table of the script has a column with DEFAULT. `in_transaction`: between BEGIN and COMMIT.
    """

    system: System
    streams: dict[NameParts, CreateStream] = field(default_factory=dict)
    views: dict[NameParts, frozenset[NameParts]] = field(default_factory=dict)
    dynamic: set[NameParts] = field(default_factory=set)
    needed: set[NameParts] = field(default_factory=set)
    explicit: set[NameParts] = field(default_factory=set)
    created: set[NameParts] = field(default_factory=set)
    tracked: set[NameParts] = field(default_factory=set)
    replaced: set[NameParts] = field(default_factory=set)
    said: set[str] = field(default_factory=set)
    column_types: dict[str, str] = field(default_factory=dict)
    has_defaults: bool = False
    in_transaction: bool = False

    def tables_of(self, name: NameParts) -> list[NameParts]:
        """Returns the tables that a relation stands for: of a view those that it reads, of a dynamic table or a stream none."""
        key = lowered(name)
        if key in self.dynamic or (key in self.streams and key not in self.replaced):
            return []
        if key not in self.views:
            return [name]
        inner = (table for part in sorted(self.views[key] - {key}) for table in self.tables_of(part))
        return list(dict.fromkeys(inner))

    def untracked(self, names: Iterable[NameParts]) -> list[NameParts]:
        """Returns the tables behind the names that neither the script nor the translation has switched tracking on for."""
        tables = dict.fromkeys(table for name in names for table in self.tables_of(name))
        return [t for t in tables if lowered(t) not in self.tracked and lowered(t) not in self.explicit]

    def view_of(self, name: NameParts) -> NameParts | None:
        """Returns the name under which the script creates a view, with the schema before it or not; None: it creates no such view."""
        key = lowered(name)
        found = [key] if key in self.views else [view for view in self.views if is_same(view, key)]
        return found[0] if found else None

    def creates(self, name: NameParts) -> bool:
        """Returns whether the script creates a table of this name, with the schema before it or not."""
        return any(is_same(table, lowered(name)) for table in self.created)

    def is_stream(self, name: NameParts) -> bool:
        """Returns whether the script creates a stream of this name, with the schema before it or not."""
        key = lowered(name)
        streams = self.streams.keys() - self.replaced
        return any(key[-size:] == stream[-size:] for stream in streams for size in [min(len(key), len(stream))])

    def follow(self, text: str) -> None:
        """Takes note of a statement that gives the name of a stream to a table or a view, or back to a stream."""
        word, name = _created(Cursor(text))
        if word == "STREAM":
            self.replaced.discard(name)
        elif name in self.streams:
            self.replaced.add(name)

    def once(self, note: str) -> tuple[str, ...]:
        """Returns the note, if it was not given before."""
        is_new = note not in self.said
        self.said.add(note)
        return (note,) if is_new else ()


def lowered(name: NameParts) -> NameParts:
    """Returns the name in lower case."""
    return tuple(part.lower() for part in name)


def is_same(one: NameParts, other: NameParts) -> bool:
    """Returns whether two names in lower case can mean one object: the shorter one is the end of the longer one."""
    size = min(len(one), len(other))
    return size > 0 and one[-size:] == other[-size:]


def survey(statements: Iterable[str], system: System) -> Context:
    """Returns the facts of a script. A statement that cannot be parsed adds none: the translation reports it."""
    context = Context(system)
    texts = list(statements)
    context.column_types = column_types(texts, system)
    for text in texts:
        _note_view(context, Cursor(text))
    for text in texts:
        try:
            statement, _, _ = parse_leniently(text)
        except StreamqlError:
            continue
        if isinstance(statement, CreateStream):
            context.streams[lowered(statement.name)] = statement
        elif isinstance(statement, CreateDynamicTable):
            context.dynamic.add(lowered(statement.name))
        elif isinstance(statement, SetTableProperties) and statement.change_tracking:
            context.explicit.add(lowered(statement.table))
    for text in texts:
        context.needed.update(lowered(table) for name in _followed(text) for table in context.tables_of(name))
        context.follow(text)
    context.replaced.clear()
    return context


def _created(cursor: Cursor) -> tuple[str, NameParts]:
    """Returns TABLE, VIEW or STREAM, and the name in lower case, of what a statement creates; empty: it creates anything else."""
    if not cursor.take("CREATE"):
        return "", ()
    while cursor.at_any((*_BEFORE_TABLE, *_BEFORE_VIEW)):
        cursor.advance()
    cursor.take("TABLE") if cursor.at("TABLE", "STREAM") else None
    word = cursor.advance().key
    if word not in ("TABLE", "VIEW", "STREAM"):
        return "", ()
    cursor.take("IF", "NOT", "EXISTS")
    return word, lowered(chain(cursor.tokens, cursor.index)[0])


def _note_view(context: Context, cursor: Cursor) -> None:
    if not cursor.take("CREATE"):
        return
    start = cursor.index
    while cursor.at_any(_BEFORE_TABLE):
        cursor.advance()
    if cursor.take("TABLE") and not cursor.at("STREAM"):
        cursor.take("IF", "NOT", "EXISTS")
        context.created.add(lowered(chain(cursor.tokens, cursor.index)[0]))
        context.has_defaults |= any(token.key == "DEFAULT" for token in cursor.tokens)
        return
    cursor.index = start
    while cursor.at_any(_BEFORE_VIEW):
        cursor.advance()
    if not cursor.take("VIEW"):
        return
    cursor.take("IF", "NOT", "EXISTS")
    name, _ = chain(cursor.tokens, cursor.index)
    context.views[lowered(name)] = frozenset(lowered(r.parts) for r in relations_of(cursor))


def _followed(text: str) -> list[NameParts]:
    """Returns the relations whose changes the statement follows, or shows."""
    try:
        statement, _, _ = parse_leniently(text)
    except StreamqlError:
        return []
    if isinstance(statement, CreateStream):
        return [] if statement.source_type in _NOT_TABLES else [statement.source]
    if isinstance(statement, CreateDynamicTable):
        return sources_of(statement.query)
    cursor = Cursor(text)
    return [r.parts for r in relations_of(cursor) if key_at(cursor.tokens, r.after) == "CHANGES"]


def sources_of(query: str) -> list[NameParts]:
    """Returns the relations that a query reads, without its CTEs."""
    cursor = Cursor(query)
    tokens = cursor.tokens
    ctes = {
        (token.text.lower(),)
        for index, token in enumerate(tokens)
        if key_at(tokens, index - 1) in ("WITH", "RECURSIVE", ",") and key_at(tokens, index + 1) in ("AS", "(")
    }
    return [r.parts for r in relations_of(cursor) if lowered(r.parts) not in ctes]


def stream_sources(statement: CreateStream, context: Context) -> list[NameParts]:
    """Returns the tables or views that must track their changes for a stream. Of a view that the script does not create: none."""
    if statement.source_type is SourceType.VIEW:
        view = context.view_of(statement.source)
        return [view] if view is not None else []
    return [] if statement.source_type in _NOT_TABLES else [statement.source]


def sql_name(parts: NameParts) -> str:
    """Returns the name as a statement spells it."""
    return ".".join(quote_if_needed(part) for part in parts)


def tracking(table: NameParts) -> str:
    """Returns the statement that switches change tracking on."""
    return f"ALTER TABLE {sql_name(table)} SET PROPERTIES ('change_tracking' = 'true')"
