"""How results are to be shown, and where they go. Imports nothing of Spark's."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Protocol


class OutputClosedError(Exception):
    """The reader of stdout went away."""


class Output(Protocol):
    """Where the rows of one result go."""

    def write(self, text: str, /) -> object:
        """Write it all. Raises OutputClosedError."""

    def close(self) -> None:
        """Nothing more comes: what was written is to be seen. Raises OutputClosedError."""


class Stdout:
    """stdout; a reader that has gone raises another error than a JVM that has gone."""

    def write(self, text: str, /) -> object:
        """Write it all."""
        try:
            return sys.stdout.write(text)
        except BrokenPipeError:
            raise OutputClosedError from None

    def close(self) -> None:
        """stdout stays open."""
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            raise OutputClosedError from None


@dataclass(frozen=True)
class Display:
    """How results are shown: the format, the rows of a table at most (0: all), whether to say how long it took."""

    output: str = "table"
    max_rows: int = 0
    timing: bool = True
    more: str = "--max-rows 0 shows all, --output csv streams"


def terminal_width() -> int | None:
    """Returns the width of the terminal that stdout is; None if stdout is not a terminal, so that what a pipe reads does not depend on
    one."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None if sys.stdout.isatty() else None
    except (OSError, ValueError):  # io.UnsupportedOperation is both
        return None
