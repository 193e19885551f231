"""Brokers that do not answer: an error in time if they stay away, and each message once if they come back."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.delta.jvm import cancel_waiting
from streamql.errors import StreamqlError
from tests.consume.support import TRACKED, in_threads
from tests.kafka import topics
from tests.kafka.support import Place, paused, sent, setting, until
from tests.kafka.topics import Message

TIMEOUT = "spark.streamql.kafkaTimeout"


@pytest.fixture
def restless(place: Place) -> Iterator[Place]:
    """A place whose broker a test may stop: a time-out of a second, and a broker that runs at the end."""
    place.run(f"SET {TIMEOUT} = 1s")
    try:
        yield place
    finally:
        place.spark.conf.unset(TIMEOUT)
        if not place.broker.is_running:
            place.broker.start()
        place.broker.resume()


def test_an_unreachable_broker_is_an_error_in_time(restless: Place) -> None:
    place = restless
    topic = place.topic()
    place.stream()
    place.sink()
    place.send(topic, "a")
    place.run(f"CREATE TABLE t (id BIGINT) {TRACKED}")
    place.stream("d", "t", "")
    place.stream("gone")
    assert place.positions("s") == [(0, 0)]
    make = f"CREATE EXTERNAL TABLE x USING KAFKA OPTIONS ('group_id' = 'g', 'topics' = '{topic}') CONNECTION {place.connection}"
    with paused(place.broker):
        for text in (
            "SELECT * FROM k",
            "SELECT * FROM s",
            "SELECT stream_has_data('s')",
            "INSERT INTO sink SELECT partition, offset, '' FROM s",
            "CREATE STREAM y ON TABLE k",
            make,
        ):
            begin = time.monotonic()
            found = place.refused(text)
            assert found.code == "KAFKA_UNREACHABLE", text
            assert place.broker.bootstrap in found.message, text
            assert "within 1 s" in found.message, text
            assert time.monotonic() - begin < 6, text
        rows = {r["name"]: r for r in place.run("SHOW STREAMS")}
        assert rows["s"]["invalid_reason"].startswith("KAFKA_UNREACHABLE")
        assert rows["d"]["invalid_reason"] is None
        assert [r["col_name"] for r in place.run("DESC k")][:1] == ["topic"], "needs no broker"
        place.run("ALTER STREAM gone SET COMMENT 'nor does this'")
        place.run("DROP STREAM gone")
        facts = {r["info_name"]: r["info_value"] for r in place.run("DESC EXTERNAL TABLE k")}
        assert facts["invalid_reason"].startswith("KAFKA_UNREACHABLE")
    place.fill()
    assert place.positions("sink") == [(0, 0)], "nothing was left behind"
    assert [r["name"] for r in place.run("SHOW EXTERNAL TABLES")] == ["k"], "what was not checked was not made"


def test_a_wait_for_a_broker_can_be_cancelled(restless: Place) -> None:
    place = restless
    place.topic()
    place.run(f"SET {TIMEOUT} = 60s")
    place.connect(place.connection, "127.0.0.1:9")
    timer = threading.Timer(0.7, cancel_waiting)
    timer.start()
    begin = time.monotonic()
    assert place.refused("SELECT * FROM k").code == "KAFKA_UNREACHABLE"
    assert 0.5 < time.monotonic() - begin < 15
    timer.join()


def test_addresses_that_are_wrong(restless: Place) -> None:
    place = restless
    topic = place.topic()
    for name, address in (("port", "127.0.0.1:9"), ("host", "no-such-host.invalid:9092")):
        connection = f"{place.schema}_{name}"
        place.connect(connection, address)
        found = place.refused(
            f"CREATE EXTERNAL TABLE x USING KAFKA OPTIONS ('group_id' = 'g', 'topics' = '{topic}') CONNECTION {connection}"
        )
        assert found.code == "KAFKA_UNREACHABLE", found
        assert address in found.message


ROWS = 120_000


def test_a_broker_that_is_killed_while_its_messages_are_read(restless: Place) -> None:
    """The statement ends when the broker is back: each message once. If it failed instead, nothing arrived and it is run again."""
    place = restless
    place.run(f"SET {TIMEOUT} = 30s")
    topic = place.topic(partitions=2)
    place.stream()
    place.sink()
    topics.bulk(place.broker.bootstrap, topic, ROWS, lambda i: b"%0200d" % i)
    states: list[str] = []

    def consume() -> None:
        place.fill()
        states.append("done")

    def trouble() -> None:
        time.sleep(1.0)
        place.broker.kill()
        states.append("killed")
        time.sleep(0.5)

    # The thread that starts a broker must outlive it: this one.
    consumer = threading.Thread(target=lambda: states.extend(f"failed: {e}" for e in in_threads(consume)))
    consumer.start()
    trouble()
    place.broker.start()
    consumer.join(120)
    assert not consumer.is_alive()
    if any(s.startswith("failed") for s in states):
        assert place.position() == {}, states
        assert place.positions("sink") == []
        place.fill()
    found = place.positions("sink")
    assert len(found) == len(set(found)) == ROWS, states
    place.assert_ledger_tiles()


def test_a_broker_that_falls_silent_while_its_messages_are_read(restless: Place, tmp_path: Path) -> None:
    """The statement does not wait for ever, and nothing of it arrives. The broker is stopped by the task that reads its first messages:
    the rest of them is longer than what a client fetches ahead."""
    place = restless
    topic, marker, pid = place.topic(), tmp_path / "not yet stopped", place.broker.pid
    place.stream()
    place.sink()
    messages = [Message(b"x" * 10_000) for _ in range(800)]
    assert len(topics.send(place.broker.bootstrap, topic, messages)) == 800
    marker.touch()

    def stopping(value: bytes) -> str:
        if marker.exists():
            marker.unlink()
            os.kill(pid, signal.SIGSTOP)
        return str(len(value))

    place.spark.udf.register("stopping", stopping)
    insert = "INSERT INTO sink SELECT partition, offset, stopping(value) FROM s"
    begin = time.monotonic()
    with pytest.raises(StreamqlError, match="KAFKA_UNREACHABLE"):
        place.run(insert)
    assert not marker.exists()
    assert time.monotonic() - begin < 45
    place.broker.resume()
    until(lambda: len(topics.read(place.broker.bootstrap, topic)) == 800, "the broker does not come back")
    place.run(f"SET {TIMEOUT} = 20s")
    assert place.position() == {}
    place.run(insert)
    assert place.positions("sink") == sent(range(800))


def test_a_broker_that_comes_back_is_asked_again(spark: SparkSession, restless: Place) -> None:
    place = restless
    topic = place.topic()
    place.stream()
    place.send(topic, "a")
    assert place.has_data()
    with setting(spark, TIMEOUT, "1s"):
        place.broker.kill()
        assert place.refused("SELECT stream_has_data('s')").code == "KAFKA_UNREACHABLE"
    place.broker.start()
    place.run(f"SET {TIMEOUT} = 20s")
    assert place.positions("s") == [(0, 0)]
