"""Objects of the catalog that sources are made of, and that are no streams: storage connections and external tables.

The catalog stores them, and is above this package. It hands its reader over by `provide`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import SparkSession

from streamql.errors import StreamqlError
from streamql.names import Name


class DefinitionType(Enum):
    """What a definition defines, as messages call it."""

    CONNECTION = "storage connection"
    EXTERNAL_TABLE = "external table"


@dataclass(frozen=True)
class Definition:
    """A storage connection or an external table, as its statement defined it.

    `options`: of a connection, Kafka's own settings; of a table, those of its OPTIONS clause. They hold references to secrets, never a
    secret. `connection`: the name of a table's connection; empty for a connection. `columns`: those of a table, in their order.
    `sequence`: how often it was written. `text`: the statement.
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
    """The name of a connection. Connections are in no schema."""
    return Name("", "", name)


Reader = Callable[[SparkSession, Name], Definition | None]

_reader: Reader | None = None


def provide(reader: Reader) -> None:
    """Sets what looks a definition up by its name. The catalog calls it when it is imported."""
    global _reader
    _reader = reader


def find_definition(spark: SparkSession, name: Name, type_: DefinitionType) -> Definition | None:
    """The definition of a name; None: the name stands for nothing, or for something else. Raises CATALOG_UNREADABLE."""
    if _reader is None:
        raise StreamqlError("INTERNAL_ERROR", "definitions are read before the catalog was imported")
    found = _reader(spark, name)
    return found if found is not None and found.type is type_ else None


def need_connection(spark: SparkSession, name: str, used_by: str = "") -> Definition:
    """The connection of a name. `used_by`: what needs it, for the error; empty: a statement names it. Raises CONNECTION_NOT_FOUND."""
    found = find_definition(spark, connection_name(name), DefinitionType.CONNECTION)
    if found is None:
        raise StreamqlError(
            "CONNECTION_NOT_FOUND",
            f"there is no storage connection {name}" + (f", which {used_by} uses" if used_by else ""),
            hint=f"CREATE STORAGE CONNECTION {name} TYPE KAFKA BOOTSTRAP_SERVERS = ['host:9092']; SHOW CONNECTIONS lists those there are",
            connection=name,
        )
    return found
