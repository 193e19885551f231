"""What one statement sees of streams: the first read of a stream pins its interval, and all other references see that one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.consume import transactions
from streamql.consume.pins import Pin, PinnedIntervals
from streamql.model import Interval


class Reading(Protocol):
    """What was read of a stream."""

    @property
    def interval(self) -> Interval:
        """Returns the interval that was read."""


R = TypeVar("R", bound=Reading)


@dataclass(frozen=True)
class Reads:
    """The reads of one statement. `statement`: what the JVM calls it. `pinned`: what the statements of the process have pinned."""

    spark: SparkSession
    statement: str
    pinned: PinnedIntervals

    def seen(self, state: StreamState, *, is_batch: bool = False) -> Interval | None:
        """Returns the interval of a stream that the statement, or its transaction, has read; None: none. `is_batch`: the read takes a batch
        of the stream, which may be smaller than what AT and END (STREAM => …) of the statement have pinned."""
        batch_of = self.statement if is_batch else None
        block = transactions.current(self.spark)
        in_block = None if block is None else block.interval(state, batch_of)
        if in_block is not None:
            return in_block
        earlier = self.pinned.get(self.statement, state.stream.uuid, batch_of)
        return None if earlier is None else earlier.interval

    def read(
        self,
        state: StreamState,
        read: Callable[[Interval | None], R],
        *,
        is_batch: bool = False,
        follows: bool = False,
    ) -> R:
        """Reads a stream in the interval that the statement sees, and pins that. Another thread may have pinned another one meanwhile: then
        the stream is read again.

        `read`: reads an interval; None: what there is now. `is_batch`: as `seen` has it. `follows`: a table is read at the stream.
        """
        reading = read(self.seen(state, is_batch=is_batch))
        pinned = self._pin(state, Pin(reading.interval, self.statement, follows))
        return reading if pinned == reading.interval else read(pinned)

    def _pin(self, state: StreamState, pin: Pin) -> Interval:
        interval = self.pinned.put(pin.statement, state.stream.uuid, pin)
        block = transactions.current(self.spark)
        if block is not None:
            block.pin(state.stream.uuid, interval, pin.statement, pin.follows)
        return interval
