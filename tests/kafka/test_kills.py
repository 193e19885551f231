"""kill -9 at random instants of a process that consumes a topic without a pause, by INSERT and by MERGE, while messages keep coming.

pytest tests/kafka/test_kills.py                       # a sample
STREAMQL_LONG=50 pytest tests/kafka/test_kills.py      # that many kills
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.consume.support import killed_within
from tests.kafka import topics
from tests.kafka.support import Place, setting
from tests.kafka.topics import Message, Position
from tests.sample import SEED, amount

KILLS = amount(1, 50)
PARTITIONS = 3
MESSAGES_AT_ONCE = 40
ROUND_SECONDS = 3.0
"""One round of the loop takes about so long; the kill comes at any instant of the first two."""


def loop(schema: str) -> list[str]:
    """What consumes two streams of one topic, by batches and whole."""
    columns = "partition AS p, offset AS o, CAST(value AS STRING) AS v"
    return [
        f"INSERT INTO {schema}.sink_a SELECT {columns} FROM {schema}.s WITH (MAX_BATCH_SIZE = 100)",
        (
            f"MERGE INTO {schema}.sink_b t USING (SELECT {columns} FROM {schema}.s2) m ON t.p = m.p AND t.o = m.o "
            "WHEN MATCHED THEN UPDATE SET v = 'twice' WHEN NOT MATCHED THEN INSERT (p, o, v) VALUES (m.p, m.o, m.v)"
        ),
        f"INSERT INTO {schema}.sink_a SELECT {columns} FROM {schema}.s",
    ]


@contextmanager
def producing(place: Place, topic: str) -> Iterator[list[Position]]:
    """Messages that keep coming; the positions that they got, in a list that grows."""
    positions: list[Position] = []
    done = threading.Event()

    def produce() -> None:
        while not done.wait(0.25):
            messages = [Message("x", partition=i % PARTITIONS) for i in range(MESSAGES_AT_ONCE)]
            positions.extend(topics.send(place.broker.bootstrap, topic, messages))

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield positions
    finally:
        done.set()
        thread.join()


def test_whatever_the_instant_each_message_arrives_once(place: Place) -> None:
    rng = random.Random(SEED)
    topic = place.topic(partitions=PARTITIONS)
    for stream, sink in (("s", "sink_a"), ("s2", "sink_b")):
        place.stream(stream)
        place.sink(sink)
    statements = loop(place.schema)
    conf = {"spark.streamql.connectors": "kafka"}
    with setting(place.spark, "spark.streamql.lease", "5s"):  # the JVM of a dead process goes on for a moment
        with producing(place, topic) as positions:
            for _ in range(KILLS):
                killed_within(place.spark, rng.uniform(0, 2 * ROUND_SECONDS), *statements, conf=conf)
        for _ in range(2):  # the first run may resume an interval that ended before
            for statement in statements:
                place.run(statement)
    assert len(positions) == len(set(positions))
    for stream, sink in (("s", "sink_a"), ("s2", "sink_b")):
        assert place.positions(sink) == sorted(positions), sink
        assert not place.has_data(stream)
        place.assert_ledger_tiles(stream)
    assert place.value("SELECT count(*) FROM sink_b WHERE v <> 'x'") == 0
