"""What is known of the catalog: all that completion uses. Pure; `lookups.py` fills it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class Relation(NamedTuple):
    """A name in a database. `type`: table, view, stream, or one that a feature lists.

    `is_temporary`: a view of the session, in no database.
    """

    name: str
    type: str
    is_temporary: bool = False


class Want(NamedTuple):
    """What a completion would have needed: the names in a database, or the columns of one of them. Both in lower case."""

    database: str
    relation: str = ""


@dataclass(frozen=True)
class Snapshot:
    """The catalog, as far as it has been read. Keys are in lower case: a database, or (database, relation)."""

    database: str = "default"
    databases: Sequence[str] = ()
    relations: Mapping[str, Sequence[Relation]] = field(default_factory=dict)
    columns: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)

    def find(self, parts: Sequence[str]) -> Relation | None:
        """Returns the relation of a name as it stands in a statement; None: there is none, or it has not been read."""
        database, name = self.key(parts)
        return next((r for r in self.relations.get(database, ()) if r.name.lower() == name), None)

    def key(self, parts: Sequence[str]) -> tuple[str, str]:
        """(database, relation) of a name with or without a database, in lower case; a catalog's name is left out."""
        database = parts[-2] if len(parts) > 1 else self.database
        return database.lower(), parts[-1].lower()

    def with_relations(self, database: str, relations: Sequence[Relation]) -> Snapshot:
        """Returns the same, knowing more."""
        return replace(self, relations={**self.relations, database.lower(): relations})

    def with_columns(self, key: tuple[str, str], columns: Sequence[str]) -> Snapshot:
        """Returns the same, knowing more."""
        return replace(self, columns={**self.columns, key: columns})
