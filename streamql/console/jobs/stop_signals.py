"""The signals that end a job."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)

ENDS_FIRST = "stopping: what runs ends first; a second signal cancels it"
"""A note for what cannot end at once."""


class Stop:
    """SIGTERM and SIGINT: the first one asks, the second cancels (KeyboardInterrupt in the main thread). A context manager. `note`: what
    the first one writes to stderr."""

    def __init__(self, note: str = "") -> None:
        self._note = note
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
        if self._note and not again:
            os.write(2, f"{self._note}\n".encode())  # print may be under way in the thread that is interrupted
        if again:
            raise KeyboardInterrupt

    @property
    def is_asked(self) -> bool:
        """Returns whether a signal came."""
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Waits, but no longer than until a signal comes; whether one did."""
        return self._asked.wait(seconds)

    @property
    def exit_code(self) -> int:
        """That of a command which a signal cut short."""
        return 128 + (self.signal or signal.SIGINT)
