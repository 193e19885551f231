"""Processes as people start them: each is ended by its own process id, and looks at nothing of the others."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyhive import hive

from streamql.extension.build import extension_jar
from streamql.extension.host import spark_home
from streamql.extension.platforms import current
from tests.small import INTERPRETED, SHORT_LIVED_ARGUMENTS

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 240
SMALL = (
    *("--conf", "spark.master=local[2]", *SHORT_LIVED_ARGUMENTS),
    *(word for key, value in INTERPRETED for word in ("--conf", f"{key}={value}")),
)

SEED = """
CREATE TABLE t (id INT, v STRING);
ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true');
CREATE TABLE STREAM s ON TABLE t;
CREATE TABLE x (id INT, v STRING);
"""


def environment() -> dict[str, str]:
    """This one's, without what PySpark has set in it for its own JVM."""
    extension_jar(current())  # compiled here, so that nothing is said about it there
    dropped = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "JAVA_TOOL_OPTIONS", "SPARK_REMOTE")
    kept = {k: v for k, v in os.environ.items() if k not in dropped}
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths), "SPARK_HOME": str(spark_home())}


def streamql(data: Path, *argv: str) -> list[str]:
    """The command line of `streamql … over the directory`."""
    return [sys.executable, "-m", "streamql", "--data", str(data), *SMALL, *argv]


def finished(argv: list[str], text: str | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A process's output, once it has ended."""
    return subprocess.run(
        argv, input=text, env=environment(), cwd=cwd, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )


@contextlib.contextmanager
def running(argv: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes to `log`, ended at the end: by SIGTERM, or else by kill."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            argv, env=environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> int:
    """Ends a process of ours; its exit code."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait(60)


def said(process: subprocess.Popen[bytes], log: Path, pattern: str) -> re.Match[str]:
    """What a process has written that matches, once it has."""

    def found() -> re.Match[str] | None:
        assert process.poll() is None, log.read_text()
        return re.search(pattern, log.read_text())

    return eventually(found, lambda: log.read_text())


def eventually(look: Callable[[], object], why: Callable[[], str] = lambda: "") -> object:
    """What `look` gives, once it gives something."""
    deadline = time.monotonic() + SECONDS_MAX
    while not (seen := look()):
        assert time.monotonic() < deadline, why()
        time.sleep(0.1)
    return seen


def children(pid: int) -> list[int]:
    """The processes that a process has started, and that are alive."""
    return [child for child, parent in _parents().items() if parent == pid]


def is_running(pid: int) -> bool:
    """Whether a process is alive: one that has ended may be listed until its parent asks."""
    return pid in _parents()


def _parents() -> dict[int, int]:
    """The processes that are alive, with their parents."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}


class Client:
    """A PyHive connection: a session of the server."""

    def __init__(self, port: int, **options: Any) -> None:
        self._connection = hive.connect("127.0.0.1", port, username="someone", **options)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def cursor(self) -> hive.Cursor:
        return self._connection.cursor()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.cursor()
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def fails(self, sql: str) -> tuple[str, str]:
        """SQLSTATE and message of a statement that is to fail."""
        with pytest.raises(hive.OperationalError) as error:
            self.rows(sql)
        status = error.value.args[0].status
        return status.sqlState, status.errorMessage
