"""What brokers are asked for when streams are listed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from streamql.features.kafka import brokers as kafka
from tests.kafka import topics
from tests.kafka.support import Place, setting
from tests.kafka.topics import Message

TOPICS = 10
STREAMS_PER_TOPIC = 5


class Questions:
    """Counts what brokers are asked for, by the name of the question."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: Counter[str] = Counter()
        ask = kafka._ask

        def counted(spark: Any, brokers: Any, question: Any) -> Any:
            def named(target: Any) -> Any:
                return question(_Recording(target, self.asked))

            return ask(spark, brokers, named)

        monkeypatch.setattr(kafka, "_ask", counted)


class _Recording:
    def __init__(self, target: Any, asked: Counter[str]) -> None:
        self._target, self._asked = target, asked

    def __getattr__(self, name: str) -> Any:
        self._asked[name] += 1
        return getattr(self._target, name)


def test_many_streams_of_one_connection_are_one_request_of_each_sort(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"k{i}" for i in range(TOPICS)]
    for i, name in enumerate(names):
        topic = place.topic(name, partitions=2)
        topics.send(place.broker.bootstrap, topic, [Message("x", partition=p) for p in range(2) for _ in range(i)])
        for j in range(STREAMS_PER_TOPIC):
            place.stream(f"s{i}_{j}", name, "WITH (SHOW_INITIAL_ROWS = TRUE)" if j else "")
    questions = Questions(monkeypatch)
    rows = {r["name"]: r for r in place.run("SHOW STREAMS")}
    assert len(rows) == TOPICS * STREAMS_PER_TOPIC
    assert questions.asked == {"describe": 1, "firstTimes": 1, "retention": 1}
    for i in range(TOPICS):
        for j in range(STREAMS_PER_TOPIC):
            row = rows[f"s{i}_{j}"]
            lag = 2 * i if j else 0
            assert (row["lag_versions"], row["has_data"], row["invalid_reason"]) == (lag, lag > 0, None), row
            assert row["lag_seconds"] is not None, f"{row}: the time of its first message is not known"
            assert (row["stale_after"] is not None) == (lag > 0), row


def test_streams_of_one_topic_do_not_wait_for_each_other(place: Place) -> None:
    topic = place.topic()
    place.send(topic, *"abc")
    for i in range(3):
        place.stream(f"s{i}", clauses=f"""AT (OFFSET => '{{"0": {i}}}')""")
    rows = place.run("SHOW STREAMS")
    assert [r["lag_versions"] for r in rows] == [3, 2, 1]
    assert all(r["lag_seconds"] is not None and r["stale_after"] is not None for r in rows), rows


def test_a_broken_stream_says_why_and_the_others_are_shown(place: Place) -> None:
    good, gone, lost = place.topic("good"), place.topic("gone"), place.topic("lost")
    for name in ("good", "gone", "lost"):
        place.stream(f"on_{name}", name)
    place.send(good, "a")
    place.send(lost, *"abc")
    place.run("""ALTER STREAM on_lost SET OFFSET '{"0": 1}'""")
    topics.delete_records(place.broker.bootstrap, lost, {0: 2})
    topics.delete(place.broker.bootstrap, gone)
    place.connect(f"{place.schema}_dead", "127.0.0.1:9")
    with setting(place.spark, "spark.streamql.kafkaTimeout", "1s"):
        rows = {r["name"]: r for r in place.run("SHOW STREAMS")}
    assert (rows["on_good"]["has_data"], rows["on_good"]["invalid_reason"]) == (True, None)
    assert rows["on_gone"]["invalid_reason"].startswith("STREAM_SOURCE_MISSING")
    assert rows["on_lost"]["invalid_reason"].startswith("STREAM_STALE")
    assert (rows["on_lost"]["stale"], rows["on_gone"]["stale"]) == (True, False)
    described = {r["info_name"]: r["info_value"] for r in place.run("DESC STREAM on_lost")}
    assert described["stale"] == "true"


def test_an_offset_behind_what_is_committed_is_shown(place: Place) -> None:
    """A table that read uncommitted messages, and reads committed ones now: its stream is further than the last stable offset."""
    topic = place.topic("other")
    place.table("k", topic, kafka__isolation__level="read_uncommitted")
    place.stream()
    place.sink()
    with topics.transaction(place.broker.bootstrap) as current:
        current.send(topic, [Message("a"), Message("b")])
        place.fill()
        assert place.position() == {"0": 2}
        place.table("k", topic)
        shown = place.shown()
        assert shown["stale"]
        assert shown["invalid_reason"].startswith("STREAM_STALE"), shown
        assert place.refused("SELECT * FROM s").code == "STREAM_STALE"
        assert place.refused("SELECT stream_has_data('s')").code == "STREAM_STALE"
        current.commit()
    assert place.shown()["invalid_reason"] is None
    assert place.shown()["lag_versions"] == 1, "the marker of the transaction"


def test_dead_connections_are_waited_for_together(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, dead = place.topic(), 3
    place.stream()
    for i in range(dead):
        place.connect(f"{place.schema}_{i}", place.broker.bootstrap)
        place.table(f"k{i}", topic, connection=f"{place.schema}_{i}")
        place.stream(f"s{i}", f"k{i}")
        place.connect(f"{place.schema}_{i}", f"127.0.0.1:{9 + i}")
    at_once: list[int] = []
    waiting = [0]
    describe = kafka.describe_topics

    def counted(*arguments: Any) -> Any:
        waiting[0] += 1
        at_once.append(waiting[0])
        try:
            return describe(*arguments)
        finally:
            waiting[0] -= 1

    monkeypatch.setattr("streamql.features.kafka.source.source_type.describe_topics", counted)
    with setting(place.spark, "spark.streamql.kafkaTimeout", "2s"):
        rows = {r["name"]: r for r in place.run("SHOW STREAMS")}
    assert rows["s"]["invalid_reason"] is None
    assert all(rows[f"s{i}"]["invalid_reason"].startswith("KAFKA_UNREACHABLE") for i in range(dead)), rows
    assert max(at_once) > 1, "one after the other, their time-outs add up"
