"""The terminal between prompts."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def echo(on: bool) -> Iterator[None]:
    """Returns whether the terminal shows what is typed. Off, what is typed ahead does not stand in the middle of a result: the next prompt
    shows it. Ctrl-C works either way."""
    try:
        import termios

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except Exception:  # no terminal, or a system that has none such
        yield
        return
    wanted = list(before)
    wanted[3] = wanted[3] | termios.ECHO if on else wanted[3] & ~termios.ECHO
    try:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, wanted)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
