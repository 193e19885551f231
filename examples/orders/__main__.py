"""`python -m examples.orders`: the demo as a command."""

from __future__ import annotations

import sys

from examples.orders import TOPIC
from examples.orders.events import events
from examples.orders.story import Orders
from examples.topics.demo import Demo, flights_of, main
from examples.topics.producer import Event


def _events(flights: int | None) -> list[Event]:
    """The events of the first so many flights; None: of all."""
    return list(events(flights_of(flights)))


DEMO = Demo(
    "orders",
    "order events from Kafka into a table, and from its stream into a summary",
    "Order events from a Kafka topic: a stream brings them into a table, whose stream feeds a summary.",
    TOPIC,
    "ORDERS_KAFKA",
    _events,
    Orders,
)

if __name__ == "__main__":
    sys.exit(main(DEMO))
