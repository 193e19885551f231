"""What tests share that start a server: a process which ends with them, and log files in which it says where it listens."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

S = TypeVar("S", bound="TestServer")

DIE_WITH_PARENT = """
import os, signal, sys
if sys.platform.startswith("linux"):
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the parent process has ended")
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Runs before a command in its process: `preexec_fn` of subprocess is unsafe beside threads, which Kafka's clients have."""


class TestServer(ABC):
    """A server of one process or several. On leaving a `with`, and if it does not start, all of them have ended."""

    __test__ = False  # pytest takes the name for a class of tests

    @abstractmethod
    def start(self: S) -> S:
        """Start the server, and wait until it serves. Raises RuntimeError with its log if it does not start."""

    @abstractmethod
    def close(self) -> None:
        """End the server and delete what is its own. Does nothing if it does not run."""

    def __enter__(self: S) -> S:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def start_process(
    command: Sequence[str], log: Path, directory: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process whose output is appended to a file. It has a process group of its own.

    On Linux it is killed when the thread that started it ends. `directory` is where it runs; None is the caller's. `env`: its
    environment; None is the caller's.
    """
    prefix = [sys.executable, "-ISc", DIE_WITH_PARENT, str(os.getpid())]
    with log.open("ab") as out:
        return subprocess.Popen(
            [*prefix, *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=directory,
            env=env,
        )


def said_by(log: Path, after: int = 0) -> str:
    """What is in a log file, from a character on. Empty if there is no file."""
    return log.read_text(encoding="utf-8", errors="replace")[after:] if log.exists() else ""


def has_ended(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Whether a process that is to start has ended, or `deadline` (of time.monotonic) has passed. Waits for a moment if neither is so."""
    if process.poll() is not None or time.monotonic() > deadline:
        return True
    time.sleep(0.02)
    return False
