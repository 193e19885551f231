"""Results that are longer than the screen, in a pager."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass

from streamql.console.render.output import Output, OutputClosedError, Stdout

LINES_KEPT = 6
"""Of the screen, for the statement and the prompt."""


@dataclass
class Paging:
    """Whether long results go to a pager, and whether one is on the screen now."""

    is_on: bool = True
    is_active: bool = False

    def open_output(self) -> Output:
        """Returns the output of one result."""
        command = pager_command() if self.is_on and sys.stdout.isatty() else None
        return _Paged(self, command) if command else Stdout()


def pager_command() -> list[str] | None:
    """$PAGER, or less; None: there is none."""
    named = shlex.split(os.environ.get("PAGER", "")) or ["less"]
    return named if shutil.which(named[0]) else None


class _Paged:
    """Keeps what it gets until that is more than the screen holds: then a pager is started, and gets it all."""

    def __init__(self, paging: Paging, command: list[str]) -> None:
        self._paging, self._command = paging, command
        self._lines_max = max(os.get_terminal_size(sys.stdout.fileno()).lines - LINES_KEPT, 3)
        self._kept: list[str] = []
        self._lines = 0
        self._process: subprocess.Popen[str] | None = None

    def write(self, text: str, /) -> object:
        """Write it all. Raises OutputClosedError once the pager was left."""
        if self._process is None:
            self._kept.append(text)
            self._lines += text.count("\n")
            if self._lines <= self._lines_max:
                return len(text)
            self._start()
            text = "".join(self._kept)
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            return self._process.stdin.write(text)
        except BrokenPipeError:
            raise OutputClosedError from None

    def close(self) -> None:
        """Shows what is short, or waits until the person leaves the pager."""
        if self._process is None:
            out = Stdout()
            out.write("".join(self._kept))
            out.close()
            return
        try:
            assert self._process.stdin is not None
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # the person has seen enough
        finally:
            self._process.wait()
            self._paging.is_active = False

    def _start(self) -> None:
        # As git does: colours, long lines cut and not wrapped (arrow keys move), and what was read stays on the screen.
        environment = {"LESS": "RSX", **os.environ}
        self._paging.is_active = True
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, text=True, encoding="utf-8", errors="replace", env=environment
        )
