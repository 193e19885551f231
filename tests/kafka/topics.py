"""Topics and messages of a broker, by Confluent's client. Each function returns when its effect is visible to other clients."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

SECONDS_MAX = 60
COMMITTED = "read_committed"
UNCOMMITTED = "read_uncommitted"
PARTITION_EOF = KafkaError._PARTITION_EOF

Position = tuple[int, int]
"""Partition and offset of a message."""


@dataclass(frozen=True)
class Message:
    """A message to send, or one that was read. A message that was read has all fields, and bytes for text."""

    value: bytes | str | None = None
    """None makes a tombstone."""
    key: bytes | str | None = None
    headers: tuple[tuple[str, bytes | str | None], ...] = ()
    partition: int | None = None
    """None lets the client choose as Java's does: by a hash of the key, or at random if there is no key."""
    timestamp: int | None = None
    """Milliseconds since 1970. None takes the time of sending."""
    offset: int | None = None
    """The broker chooses it: `send` ignores it."""


def client(bootstrap: str, **settings: object) -> dict[str, Any]:
    """Return settings for a client, from names with `_` for dots. The client prints nothing: errors come as exceptions."""
    return {"bootstrap.servers": bootstrap, "log_level": 0, **_dotted(settings)}


def create(bootstrap: str, topic: str, partitions: int = 1, **config: object) -> None:
    """Create a topic. `config` is the topic's, with `_` for dots: `cleanup_policy="compact", segment_ms=100`."""
    admin = AdminClient(client(bootstrap))
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in config.items()}
    _wait(admin.create_topics([NewTopic(topic, partitions, 1, config=_dotted(texts))]))
    _until(lambda: _partitions(admin, topic) == partitions, f"{topic} does not have {partitions} partitions")
    _until(lambda: _is_served(bootstrap, topic), f"the leaders of {topic} do not answer")


def delete(bootstrap: str, topic: str) -> None:
    """Delete a topic. A topic of the same name can be created afterwards."""
    admin = AdminClient(client(bootstrap))
    _wait(admin.delete_topics([topic]))
    _until(lambda: topic not in admin.list_topics(timeout=SECONDS_MAX).topics, f"{topic} still exists")


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    """Add partitions to a topic, up to a total."""
    admin = AdminClient(client(bootstrap))
    _wait(admin.create_partitions([NewPartitions(topic, total)]))
    _until(lambda: _partitions(admin, topic) == total, f"{topic} does not have {total} partitions")
    _until(lambda: _is_served(bootstrap, topic), f"the leaders of {topic} do not answer")


def delete_records(bootstrap: str, topic: str, before: Mapping[int, int]) -> None:
    """Delete the messages before an offset, given for each partition. The offset becomes the partition's earliest."""
    admin = AdminClient(client(bootstrap))
    _wait(admin.delete_records([TopicPartition(topic, p, offset) for p, offset in before.items()]))

    def moved() -> bool:
        found = offsets(bootstrap, topic)
        return all(found[p][0] >= offset for p, offset in before.items())

    _until(moved, f"{topic} still begins before {dict(before)}")


def offsets(bootstrap: str, topic: str, isolation: str = UNCOMMITTED) -> dict[int, tuple[int, int]]:
    """Return earliest and latest offset of each partition. For COMMITTED, the latest is the last stable offset."""
    with _consumer(bootstrap, isolation) as consumer:
        found = {}
        for p in sorted(consumer.list_topics(topic, timeout=SECONDS_MAX).topics[topic].partitions):
            found[p] = consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=SECONDS_MAX)
    return found


def read(bootstrap: str, topic: str, isolation: str = COMMITTED) -> list[Message]:
    """Return the messages that the topic holds, ordered by partition and offset."""
    found = []
    with _consumer(bootstrap, isolation) as consumer:
        left = set(consumer.list_topics(topic, timeout=SECONDS_MAX).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in left])
        deadline = time.monotonic() + SECONDS_MAX
        while left:
            assert time.monotonic() < deadline, f"{topic} was not read to its end"
            for message in consumer.consume(10_000, timeout=0.05):
                error = message.error()
                if error is None:
                    found.append(_read(message))
                elif error.code() == PARTITION_EOF:
                    left.discard(message.partition())
                elif not error.retriable():
                    raise KafkaException(error)
    return sorted(found, key=lambda message: (message.partition or 0, message.offset or 0))


def send(bootstrap: str, topic: str, messages: Iterable[Message]) -> list[Position]:
    """Send messages in order. Return the position of each. If the broker is killed meanwhile, some may be stored twice."""
    # An idempotent producer stores no message twice, but mostly waits half a second for its id.
    return _send(_producer(bootstrap, linger_ms=0, max_in_flight=1), topic, messages)


class Transaction:
    """An open transaction of a producer. `transaction` makes one."""

    def __init__(self, bootstrap: str, producer: Producer) -> None:
        self._bootstrap = bootstrap
        self._producer = producer
        self._last: dict[tuple[str, int], int] = {}

    def send(self, topic: str, messages: Iterable[Message]) -> list[Position]:
        """Send messages in order, within the transaction. Return the position of each."""
        positions = _send(self._producer, topic, messages)
        self._last.update({(topic, partition): offset for partition, offset in positions})
        return positions

    def commit(self) -> None:
        """Commit. The marker takes an offset in each partition that has messages of the transaction."""
        self._producer.commit_transaction(SECONDS_MAX)
        self._wait_for_markers()

    def abort(self) -> None:
        """Abort. The marker takes an offset in each partition that has messages of the transaction."""
        self._producer.abort_transaction(SECONDS_MAX)
        self._wait_for_markers()

    def _wait_for_markers(self) -> None:
        for (topic, partition), last in self._last.items():
            _wait_for_end(self._bootstrap, topic, partition, last + 2)


@contextmanager
def transaction(bootstrap: str, transactional_id: str | None = None) -> Iterator[Transaction]:
    """Begin a transaction, which the block commits or aborts. If it does neither, the transaction stays open in the broker.

    An open one holds back what COMMITTED readers see, until a producer of the same id begins anew, or a minute has passed.
    """
    producer = _producer(bootstrap, transactional_id=transactional_id or f"tests-{uuid.uuid4().hex}", linger_ms=0)
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    yield Transaction(bootstrap, producer)


def in_transaction(bootstrap: str, topic: str, messages: Iterable[Message], commit: bool = True) -> list[Position]:
    """Send messages in a transaction of their own, and commit or abort it. Return the position of each."""
    with transaction(bootstrap) as current:
        positions = current.send(topic, messages)
        if commit:
            current.commit()
        else:
            current.abort()
    return positions


def bulk(
    bootstrap: str,
    topic: str,
    n: int,
    value: Callable[[int], bytes] = lambda i: b'{"id":%d,"name":"n%d"}' % (i, i % 977),
    keys: int = 1000,
) -> None:
    """Send `value(0)` … `value(n - 1)`, with the keys `0` … `keys - 1` in turn, as fast as the client can."""
    before = _total(bootstrap, topic)
    settings = {"compression_type": "lz4", "linger_ms": 20, "batch_num_messages": 50_000, "enable_idempotence": True}
    producer = _producer(bootstrap, queue_buffering_max_messages=200_000, **settings)
    names = [b"%d" % i for i in range(keys)]
    for i in range(n):
        while True:
            try:
                producer.produce(topic, value(i), names[i % keys])
            except BufferError:
                producer.poll(0.01)
            else:
                break
    producer.flush(SECONDS_MAX)
    _until(lambda: _total(bootstrap, topic) >= before + n, f"{topic} did not grow by {n} messages")


def _dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def _producer(bootstrap: str, **settings: object) -> Producer:
    return Producer(client(bootstrap, partitioner="murmur2_random", **settings))


@contextmanager
def _consumer(bootstrap: str, isolation: str) -> Iterator[Consumer]:
    settings = {"isolation_level": isolation, "enable_partition_eof": True, "fetch_wait_max_ms": 10}
    with closing(Consumer(client(bootstrap, group_id="tests", enable_auto_commit=False, **settings))) as consumer:
        yield consumer


def _send(producer: Producer, topic: str, messages: Iterable[Message]) -> list[Position]:
    positions: dict[int, Position] = {}
    errors: list[KafkaError] = []

    def delivered(number: int, error: KafkaError | None, message: Any) -> None:
        if error is None:
            positions[number] = (message.partition(), message.offset())
        else:
            errors.append(error)

    for number, message in enumerate(messages):
        options: dict[str, Any] = {} if message.partition is None else {"partition": message.partition}
        if message.timestamp is not None:
            options["timestamp"] = message.timestamp
        if message.headers:
            options["headers"] = list(message.headers)
        producer.produce(topic, message.value, message.key, on_delivery=partial(delivered, number), **options)
    left = producer.flush(SECONDS_MAX)
    if errors:
        raise KafkaException(errors[0])
    assert left == 0, f"{left} messages were not delivered"
    return [positions[number] for number in range(len(positions))]


def _read(message: confluent_kafka.Message) -> Message:
    return Message(
        value=message.value(),
        key=message.key(),
        headers=tuple(message.headers() or ()),
        partition=message.partition(),
        timestamp=message.timestamp()[1],
        offset=message.offset(),
    )


def _wait(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(SECONDS_MAX)


def _partitions(admin: AdminClient, topic: str) -> int:
    """Count the topic's partitions that have a leader."""
    found = admin.list_topics(topic, timeout=SECONDS_MAX).topics[topic]
    return sum(p.leader >= 0 for p in found.partitions.values())


def _is_served(bootstrap: str, topic: str) -> bool:
    """Tell whether the leaders of all partitions answer: a broker learns a moment after its metadata that it leads one."""
    try:
        return bool(offsets(bootstrap, topic))
    except KafkaException:
        return False


def _wait_for_end(bootstrap: str, topic: str, partition: int, end: int) -> None:
    def reached() -> bool:
        return offsets(bootstrap, topic)[partition][1] >= end

    _until(reached, f"partition {partition} of {topic} did not reach offset {end}")


def _total(bootstrap: str, topic: str) -> int:
    return sum(latest for _, latest in offsets(bootstrap, topic).values())


def _until(reached: Callable[[], bool], otherwise: str) -> None:
    """Wait until a condition holds. Raises AssertionError with `otherwise` if it does not."""
    deadline = time.monotonic() + SECONDS_MAX
    while not reached():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)
