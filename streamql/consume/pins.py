"""What the statements of a transaction have seen of streams, so that those after them see the same."""

from __future__ import annotations

from dataclasses import dataclass

from streamql.model import Interval


@dataclass(frozen=True)
class Pin:
    """The interval of a stream that a transaction has seen, and which statement saw it first."""

    interval: Interval
    statement: str


class Pins:
    """The intervals that a transaction has seen, by the ids of their streams."""

    def __init__(self) -> None:
        self._pins: dict[str, Pin] = {}

    def note(self, uuid: str, interval: Interval, statement: str) -> None:
        """Notes what a statement has read; what one before it has read stays."""
        self._pins.setdefault(uuid, Pin(interval, statement))

    def interval(self, uuid: str) -> Interval | None:
        """What a statement has read of a stream; None: nobody has read it."""
        return None if uuid not in self._pins else self._pins[uuid].interval

    def seen(self, uuid: str, statement: str) -> Interval | None:
        """What another statement than the given one has read of a stream."""
        pin = self._pins.get(uuid)
        return None if pin is None or pin.statement == statement else pin.interval
