"""Connectors: optional parts of streamql, each with its own jars. `spark.streamql.connectors` names those that a session loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from streamql.errors import StreamqlError
from streamql.extension.jars import KAFKA_CLIENTS, fetch


@dataclass(frozen=True)
class Connector:
    """An optional part. `coordinates`: Maven coordinates (group:artifact:version) of all of its jars, which Spark does not ship."""

    name: str
    purpose: str
    coordinates: tuple[str, ...]


KAFKA = Connector(
    "kafka",
    "external tables on Kafka topics, and streams on them",
    (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
        *KAFKA_CLIENTS,
        "org.apache.commons:commons-pool2:2.13.1",
    ),
)

CONNECTORS: Mapping[str, Connector] = MappingProxyType({c.name: c for c in (KAFKA,)})
"""All connectors, by name."""


def parse_connectors(text: str) -> tuple[Connector, ...]:
    """The connectors of a value of `spark.streamql.connectors` or `--with`: names with commas between, each once, in their order. Raises
    INVALID_ARGUMENT for an unknown name. Pure."""
    names = dict.fromkeys(name for part in text.split(",") if (name := part.strip().lower()))
    unknown = [name for name in names if name not in CONNECTORS]
    if unknown:
        known = f"the connectors are {', '.join(CONNECTORS)}"
        raise StreamqlError("INVALID_ARGUMENT", f"no such connector: {unknown[0]}", hint=known, connector=unknown[0])
    return tuple(CONNECTORS[name] for name in names)


def connector_jars(text: str) -> list[Path]:
    """The jars of the named connectors, each once, fetched if they are not cached. Raises INVALID_ARGUMENT for an unknown name,
    JAR_BUILD_FAILED if they cannot be fetched."""
    jars = [jar for c in parse_connectors(text) for jar in fetch(c.coordinates, f"the jars of the connector {c.name}")]
    return list(dict.fromkeys(jars))
