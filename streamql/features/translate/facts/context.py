"""What is known of a script while its statements are translated: its streams, views and tables, and which tables are tracked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from streamql.dialect.statements import CreateStream
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import NameParts
from streamql.features.translate.model import System
from streamql.features.translate.text.created import created
from streamql.features.translate.text.names import is_same, lowered


@dataclass
class Context:
    """The facts of one script. Names are in lower case, since Spark compares them so.

    `streams` and `views` are what the script creates: a stream's statement, and the relations that a view reads. `dynamic` are its
    dynamic tables and materialized views. `needed` are the tables whose changes a stream, a dynamic table or a change query reads.
    `explicit` are those for which the script itself switches tracking on, and `tracked` those that are tracked at this statement.
    `created` are the tables that the script creates. `replaced` are the streams whose name a table or a view has at this statement.
    `said` are the notes that were given and are given once. `column_types` has the type of each column whose name has one type in the
    script. `columns` has the columns of each table that the script lists. `has_defaults`: a table of the script has a column with
    DEFAULT. `in_transaction`: the statement is between BEGIN and COMMIT.
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
    columns: dict[NameParts, dict[str, str]] = field(default_factory=dict)
    has_defaults: bool = False
    in_transaction: bool = False

    def tables_of(self, name: NameParts, through: frozenset[NameParts] = frozenset()) -> list[NameParts]:
        """Returns the tables that a relation stands for: of a view those that it reads, of a dynamic table or a stream none.

        `through`: the views in whose queries the name was found. A view that reads itself stands for no table.
        """
        key = lowered(name)
        if key in self.dynamic or (key in self.streams and key not in self.replaced):
            return []
        if key not in self.views:
            return [name]
        through |= {key}
        inner = (table for part in sorted(self.views[key] - through) for table in self.tables_of(part, through))
        return list(dict.fromkeys(inner))

    def untracked(self, names: Iterable[NameParts]) -> list[NameParts]:
        """Returns the tables behind the names that are not tracked at this statement."""
        tables = dict.fromkeys(table for name in names for table in self.tables_of(name))
        return [table for table in tables if lowered(table) not in self.tracked]

    def track(self, tables: Iterable[NameParts], is_on: bool = True) -> None:
        """Takes note that a statement switches change tracking of tables on or off."""
        keys = {lowered(table) for table in tables}
        self.tracked = self.tracked | keys if is_on else self.tracked - keys

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
        return any(is_same(stream, key) for stream in self.streams.keys() - self.replaced)

    def columns_of(self, name: NameParts) -> dict[str, str]:
        """Returns the columns of a table, or of the source of a stream, with their types; empty: the script does not list them."""
        key = lowered(name)
        if self.is_stream(name):
            key = next(lowered(made.source) for stream, made in self.streams.items() if is_same(stream, key))
        return next((columns for table, columns in self.columns.items() if is_same(table, key)), {})

    def sources_of_stream(self, statement: CreateStream) -> list[NameParts]:
        """Returns the tables or views that must track their changes for a stream. Of a view that the script does not create: none."""
        if statement.source_type == "VIEW":
            view = self.view_of(statement.source)
            return [view] if view is not None else []
        return [statement.source] if statement.source_type == "TABLE" else []

    def follow(self, text: str) -> None:
        """Takes note of a statement that gives the name of a stream to a table or a view, or back to a stream."""
        type_word, name = created(Cursor(text))
        if type_word == "STREAM":
            self.replaced.discard(name)
        elif name in self.streams:
            self.replaced.add(name)

    def once(self, note: str) -> tuple[str, ...]:
        """Returns the note; nothing if it was given before."""
        is_new = note not in self.said
        self.said.add(note)
        return (note,) if is_new else ()

    def of_task(self) -> Context:
        """Returns a copy for the statements of a task: they stay comments, so they change nothing for the statements behind it."""
        return replace(
            self, tracked=set(self.tracked), replaced=set(self.replaced), said=set(self.said), in_transaction=False
        )
