"""Sends events in a thread of its own, in their order, so that a receiver that is slow or down delays and fails no statement."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from streamql.delta.jvm import sentence

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent

    from streamql.features.openlineage.columns import Columns
    from streamql.features.openlineage.note import Note

WAITING_MAX = 10_000
"""How many events wait for a receiver that is down. The oldest ones are dropped then."""
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 1.0, 60.0
"""How long the sender waits after a failure: twice as long each time."""
CLOSE_SECONDS = 5.0
"""How long the end of the process waits for events that were not sent."""
BEGUN_MAX = 1_000
"""How many statements that have begun are remembered, with what is known of their columns."""

THREAD = "streamql-openlineage"

log = logging.getLogger("streamql")


class _Quiet(logging.Filter):
    """Drops what the client logs of each attempt in the thread of the sender, which says once that the receiver is down."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.threadName != THREAD


class Sender:
    """Sends notes as events. Safe for threads. `emit`: sends one event, or raises; None: OpenLineage's client does."""

    def __init__(self, emit: Callable[[RunEvent], object] | None = None) -> None:
        self._emit = emit
        self._waiting: deque[Note] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._begun: OrderedDict[str, Columns | None] = OrderedDict()
        self._dropped = 0
        self._is_down = False
        self._is_closing = False
        self._is_sending = False

    def put(self, note: Note) -> None:
        """Adds a note. The first one starts the thread."""
        with self._changed:
            if len(self._waiting) == WAITING_MAX:
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(note)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=THREAD, daemon=True)
                self._thread.start()
                atexit.register(self.close)
            self._changed.notify_all()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Waits until all events are sent, up to `seconds`. Warns of those that are not."""
        deadline = time.monotonic() + seconds
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
            while (self._waiting or self._is_sending) and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            lost = len(self._waiting)
            self._is_closing = False
        if lost:
            log.warning("%d events of lineage were not sent, because the receiver does not answer", lost)

    # -- the thread

    def _run(self) -> None:
        pause = PAUSE_SECONDS_MIN
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                note = self._waiting[0]
                self._is_sending = True
            is_sent = self._try(note)
            with self._changed:
                self._is_sending = False
                if is_sent:
                    if self._waiting and self._waiting[0] is note:
                        self._waiting.popleft()
                    pause = PAUSE_SECONDS_MIN
                self._changed.notify_all()
                if not is_sent:
                    self._changed.wait_for(lambda: self._is_closing, pause)
                    pause = min(2 * pause, PAUSE_SECONDS_MAX)

    def _try(self, note: Note) -> bool:
        """Sends a note. Returns False if it is to be sent again."""
        try:
            event = self._event(note)
        except Exception as e:
            log.warning("an event of lineage could not be made: %s", sentence(e))
            return True
        try:
            self._send(event)
        except Exception as e:
            if not self._is_down:
                self._is_down = True
                log.warning("lineage waits, because its receiver does not take it: %s", sentence(e))
            return False
        if self._is_down or self._dropped:
            log.warning("the receiver of lineage takes events again; %d were dropped meanwhile", self._dropped)
            self._is_down, self._dropped = False, 0
        return True

    def _event(self, note: Note) -> RunEvent:
        from streamql.features.openlineage.events import columns_in, run_event

        if note.has_ended:
            return run_event(note, self._begun.get(note.id))
        if note.id not in self._begun:
            self._begun[note.id] = columns_in(note)
            if len(self._begun) > BEGUN_MAX:
                self._begun.popitem(last=False)
        return run_event(note, self._begun[note.id])

    def _send(self, event: RunEvent) -> None:
        if self._emit is None:
            from openlineage.client import OpenLineageClient

            logging.getLogger("urllib3.connectionpool").addFilter(_Quiet())
            self._emit = OpenLineageClient().emit
        self._emit(event)
