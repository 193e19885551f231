"""Statements that consume a stream on a topic: each message arrives once, and the stream stands behind it."""

from __future__ import annotations

import json

import pytest

from streamql.delta.names import qualify
from streamql.engine.reads import need_stream
from streamql.errors import StreamqlError
from streamql.features.replay.shadow import entry_to_replay, replay
from tests.consume.support import TRACKED, in_threads
from tests.kafka import topics
from tests.kafka.support import Place, sent, until
from tests.kafka.topics import Message

UPSERT = """
    MERGE INTO customers t USING (
      SELECT key, value FROM (
        SELECT CAST(key AS STRING) AS key, CAST(value AS STRING) AS value,
               row_number() OVER (PARTITION BY key ORDER BY partition, offset DESC) AS n
        FROM s WHERE key IS NOT NULL
      ) WHERE n = 1
    ) m ON t.key = m.key
    WHEN MATCHED AND m.value IS NULL THEN DELETE
    WHEN MATCHED THEN UPDATE SET value = m.value
    WHEN NOT MATCHED AND m.value IS NOT NULL THEN INSERT (key, value) VALUES (m.key, m.value)
"""
"""A message with a key is the new state of the key's row, and a tombstone deletes it. A key has one partition, so the last offset wins."""


def test_an_insert_takes_all_there_is_and_says_so(place: Place) -> None:
    topic = place.topic(partitions=2)
    place.stream()
    place.sink()
    place.send(topic, *"abc")
    place.send(topic, *"de", partition=1)
    (backlog,) = place.run("SELECT * FROM stream_backlog('s')")
    assert (backlog["rows_added"], backlog["rows_removed"], backlog["has_data"]) == (5, 0, True)
    assert (json.loads(backlog["from_position"]), json.loads(backlog["through_position"])) == ({}, {"0": 3, "1": 2})
    assert backlog["from_version"] is backlog["through_version"] is None
    assert place.has_data()
    shown = place.shown()
    assert (shown["lag_versions"], shown["has_data"], shown["offset_position"]) == (5, True, "{}")
    assert shown["source_type"] == "EXTERNAL TABLE"
    place.fill()
    assert place.positions("sink") == sent(range(3), range(2))
    assert place.position() == {"0": 3, "1": 2}
    assert not place.has_data()
    (backlog,) = place.run("SELECT * FROM stream_backlog('s')")
    assert (backlog["rows_added"], backlog["has_data"]) == (0, False)
    (row,) = place.ledger()
    assert (row["outcome"], row["operation"], row["guarantee"]) == ("CONSUMED", "INSERT", "exactly_once")
    assert json.loads(row["positions"]) == [{}, {"0": 3, "1": 2}]
    assert row["from_version"] is row["through_version"] is None
    assert (row["changes"], row["rows_written"]) == ({"INSERT": 5}, 5)
    place.send(topic, "f", partition=1)
    place.fill()
    assert place.positions("sink") == sent(range(3), range(3))
    place.assert_ledger_tiles()
    (described,) = [r for r in place.run("DESC STREAM s") if r["info_name"] == "latest_position"]
    assert described["info_value"] == '{"0": 3, "1": 3}'


def test_a_merge_keeps_the_last_state_of_each_key(place: Place) -> None:
    topic = place.topic(partitions=2)
    place.stream()
    place.run("CREATE TABLE customers (key STRING, value STRING)")

    def send(*pairs: tuple[str | None, str | None]) -> None:
        topics.send(place.broker.bootstrap, topic, [Message(value, key) for key, value in pairs])

    def upserted() -> dict[str, str]:
        place.run(UPSERT)
        return {r["key"]: r["value"] for r in place.run("SELECT * FROM customers")}

    send(("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("c", None), (None, "no key"))
    assert upserted() == {"a": "2", "b": "1"}
    send(("b", None), ("b", "3"), ("a", None), ("d", None), ("e", "1"))
    assert upserted() == {"b": "3", "e": "1"}
    assert upserted() == {"b": "3", "e": "1"}, "an empty interval changes nothing"
    place.assert_ledger_tiles()


def test_several_targets_of_one_statement_and_a_new_table(place: Place) -> None:
    topic = place.topic(partitions=2)
    place.stream()
    place.sink("sink_a")
    place.sink("sink_b")
    place.send(topic, *"abcd")
    place.send(topic, *"ef", partition=1)
    columns = "partition, offset, CAST(value AS STRING)"
    place.run(
        f"FROM s INSERT INTO sink_a SELECT {columns} WHERE offset < 2 INSERT INTO sink_b SELECT {columns} WHERE offset >= 1"
    )
    assert place.positions("sink_a") == sent([0, 1], [0, 1])
    assert place.positions("sink_b") == sent([1, 2, 3], [1])
    place.send(topic, "g")
    place.run("CREATE TABLE sink_c AS SELECT partition AS p, offset AS o, CAST(value AS STRING) AS v FROM s")
    assert place.positions("sink_c") == [(0, 4)]
    assert not place.has_data()
    place.assert_ledger_tiles()


def test_a_transaction_over_a_topic_and_a_table(place: Place) -> None:
    topic = place.topic()
    place.stream()
    place.run(f"CREATE TABLE t (id BIGINT) {TRACKED}")
    place.stream("d", "t", "")
    place.sink("sink_a")
    place.sink("sink_b")
    place.run("CREATE TABLE ids (id BIGINT)")
    place.run("INSERT INTO t VALUES (1), (2)")
    place.send(topic, *"ab")
    place.run("BEGIN TRANSACTION")
    assert place.value("SELECT count(*) FROM s") == 2
    place.run("ROLLBACK")
    assert place.position() == {}
    transaction = [
        "BEGIN TRANSACTION",
        "INSERT INTO sink_a SELECT partition, offset, '' FROM s",
        "INSERT INTO sink_b SELECT partition, offset, '' FROM s",
        "INSERT INTO ids SELECT id FROM d",
    ]
    for statement in transaction[:2]:
        place.run(statement)
    place.send(topic, "c")
    assert place.refused("ROLLBACK").code == "CONSUMPTION_PARTIALLY_COMMITTED", "a part of it is in its target"
    for statement in transaction:
        place.run(statement)
        place.send(topic, "d")
    place.run("COMMIT")
    assert place.positions("sink_a") == place.positions("sink_b") == sent(range(2)), "all see what the first run saw"
    assert {r["id"] for r in place.run("SELECT * FROM ids")} == {1, 2}
    assert place.position() == {"0": 2}
    assert place.has_data()
    assert not place.has_data("d")
    for statement in (*transaction[:3], "COMMIT"):
        place.run(statement)
    assert place.positions("sink_a") == place.positions("sink_b") == sent(range(7))
    place.assert_ledger_tiles()


def test_batches_take_each_message_once_whatever_the_partitions_hold(place: Place) -> None:
    topic = place.topic(partitions=4)
    place.stream()
    place.sink()
    sizes = (13, 1, 0, 5)
    for p, size in enumerate(sizes):
        place.send(topic, *("x" * size), partition=p)
    seen: list[int] = []
    while place.has_data():
        assert len(seen) < 10
        assert place.value("SELECT count(*) FROM s WITH (MAX_BATCH_SIZE = 5)") <= 5
        place.fill(options="WITH (MAX_BATCH_SIZE = 5)")
        seen.append(len(place.positions("sink")) - sum(seen))
        if len(seen) == 1:
            assert place.position() == {"0": 4, "3": 1}, (
                "a share by backlog; a partition without one stays at its begin"
            )
    assert seen == [5, 5, 5, 4]
    assert place.positions("sink") == sent(*map(range, sizes))
    assert [r["rows_written"] for r in place.ledger()] == seen
    place.assert_ledger_tiles()


def test_two_consumers_share_a_stream(place: Place) -> None:
    topic = place.topic(partitions=3)
    place.stream()
    place.sink()
    other = place.spark.newSession()
    sessions = [Place(s, place.broker, place.schema) for s in (place.spark, other)]
    sessions[1].run(f"USE {place.schema}")
    for p in range(3):
        place.send(topic, *("x" * 20), partition=p)

    def consume(session: Place) -> None:
        for _ in range(3):
            try:
                session.fill(options="WITH (MAX_BATCH_SIZE = 12)")
            except StreamqlError as e:
                if e.code not in ("STREAM_BUSY", "STREAM_MOVED"):
                    raise

    failures = in_threads(*(lambda s=s: consume(s) for s in sessions))
    assert failures == []
    place.fill()
    assert place.positions("sink") == sent(range(20), range(20), range(20))
    place.assert_ledger_tiles()


def test_an_interval_of_aborted_messages_alone_is_passed(place: Place) -> None:
    topic = place.topic()
    place.stream()
    place.sink()
    topics.in_transaction(place.broker.bootstrap, topic, [Message("x"), Message("y")], commit=False)
    assert place.has_data(), "offsets tell nothing of what was aborted"
    assert place.run("SELECT * FROM s") == []
    place.fill()
    assert place.position() == {"0": 3}
    assert not place.has_data()
    place.fill(options="WITH (MAX_BATCH_SIZE = 1)")
    place.send(topic, "z")
    place.fill(options="WITH (MAX_BATCH_SIZE = 1)")
    assert place.positions("sink") == [(0, 3)]
    place.assert_ledger_tiles()


def test_a_failed_statement_moves_nothing(place: Place) -> None:
    topic = place.topic()
    place.stream()
    place.sink()
    place.send(topic, "1", "x")
    failing = "INSERT INTO sink SELECT CAST(CAST(value AS STRING) AS INT), offset, '' FROM s"
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        place.run(failing)
    assert place.position() == {}
    assert place.positions("sink") == []
    place.fill()
    assert place.positions("sink") == sent([0, 1])


def test_a_query_that_consumes(place: Place) -> None:
    topic = place.topic()
    place.stream()
    place.send(topic, *"ab")
    assert len(place.run("SELECT offset FROM s WITH (CONSUME = TRUE)")) == 2
    assert place.position() == {"0": 2}
    assert not place.has_data()


def test_messages_that_arrive_during_a_statement_are_the_next_ones(place: Place) -> None:
    topic = place.topic()
    place.stream()
    place.sink()
    place.send(topic, "a")
    late = place.spark.sql("SELECT partition, offset FROM s")
    place.send(topic, "b")
    assert len(late.collect()) == 1
    place.fill()
    until(lambda: not place.has_data(), "the stream stays behind")
    assert place.positions("sink") == sent([0, 1])


def test_a_consumption_is_replayed(place: Place) -> None:
    """Its messages are read again by their positions."""
    topic = place.topic(partitions=2)
    place.stream()
    place.sink()
    place.send(topic, *"abc")
    place.send(topic, *"de", partition=1)
    place.fill()
    place.send(topic, "f")
    place.fill()
    spark = place.spark
    state = need_stream(spark, ("s",))
    first, last = (row["sequence"] for row in place.ledger())
    for number, rows in ((first, 5), (last, 6)):
        done = replay(
            spark, state, entry_to_replay(spark, state, number, None), qualify(spark, (f"again{number}",)), None
        )
        assert (done.is_equal, done.rows) == (True, rows)
    assert [r["v"] for r in place.run(f"SELECT CAST(value AS STRING) AS v FROM stream_consumption('s', {last})")] == [
        "f"
    ]
    assert place.position() == {"0": 4, "1": 2}, "nothing moved"
