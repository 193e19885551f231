"""Events of a job as JSON lines, and the signals that end it. Each line is one write, so that several processes may share a file."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType

from streamql.cli import words

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Journal:
    """Where events go: the end of a file, or stderr. Raises OSError where the file cannot be opened."""

    def __init__(self, path: Path | None, common: Mapping[str, object]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = 2 if path is None else os.open(path.expanduser(), flags, 0o666)
        self._common = common

    def tell(self, event: str, at_ms: int, **facts: object) -> None:
        """Writes an event; facts that are None are left out."""
        known = {"at": words.clock(at_ms), "event": event, **self._common, **facts}
        line = json.dumps({k: v for k, v in known.items() if v is not None}, ensure_ascii=False, default=str) + "\n"
        with suppress(OSError):  # whoever read them is gone: the job goes on
            os.write(self._descriptor, line.encode("utf-8", "replace"))


class Stop:
    """SIGTERM and SIGINT: the first one asks, the second cancels (KeyboardInterrupt in the main thread). A context manager."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._before: dict[signal.Signals, object] = {}
        self.signal: int | None = None

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup and & of a script: not for us
                    self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)  # type: ignore[arg-type]  # as it was given

    def _hear(self, number: int, _: FrameType | None) -> None:
        again, self.signal = self._asked.is_set(), number
        self._asked.set()
        if again:
            raise KeyboardInterrupt

    @property
    def is_asked(self) -> bool:
        """Whether a signal came."""
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Waits, but no longer than until a signal comes; whether one did."""
        return self._asked.wait(seconds)

    @property
    def exit_code(self) -> int:
        """That of a command which a signal cut short."""
        return 128 + (self.signal or signal.SIGINT)
