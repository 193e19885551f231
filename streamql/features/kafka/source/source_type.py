"""Kafka topics as a type of source: found by their external tables, and opened together."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.store import catalog_of
from streamql.delta.jvm import activate
from streamql.errors import StreamqlError
from streamql.features.kafka.brokers import Brokers, describe_topics, first_times_ms, is_compacted, retentions_ms
from streamql.features.kafka.source import messages
from streamql.features.kafka.source.topic import KafkaSource, OpenKafka, brokers_of, open_kafka, opened, table_of
from streamql.model import Interval, Offset, StreamMode
from streamql.names import Name
from streamql.sources.definitions import Definition, DefinitionType
from streamql.sources.protocol import Opened, SourceType

CONNECTIONS_AT_ONCE = 8


def open_many(
    spark: SparkSession, wanted: Sequence[tuple[KafkaSource, Offset]], *, with_times: bool = True
) -> list[Opened]:
    """`open_kafka` for several streams at once. In place of a source that cannot be opened stands the error.

    The brokers of a connection are asked once for all of its topics. `with_times`: and once for the times of the first messages behind the
    offsets, and once for the retention of their topics.
    """
    found: dict[int, Opened] = {}
    groups: dict[str, list[tuple[int, Definition, Brokers]]] = {}
    for i, (source, _) in enumerate(wanted):
        try:
            table = table_of(spark, source)
            brokers = brokers_of(spark, table)
            groups.setdefault(f"{brokers.config} {brokers.committed_only}", []).append((i, table, brokers))
        except StreamqlError as e:
            found[i] = e

    def open_group(members: Sequence[tuple[int, Definition, Brokers]]) -> dict[int, Opened]:
        together = _opened_together(spark, wanted, members)
        return _with_times(spark, wanted, members[0][2], together) if with_times else together

    if len(groups) == 1:  # in this thread, which a server's cancel interrupts
        found |= open_group(*groups.values())
    elif groups:  # the time-outs of several that do not answer must not add up
        with ThreadPoolExecutor(CONNECTIONS_AT_ONCE, initializer=activate, initargs=(spark,)) as pool:
            for together in pool.map(open_group, groups.values()):
                found |= together
    return [found[i] for i in range(len(wanted))]


def _opened_together(
    spark: SparkSession,
    wanted: Sequence[tuple[KafkaSource, Offset]],
    members: Sequence[tuple[int, Definition, Brokers]],
) -> dict[int, Opened]:
    brokers = members[0][2]
    try:
        topics = describe_topics(spark, brokers, sorted({wanted[i][0].topic for i, _, _ in members}))
    except StreamqlError as e:
        return {i: e for i, _, _ in members}
    found: dict[int, Opened] = {}
    for i, table, own in members:
        source = wanted[i][0]
        try:
            found[i] = opened(spark, source, table, own, topics[source.topic])
        except StreamqlError as e:
            found[i] = e
    return found


def _with_times(
    spark: SparkSession, wanted: Sequence[tuple[KafkaSource, Offset]], brokers: Brokers, found: dict[int, Opened]
) -> dict[int, Opened]:
    """Returns the same, with the times of what is behind the offsets. Brokers that do not answer leave the times unknown."""
    behind: list[tuple[int, OpenKafka, Interval]] = []
    for i, source in found.items():
        if isinstance(source, OpenKafka) and (interval := source.readable(wanted[i][1])) is not None:
            behind.append((i, source, interval))
    if not behind:
        return found
    try:
        times = first_times_ms(spark, brokers, [source.window(interval) for _, source, interval in behind])
        kept = retentions_ms(spark, brokers, sorted({source.topic.name for _, source, _ in behind}))
    except StreamqlError:
        times, kept = [None] * len(behind), {}
    for (i, source, interval), time_ms in zip(behind, times, strict=True):
        retention = (kept.get(source.topic.name),)
        found[i] = replace(source, first_times_ms={interval: time_ms}, retentions_ms=retention)
    return found


def start(source: OpenKafka, at: Offset, show_initial_rows: bool) -> Offset:
    """Returns where a stream starts: with SHOW_INITIAL_ROWS where its table begins, else at the offset that was asked for."""
    return Offset(source.starting_position()) if show_initial_rows else at


def find_kafka(spark: SparkSession, name: Name) -> KafkaSource | None:
    """Returns the topic of an external table; None: there is no external table of the name. Asks no broker."""
    table = catalog_of(spark).definition(spark, name, DefinitionType.EXTERNAL_TABLE)
    return None if table is None else KafkaSource(table.name, table.options["topics"])


def relation(spark: SparkSession, source: KafkaSource, *, columns_only: bool) -> DataFrame:
    """Returns what SELECT of an external table reads. `columns_only`: its columns without a row, for which no broker is asked."""
    if columns_only:
        return messages.no_rows(spark, table_of(spark, source).columns)
    return open_kafka(spark, source).rows()


def count_if_compacted(spark: SparkSession, source: KafkaSource, interval: Interval) -> int | None:
    """Counts the messages of an interval. None: the topic is not compacted, or its brokers do not tell."""
    found = open_kafka(spark, source)
    if not is_compacted(spark, found.brokers, source.topic):
        return None
    return found.changes(interval, StreamMode.APPEND_ONLY).count()


def dataset(spark: SparkSession, source: KafkaSource) -> tuple[str, str]:
    """Returns the namespace and name of a topic, as OpenLineage writes them: the first of the servers that the connection names."""
    servers = brokers_of(spark, table_of(spark, source)).properties.get("bootstrap.servers", "")
    return f"kafka://{servers.split(',')[0].strip()}", source.topic


KAFKA = SourceType(
    name="kafka",
    label="EXTERNAL TABLE",
    read=KafkaSource.from_json,
    open=open_kafka,
    find=find_kafka,
    open_many=open_many,
    statement_types=("TABLE", "EXTERNAL TABLE"),
    default_mode=StreamMode.APPEND_ONLY,
    start=start,
    relation=relation,
    count_if_shrinking=count_if_compacted,
    keep_longer="raise retention.ms of the topic",
    unit="message",
    dataset=dataset,
)
