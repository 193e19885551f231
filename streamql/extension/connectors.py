"""Connectors: optional parts of streamql, each with its own jars. `spark.streamql.connectors` names those that a session loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from streamql.errors import StreamqlError
from streamql.extension.jars import fetch, kafka_clients, s3_clients, sdk_module
from streamql.extension.platforms import Platform


@dataclass(frozen=True)
class Connector:
    """An optional part. `coordinates`: Maven coordinates (group:artifact:version) of all of its jars for a platform, which Spark does not
    ship. `settings`: Spark's settings that it needs, unless the user has set them."""

    name: str
    purpose: str
    coordinates: Callable[[Platform], tuple[str, ...]]
    settings: Mapping[str, str] = field(default_factory=dict)


def _kafka(platform: Platform) -> tuple[str, ...]:
    spark = platform.kafka["spark"]
    return (
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
        f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{spark}",
        *kafka_clients(platform),
        f"org.apache.commons:commons-pool2:{platform.kafka['pool']}",
    )


SDK_MODULES = (
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
)
"""The modules of the SDK that Hadoop's file system calls, beside those that it names, instead of the SDK's bundle of all services (686 MB).
Spark has their other dependencies: Apache's HTTP client, Netty and SLF4J."""


def _s3(platform: Platform) -> tuple[str, ...]:
    return (
        *s3_clients(platform),
        *(sdk_module(platform, module) for module in SDK_MODULES),
        "org.reactivestreams:reactive-streams:1.0.4",
        "software.amazon.eventstream:eventstream:1.0.1",
        *platform.s3["more"],
    )


KAFKA = Connector("kafka", "external tables on Kafka topics, and streams on them", _kafka)

S3 = Connector(
    "s3",
    "tables on S3 and on stores that speak its protocol",
    _s3,
    {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"},  # Hadoop itself knows the scheme s3a only
)

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


def connector_jars(text: str, platform: Platform) -> list[Path]:
    """Returns the jars of the named connectors for a platform, each once, fetched if they are not cached. Raises INVALID_ARGUMENT for an
    unknown name, JAR_BUILD_FAILED if they cannot be fetched."""
    named = parse_connectors(text)
    jars = [jar for c in named for jar in fetch(c.coordinates(platform), f"the jars of the connector {c.name}")]
    return list(dict.fromkeys(jars))
