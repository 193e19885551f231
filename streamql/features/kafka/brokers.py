"""What Kafka's brokers say of topics, and the messages of a window as a DataFrame.

`Kafka.scala` asks the brokers, by Kafka's own client. Messages are read by Spark's Kafka connector. Both resolve references to secrets
(`${env:NAME}`) by Kafka's config providers, at the moment when a client is made. So no text in Spark ever holds a secret.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import JavaObject, Waiting, has_classes, jvm, message, scala
from streamql.delta.neutral import neutral
from streamql.errors import StreamqlError

CLASSES = ("org.apache.spark.sql.kafka010.KafkaSourceProvider", "org.apache.kafka.clients.admin.Admin")
"""Of Spark's connector and of Kafka's client."""

PROVIDERS = {
    "env": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "environment": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "file": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "directory": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
}
"""Kafka's config providers (KIP-297, KIP-887), by the names that references use. `environment` is for front ends in which Spark itself
replaces `${env:NAME}`: bin/spark-sql, and JDBC to a server with `spark.sql.variable.substitute`."""

_REFERENCE = re.compile(r"\$\{(\w+):")

POLL_MILLISECONDS = 50
GRACE_SECONDS = 1.0
"""How much longer than the broker's time-out a question may take: Kafka's client reports the time-out itself."""

FIRST_TIMES_SECONDS_MAX = 2.0

PATIENCE = 3
"""How many times the brokers' time-out a statement that is under way waits for a message: a broker that is restarted fails none."""


@dataclass(frozen=True)
class Brokers:
    """How brokers are reached. `properties`: Kafka's own settings. `label`: what errors call the brokers. `timeout_seconds`: how long an
    answer may take. `committed_only`: messages of transactions that were aborted, or are still open, do not count. `reading`: Kafka's
    settings that say how messages are read. `group`: what the ids of consumer groups begin with; empty: Spark chooses."""

    properties: Mapping[str, str]
    label: str
    timeout_seconds: float
    committed_only: bool = True
    reading: Mapping[str, str] = field(default_factory=dict)
    group: str = ""

    @property
    def config(self) -> str:
        """Returns the settings of a client, as JSON: with the config providers, and without a secret. The time-outs are the session's,
        whatever the user's settings are: Kafka refuses a client whose requests may take longer than its calls."""
        milliseconds = str(int(self.timeout_seconds * 1000))
        return json.dumps(
            {
                "client.id": "streamql",
                **with_providers(self.properties),
                "default.api.timeout.ms": milliseconds,
                "request.timeout.ms": milliseconds,
            },
            sort_keys=True,
        )


@dataclass(frozen=True)
class Topic:
    """A topic as its brokers describe it: its id (empty: they are older than Kafka 2.8), and [earliest, latest) of each partition."""

    name: str
    id: str
    earliest: Mapping[int, int]
    latest: Mapping[int, int]


@dataclass(frozen=True)
class TopicProblem:
    """Why a topic cannot be described. `type`: missing, invalid, denied, unreachable, unresolvable, configuration or failed."""

    type: str
    message: str


def with_providers(properties: Mapping[str, str]) -> dict[str, str]:
    """Kafka's settings with the config providers that their references to secrets need. Providers that the user names stay. Pure."""
    named = [name.strip() for name in properties.get("config.providers", "").split(",") if name.strip()]
    used = {name for value in properties.values() for name in _REFERENCE.findall(value)}
    own = {name: class_name for name, class_name in PROVIDERS.items() if name in used and name not in named}
    if not own:
        return dict(properties)
    return {
        **properties,
        "config.providers": ",".join([*named, *own]),
        **{f"config.providers.{name}.class": class_name for name, class_name in own.items()},
    }


def check_loaded(spark: SparkSession) -> None:
    """Raises CONNECTOR_NOT_LOADED if the session was started without the connector's jars."""
    if not has_classes(jvm(spark), CLASSES):
        raise StreamqlError(
            "CONNECTOR_NOT_LOADED",
            "the Spark session has no jars for Kafka",
            hint="start it with the connector: streamql --with kafka …, streamql server --with kafka, or the setting "
            "spark.streamql.connectors = kafka; streamql conf --with kafka prints the settings for any Spark",
            connector="kafka",
        )


def describe_topics(spark: SparkSession, brokers: Brokers, names: Sequence[str]) -> dict[str, Topic | TopicProblem]:
    """Topics by name. All are asked for at once. Raises CONNECTOR_NOT_LOADED, KAFKA_UNREACHABLE, KAFKA_REFUSED."""
    config = brokers.config
    answer = _ask(spark, brokers, lambda k: k.describe(config, json.dumps(list(names)), brokers.committed_only))
    return {name: _topic(name, found) for name, found in answer.items()}


def _topic(name: str, found: Mapping[str, Any]) -> Topic | TopicProblem:
    if "error" in found:
        return TopicProblem(found["error"], found["message"])
    partitions = {int(p): ends for p, ends in found["partitions"].items()}
    return Topic(name, found["id"], {p: e[0] for p, e in partitions.items()}, {p: e[1] for p, e in partitions.items()})


def list_topics(spark: SparkSession, brokers: Brokers) -> list[str]:
    """Returns the names of the topics that the connection may see. Raises what `describe_topics` raises."""
    config = brokers.config
    return list(_ask(spark, brokers, lambda k: k.topics(config)))


def offsets_at(
    spark: SparkSession, brokers: Brokers, topic: str, partitions: Sequence[int], time_ms: int
) -> dict[int, int | None]:
    """Returns the offset of each partition's first message at or after a time in milliseconds since 1970; None: it has none. Raises what
    `describe_topics` raises."""
    config, listed = brokers.config, json.dumps(list(partitions))
    answer = _ask(spark, brokers, lambda k: k.offsetsAt(config, topic, listed, time_ms, brokers.committed_only))
    return {int(p): None if offset < 0 else offset for p, offset in answer.items()}


def retentions_ms(spark: SparkSession, brokers: Brokers, topics: Sequence[str]) -> dict[str, int | None]:
    """For how long topics keep messages, in milliseconds, by topic. None: for ever, or the brokers do not tell."""
    config = brokers.config
    found = _ask(spark, brokers, lambda k: k.retention(config, json.dumps(list(topics))))
    return {topic: _retention_ms(found.get(topic, {})) for topic in topics}


def is_compacted(spark: SparkSession, brokers: Brokers, topic: str) -> bool:
    """Returns whether compaction removes messages of a topic. False: it does not, or the brokers do not tell."""
    config = brokers.config
    found = _ask(spark, brokers, lambda k: k.retention(config, json.dumps([topic])))
    return "compact" in found.get(topic, {}).get("cleanup.policy", "")


def _retention_ms(settings: Mapping[str, str]) -> int | None:
    milliseconds = int(settings.get("retention.ms", -1))
    return milliseconds if milliseconds >= 0 and "delete" in settings.get("cleanup.policy", "") else None


Window = tuple[str, Mapping[int, int], Mapping[int, int]]
"""A topic, and [from, until) of some of its partitions."""


def first_times_ms(spark: SparkSession, brokers: Brokers, windows: Sequence[Window]) -> list[int | None]:
    """For each window, the earliest time of the first messages of its partitions, in milliseconds since 1970. None: it has no message, or
    none arrived in two seconds."""
    config = json.dumps({**json.loads(brokers.config), "isolation.level": isolation_level(brokers)})
    parts = [[(topic, p, offset, until[p]) for p, offset in begin.items()] for topic, begin, until in windows]
    distinct = list(dict.fromkeys(part for window in parts for part in window))
    milliseconds = int(FIRST_TIMES_SECONDS_MAX * 1000)
    found = _ask(spark, brokers, lambda k: k.firstTimes(config, json.dumps(distinct), milliseconds))
    times = dict(zip(distinct, found, strict=True))
    return [min((times[part] for part in window if times[part] is not None), default=None) for window in parts]


def isolation_level(brokers: Brokers) -> str:
    """Kafka's name for what is read."""
    return "read_committed" if brokers.committed_only else "read_uncommitted"


def _ask(spark: SparkSession, brokers: Brokers, question: Callable[[JavaObject], JavaObject]) -> Any:
    """Returns the answer to a question to brokers, read from JSON. Waits in short steps, so that Ctrl-C and a server's cancel end it."""
    check_loaded(spark)
    asked = question(scala(spark).kafka.Kafka)
    deadline = time.monotonic() + brokers.timeout_seconds + GRACE_SECONDS
    waiting = Waiting(spark)
    try:
        while not asked.isDone(POLL_MILLISECONDS):
            if waiting.is_cancelled() or time.monotonic() > deadline:
                raise _unreachable(brokers)
    except BaseException:
        asked.cancel()
        raise
    answer = json.loads(asked.answer())
    if isinstance(answer, dict) and isinstance(answer.get("error"), str) and "message" in answer:
        raise error_of(brokers, TopicProblem(answer["error"], answer["message"]))
    return answer


def error_of(brokers: Brokers, problem: TopicProblem) -> StreamqlError:
    """Returns the error for what brokers refuse: KAFKA_UNREACHABLE or KAFKA_REFUSED."""
    if problem.type == "unreachable":
        return _unreachable(brokers)
    if problem.type == "unresolvable":
        return _unreachable(brokers, "has no broker whose host name can be resolved here")
    return StreamqlError(
        "KAFKA_REFUSED",
        f"{brokers.label} refused the request: {problem.message}",
        hint="check the security settings of the connection, and what its user may read; a reference such as ${env:NAME} is resolved "
        "where Spark runs",
        problem=problem.type,
    )


def _unreachable(brokers: Brokers, why: str = "") -> StreamqlError:
    said = why or f"did not answer within {brokers.timeout_seconds:g} s"
    return StreamqlError(
        "KAFKA_UNREACHABLE",
        f"{brokers.label} ({brokers.properties.get('bootstrap.servers', '')}) {said}",
        hint="check that the brokers run and that this machine can reach them; CREATE OR REPLACE STORAGE CONNECTION names others; "
        "SET spark.streamql.kafkaTimeout = 30s waits longer",
    )


_LOST = ("KafkaIllegalStateException", "OffsetOutOfRangeException", "KAFKA_DATA_LOSS")
_SILENT = ("Cannot fetch record", "org.apache.kafka.common.errors.TimeoutException")


def explained(e: BaseException) -> StreamqlError | None:
    """Returns the error for a job that failed while it read messages; None: it failed for another reason. Spark's own error of messages
    that are gone advises an option that external tables do not have."""
    text = f"{message(e)} {e}"
    if any(name in text for name in _LOST):
        return StreamqlError(
            "STREAM_STALE",
            "messages of a topic were deleted while the statement read them; the stream did not move",
            hint="run the statement again: it names the partitions, and what continues with those that are there",
        )
    if any(name in text for name in _SILENT):
        return StreamqlError(
            "KAFKA_UNREACHABLE",
            "the brokers of a topic stopped answering while the statement read messages; the stream did not move",
            hint="run the statement again when the brokers run; SET spark.streamql.kafkaTimeout = 30s waits longer",
        )
    return None


def messages(
    spark: SparkSession, brokers: Brokers, topic: str, begin: Mapping[int, int], end: Mapping[int, int]
) -> DataFrame:
    """Returns the messages [begin, end) of partitions, in the columns of Spark's connector, with headers. Lazy.

    The job fails if messages are no longer there, and if brokers do not answer for `PATIENCE` times their time-out. Spark's own limit is
    two minutes. `begin` and `end` have the same partitions, at least one.
    """
    patience = str(int(PATIENCE * brokers.timeout_seconds * 1000))
    options = {
        **{f"kafka.{key}": value for key, value in with_providers({**brokers.properties, **brokers.reading}).items()},
        **({"groupIdPrefix": brokers.group} if brokers.group else {}),
        "kafka.isolation.level": isolation_level(brokers),
        "kafka.request.timeout.ms": patience,
        "kafka.default.api.timeout.ms": patience,
        "kafkaConsumer.pollTimeoutMs": patience,
        "assign": json.dumps({topic: sorted(begin)}),
        "startingOffsets": json.dumps({topic: begin}),
        "endingOffsets": json.dumps({topic: end}),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }
    return neutral(spark).read.format("kafka").options(**options).load()
