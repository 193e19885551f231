"""A standalone cluster of Spark on free loopback ports: a master, and workers that share no working directory.

with Cluster(directory) as cluster:
    worker = cluster.add_worker()
    worker.kill()
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from streamql.extension.host import java, spark_home
from streamql.extension.jvm import MODULE_OPTIONS
from tests.server_process import TestServer, has_ended, said_by, start_process
from tests.small import QUICK_JAVA

START_SECONDS_MAX = 60
MEMORY_MB = 1024
"""What a worker gives to executors."""

PORT = re.compile(r"Successfully started service 'sparkMaster' on port (\d+)")
REGISTERED = "Successfully registered with master"
DAEMON_MEMORY = "-Xmx192m"


class Worker:
    """A worker and its executors, in a process group and a directory of their own: as a machine."""

    def __init__(self, directory: Path, process: subprocess.Popen[bytes]) -> None:
        self.directory = directory
        self._process = process

    @property
    def executors(self) -> list[Path]:
        """The directories of the executors that were started here."""
        return sorted((self.directory / "work").glob("app-*/*"))

    def wait(self) -> None:
        """Wait until the master knows the worker. Raises RuntimeError with its log if it ends before."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while REGISTERED not in (said := said_by(self.directory / "log")):
            if has_ended(self._process, deadline):
                raise RuntimeError(f"the worker did not start:\n{said[-4000:]}")

    def kill(self) -> None:
        """End the worker and its executors with SIGKILL, as the loss of a machine does."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Cluster(TestServer):
    """A master without workers; `add_worker` adds one. On Linux all end when the thread that started them ends: an executor ends when it
    loses its worker."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = itertools.count(1)
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[Worker] = []
        self.url = ""

    def start(self) -> Cluster:
        """Start the master on a free port."""
        place = self._directory / "master"
        log = place / "log"
        self._master = _start("master.Master", place, "--port", "0")
        deadline = time.monotonic() + START_SECONDS_MAX
        while (found := PORT.search(said := said_by(log))) is None:
            if has_ended(self._master, deadline):
                raise RuntimeError(f"the master did not start:\n{said[-4000:]}")
        self.url = f"spark://127.0.0.1:{found[1]}"
        return self

    def add_worker(self) -> Worker:
        """Start a worker of one core. It registers a few seconds later: `Worker.wait` waits for that."""
        place = self._directory / f"worker{next(self._numbers)}"
        arguments = ["--cores", "1", "--memory", f"{MEMORY_MB}m", self.url]
        worker = Worker(place, _start("worker.Worker", place, *arguments))
        self._workers.append(worker)
        return worker

    def close(self) -> None:
        """End all processes; the directories stay."""
        for worker in self._workers:
            worker.kill()
        if self._master is not None:
            self._master.kill()
            self._master.wait()


def _start(main: str, place: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a daemon of Spark in a directory of its own, where executors work and keep what they spill."""
    (place / "local").mkdir(parents=True)
    home = spark_home()
    command = [
        str(java()),
        "-cp",
        f"{home / 'conf'}{os.pathsep}{home / 'jars' / '*'}",
        DAEMON_MEMORY,
        *QUICK_JAVA.split(),
    ]
    command += [
        *MODULE_OPTIONS,
        f"org.apache.spark.deploy.{main}",
        "--host",
        "127.0.0.1",
        "--webui-port",
        "0",
        *arguments,
    ]
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    env |= {
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": "2.13",  # bin/load-spark-env.sh sets it
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(place / "local"),
        "SPARK_WORKER_DIR": str(place / "work"),
        "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={place / 'local'}",
    }
    return start_process(command, place / "log", place, env)
