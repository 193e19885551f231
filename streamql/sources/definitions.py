"""Objects of the catalog beside streams: storage connections, external tables, dynamic tables and materialized views.

The catalog stores them, and is above this package. It hands its reader over by `provide`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from pyspark.sql import SparkSession

from streamql.errors import StreamqlError
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
    never a secret. Of a dynamic table, the fields of `sources.queries.dynamic.DynamicTable`. `connection`: the name of an external table's
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


class Reader(Protocol):
    """How the catalog answers questions about definitions."""

    def definition(self, spark: SparkSession, name: Name) -> Definition | None:
        """Returns the definition of a name; None: the name has none."""

    def definitions(self, spark: SparkSession, type_: DefinitionType) -> list[Definition]:
        """Returns all definitions of a type, by name."""


_reader_of: Callable[[SparkSession], Reader] | None = None


def provide(reader_of: Callable[[SparkSession], Reader]) -> None:
    """Sets what finds the catalog of a session. The catalog calls it when it is imported."""
    global _reader_of
    _reader_of = reader_of


def _reader(spark: SparkSession) -> Reader:
    if _reader_of is None:
        raise StreamqlError("INTERNAL_ERROR", "definitions are read before the catalog was imported")
    return _reader_of(spark)


def find_definitions(spark: SparkSession, type_: DefinitionType) -> list[Definition]:
    """Returns all definitions of a type, by name. Raises CATALOG_UNREADABLE."""
    return _reader(spark).definitions(spark, type_)


def find_definition(spark: SparkSession, name: Name, type_: DefinitionType) -> Definition | None:
    """Returns the definition of a name; None: the name stands for nothing, or for something else. Raises CATALOG_UNREADABLE."""
    found = _reader(spark).definition(spark, name)
    return found if found is not None and found.type is type_ else None


def need_connection(spark: SparkSession, name: str, used_by: str = "") -> Definition:
    """Returns the connection of a name. `used_by`: what needs it, for the error; empty: a statement names it. Raises
    CONNECTION_NOT_FOUND."""
    found = find_definition(spark, connection_name(name), DefinitionType.CONNECTION)
    if found is None:
        raise StreamqlError(
            "CONNECTION_NOT_FOUND",
            f"there is no storage connection {name}" + (f", which {used_by} uses" if used_by else ""),
            hint=f"CREATE STORAGE CONNECTION {name} TYPE KAFKA BOOTSTRAP_SERVERS = ['host:9092']; SHOW CONNECTIONS lists those there are",
            connection=name,
        )
    return found
