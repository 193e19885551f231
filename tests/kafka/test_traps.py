"""What happens to topics and brokers in life: each message arrives once all the same, or an error says what to do."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from streamql.engine.doctor import examine
from tests.kafka import topics
from tests.kafka.support import Place, sent, settings, until
from tests.kafka.topics import Message

# -- partitions


def test_a_partition_that_was_added_is_read_from_its_begin(place: Place) -> None:
    topic = place.topic()
    place.stream("from_now", clauses="")
    place.stream()
    place.sink()
    place.send(topic, "a")
    place.fill()
    topics.add_partitions(place.broker.bootstrap, topic, 3)
    assert not place.has_data(), "a partition without messages is no news"
    place.send(topic, "b", "c", partition=2)
    assert place.has_data()
    assert place.shown()["lag_versions"] == 2
    assert place.positions("s") == [(2, 0), (2, 1)]
    assert place.positions("from_now") == [(0, 0), (2, 0), (2, 1)]
    place.fill(options="WITH (MAX_BATCH_SIZE = 1)")
    assert place.position() == {"0": 1, "2": 1}
    place.send(topic, "d", partition=1)
    place.fill()
    assert place.positions("sink") == sent([0], [0], [0, 1])
    place.assert_ledger_tiles()


def test_messages_deleted_from_a_partition_that_was_never_read_are_no_loss(place: Place) -> None:
    """A partition without an offset begins with its earliest message, which is what the topic has of it by then."""
    topic = place.topic(partitions=2)
    place.stream()
    place.sink()
    place.send(topic, *"abc")
    topics.delete_records(place.broker.bootstrap, topic, {0: 2})
    assert place.shown()["lag_versions"] == 1
    place.fill()
    assert place.positions("sink") == [(0, 2)]
    place.send(topic, *"xyz", partition=1)
    topics.delete_records(place.broker.bootstrap, topic, {0: 3})
    assert place.shown()["stale"] is False, "all that was deleted has been read"


# -- deleted messages


def test_deleted_messages_make_a_stream_stale_until_its_offset_is_set(place: Place) -> None:
    topic = place.topic(partitions=2)
    place.stream()
    place.sink()
    place.send(topic, "a")
    place.send(topic, "a", partition=1)
    place.fill()
    place.send(topic, *"bcd")
    place.send(topic, "b", partition=1)
    topics.delete_records(place.broker.bootstrap, topic, {0: 3})
    for text in ("SELECT * FROM s", "SELECT stream_has_data('s')", "SELECT * FROM stream_backlog('s')"):
        found = place.refused(text)
        assert found.code == "STREAM_STALE", text
        assert "partition 0: offset 1 to 2" in found.message, text
        assert "partition 1" not in found.message, text
    assert place.refused("INSERT INTO sink SELECT partition, offset, '' FROM s").code == "STREAM_STALE"
    shown = place.shown()
    assert shown["stale"]
    assert shown["invalid_reason"].startswith("STREAM_STALE")
    (finding,) = [f for f in examine(place.spark) if f.subject == f"{place.schema}.s"]
    assert finding.code == "STREAM_STALE"
    repair = f"""ALTER STREAM {place.schema}.s SET OFFSET '{{"0": 3}}'"""
    assert repair in place.refused("SELECT * FROM s").hint
    place.run(repair)
    assert place.position() == {"0": 3, "1": 1}
    place.fill()
    assert place.positions("sink") == sent([0, 3], [0, 1])


def test_messages_that_are_deleted_while_they_are_read_fail_the_statement(place: Place) -> None:
    """The statement was planned with an offset that the topic no longer has when its tasks run: no row is left out silently."""
    topic = place.topic()
    place.stream("s", clauses="")
    place.send(topic, *"abcd")
    frame = place.spark.sql("SELECT partition, offset FROM s")
    topics.delete_records(place.broker.bootstrap, topic, {0: 2})
    with pytest.raises(Exception, match=r"(?i)data loss|data may have been lost|lost|out of range|aged out"):
        frame.collect()


def test_retention_that_comes_near_is_foretold(place: Place) -> None:
    topic = place.topic(retention_ms=3_600_000)
    place.stream()
    topics.send(place.broker.bootstrap, topic, [Message("old", timestamp=int(time.time() * 1000) - 3_000_000)])
    shown = place.shown()
    assert 2_900 < shown["lag_seconds"] < 3_500
    assert shown["has_data"]
    (finding,) = [f for f in examine(place.spark) if f.subject == f"{place.schema}.s"]
    assert (finding.severity, finding.code) == ("warning", "STREAM_STALE")
    assert "retention.ms" in finding.remedy


# -- a topic that is another one


def test_a_topic_that_was_created_again_is_another_source(place: Place) -> None:
    topic = place.topic()
    place.stream()
    place.sink()
    place.send(topic, "a")
    place.fill()
    topics.delete(place.broker.bootstrap, topic)
    assert place.refused("SELECT * FROM s").code == "STREAM_SOURCE_MISSING"
    topics.create(place.broker.bootstrap, topic)
    place.send(topic, *"new")
    for text in ("SELECT * FROM s", "INSERT INTO sink SELECT partition, offset, '' FROM s"):
        assert place.refused(text).code == "STREAM_SOURCE_REPLACED"
    assert place.refused("""ALTER STREAM s SET OFFSET '{"0": 0}'""").code == "STREAM_SOURCE_REPLACED"
    assert place.shown()["invalid_reason"].startswith("STREAM_SOURCE_REPLACED")
    place.run("CREATE OR REPLACE TABLE STREAM s ON TABLE k WITH (SHOW_INITIAL_ROWS = TRUE)")
    place.fill()
    assert place.positions("sink") == sent([0, 0, 1, 2])


# -- transactions


def test_aborted_messages_never_show_and_open_ones_hold_back(place: Place) -> None:
    topic = place.topic()
    place.table("dirty", topic, kafka__isolation__level="read_uncommitted")
    place.stream()
    place.stream("t", "dirty")
    place.sink()
    topics.in_transaction(place.broker.bootstrap, topic, [Message("a"), Message("b")], commit=False)
    topics.in_transaction(place.broker.bootstrap, topic, [Message("c")])
    with topics.transaction(place.broker.bootstrap) as current:
        current.send(topic, [Message("d")])
        place.send(topic, "e")
        assert place.positions("k") == place.positions("s") == [(0, 3)]
        assert place.positions("dirty") == place.positions("t") == sent([0, 1, 3, 5, 6])
        place.fill()
        assert place.position() == {"0": 5}, "the last stable offset"
        assert not place.has_data()
        assert place.shown()["lag_versions"] == 0
        current.commit()
    until(place.has_data, "the transaction does not end")
    place.fill()
    assert place.positions("sink") == sent([3, 5, 6])
    place.assert_ledger_tiles()


def test_what_a_connection_says_of_uncommitted_messages_counts(place: Place) -> None:
    topic = place.topic()
    place.connect(place.connection, place.broker.bootstrap, "OPTIONS ('isolation.level' = 'read_uncommitted')")
    with topics.transaction(place.broker.bootstrap) as current:
        current.send(topic, [Message("a")])
        assert place.positions("k") == [(0, 0)]
        place.table("k", topic, kafka__isolation__level="read_committed")
        assert place.positions("k") == [], "the table's own setting wins"
        current.abort()


# -- compaction


def set_config(place: Place, topic: str, **config: str) -> None:
    admin = AdminClient(topics.client(place.broker.bootstrap))
    entries = [
        ConfigEntry(k.replace("_", "."), v, incremental_operation=AlterConfigOpType.SET) for k, v in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def test_compaction_leaves_gaps_that_no_reader_stumbles_over(place: Place) -> None:
    topic = place.topic(cleanup_policy="compact", segment_ms=50, min_cleanable_dirty_ratio=0.01)
    place.stream()
    place.sink()
    for i in range(8):
        topics.send(place.broker.bootstrap, topic, [Message(str(i), f"k{i % 2}", partition=0)])
        time.sleep(0.06)
    until(lambda: len(topics.read(place.broker.bootstrap, topic)) < 7, "the topic is not compacted")
    before = place.shown()
    assert before["lag_versions"] == 8, "an upper bound"
    kept = [(m.partition, m.offset) for m in topics.read(place.broker.bootstrap, topic)]
    while place.has_data():
        place.fill(options="WITH (MAX_BATCH_SIZE = 3)")
    found = place.positions("sink")
    assert len(found) == len(set(found)) < 8
    assert found[-1] == (0, 7)
    assert set(found) <= set(kept)
    place.assert_ledger_tiles()


def test_a_compaction_between_two_statements_of_a_transaction_is_not_silent(place: Place) -> None:
    topic = place.topic(
        cleanup_policy="compact", segment_ms=50, min_cleanable_dirty_ratio=0.01, min_compaction_lag_ms=600_000
    )
    place.stream()
    place.sink()
    place.sink("sink_b")
    for i in range(6):
        topics.send(place.broker.bootstrap, topic, [Message(str(i), "k", partition=0)])
        time.sleep(0.06)
    place.run("BEGIN TRANSACTION")
    place.fill()
    set_config(place, topic, min_compaction_lag_ms="0")
    time.sleep(0.06)
    topics.send(place.broker.bootstrap, topic, [Message("later", "other", partition=0)])
    until(lambda: len(topics.read(place.broker.bootstrap, topic)) < 5, "the topic is not compacted")
    lost = place.refused("INSERT INTO sink_b SELECT partition, offset, CAST(value AS STRING) FROM s")
    assert lost.code == "CONSUMPTION_FAILED"
    assert "has read 6 messages" in lost.message
    assert place.refused("COMMIT").code == "INVALID_TRANSACTION_STATE"
    place.run("ROLLBACK STATEMENT")
    place.run("COMMIT")
    assert (len(place.positions("sink")), len(place.positions("sink_b"))) == (6, 0)


NEVER = {"spark.databricks.delta.merge.materializeSource": "none"}


@pytest.mark.parametrize("hostile", [{}, NEVER, {**NEVER, "spark.sql.sources.useV1SourceList": ""}])
def test_a_merge_whose_topic_shrinks_between_its_passes_is_whole(place: Place, hostile: dict[str, str]) -> None:
    """The first pass, which must compare values, deletes all messages when it has read them: a second read would find none, or fail."""
    topic, bootstrap = place.topic(), place.broker.bootstrap
    place.stream("s", clauses="")
    place.sink()
    place.send(topic, *"abcdef")
    place.run("INSERT INTO sink VALUES (0, 0, 'old'), (0, 1, 'old')")

    def deleting(value: str) -> str:
        if value == "f":
            from confluent_kafka import TopicPartition

            admin = AdminClient({"bootstrap.servers": bootstrap})
            for future in admin.delete_records([TopicPartition(topic, 0, 6)]).values():
                future.result(30)
        return value

    place.spark.udf.register("deleting", deleting)
    with settings(place.spark, hostile):
        place.run(
            "MERGE INTO sink t USING (SELECT partition, offset, deleting(CAST(value AS STRING)) AS v FROM s) m "
            "ON t.p = m.partition AND t.o = m.offset AND m.v >= 'a' WHEN MATCHED THEN UPDATE SET v = m.v "
            "WHEN NOT MATCHED THEN INSERT (p, o, v) VALUES (m.partition, m.offset, m.v)"
        )
    assert topics.offsets(bootstrap, topic) == {0: (6, 6)}
    assert [r["v"] for r in place.run("SELECT v FROM sink ORDER BY o")] == list("abcdef")
    assert not place.has_data()


# -- messages that cannot be read


def test_a_bad_message_does_not_stop_a_stream(place: Place) -> None:
    topic = place.topic()
    place.stream()
    place.send(topic, '{"id": 1}', "not json", b"\xff\xfe", None, '{"id": "x"}', '{"id": 2}')
    place.run("CREATE TABLE orders (id INT)")
    place.run("CREATE TABLE bad (o BIGINT, value BINARY)")
    parsed = "SELECT offset, value, from_json(CAST(value AS STRING), 'id INT') AS j FROM s"
    place.run(
        f"FROM ({parsed}) INSERT INTO orders SELECT j.id WHERE j.id IS NOT NULL "
        "INSERT INTO bad SELECT offset, value WHERE j.id IS NULL AND value IS NOT NULL"
    )
    assert [r["id"] for r in place.run("SELECT * FROM orders ORDER BY id")] == [1, 2]
    assert [r["o"] for r in place.run("SELECT * FROM bad ORDER BY o")] == [1, 2, 4]
    assert place.position() == {"0": 6}
