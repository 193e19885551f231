"""Jars from Maven repositories: fetched once by the Ivy that comes with Spark, then used from the cache with no network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from streamql.errors import StreamqlError
from streamql.extension.host import QUICK_JVM, cache_dir, java, locked, spark_home
from streamql.extension.platforms import Platform

METASTORE = ("org.xerial:sqlite-jdbc:3.50.3.0",)
"""The JDBC driver of an embedded session's metastore."""

FETCH_SECONDS_MAX = 600


def delta_jars(platform: Platform) -> list[Path]:
    """Returns Delta Lake's jars, without what Spark has already (listed, not resolved: the closure is 34 jars and 90 MB, most of them
    Spark's own). Raises JAR_BUILD_FAILED if they are not cached and cannot be fetched."""
    return fetch(platform.delta_jars, "Delta Lake's jars")


def compile_jars(platform: Platform) -> list[Path]:
    """Returns the jars that the extension is compiled against, beside Spark's. Raises JAR_BUILD_FAILED as `fetch` does."""
    clients = (*kafka_clients(platform), *s3_clients(platform))
    return [*delta_jars(platform), *fetch(clients, "the clients of Kafka and S3")]


def kafka_clients(platform: Platform) -> tuple[str, ...]:
    """Returns the coordinates of Kafka's Java client, of the version that Spark's Kafka connector names. The extension is compiled against
    it; only the connector `kafka` loads it."""
    return (f"org.apache.kafka:kafka-clients:{platform.kafka['clients']}",)


def s3_clients(platform: Platform) -> tuple[str, ...]:
    """Returns the coordinates of Hadoop's file system for S3, and of the modules of Amazon's SDK for Java that its interfaces name. The
    extension is compiled against them; only the connector `s3` loads them."""
    hadoop = f"org.apache.hadoop:hadoop-aws:{platform.s3['hadoop']}"
    return (hadoop, *(sdk_module(platform, module) for module in ("aws-core", "s3", "sdk-core", "utils")))


def sdk_module(platform: Platform, module: str) -> str:
    """Returns the coordinates of a module of Amazon's SDK."""
    return f"software.amazon.awssdk:{module}:{platform.s3['sdk']}"


def fetch(coordinates: Sequence[str], what: str) -> list[Path]:
    """Returns the jars at `group:artifact:version` coordinates, without their dependencies, from the cache or else by Ivy.

    STREAMQL_IVY_SETTINGS may name an Ivy settings file (private mirrors, proxies); Ivy's defaults ask Maven Central.
    Raises JAR_BUILD_FAILED with what Ivy said.
    """
    directory = cache_dir() / "jars"
    jars = [directory / _file_name(c) for c in coordinates]
    if all(jar.exists() for jar in jars):
        return jars
    with locked("jars"):
        missing = [c for c, jar in zip(coordinates, jars, strict=True) if not jar.exists()]
        if missing:
            print(f"streamql: fetching {what} (once)", file=sys.stderr)
            directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=directory) as scratch:
                _retrieve(missing, Path(scratch), what)
                for coordinate in missing:
                    name = _file_name(coordinate)
                    os.replace(Path(scratch) / name, directory / name)
    return jars


def _file_name(coordinate: str) -> str:
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def _retrieve(coordinates: Sequence[str], scratch: Path, what: str) -> None:
    """Have Ivy put the jars into `scratch`; check that each is there and is a jar."""
    module = scratch / "ivy.xml"
    module.write_text(_ivy_module(coordinates), encoding="utf-8")
    command = [str(java()), *QUICK_JVM, "-cp", str(spark_home() / "jars" / "*"), "org.apache.ivy.Main", "-warn"]
    settings = os.environ.get("STREAMQL_IVY_SETTINGS")
    if settings:
        command += ["-settings", settings]
    # A cache of its own, thrown away: a cut-off download in a shared one makes every later attempt fail.
    command += ["-cache", str(scratch / "cache"), "-ivy", str(module), "-confs", "default"]
    command += ["-retrieve", f"{scratch.as_posix()}/[artifact]-[revision].[ext]"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired as e:
        raise _fetch_failed(what, f"Ivy did not end in {FETCH_SECONDS_MAX} s", coordinates) from e
    absent = [c for c in coordinates if not zipfile.is_zipfile(scratch / _file_name(c))]
    if done.returncode != 0 or absent:
        raise _fetch_failed(what, _essence(done.stdout + done.stderr), absent or coordinates)
    shutil.rmtree(scratch / "cache", ignore_errors=True)


def _ivy_module(coordinates: Sequence[str]) -> str:
    rows = []
    for coordinate in coordinates:
        group, artifact, version = coordinate.split(":")
        names = f"org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)}"
        rows.append(f'<dependency {names} conf="default->default" transitive="false"/>')
    return (
        '<ivy-module version="2.0"><info organisation="streamql" module="jars"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{"".join(rows)}</dependencies></ivy-module>'
    )


def _essence(output: str, lines_max: int = 20) -> str:
    """Returns what Ivy said, without its progress dots and rulers."""
    kept = [line.strip() for line in output.splitlines() if line.strip(" .:-\t")]
    return (
        "\n".join(line for line in kept if not line.startswith("..."))[-4000:]
        if len(kept) <= lines_max
        else "\n".join(kept[-lines_max:])
    )


def _fetch_failed(what: str, said: str, coordinates: Sequence[str]) -> StreamqlError:
    return StreamqlError(
        "JAR_BUILD_FAILED",
        f"{what} could not be fetched ({', '.join(coordinates)}):\n{said}",
        hint="check the network, or set STREAMQL_IVY_SETTINGS to an Ivy settings file that names a mirror you can reach",
        coordinates=tuple(coordinates),
    )
