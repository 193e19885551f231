"""The intervals that statements and transactions have read: all references in one of them see the interval of the first one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from streamql.model import Interval

PINNED_MAX = 4096


@dataclass(frozen=True)
class Pin:
    """The pinned interval of a stream, and the statement that read it first. `follows`: the statement reads tables AT it or at its END,
    and has not read the stream yet."""

    interval: Interval
    statement: str
    follows: bool = False


class PinnedIntervals:
    """The intervals that have been read, by scope and stream: all references in a scope see the interval of the first one. A scope is a
    statement or a transaction. Safe for threads. Beyond `PINNED_MAX`, the oldest are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pinned: OrderedDict[tuple[str, str], Pin] = OrderedDict()

    def get(self, scope: str, uuid: str, batch_of: str | None = None) -> Pin | None:
        """Returns what the scope has read of a stream; None: nothing. `batch_of`: the statement that reads a batch of the stream, which may
        be smaller than what its own AT and END (STREAM => …) have pinned; None: the read takes what is pinned."""
        with self._lock:
            pin = self._pinned.get((scope, uuid))
        return None if pin is not None and pin.follows and pin.statement == batch_of else pin

    def put(self, scope: str, uuid: str, pin: Pin) -> Interval:
        """Pins, unless another reference of the scope was first. Returns the interval that is pinned. A read of the stream takes the place
        of what followed it in the same statement."""
        with self._lock:
            pinned = self._pinned.setdefault((scope, uuid), pin)
            if pinned.follows and not pin.follows and pinned.statement == pin.statement:
                pinned = self._pinned[scope, uuid] = pin
            while len(self._pinned) > PINNED_MAX:
                self._pinned.popitem(last=False)
            return pinned.interval
