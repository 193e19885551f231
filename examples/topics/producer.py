"""The program that sends the events: a topic, its messages, and a journal of what was sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from examples.flights.problems import DemoError

PARTITIONS = 4
SECONDS_MAX = 60
QUEUE_MESSAGES_MAX = 200_000


def create_topic(bootstrap: str, topic: str) -> None:
    """Creates the topic. Raises DemoError if it exists, or if no broker answers."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)], request_timeout=SECONDS_MAX)[topic].result(SECONDS_MAX)
    except KafkaException as e:
        error = e.args[0]
        if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            raise DemoError(f"{bootstrap} has a topic {topic} already: delete it, or name another broker") from None
        raise DemoError(f"{bootstrap} does not create the topic {topic}: {error.str()}") from None


@dataclass(frozen=True)
class Event:
    """A message as it is sent. `value` None: a tombstone. `journal`: what the producer's journal says of it, beside its number."""

    key: str
    value: str | None
    journal: Mapping[str, str | int | None]


class JournalProducer:
    """Sends events in order, without duplicates of its own, and writes down each one in a journal of JSON lines."""

    def __init__(self, bootstrap: str, topic: str, journal: Path) -> None:
        journal.mkdir(parents=True, exist_ok=True)
        self._topic = topic
        self._journal = journal
        self._sent = 0
        self._files = 0
        self._failed: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",  # as Java's producer chooses
                "compression.type": "lz4",
                "linger.ms": 20,
                "queue.buffering.max.messages": QUEUE_MESSAGES_MAX,
                "log_level": 0,
            }
        )

    def send(self, events: Iterable[Event]) -> int:
        """Sends events, and returns how many when the broker has them all. Raises DemoError if it has not."""
        before = self._sent
        self._files += 1
        with (self._journal / f"{self._files:02}.json").open("w", encoding="utf-8") as journal:
            for event in events:
                self._produce(event)
                self._sent += 1
                journal.write(json.dumps({"number": self._sent, **event.journal}) + "\n")
        left = self._producer.flush(SECONDS_MAX)
        if left or self._failed:
            raise DemoError(f"{left + len(self._failed):,} messages were not sent {self._failed[:1]}")
        return self._sent - before

    def _produce(self, event: Event) -> None:
        while True:
            try:
                self._producer.produce(self._topic, event.value, event.key, on_delivery=self._delivered)
            except BufferError:  # the queue is full
                self._producer.poll(0.05)
            else:
                self._producer.poll(0)
                return

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed.append(error.str())
