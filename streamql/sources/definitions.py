"""Objects of the catalog beside streams: storage connections, external tables, dynamic tables and materialized views.

The catalog stores them, and finds them (`catalog.store`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from streamql.names import Name


class DefinitionType(Enum):
    """What a definition defines, as messages call it."""

    CONNECTION = "storage connection"
    EXTERNAL_TABLE = "external table"
    DYNAMIC_TABLE = "dynamic table"
    MATERIALIZED_VIEW = "materialized view"


@dataclass(frozen=True)
class Definition:
    """What a statement defined.

    `options`: of a connection, Kafka's own settings; of an external table, those of its OPTIONS clause. They hold references to secrets,
    never a secret. Of a dynamic table, the fields of its `DynamicTable`. `connection`: the name of an external table's
    connection; empty for what has none. `columns`: those of a table, in their order. `sequence`: how often it was written. `text`: the
    statement.
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
    """Returns the name of a connection. Connections are in no schema."""
    return Name("", "", name)
