"""Pinned intervals: all references to a stream in one statement or transaction see the interval that the first reference saw."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from streamql.model import Interval

PINNED_MAX = 4096


@dataclass(frozen=True)
class Pin:
    """The pinned interval of a stream, and the statement that pinned it. `for_table`: so far, the statement has read only tables AT the
    stream or at its END, and not the stream itself."""

    interval: Interval
    statement: str
    for_table: bool = False


class PinnedIntervals:
    """The pinned intervals by scope and stream. A scope is a statement or a transaction. Safe for threads.

    Beyond `PINNED_MAX` intervals, the oldest are forgotten.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pinned: OrderedDict[tuple[str, str], Pin] = OrderedDict()

    def get(self, scope: str, uuid: str, batch_of: str | None = None) -> Pin | None:
        """Returns the pin of a stream in the scope; None: the scope has not read the stream.

        `batch_of`: the statement that asks, if it reads a batch of the stream (MAX_BATCH_SIZE). The batch may be smaller than the interval
        that the statement's own AT and END (STREAM => …) have pinned, so such a pin is not returned. None: the read is not a batch.
        """
        with self._lock:
            pin = self._pinned.get((scope, uuid))
        return None if pin is not None and pin.for_table and pin.statement == batch_of else pin

    def put(self, scope: str, uuid: str, pin: Pin) -> Interval:
        """Pins an interval, unless another reference of the scope has pinned one. Returns the interval that is pinned now.

        A read of the stream itself replaces a pin that the same statement made for a table.
        """
        with self._lock:
            pinned = self._pinned.setdefault((scope, uuid), pin)
            if pinned.for_table and not pin.for_table and pinned.statement == pin.statement:
                pinned = self._pinned[scope, uuid] = pin
            while len(self._pinned) > PINNED_MAX:
                self._pinned.popitem(last=False)
            return pinned.interval
