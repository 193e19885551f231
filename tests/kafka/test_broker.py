"""The broker that the tests of Kafka sources use, and the helpers around it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tests.kafka import topics
from tests.kafka.broker import USER, Broker
from tests.kafka.topics import COMMITTED, UNCOMMITTED, Message

Names = Callable[[], str]


def values(broker: Broker, topic: str, isolation: str = COMMITTED) -> list[tuple[int | None, bytes | str | None]]:
    return [(m.offset, m.value) for m in topics.read(broker.bootstrap, topic, isolation)]


def test_messages_keep_all_that_was_sent(broker: Broker, topic: Names) -> None:
    name = topic()
    topics.create(broker.bootstrap, name, partitions=2)
    sent = [
        Message(b"v", b"k", (("h", b"1"), ("h", None)), partition=1, timestamp=1_700_000_000_123),
        Message(None, b"k", partition=0, timestamp=1_700_000_000_000),
        Message("text", partition=0, timestamp=1_700_000_000_001),
    ]
    assert topics.send(broker.bootstrap, name, sent) == [(1, 0), (0, 0), (0, 1)]
    assert topics.read(broker.bootstrap, name) == [
        Message(None, b"k", (), 0, 1_700_000_000_000, 0),
        Message(b"text", None, (), 0, 1_700_000_000_001, 1),
        Message(b"v", b"k", (("h", b"1"), ("h", None)), 1, 1_700_000_000_123, 0),
    ]


def test_partitions_are_added_and_topics_deleted(broker: Broker, topic: Names) -> None:
    name = topic()
    topics.create(broker.bootstrap, name)
    topics.send(broker.bootstrap, name, [Message("old")])
    topics.add_partitions(broker.bootstrap, name, 3)
    assert topics.offsets(broker.bootstrap, name) == {0: (0, 1), 1: (0, 0), 2: (0, 0)}
    topics.delete(broker.bootstrap, name)
    topics.create(broker.bootstrap, name)
    assert topics.offsets(broker.bootstrap, name) == {0: (0, 0)}


def test_delete_records_moves_the_earliest_offset(broker: Broker, topic: Names) -> None:
    name = topic()
    topics.create(broker.bootstrap, name)
    topics.send(broker.bootstrap, name, [Message(str(i)) for i in range(5)])
    topics.delete_records(broker.bootstrap, name, {0: 3})
    assert topics.offsets(broker.bootstrap, name) == {0: (3, 5)}
    assert values(broker, name) == [(3, b"3"), (4, b"4")]


def test_an_aborted_transaction_leaves_a_gap(broker: Broker, topic: Names) -> None:
    name = topic()
    topics.create(broker.bootstrap, name)
    for value, commit in (("a", True), ("b", False), ("c", True)):
        topics.in_transaction(broker.bootstrap, name, [Message(value)], commit=commit)
    assert values(broker, name) == [(0, b"a"), (4, b"c")]
    assert values(broker, name, UNCOMMITTED) == [(0, b"a"), (2, b"b"), (4, b"c")]


def test_an_open_transaction_holds_back_committed_reads(broker: Broker, topic: Names) -> None:
    name = topic()
    topics.create(broker.bootstrap, name)
    with topics.transaction(broker.bootstrap) as current:
        current.send(name, [Message("first")])
        topics.send(broker.bootstrap, name, [Message("second")])
        assert topics.offsets(broker.bootstrap, name, COMMITTED) == {0: (0, 0)}
        assert topics.offsets(broker.bootstrap, name, UNCOMMITTED) == {0: (0, 2)}
        current.commit()
    assert values(broker, name) == [(0, b"first"), (1, b"second")]


def test_compaction_and_retention_act_within_seconds(broker: Broker, topic: Names) -> None:
    compacted, expired = topic(), topic()
    topics.create(broker.bootstrap, compacted, cleanup_policy="compact", segment_ms=50, min_cleanable_dirty_ratio=0.01)
    topics.create(broker.bootstrap, expired, retention_ms=200)
    topics.send(broker.bootstrap, expired, [Message("x")])
    for i in range(3):
        topics.send(broker.bootstrap, compacted, [Message(str(i), "k")])
        time.sleep(0.1)
    deadline = time.monotonic() + 20
    while len(values(broker, compacted)) > 2 or topics.offsets(broker.bootstrap, expired)[0][0] < 1:
        assert time.monotonic() < deadline, broker.log
        time.sleep(0.05)
    assert values(broker, compacted)[-1] == (2, b"2")
    assert topics.offsets(broker.bootstrap, expired) == {0: (1, 1)}


def test_only_the_right_password_is_let_in(broker: Broker) -> None:
    def admin(password: str, errors: list[KafkaError]) -> AdminClient:
        login = {"sasl_mechanism": "PLAIN", "sasl_username": USER, "sasl_password": password}
        settings = topics.client(broker.sasl_bootstrap, security_protocol="SASL_PLAINTEXT", **login)
        return AdminClient({**settings, "error_cb": errors.append})

    errors: list[KafkaError] = []
    assert admin(broker.password, errors).list_topics(timeout=20).brokers
    assert errors == []
    refused = admin("wrong", errors)
    deadline = time.monotonic() + 20
    while not errors:
        assert time.monotonic() < deadline
        refused.poll(0.1)
    assert errors[0].code() == KafkaError._AUTHENTICATION


def test_restarts_keep_ports_and_data(broker: Broker, topic: Names) -> None:
    name, before = topic(), broker.bootstrap
    topics.create(broker.bootstrap, name)
    topics.send(broker.bootstrap, name, [Message("kept")])
    broker.kill()
    assert not broker.is_running
    broker.restart()
    assert broker.bootstrap == before
    assert values(broker, name) == [(0, b"kept")]


def test_a_paused_broker_does_not_answer(broker: Broker) -> None:
    admin = AdminClient(topics.client(broker.bootstrap))
    broker.pause()
    try:
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=0.3)
    finally:
        broker.resume()
    assert admin.list_topics(timeout=20).brokers


def test_bulk_sends_all(broker: Broker, topic: Names) -> None:
    name = topic()
    topics.create(broker.bootstrap, name, partitions=2)
    topics.bulk(broker.bootstrap, name, 20_000)
    assert sum(latest for _, latest in topics.offsets(broker.bootstrap, name).values()) == 20_000


def test_a_broker_that_cannot_start_says_why() -> None:
    with (
        pytest.raises(RuntimeError, match=r"(ended with exit code 1|could not be formatted):(?s:.*)num\.io\.threads"),
        Broker("secret", settings={"num.io.threads": "none"}),
    ):
        pass
