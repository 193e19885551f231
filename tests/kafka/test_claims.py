"""What a claim has seen of a topic, and the topic no longer has."""

from __future__ import annotations

import pytest

from tests.kafka import topics
from tests.kafka.support import Place

TAKE = "INSERT INTO {} SELECT partition, offset, CAST(value AS STRING) FROM s"
FAILS = "INSERT INTO sink_b SELECT partition, offset, CAST(raise_error('no') AS STRING) FROM s"


def test_messages_that_a_half_done_block_has_seen_are_not_left_out_in_silence(place: Place) -> None:
    """The stream's offset names no partition yet: the block's other statement would begin with what is the earliest message by then."""
    topic = place.topic()
    place.send(topic, "a", "b", "c")
    place.stream()
    place.sink()
    place.sink("sink_b")
    place.run("BEGIN TRANSACTION")
    place.run(TAKE.format("sink"))
    with pytest.raises(Exception, match="USER_RAISED_EXCEPTION"):
        place.run(FAILS)
    assert place.refused("ROLLBACK").code == "CONSUMPTION_PARTIALLY_COMMITTED"
    topics.delete_records(place.broker.bootstrap, topic, {0: 2})
    place.run("BEGIN TRANSACTION")
    lost = place.refused(TAKE.format("sink_b"))
    assert lost.code == "STREAM_STALE"
    assert "partition 0: offset 0 to 1" in lost.message
    place.run("ROLLBACK")
    place.run("ALTER STREAM s SET OFFSET '{\"0\": 2}'")
    place.run(TAKE.format("sink_b"))
    assert place.positions("sink_b") == [(0, 2)]
