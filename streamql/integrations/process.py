"""Child processes that run the command `streamql`: so no JVM starts in a process of an orchestrator."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

END_SECONDS_MAX = 30.0
"""How long a child may take to cancel its statement. Then its process group is killed; Spark's Java process ends with it."""
ERROR_LINES_MAX = 200

_HEARS = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])"
"""A program that becomes another one, which hears SIGINT."""

Show = Callable[[str], None]


def no_show(_: str) -> None:
    """Shows nothing."""


@dataclass(frozen=True)
class Ended:
    """A process that has ended. `code`: its exit code, negative for a signal. `out`, `err`: what it wrote; of `err` the last lines."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Line:
    """A command line. `variables`: what it sets of the environment besides that of this process. `text`: its standard input."""

    words: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    text: str = ""

    @property
    def started(self) -> list[str]:
        """Returns the words that start it. A process that a script has started with & ignores SIGINT, and so do its children: then they
        could not be interrupted."""
        ignores = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        return [*([sys.executable, "-c", _HEARS] if ignores else []), *self.words]

    @property
    def environment(self) -> dict[str, str]:
        """Returns the environment of the child. Variables of a Spark that this process belongs to are left out."""
        inherited = {k: v for k, v in os.environ.items() if k not in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")}
        return {**inherited, **self.variables}


class Child:
    """A process that runs, in a process group of its own. `interrupt` may be called in any thread, and in a handler of signals."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._process = subprocess.Popen(
            line.started,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=line.environment,
            start_new_session=True,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._deadline: float | None = None

    def interrupt(self) -> None:
        """Cancels what the process does, as Ctrl-C does. The statement that runs has then committed and moved its streams, or neither."""
        if self._deadline is None:
            self._deadline = time.monotonic() + END_SECONDS_MAX
            self._process.send_signal(signal.SIGINT)

    def wait(self, show: Show, show_error: Show, *, keeps_out: bool = False) -> Ended:
        """Waits for its end, and shows its lines as they come. `keeps_out`: `out` of the result has what it wrote to stdout. An exception
        in this thread, such as a timeout of an orchestrator, ends the process."""
        out: list[str] = []
        err: deque[str] = deque(maxlen=ERROR_LINES_MAX)

        def keep(line: str) -> None:
            show(line)
            if keeps_out:
                out.append(line)

        def keep_error(line: str) -> None:
            show_error(line)
            err.append(line)

        assert self._process.stdout is not None
        assert self._process.stderr is not None
        threads = [_reader(self._process.stdout, keep), _reader(self._process.stderr, keep_error)]
        try:
            self._write()
            while self._process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(0.2)
                if self._deadline is not None and time.monotonic() > self._deadline:
                    self._kill()
        finally:
            self._end()
        for thread in threads:
            thread.join(END_SECONDS_MAX)
        return Ended(self._process.returncode, "\n".join(out), "\n".join(err))

    def _write(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(self._line.text)
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _end(self) -> None:
        """Ends the process if it runs. What it did last has then committed, or has not."""
        if self._process.poll() is not None:
            return
        self.interrupt()
        try:
            self._process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()

    def _kill(self) -> None:
        if self._process.poll() is None:
            _kill_group(self._process.pid)


def run(line: Line, seconds_max: float) -> Ended:
    """Runs a command to its end. Raises TimeoutError if it takes longer, after it was killed."""
    child = Child(line)
    timer = threading.Timer(seconds_max, child.interrupt)
    timer.daemon = True
    timer.start()
    began = time.monotonic()
    try:
        ended = child.wait(no_show, no_show, keeps_out=True)
    finally:
        timer.cancel()
    if ended.code and time.monotonic() - began > seconds_max:
        raise TimeoutError(f"the command took longer than {seconds_max:.0f} s")
    return ended


async def run_async(line: Line, seconds_max: float) -> Ended:
    """Runs a command to its end, without blocking the event loop. A task that is cancelled kills it. Raises TimeoutError if it takes
    longer."""
    process = await asyncio.create_subprocess_exec(
        *line.started,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=line.environment,
        start_new_session=True,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(line.text.encode()), seconds_max)
    except (asyncio.TimeoutError, TimeoutError):
        raise TimeoutError(f"the command took longer than {seconds_max:.0f} s") from None
    finally:
        if process.returncode is None:  # it only reads, so nothing is cut short
            _kill_group(process.pid)
            await process.wait()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace").rstrip("\n"))


def _reader(stream: IO[str], keep: Show) -> threading.Thread:
    """Returns a thread that reads lines to the end of a stream, so that the process never waits for this one."""

    def read() -> None:
        with stream:
            for line in stream:
                keep(line.rstrip("\n"))

    thread = threading.Thread(target=read, name="streamql-output", daemon=True)
    thread.start()
    return thread


def _kill_group(pid: int) -> None:
    """Kills a child that was not waited for yet, and what it has started in its process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
