"""What the tests of Kafka sources share: a schema with external tables on topics of its own, and what must hold at the end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

import streamql
from streamql.catalog.store import catalog_of
from streamql.errors import StreamqlError
from streamql.sources.definitions import DefinitionType
from tests.kafka import topics
from tests.kafka.broker import Broker
from tests.kafka.topics import Message, Position

_numbers = count(1)
SECONDS_MAX = 60


@dataclass
class Place:
    """A schema that is the current one, and a storage connection to a broker."""

    spark: SparkSession
    broker: Broker
    schema: str = field(default_factory=lambda: f"kafka_{next(_numbers)}")

    @property
    def connection(self) -> str:
        """The name of the storage connection."""
        return f"{self.schema}_connection"

    def open(self) -> None:
        """Makes the schema and the connection."""
        self.run(f"CREATE SCHEMA {self.schema}")
        self.run(f"USE {self.schema}")
        self.connect(self.connection, self.broker.bootstrap)

    def close(self) -> None:
        """Takes all that is not a table of Spark's out of the catalog: no later test asks the broker for it."""
        catalog = catalog_of(self.spark)
        found: list[Any] = [s for s in catalog.all(self.spark) if s.name.schema == self.schema]
        for type_ in DefinitionType:
            found += [
                d
                for d in catalog.definitions(self.spark, type_)
                if d.name.schema == self.schema or d.name.object.startswith(self.schema)
            ]
        assert catalog.commit(self.spark, found, [None] * len(found), [])
        self.run("USE default")

    def connect(self, name: str, address: str, settings: str = "") -> None:
        """Makes, or makes anew, a storage connection."""
        self.run(
            f"CREATE OR REPLACE STORAGE CONNECTION {name} TYPE KAFKA BOOTSTRAP_SERVERS = ['{address}'] "
            f"SECURITY_PROTOCOL = 'PLAINTEXT' {settings}"
            if "SECURITY_PROTOCOL" not in settings
            else f"CREATE OR REPLACE STORAGE CONNECTION {name} TYPE KAFKA BOOTSTRAP_SERVERS = ['{address}'] {settings}"
        )

    def run(self, text: str) -> list[Row]:
        """Runs a statement; its rows."""
        return streamql.sql(text, self.spark).collect()

    def value(self, text: str) -> Any:
        """Runs a statement; the only value of its only row."""
        ((found,),) = self.run(text)
        return found

    def refused(self, text: str) -> StreamqlError:
        """Runs a statement that is refused; the error."""
        with pytest.raises(StreamqlError) as found:
            self.run(text)
        return found.value

    def topic(self, name: str = "k", partitions: int = 1, **config: object) -> str:
        """Makes a topic with an external table of a name on it; the topic's name."""
        topic = f"{self.schema}.{name}"
        topics.create(self.broker.bootstrap, topic, partitions, **config)
        self.table(name, topic)
        return topic

    def table(self, name: str, topic: str, columns: str = "", connection: str = "", **options: str) -> None:
        """Makes, or makes anew, an external table. `options`: those beside the topic, with `__` for dots."""
        listed = "".join(f", '{key.replace('__', '.')}' = '{value}'" for key, value in options.items())
        self.run(
            f"CREATE OR REPLACE EXTERNAL TABLE {name} {columns} USING KAFKA "
            f"OPTIONS ('group_id' = 'g', 'topics' = '{topic}'{listed}) CONNECTION {connection or self.connection}"
        )

    def stream(self, name: str = "s", table: str = "k", clauses: str = "WITH (SHOW_INITIAL_ROWS = TRUE)") -> None:
        """Makes a stream, which begins with the topic's earliest messages unless the clauses say something else."""
        self.run(f"CREATE TABLE STREAM {name} ON TABLE {table} {clauses}")

    def sink(self, name: str = "sink") -> None:
        """Makes a Delta table that `fill` fills."""
        self.run(f"CREATE TABLE {name} (p INT, o BIGINT, v STRING)")

    def fill(self, stream: str = "s", sink: str = "sink", options: str = "") -> None:
        """Consumes a stream by an INSERT."""
        self.run(f"INSERT INTO {sink} SELECT partition, offset, CAST(value AS STRING) FROM {stream} {options}")

    def send(self, topic: str, *values: bytes | str | None, partition: int | None = 0) -> list[Position]:
        """Sends messages without a key; their positions."""
        return topics.send(self.broker.bootstrap, topic, [Message(v, partition=partition) for v in values])

    def positions(self, relation: str) -> list[Position]:
        """(partition, offset) of each row of a stream, an external table, or a sink, in order."""
        columns = "p, o" if relation.startswith("sink") else "partition, offset"
        return sorted((p, o) for p, o in self.run(f"SELECT {columns} FROM {relation}"))

    def position(self, stream: str = "s") -> dict[str, int]:
        """Where a stream stands, by the catalog alone."""
        state = next(
            s for s in catalog_of(self.spark).all(self.spark) if (s.name.schema, s.name.object) == (self.schema, stream)
        )
        found: dict[str, int] = json.loads(str(state.offset.position))
        return found

    def shown(self, stream: str = "s") -> Row:
        """The row of SHOW STREAMS."""
        (row,) = self.run(f"SHOW STREAMS LIKE '{stream}'")
        return row

    def has_data(self, stream: str = "s") -> bool:
        """What stream_has_data says."""
        return bool(self.value(f"SELECT stream_has_data('{stream}')"))

    def ledger(self, stream: str = "s") -> list[Row]:
        """The consumptions of a stream, the first one first."""
        return self.run(
            f"SELECT * FROM streamql.consumptions WHERE stream = '{self.schema}.{stream}' ORDER BY sequence, ended_at"
        )

    def assert_ledger_tiles(self, stream: str = "s") -> None:
        """The intervals that were consumed follow one another in each partition, up to where the stream stands."""
        consumed = [r for r in self.ledger(stream) if r["outcome"] == "CONSUMED"]
        intervals = list(
            dict.fromkeys(r["positions"] for r in consumed)
        )  # a block has a row for each of its statements
        at: dict[str, int] | None = None
        for text in intervals:
            after, through = json.loads(text)
            assert at is None or after == at, intervals
            assert all(after.get(p, 0) <= end for p, end in through.items()), intervals
            at = through
        assert at == self.position(stream), intervals


@contextmanager
def settings(spark: SparkSession, changed: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session, for a while."""
    before = {key: spark.conf.get(key, None) for key in changed}
    for key, value in changed.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def setting(spark: SparkSession, key: str, value: str) -> AbstractContextManager[None]:
    """A setting of the session, for a while."""
    return settings(spark, {key: value})


@contextmanager
def paused(broker: Broker) -> Iterator[None]:
    """A broker that accepts connections and answers nothing, for a while."""
    broker.pause()
    try:
        yield
    finally:
        broker.resume()


def until(reached: Callable[[], bool], otherwise: str) -> None:
    """Waits until a condition holds. Raises AssertionError if it does not within a minute."""
    deadline = time.monotonic() + SECONDS_MAX
    while not reached():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


def sent(*offsets: Sequence[int]) -> list[Position]:
    """The positions of offsets, given for partition 0, 1, …"""
    return [(p, o) for p, found in enumerate(offsets) for o in found]
