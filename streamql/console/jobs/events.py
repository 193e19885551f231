"""Events of a job as JSON lines. Each line is one write, so that several processes may share a file."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from streamql.console.render import quantities
from streamql.times import now_ms


class Journal:
    """Where events go: the end of a file, or stderr. Raises OSError where the file cannot be opened."""

    def __init__(self, path: Path | None, common: Mapping[str, object]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = 2 if path is None else os.open(path.expanduser(), flags, 0o666)
        self._common = common

    def tell(self, event: str, at_ms: int, **facts: object) -> None:
        """Writes an event; facts that are None are left out."""
        known = {"at": quantities.clock(at_ms), "event": event, **self._common, **facts}
        line = json.dumps({k: v for k, v in known.items() if v is not None}, ensure_ascii=False, default=str) + "\n"
        with suppress(OSError):  # the reader is gone: the job continues
            os.write(self._descriptor, line.encode("utf-8", "replace"))


class _Warnings(logging.Handler):
    """streamql's warnings as events."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.WARNING)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        """Tells one."""
        self._journal.tell("warning", now_ms(), message=record.getMessage())


@contextlib.contextmanager
def warnings_as_events(journal: Journal, *, for_people: bool) -> Iterator[None]:
    """Warnings go where events go, while stderr is not for display."""
    logger, own = logging.getLogger("streamql"), _Warnings(journal)
    before = list(logger.handlers)
    if not for_people:
        logger.handlers[:] = [own]
    try:
        yield
    finally:
        logger.handlers[:] = before
