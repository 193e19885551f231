"""What the tests on S3 share: buckets, the settings by which Hadoop reaches them, and the log store without Spark."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import JavaGateway, JVMView
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from streamql.extension.jvm import start
from streamql.extension.settings import conf_lines
from tests.s3.proxy import Proxy
from tests.s3.server import Server
from tests.small import QUICK_JAVA

SECRET = "wq7Zk2RtYp0s"
"""The secret key of each bucket, which no log and no table may hold."""

IMPATIENT = {
    "attempts.maximum": "1",
    "retry.limit": "1",
    "retry.interval": "10ms",
    "retry.throttle.limit": "1",
    "retry.throttle.interval": "10ms",
}
"""Of Amazon's SDK and Hadoop: one repetition, at once. By default they repeat for minutes."""

_numbers = itertools.count()


@dataclass(frozen=True)
class S3:
    """The worker's server, behind its proxy."""

    server: Server
    proxy: Proxy

    def new_bucket(self) -> str:
        """An empty bucket, which no process knows yet."""
        name = f"bucket{next(_numbers)}"
        self.server.make_bucket(name)
        return name

    def bucket(self, hadoop: Any, **settings: str) -> str:
        """A bucket of its own, which a Hadoop configuration of a JVM reaches."""
        name = self.new_bucket()
        for key, value in self.settings(name, settings).items():
            hadoop.set(key, value)
        return name

    def settings(self, bucket: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The settings of Hadoop for a bucket."""
        given = {
            "endpoint": self.proxy.endpoint,
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "access.key": "test",
            "secret.key": SECRET,
            **(more or {}),
        }
        return {f"fs.s3a.bucket.{bucket}.{key}": value for key, value in given.items()}

    def child_conf(self, bucket: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The settings of Spark for a process that a test starts."""
        given = {f"spark.hadoop.{key}": value for key, value in self.settings(bucket, more).items()}
        return {"spark.streamql.connectors": "s3", **given}


class Store:
    """The log store in a JVM, without a Spark session: what Delta calls."""

    def __init__(self, jvm: JVMView, hadoop: Any) -> None:
        self.jvm = jvm
        self.hadoop = hadoop
        self._store = jvm.streamql.ConditionalLogStore(hadoop)

    def write(self, path: str, lines: list[str], *, overwrite: bool = False, copies: int = 1) -> str:
        """Write a file of some lines, each `copies` times. The code of our error or the class of another that
        was raised; empty: none was."""
        actions = self.jvm.java.util.ArrayList()
        for line in lines:
            actions.addAll(self.jvm.java.util.Collections.nCopies(copies, line))
        try:
            self._store.write(self.jvm.org.apache.hadoop.fs.Path(path), actions.iterator(), overwrite, self.hadoop)
        except PySparkException as e:
            return str(e.getCondition())
        except Py4JJavaError as e:
            return str(e.java_exception.getClass().getSimpleName())
        return ""

    def message_of(self, path: str, lines: list[str]) -> str:
        """Write a file that is refused, and give the message."""
        try:
            actions = self.jvm.java.util.Collections.singletonList("\n".join(lines)).iterator()
            self._store.write(self.jvm.org.apache.hadoop.fs.Path(path), actions, False, self.hadoop)
        except (PySparkException, Py4JJavaError) as e:
            return str(e) if isinstance(e, PySparkException) else str(e.java_exception.getMessage())
        raise AssertionError("the write was not refused")

    def read(self, path: str) -> list[str]:
        """The lines of a file."""
        lines = self._store.read(self.jvm.org.apache.hadoop.fs.Path(path), self.hadoop)
        try:
            found = []
            while lines.hasNext():
                found.append(str(lines.next()))
            return found
        finally:
            lines.close()

    def names(self, directory: str) -> list[str]:
        """The names of the files in a directory, hidden ones too."""
        files = self._store.listFrom(self.jvm.org.apache.hadoop.fs.Path(f"{directory}/ "), self.hadoop)
        found = []
        while files.hasNext():
            found.append(str(files.next().getPath().getName()))
        return found

    def names_from(self, directory: str, start: str, size: int) -> list[str] | None:
        """The names of the files in a directory from one on, by requests for `size` names each. None: the store cannot."""
        path = self.jvm.org.apache.hadoop.fs.Path(directory)
        found = self.jvm.streamql.S3Logs.listFrom(path.getFileSystem(self.hadoop), path, start, size)
        return [str(file.getPath().getName()) for file in _all(found.get())] if found.isDefined() else None


def _all(iterator: Any) -> Iterator[Any]:
    """What is left of a Scala iterator."""
    while iterator.hasNext():
        yield iterator.next()


@contextmanager
def bare_jvm() -> Iterator[JavaGateway]:
    """A JVM with streamql's jars and those of the connector `s3`, in which no Spark runs."""
    conf = {key: value for key, value in conf_lines("s3").items() if key == "spark.driver.extraClassPath"}
    gateway = start({**conf, "spark.driver.memory": "512m", "spark.driver.extraJavaOptions": QUICK_JAVA}).attach()
    try:
        yield gateway
    finally:
        gateway.shutdown()


def versions(names: list[str]) -> list[int]:
    """The versions of which there is a commit, of names in a log."""
    return [int(m[1]) for name in names if (m := re.fullmatch(r"(\d{20})\.json", name))]
