"""Expectations on the messages of a topic: a poison message does not stop its stream."""

from __future__ import annotations

import pytest

from tests.kafka.support import Place, sent

EXPECTATIONS = (
    "EXPECTATION num CHECK (CAST(CAST(value AS STRING) AS INT) > 0) ON VIOLATION QUARANTINE "
    "EXPECTATION small CHECK (value <> CAST('100' AS BINARY)) ON VIOLATION DROP"
)
MERGE = (
    "MERGE INTO sink USING (SELECT partition, offset, CAST(CAST(value AS STRING) AS INT) AS v FROM s) AS s "
    "ON sink.p = s.partition AND sink.o = s.offset WHEN NOT MATCHED THEN INSERT (p, o, v) VALUES (s.partition, s.offset, s.v)"
)


def quarantined(place: Place) -> list[tuple[object, ...]]:
    """(partition, offset, consumption) of each quarantined message."""
    return sorted(map(tuple, place.run("SELECT partition, offset, __consumption FROM s_quarantine")))


def test_messages(place: Place) -> None:
    """Message 1 cannot be cast, 3 is a tombstone, 4 is dropped. In a batch, the messages that are left out count."""
    topic = place.topic(partitions=2)
    place.stream(clauses=f"WITH (SHOW_INITIAL_ROWS = TRUE) {EXPECTATIONS}")
    place.sink()
    place.send(topic, "1", "x", "2", None, "100")
    place.fill(options="WITH (MAX_BATCH_SIZE = 2)")
    assert place.positions("sink") == sent([0])
    assert [q[:2] for q in quarantined(place)] == [(0, 1)]
    place.send(topic, "3", "y", partition=1)
    place.run(MERGE)
    assert place.positions("sink") == sent([0, 2], [0])
    assert [q[:2] for q in quarantined(place)] == [(0, 1), (0, 3), (1, 1)]
    assert len({q[2] for q in quarantined(place)}) == 2
    place.assert_ledger_tiles()

    place.run("ALTER STREAM s ADD EXPECTATION known CHECK (offset < 7) ON VIOLATION FAIL")
    place.send(topic, "4", "z", "5")
    before = place.position()
    for statement in ("INSERT INTO sink SELECT partition, offset, '' FROM s", MERGE):
        with pytest.raises(Exception, match=r"EXPECTATION_VIOLATED.*expectation known.*offset = 7"):
            place.run(statement)
    assert place.position() == before
    assert (place.positions("sink"), len(quarantined(place))) == (sent([0, 2], [0]), 3)
    place.run("ALTER STREAM s DROP EXPECTATION known")
    place.run(MERGE)
    assert place.positions("sink") == sent([0, 2, 5, 7], [0])
    assert [q[:2] for q in quarantined(place)] == [(0, 1), (0, 3), (0, 6), (1, 1)]
