"""A Kafka broker of one node for tests and examples: a JVM on free loopback ports, from jars of the cache.

with Broker(password="secret") as broker:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, …})
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

from streamql.extension.host import cache_dir, java, locked
from streamql.extension.jars import fetch
from tests.server_process import TestServer, has_ended, said_by, start_process

VERSION = "4.1.1"

JARS = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    *(
        f"org.apache.kafka:kafka-{part}:{VERSION}"
        for part in (
            "clients",
            "coordinator-common",
            "group-coordinator",
            "group-coordinator-api",
            "metadata",
            "raft",
            "server",
            "server-common",
            "share-coordinator",
            "storage",
            "storage-api",
            "transaction-coordinator",
        )
    ),
    "com.dynatrace.hash4j:hash4j:0.22.0",
    "com.fasterxml.jackson.core:jackson-annotations:2.19.0",
    "com.fasterxml.jackson.core:jackson-core:2.19.0",
    "com.fasterxml.jackson.core:jackson-databind:2.19.0",
    "com.google.re2j:re2j:1.8",
    "com.typesafe.scala-logging:scala-logging_2.13:3.9.5",
    "com.yammer.metrics:metrics-core:2.2.0",
    "commons-validator:commons-validator:1.9.0",
    "net.sf.jopt-simple:jopt-simple:5.0.4",
    "net.sourceforge.argparse4j:argparse4j:0.7.0",
    "org.apache.logging.log4j:log4j-api:2.24.3",
    "org.hdrhistogram:HdrHistogram:2.2.2",
    "org.lz4:lz4-java:1.8.0",
    "org.pcollections:pcollections:4.0.2",
    "org.scala-lang:scala-library:2.13.16",
    "org.slf4j:slf4j-api:1.7.36",
    "org.slf4j:slf4j-simple:1.7.36",
)
"""What the broker loads of its 45 dependencies, and a logger. Producers can compress with gzip and lz4: snappy and zstd need jars."""

USER = "reader"
"""The user of the SASL listener."""

START_SECONDS_MAX = 90
STOP_SECONDS_MAX = 20
PORT_ATTEMPTS = 5

JVM_FLAGS = (
    "-Xms64m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.awt.headless=true",
    "-Dlog4j2.StatusLogger.level=OFF",  # log4j's API is loaded, and logs to nothing
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)
STARTED = "Kafka Server started"

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    # Internal topics: one partition, one replica.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # Few threads, little memory.
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": str(4 << 20),
    # Retention and compaction act within a second, where the topic's settings let them.
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "100",
    "log.segment.delete.delay.ms": "1000",
    # A broker that was killed is registered again only after its session: seconds by default.
    "broker.heartbeat.interval.ms": "250",
    "broker.session.timeout.ms": "2000",
}


class Broker(TestServer):
    """One node, broker and controller, with a PLAINTEXT and a SASL_PLAINTEXT listener.

    On Linux the broker dies when the thread that started it ends, so that a killed process leaves no broker: start it from a thread that
    lives as long as the broker is needed. Elsewhere it lives until `stop`, `kill` or `close`.
    """

    def __init__(self, password: str, directory: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        """Prepare a broker; `start` starts it.

        `password` is that of the user `USER` on the SASL listener. The data is in `directory`, and stays there. None makes a temporary
        directory, which `close` deletes. `settings` are added to server.properties.
        """
        if not password.isalnum():
            raise ValueError("the password must be of letters and digits: it is written into a JAAS entry")
        self.password = password
        self._own_directory = directory is None
        self._directory = directory
        self._settings = dict(settings or {})
        self._ports: tuple[int, int, int] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """`host:port` of the listener without authentication."""
        return f"127.0.0.1:{self._chosen_ports()[0]}"

    @property
    def sasl_bootstrap(self) -> str:
        """`host:port` of the listener that wants SASL/PLAIN."""
        return f"127.0.0.1:{self._chosen_ports()[1]}"

    @property
    def pid(self) -> int:
        """The process id of the broker's JVM. Raises RuntimeError if the broker does not run."""
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether the broker's process exists; a paused one counts."""
        return self._process is not None and self._process.poll() is None

    @property
    def directory(self) -> Path:
        """The directory of data, settings and log. Raises RuntimeError before `start` if none was given."""
        if self._directory is None:
            raise RuntimeError("the broker was not started")
        return self._directory

    @property
    def log(self) -> str:
        """What the broker has logged since its first start: warnings and errors."""
        return said_by(self.directory / "broker.log")

    def start(self) -> Broker:
        """Start the broker, and wait until it serves. Ports and data are those of its earlier starts, if there were any.

        Raises RuntimeError with the broker's log if it does not start, StreamqlError if Java is missing or the jars cannot be fetched.
        """
        if self.is_running:
            raise RuntimeError("the broker runs already")
        classpath = os.pathsep.join(str(jar) for jar in fetch(JARS, f"a Kafka broker {VERSION}"))
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="kafka-broker-"))
        self._directory.mkdir(parents=True, exist_ok=True)
        attempts = 1 if self._ports else PORT_ATTEMPTS
        for left in reversed(range(attempts)):
            self._ports = self._ports or _free_ports()
            self._write_settings()
            _format(self._directory, classpath)
            try:
                self._launch(classpath)
            except _PortTaken:
                # Another process took a port between the choice and the bind.
                if not left:
                    raise
                self._ports = None
            else:
                break
        return self

    def stop(self) -> None:
        """End the broker with SIGTERM, which closes its logs cleanly, or else with SIGKILL. The data stays.

        Does nothing if the broker does not run. `kill` too.
        """
        if self.is_running:
            self.resume()
            self._running().terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._running().wait(STOP_SECONDS_MAX)
        self.kill()

    def kill(self) -> None:
        """End the broker with SIGKILL: the next start recovers its logs, and waits for the end of the old session."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Stop the broker if it runs, and start it on the same ports and data."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Stop the broker's process with SIGSTOP: its ports accept connections, and nothing answers."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused broker continue."""
        self._running().send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Stop the broker, and delete its directory if it was not the caller's."""
        self.stop()
        if self._own_directory and self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the broker does not run")
        return self._process

    def _chosen_ports(self) -> tuple[int, int, int]:
        if self._ports is None:
            raise RuntimeError("the broker was not started")
        return self._ports

    def _write_settings(self) -> None:
        plain, sasl, controller = (f"127.0.0.1:{port}" for port in self._chosen_ports())
        jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        settings = {
            **SETTINGS,
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{plain},SASL_PLAINTEXT://{sasl},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{plain},SASL_PLAINTEXT://{sasl}",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{jaas} user_{USER}="{self.password}";',
            "log.dirs": (self.directory / "data").as_posix(),
            **self._settings,
        }
        lines = "".join(f"{key}={value}\n" for key, value in settings.items())
        (self.directory / "server.properties").write_text(lines, encoding="utf-8")

    def _launch(self, classpath: str) -> None:
        log = self.directory / "broker.log"
        before = len(said_by(log))
        command = _java("kafka.Kafka", classpath, str(self.directory / "server.properties"))
        self._process = start_process(command, log)
        deadline = time.monotonic() + START_SECONDS_MAX
        while STARTED not in (said := said_by(log, before)):
            if not has_ended(self._process, deadline):
                continue
            code = self._process.poll()
            self.kill()
            what = f"ended with exit code {code}" if code is not None else f"did not start in {START_SECONDS_MAX} s"
            failure = _PortTaken if "Address already in use" in said else RuntimeError
            raise failure(f"the Kafka broker {what}:\n{said[-4000:]}")


class _PortTaken(RuntimeError):
    """The broker could not bind one of its ports."""


def _free_ports() -> tuple[int, int, int]:
    """Three ports that no process listens on.

    They are below the range that systems take for outgoing connections: while the broker is down, such a connection could take its port,
    and a client that tries the port could connect to itself.
    """
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in random.sample(range(20_000, 32_000), 100):
            listener = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                listener.bind(("127.0.0.1", port))
                found.append(port)
            if len(found) == 3:
                return found[0], found[1], found[2]
    raise RuntimeError("there are no free ports from 20000 to 32000")


def _java(main: str, classpath: str, *arguments: str) -> list[str]:
    return [str(java()), *JVM_FLAGS, "-cp", classpath, main, *arguments]


def _format(directory: Path, classpath: str) -> None:
    """Write what `kafka-storage format` writes into `directory`/data, unless it is there: cluster, node, and the cluster's features.

    The features are the same for every cluster, so that Kafka's tool, a JVM of a second, writes them once, into the cache.
    """
    data = directory / "data"
    if (data / "meta.properties").exists():
        return
    features = cache_dir() / "kafka" / VERSION / "bootstrap.checkpoint"
    if not features.exists():
        with locked("kafka"):
            if not features.exists():
                _write_features(features, directory, classpath)
    data.mkdir(exist_ok=True)
    shutil.copyfile(features, data / features.name)
    meta = {"version": "1", "cluster.id": _kafka_uuid(), "node.id": "1", "directory.id": _kafka_uuid()}
    (data / "meta.properties").write_text("".join(f"{key}={value}\n" for key, value in meta.items()))


def _write_features(features: Path, directory: Path, classpath: str) -> None:
    """Have Kafka's tool format `directory`/data, and move its file of features to `features`."""
    arguments = ["format", "--cluster-id", _kafka_uuid(), "--config", str(directory / "server.properties")]
    command = _java("kafka.tools.StorageTool", classpath, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Kafka's storage could not be formatted:\n{done.stdout}{done.stderr}")
    features.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".format-", dir=features.parent) as scratch:
        copy = shutil.copyfile(directory / "data" / features.name, Path(scratch) / features.name)
        os.replace(copy, features)
    shutil.rmtree(directory / "data")


def _kafka_uuid() -> str:
    """A random id in Kafka's notation: URL-safe base64, without padding, and not with a dash in front (an option of the tool)."""
    return "a" + urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
