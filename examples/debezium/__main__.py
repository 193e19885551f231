"""`python -m examples.debezium`: the demo as a command."""

from __future__ import annotations

import sys

from examples.debezium import TOPIC
from examples.debezium.events import events
from examples.debezium.story import Debezium
from examples.topics.demo import Demo, flights_of, main
from examples.topics.producer import Event


def _events(flights: int | None) -> list[Event]:
    """The events of the first so many flights, in the order in which they are sent; None: of all."""
    return events(flights_of(flights))


DEMO = Demo(
    "debezium",
    "changes of a database from Kafka, into a copy and a history",
    "Change events in Debezium's format from a Kafka topic: AUTO CDC INTO keeps a copy and a history.",
    TOPIC,
    "DEBEZIUM_KAFKA",
    _events,
    Debezium,
)

if __name__ == "__main__":
    sys.exit(main(DEMO))
