"""A shell in a process of its own at a terminal."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path

import pexpect

from streamql.extension.build import extension_jar
from streamql.extension.platforms import current

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 240.0
_CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>78])|\r")
PROMPT = r"streamql \([^)]*\)>"
UP, CTRL_A, CTRL_C, CTRL_D, CTRL_R, TAB = "\x1b[A", "\x01", "\x03", "\x04", "\x12", "\t"


def _hears_ctrl_c() -> None:
    """A run that a script has started with & ignores SIGINT, and its children would."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """A shell at a terminal: keys go in; what comes out is looked at without the terminal's own codes."""

    def __init__(self, directory: Path, *argv: str) -> None:
        """`streamql` with the arguments; its history is in the directory."""
        extension_jar(current())  # compiled here, so that nothing is said about it there
        environment = {
            k: v
            for k, v in os.environ.items()
            if k not in ("PYSPARK_GATEWAY_PORT", "JAVA_TOOL_OPTIONS", "PAGER", "LINES", "COLUMNS")
        }
        environment |= {
            "PYTHONPATH": str(ROOT),
            "TERM": "xterm-256color",
            "PROMPT_TOOLKIT_NO_CPR": "1",  # nobody answers where the cursor is
            "STREAMQL_HISTORY": str(directory / "history"),
        }
        self._process = pexpect.spawn(
            sys.executable,
            ["-m", "streamql", *argv],
            env=environment,
            dimensions=(40, 160),
            encoding="utf-8",
            timeout=SECONDS_MAX,
            preexec_fn=_hears_ctrl_c,
        )
        self._seen = ""
        self._from = 0

    def keys(self, *keys: str) -> None:
        """Types."""
        for key in keys:
            self._process.send(key)
            time.sleep(0.05)

    def wait(self, pattern: str, seconds: float = SECONDS_MAX) -> str:
        """What comes until the pattern is there; the next wait begins behind it."""
        deadline = time.monotonic() + seconds
        while True:
            m = re.compile(pattern).search(self._seen, self._from)
            if m is not None:
                said, self._from = self._seen[self._from : m.end()], m.end()
                return said
            assert time.monotonic() < deadline, f"no {pattern!r} in {self._seen[self._from :]!r}"
            try:
                self._seen += _CONTROL.sub("", self._process.read_nonblocking(65536, 0.5))
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                assert re.compile(pattern).search(self._seen, self._from), f"ended after {self._seen[self._from :]!r}"

    def do(self, text: str, pattern: str) -> str:
        """A line, and what comes until the pattern and the next prompt are there."""
        self.keys(text, "\r")
        said = self.wait(pattern)
        return said + self.wait(PROMPT)

    def end(self) -> int | None:
        """The exit code."""
        try:
            self._process.expect(pexpect.EOF, timeout=60)
            self._seen += _CONTROL.sub("", self._process.before or "")
            self._process.wait()
        finally:
            self._process.close(force=True)
        return self._process.exitstatus

    def close(self) -> None:
        """Ends it, if it has not ended."""
        self._process.close(force=True)

    @property
    def seen(self) -> str:
        """All that came."""
        return self._seen
