"""Definitions: the objects of the catalog other than streams. They are storage connections, external tables, dynamic tables,
materialized views and tasks. The catalog stores and finds them (`catalog.store`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from streamql.names import Name


class DefinitionType(Enum):
    """What a definition defines. The value is the name that messages use."""

    CONNECTION = "storage connection"
    EXTERNAL_TABLE = "external table"
    DYNAMIC_TABLE = "dynamic table"
    MATERIALIZED_VIEW = "materialized view"
    TASK = "task"

    @property
    def is_relation(self) -> bool:
        """Returns whether queries can name it."""
        return self not in (DefinitionType.CONNECTION, DefinitionType.TASK)


@dataclass(frozen=True)
class Definition:
    """What a CREATE statement defined, other than a stream.

    `options`: of a connection, the settings of Kafka; of an external table, those of its OPTIONS clause; of a dynamic table, the fields of
    its `DynamicTable`; of a task, its `Task` as JSON. They have references to secrets, and never a secret. `connection`: the name of an
    external table's connection; empty for other types. `columns`: the columns of a table, in their order. `sequence`: how often the
    definition was written. `text`: the statement.
    """

    uuid: str
    type: DefinitionType
    name: Name
    options: Mapping[str, str]
    comment: str | None
    created_at_ms: int
    created_by: str
    text: str
    connection: str = ""
    columns: tuple[str, ...] = ()
    sequence: int = 1


def connection_name(name: str) -> Name:
    """Returns the name of a connection as the catalog has it. Connections belong to no schema."""
    return Name("", "", name)
