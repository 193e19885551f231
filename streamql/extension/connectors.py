"""Connectors: optional parts of streamql, each with its own jars. `spark.streamql.connectors` names those that a session loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from streamql.errors import StreamqlError
from streamql.extension.jars import AWS_SDK, KAFKA_CLIENTS, S3_CLIENTS, fetch


@dataclass(frozen=True)
class Connector:
    """An optional part. `coordinates`: Maven coordinates (group:artifact:version) of all of its jars, which Spark does not ship.
    `settings`: Spark's settings that it needs, unless the user has set them."""

    name: str
    purpose: str
    coordinates: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


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

S3 = Connector(
    "s3",
    "tables on S3 and on stores that speak its protocol",
    (
        *S3_CLIENTS,
        *(
            f"software.amazon.awssdk:{module}:{AWS_SDK}"
            for module in (
                "annotations",
                "apache-client",
                "arns",
                "auth",
                "aws-query-protocol",
                "aws-xml-protocol",
                "checksums",
                "checksums-spi",
                "crt-core",
                "endpoints-spi",
                "http-auth",
                "http-auth-aws",
                "http-auth-aws-eventstream",
                "http-auth-spi",
                "http-client-spi",
                "identity-spi",
                "json-utils",
                "metrics-spi",
                "netty-nio-client",
                "profiles",
                "protocol-core",
                "regions",
                "retries",
                "retries-spi",
                "s3-transfer-manager",
                "sts",
                "third-party-jackson-core",
                "utils-lite",
            )
        ),
        "org.reactivestreams:reactive-streams:1.0.4",
        "software.amazon.eventstream:eventstream:1.0.1",
        "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    ),
    {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"},  # Hadoop itself knows the scheme s3a only
)
"""Hadoop's file system for S3, with the modules of the SDK that it calls, instead of the SDK's bundle of all services (686 MB). Spark has
their other dependencies: Apache's HTTP client, Netty and SLF4J."""

CONNECTORS: Mapping[str, Connector] = MappingProxyType({c.name: c for c in (KAFKA, S3)})
"""All connectors, by name."""


def parse_connectors(text: str) -> tuple[Connector, ...]:
    """Returns the connectors of a value of `spark.streamql.connectors` or `--with`: names with commas between, each once, in their order.
    Raises INVALID_ARGUMENT for an unknown name. Pure."""
    names = dict.fromkeys(name for part in text.split(",") if (name := part.strip().lower()))
    unknown = [name for name in names if name not in CONNECTORS]
    if unknown:
        known = f"the connectors are {', '.join(CONNECTORS)}"
        raise StreamqlError("INVALID_ARGUMENT", f"no such connector: {unknown[0]}", hint=known, connector=unknown[0])
    return tuple(CONNECTORS[name] for name in names)


def connector_jars(text: str) -> list[Path]:
    """Returns the jars of the named connectors, each once, fetched if they are not cached. Raises INVALID_ARGUMENT for an unknown name,
    JAR_BUILD_FAILED if they cannot be fetched."""
    jars = [jar for c in parse_connectors(text) for jar in fetch(c.coordinates, f"the jars of the connector {c.name}")]
    return list(dict.fromkeys(jars))
