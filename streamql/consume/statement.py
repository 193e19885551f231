"""What one statement sees of streams. Its first read of a stream pins an interval, and all its other references see the same interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.consume import session_transactions
from streamql.consume.pins import Pin, PinnedIntervals
from streamql.model import Interval


class Reading(Protocol):
    """The result of reading a stream."""

    @property
    def interval(self) -> Interval:
        """Returns the interval that was read."""


R = TypeVar("R", bound=Reading)


@dataclass(frozen=True)
class Reads:
    """The reads of one statement. `statement`: the name that the JVM gave it. `pinned`: the intervals that all statements of this process
    have pinned."""

    spark: SparkSession
    statement: str
    pinned: PinnedIntervals

    def seen(self, state: StreamState, *, is_batch: bool = False) -> Interval | None:
        """Returns the interval of a stream that the statement or its transaction has pinned; None: neither has read the stream.

        `is_batch`: the caller reads a batch of the stream. The batch may be smaller than the interval that AT and END (STREAM => …) of the
        statement have pinned, so such a pin is not returned.
        """
        batch_of = self.statement if is_batch else None
        transaction = session_transactions.current(self.spark)
        in_transaction = None if transaction is None else transaction.interval(state, batch_of)
        if in_transaction is not None:
            return in_transaction
        earlier = self.pinned.get(self.statement, state.stream.uuid, batch_of)
        return None if earlier is None else earlier.interval

    def read(
        self,
        state: StreamState,
        read: Callable[[Interval | None], R],
        *,
        is_batch: bool = False,
        for_table: bool = False,
    ) -> R:
        """Reads a stream in the interval that the statement sees, and pins that interval. If another thread has pinned another one
        meanwhile, the stream is read again in that one.

        `read`: reads the given interval, or (None) all changes since the offset. `is_batch`: as `seen` takes it. `for_table`: as `Pin` has
        it.
        """
        reading = read(self.seen(state, is_batch=is_batch))
        pinned = self._pin(state, Pin(reading.interval, self.statement, for_table))
        return reading if pinned == reading.interval else read(pinned)

    def _pin(self, state: StreamState, pin: Pin) -> Interval:
        interval = self.pinned.put(pin.statement, state.stream.uuid, pin)
        transaction = session_transactions.current(self.spark)
        if transaction is not None:
            transaction.pin(state.stream.uuid, interval, pin.statement, pin.for_table)
        return interval
