"""Kafka topics as sources of streams, by the external tables that name them. A position is the next offset of each partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.store import catalog_of
from streamql.errors import StreamqlError
from streamql.features.kafka.brokers import (
    Brokers,
    Topic,
    TopicProblem,
    describe_topics,
    error_of,
    first_times_ms,
    offsets_at,
    retentions_ms,
)
from streamql.features.kafka.source import history, messages
from streamql.features.kafka.source.connections import need_connection
from streamql.model import Interval, Offset, Parts, Position, SourceRef, StreamMode, TableSource, Versions
from streamql.names import Name
from streamql.settings import KAFKA_TIMEOUT, seconds
from streamql.sources.batches import spread
from streamql.sources.definitions import Definition, DefinitionType
from streamql.sources.protocol import Backlog, Expiry, Point
from streamql.times import now_ms


@dataclass(frozen=True)
class KafkaSource:
    """A topic as a stream refers to it: by Kafka's topic id; `name`: the external table. An empty id: not asked for yet, or the brokers
    are older than Kafka 2.8, which has no ids.

    `earliest`: the earliest offsets that a statement has seen when it claimed the stream. They are the begin of the partitions that the
    stream's offset lacks: what is deleted of them afterwards is lost. None: no statement has claimed the stream.
    """

    name: Name
    topic: str
    topic_id: str = ""
    earliest: Parts | None = field(default=None, compare=False)

    @property
    def type_name(self) -> str:
        """Returns the name of its type in `sources.registry`."""
        return "kafka"

    @property
    def identity(self) -> str:
        """Kafka's topic id, or the topic's name if there is none."""
        return self.topic_id or self.topic

    @property
    def path(self) -> str:
        """Nothing: a topic has no files that Spark sees."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """Returns what `from_json` reads back."""
        earliest = None if self.earliest is None else dict(self.earliest.numbers)
        return {"name": list(self.name.parts), "topic": self.topic, "topic_id": self.topic_id, "earliest": earliest}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KafkaSource:
        """Returns the source that `to_json` wrote. Raises LookupError, TypeError or ValueError for anything else."""
        earliest = data.get("earliest")
        seen = None if earliest is None else Parts.of({str(p): int(offset) for p, offset in earliest.items()})
        return cls(Name.of(data["name"]), str(data["topic"]), str(data["topic_id"]), seen)

    def holds(self, interval: Interval) -> list[tuple[TableSource, Versions]]:  # noqa: ARG002 - the protocol's
        """Returns nothing: no Delta table is behind it."""
        return []


@dataclass(frozen=True)
class OpenKafka:
    """A topic that its brokers have described. It is an `OpenSource`, whose positions are offsets by partition.

    `first_times_ms` and `retentions_ms`: what was asked of the brokers for several streams at once: the time of the first message of an
    interval, by interval; how long the topic keeps messages, as the only element.
    """

    spark: SparkSession
    ref: KafkaSource
    table: Definition
    brokers: Brokers
    topic: Topic
    first_times_ms: Mapping[Interval, int | None] = field(default_factory=dict)
    retentions_ms: Sequence[int | None] = ()

    @property
    def latest(self) -> Parts:
        """Returns the end of the topic: of what is committed, unless the table reads uncommitted messages."""
        return history.parts(self.topic.latest)

    # -- checks

    def check_trackable(self, mode: StreamMode, where: Mapping[str, int]) -> None:
        """Raises INVALID_PROPERTY for another mode than APPEND_ONLY."""
        if mode is not StreamMode.APPEND_ONLY:
            raise StreamqlError(
                "INVALID_PROPERTY",
                f"a stream on the Kafka topic {self.topic.name} cannot be {mode.value}: messages are added, and never updated or deleted",
                hint="WITH (TABLE_STREAM_MODE = APPEND_ONLY)",
                **where,
            )

    def check_start(self, offset: Offset) -> None:
        """Checks that all messages since an offset are there. Raises INVALID_POINT_IN_TIME."""
        history.check_start(self.topic, _parts(offset.position))

    def check_history(self, offset: Offset, seen: SourceRef, stream: Name) -> None:
        """Raises STREAM_STALE if messages behind the offset were deleted, STREAM_SOURCE_REPLACED if partitions of it are gone."""
        position = _parts(offset.position)
        claimed = seen.earliest if isinstance(seen, KafkaSource) else None
        if claimed is not None:
            position = Parts.of(dict(claimed.numbers) | dict(position.numbers))
        history.check_offset(self.topic, position, stream)

    # -- points in its history

    def offset_at(self, point: Point) -> Offset:
        """Returns the offset of a time (of each partition: its first message after it), or of positions. Raises INVALID_POINT_IN_TIME."""
        if point.positions is not None:
            return Offset(history.named(self.topic, point))
        if point.time_us is None:
            raise history.no_versions(self.topic, point)
        time_ms = history.first_ms(point)
        if time_ms > now_ms() + 1:
            raise history.in_future(point)
        found = offsets_at(self.spark, self.brokers, self.topic.name, sorted(self.topic.latest), time_ms)
        return Offset(
            history.parts({p: self.topic.latest[p] if offset is None else offset for p, offset in found.items()})
        )

    def one_earlier(self, position: Position, point: Point) -> Position:  # noqa: ARG002 - the protocol's
        """Raises INVALID_POINT_IN_TIME: of several partitions there is no last message before a position."""
        raise history.no_versions(self.topic, point)

    def seen_at(self, position: Position) -> KafkaSource:  # noqa: ARG002 - it is what is there now
        """Returns the topic with its id, and its earliest offsets now."""
        return replace(self.ref, earliest=history.parts(self.topic.earliest))

    def time_ms(self, position: Position) -> int | None:  # noqa: ARG002 - the protocol's
        """None: brokers do not tell when an offset was reached."""
        return None

    def lag(self, offset: Offset) -> int:
        """Returns the number of offsets behind a stream's offset: messages, and gaps where messages were compacted or aborted."""
        ends = history.ends(
            self.topic, _parts(offset.position), self.latest
        )  # the offset may be later: then it is stale
        return sum(end - begin for begin, end in ends.values())

    def describe_move(self, stream: Name, mode: StreamMode, old: Offset, new: Offset) -> str | None:  # noqa: ARG002 - one mode
        """Says how many messages a stream skips, or shows again, if its offset is set. None: none."""
        begins = (history.begins(self.topic, _parts(offset.position)) for offset in (old, new))
        return history.describe_move(stream, *begins)

    # -- reading

    def changes(self, interval: Interval, mode: StreamMode) -> DataFrame:
        """Returns the messages of an interval as INSERTs. Lazy."""
        self.check_trackable(mode, {})
        return messages.changes(self.spark, self.brokers, self.topic.name, self.table.columns, self._ends(interval))

    def as_at(self, position: Position, frame: DataFrame, end: Position) -> DataFrame:  # noqa: ARG002 - the protocol's
        """Returns the change set itself: the columns of a topic never change."""
        return frame

    def first_step(self, interval: Interval) -> Interval:
        """Returns the interval itself: any part of it can be read if all of it can."""
        return interval

    def batch_end(self, interval: Interval, mode: StreamMode, rows_max: int) -> Position:  # noqa: ARG002 - one mode
        """Returns the end of a part of the interval with at most `rows_max` offsets, of which each partition has a share by its backlog."""
        ends = self._ends(interval)
        shares = spread({p: end - begin for p, (begin, end) in ends.items()}, rows_max)
        after = dict(_parts(interval.after).numbers)
        reached = {str(p): begin + shares[p] for p, (begin, _) in ends.items() if shares[p] or str(p) in after}
        return Parts.of(after | reached)

    def backlog(self, interval: Interval, mode: StreamMode) -> Backlog:  # noqa: ARG002 - one mode
        """Counts offsets. That is an upper bound of messages: compacted and aborted ones have offsets, too."""
        count = sum(end - begin for begin, end in self._ends(interval).values())
        return Backlog(count, count, 0, 0, 0, count > 0)

    def expiry(self, interval: Interval, mode: StreamMode) -> Expiry | None:  # noqa: ARG002 - one mode
        """Returns when the interval's first message may be deleted, by the topic's retention. None: nothing is in the interval, or its
        first message did not arrive in two seconds."""
        if self._is_empty(interval):
            return None
        first = self._first_time_ms(interval)
        return None if first is None else Expiry(first, self._retention_ms())

    def _first_time_ms(self, interval: Interval) -> int | None:
        if interval in self.first_times_ms:
            return self.first_times_ms[interval]
        return first_times_ms(self.spark, self.brokers, [self.window(interval)])[0]

    def _retention_ms(self) -> int | None:
        if self.retentions_ms:
            return self.retentions_ms[0]
        return retentions_ms(self.spark, self.brokers, [self.topic.name])[self.topic.name]

    def _is_empty(self, interval: Interval) -> bool:
        return all(begin == end for begin, end in self._ends(interval).values())

    def _ends(self, interval: Interval) -> dict[int, tuple[int, int]]:
        return history.ends(self.topic, _parts(interval.after), _parts(interval.through))

    def readable(self, offset: Offset) -> Interval | None:
        """Returns the interval behind an offset, if something is in it and all of it is there; else None."""
        try:
            self.check_history(offset, self.ref, self.ref.name)
        except StreamqlError:
            return None
        interval = Interval(offset.position, self.latest)
        return None if self._is_empty(interval) else interval

    def window(self, interval: Interval) -> tuple[str, dict[int, int], dict[int, int]]:
        """Returns the topic, and [from, until) of those partitions that have something in the interval."""
        return (self.topic.name, *messages.window(self._ends(interval)))

    def starting_position(self) -> Parts:
        """Returns where the table begins, by its option starting_offset: partitions that the position lacks begin with their earliest
        message."""
        return history.starting_position(self.topic, self.table.options.get("starting_offset", "earliest"))

    def rows(self) -> DataFrame:
        """Returns the messages between the table's starting_offset and ending_offset, in its columns. Lazy."""
        after, options = self.starting_position(), self.table.options
        through = history.ending_position(self.topic, options.get("ending_offset", "latest"))
        ends = history.ends(self.topic, after, through)
        return messages.rows(self.spark, self.brokers, self.topic.name, self.table.columns, ends)


def _parts(position: Position) -> Parts:
    if not isinstance(position, Parts):
        raise TypeError(f"not a position in a topic: {position}")
    return position


def table_of(spark: SparkSession, source: KafkaSource) -> Definition:
    """Returns the external table of a source. Raises STREAM_SOURCE_MISSING, and STREAM_SOURCE_REPLACED if it names another topic now."""
    table = catalog_of(spark).definition(spark, source.name, DefinitionType.EXTERNAL_TABLE)
    if table is None:
        raise StreamqlError(
            "STREAM_SOURCE_MISSING",
            f"the external table {source.name} no longer exists",
            hint=f"CREATE EXTERNAL TABLE {source.name} on the topic {source.topic}: the stream continues where it was; or DROP the stream",
            source=str(source.name),
        )
    if table.options["topics"] != source.topic:
        raise StreamqlError(
            "STREAM_SOURCE_REPLACED",
            f"the external table {source.name} is on the topic {table.options['topics']} now, and was on {source.topic}",
            hint="CREATE OR REPLACE the stream on the table as it is now",
            source=str(source.name),
        )
    return table


def brokers_of(spark: SparkSession, table: Definition) -> Brokers:
    """Returns how the brokers of a table are reached: by its connection's settings. Those of the table, which begin with `kafka.`, say how
    messages are read. Raises CONNECTION_NOT_FOUND."""
    connection = need_connection(spark, table.connection, {}, f"the external table {table.name}")
    reading = {key.removeprefix("kafka."): value for key, value in table.options.items() if key.startswith("kafka.")}
    isolation = reading.pop("isolation.level", connection.options.get("isolation.level", ""))
    return Brokers(
        connection.options,
        f"storage connection {connection.name}",
        seconds(spark, KAFKA_TIMEOUT),
        isolation.lower() != "read_uncommitted",
        reading,
        table.options.get("group_id", ""),
    )


def open_kafka(spark: SparkSession, source: KafkaSource) -> OpenKafka:
    """Asks the brokers for the topic. Raises STREAM_SOURCE_MISSING, STREAM_SOURCE_REPLACED, CONNECTION_NOT_FOUND, KAFKA_UNREACHABLE,
    KAFKA_REFUSED, CONNECTOR_NOT_LOADED."""
    return open_definition(spark, table_of(spark, source), source)


def open_definition(spark: SparkSession, table: Definition, source: KafkaSource | None = None) -> OpenKafka:
    """Asks the brokers for the topic of an external table, which the catalog need not have yet. `source`: the topic as a stream knows it;
    None: no stream does. Raises what `open_kafka` raises."""
    source = source or KafkaSource(table.name, table.options["topics"])
    brokers = brokers_of(spark, table)
    return opened(spark, source, table, brokers, describe_topics(spark, brokers, [source.topic])[source.topic])


def opened(
    spark: SparkSession, source: KafkaSource, table: Definition, brokers: Brokers, topic: Topic | TopicProblem
) -> OpenKafka:
    """Returns the source by what its brokers said of the topic. Raises what `open_kafka` raises."""
    if isinstance(topic, TopicProblem):
        if topic.type not in ("missing", "invalid"):
            raise error_of(brokers, topic)
        raise StreamqlError(
            "STREAM_SOURCE_MISSING",
            f"{brokers.label} has no topic {source.topic}, which the external table {source.name} is on",
            hint="check the name of the topic; a topic that was deleted does not come back under its id: CREATE OR REPLACE the stream then",
            source=str(source.name),
            topic=source.topic,
        )
    if source.topic_id and topic.id and source.topic_id != topic.id:
        raise StreamqlError(
            "STREAM_SOURCE_REPLACED",
            f"the topic {source.topic} was deleted and created again: its id was {source.topic_id}, and is {topic.id} now",
            hint="CREATE OR REPLACE the stream; WITH (SHOW_INITIAL_ROWS = TRUE) shows the messages that the new topic has",
            source=str(source.name),
            topic=source.topic,
        )
    return OpenKafka(spark, replace(source, topic_id=topic.id, earliest=None), table, brokers, topic)
