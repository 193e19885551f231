"""Storage connections and external tables: CREATE, DROP, SHOW and DESCRIBE. Each change is one commit of the catalog, without a row."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.identity import user_of
from streamql.catalog.store import catalog_of
from streamql.delta.names import qualify
from streamql.delta.rows import Value, small_frame
from streamql.dialect.text.tokens import Span
from streamql.engine import StatementType, without_text
from streamql.engine.ddl import check_free, check_free_of_streams, definition_exists, place_of
from streamql.engine.show import CREATE_COLUMNS, DESCRIBE_COLUMNS, listed_schema, narrowed, time_text
from streamql.errors import StreamqlError, counted
from streamql.features.kafka.brokers import list_topics
from streamql.features.kafka.language.statements import (
    CreateConnection,
    CreateExternalTable,
    DescribeConnection,
    DescribeExternalTable,
    DropConnection,
    DropExternalTable,
    ShowConnections,
    ShowCreateExternalTable,
    ShowExternalTables,
)
from streamql.features.kafka.source.connections import need_connection
from streamql.features.kafka.source.history import parts
from streamql.features.kafka.source.messages import COLUMNS
from streamql.features.kafka.source.topic import brokers_of, open_definition
from streamql.misspelt import name_suggestion, suggestion
from streamql.names import Name
from streamql.sources.definitions import Definition, DefinitionType, connection_name
from streamql.times import now_ms

log = logging.getLogger("streamql")

ATTEMPTS_MAX = 20
CONNECTIONS_COLUMNS = (
    "name STRING, type STRING, bootstrap_servers STRING, security_protocol STRING, comment STRING, created_by STRING, "
    "create_time TIMESTAMP_LTZ"
)
TABLES_COLUMNS = (
    "name STRING, schema_name STRING, connection STRING, topic STRING, starting_offset STRING, ending_offset STRING, comment STRING, "
    "create_time TIMESTAMP_LTZ"
)
_UNUSED = "cz.kafka."
"""What options begin with that ClickZetta's own reader takes."""


# -- made


def create_connection(spark: SparkSession, statement: CreateConnection, text: str) -> None:
    """Makes a storage connection. Asks no broker. Raises NAME_ALREADY_IN_USE."""
    made = _definition(spark, DefinitionType.CONNECTION, connection_name(statement.name), statement, text)
    _create(spark, made, statement)


def create_external_table(spark: SparkSession, statement: CreateExternalTable, text: str) -> None:
    """Makes an external table, if its brokers have the topic. Raises CONNECTION_NOT_FOUND, NAME_ALREADY_IN_USE, SCHEMA_NOT_FOUND,
    TOPIC_NOT_FOUND, KAFKA_UNREACHABLE, KAFKA_REFUSED, CONNECTOR_NOT_LOADED."""
    name = qualify(spark, statement.name)
    _check_options(statement)
    made = _definition(spark, DefinitionType.EXTERNAL_TABLE, name, statement, text)
    made = replace(
        made, connection=statement.connection, columns=tuple(c.lower() for c, _ in statement.columns) or tuple(COLUMNS)
    )
    unused = [key for key in statement.options if key.startswith(_UNUSED)]
    if unused:
        log.warning("options that streamql does not use: %s", ", ".join(unused))
    _create(spark, made, statement)


_OF_CONNECTION = tuple(f"kafka.{part}" for part in ("bootstrap.", "config.providers", "sasl.", "security.", "ssl."))
_OF_SPARK = frozenset(
    f"kafka.{key}"
    for key in (
        "auto.offset.reset",
        "enable.auto.commit",
        "interceptor.classes",
        "key.deserializer",
        "value.deserializer",
    )
)
_ISOLATION, _LEVELS = "kafka.isolation.level", ("read_committed", "read_uncommitted")


def _check_options(statement: CreateExternalTable) -> None:
    """Raises INVALID_PROPERTY for settings of Kafka's client that a table cannot have. A table that named other brokers would send them the
    secrets of its connection."""
    for key, value in statement.options.items():
        if key.lower().startswith(_OF_CONNECTION):
            why, hint = "belongs to the storage connection", "write it in CREATE OR REPLACE STORAGE CONNECTION"
        elif key.lower() in _OF_SPARK:
            why, hint = "cannot be set: streamql and Spark set it", "leave it out"
        elif key.lower() == _ISOLATION and value.lower() not in _LEVELS:
            why, hint = f"takes {' or '.join(_LEVELS)}", f"'{_ISOLATION}' = '{_LEVELS[0]}'"
        else:
            continue
        raise StreamqlError("INVALID_PROPERTY", f"{key} {why}", hint=hint, option=key, **place_of(statement.name_span))


def _definition(
    spark: SparkSession, type_: DefinitionType, name: Name, statement: CreateConnection | CreateExternalTable, text: str
) -> Definition:
    return Definition(
        uuid=str(uuid.uuid4()),
        type=type_,
        name=name,
        options={key.lower(): value for key, value in statement.options.items()},
        comment=statement.comment,
        created_at_ms=now_ms(),
        created_by=user_of(spark),
        text=text.strip().rstrip(";").strip(),
    )


def _create(spark: SparkSession, made: Definition, statement: CreateConnection | CreateExternalTable) -> None:
    catalog, where = catalog_of(spark), place_of(statement.name_span)
    for _ in range(ATTEMPTS_MAX):
        old = catalog.definition(spark, made.name)
        if old is not None and statement.if_not_exists:
            return
        if old is not None and not statement.or_replace:
            raise definition_exists(made, where)
        if isinstance(statement, CreateExternalTable):
            if old is None:
                check_free_of_streams(spark, made.name, where)
                check_free(spark, made.name, statement.name_span)
            _check_topic(spark, made, statement)
        new = made if old is None else replace(made, uuid=old.uuid, sequence=old.sequence + 1)
        if catalog.commit(spark, [] if old is None else [old], [new], []):
            return
    raise StreamqlError("STREAM_BUSY", f"others keep changing {made.name}", hint="run the statement again")


def _check_topic(spark: SparkSession, table: Definition, statement: CreateExternalTable) -> None:
    """Refuses a misspelt topic when the table is made, before the first SELECT. Raises what opening the table raises."""
    need_connection(spark, table.connection, place_of(statement.connection_span))
    try:
        open_definition(spark, table)
    except StreamqlError as e:
        if e.code != "STREAM_SOURCE_MISSING":
            raise
        topic, brokers = table.options["topics"], brokers_of(spark, table)
        raise StreamqlError(
            "TOPIC_NOT_FOUND",
            f"{brokers.label} has no topic {topic}",
            hint=suggestion(topic, list_topics(spark, brokers))
            or "create the topic first, or check what the connection's user may see",
            topic=topic,
            **place_of(statement.name_span),
        ) from None


# -- dropped


def drop_connection(spark: SparkSession, statement: DropConnection, text: str) -> None:  # noqa: ARG001 - no row is written
    """Drops a storage connection. Raises CONNECTION_NOT_FOUND, CONNECTION_IN_USE."""
    name = connection_name(statement.name)
    if statement.if_exists and catalog_of(spark).definition(spark, name, DefinitionType.CONNECTION) is None:
        return
    found = need_connection(spark, statement.name, place_of(statement.name_span))
    tables = catalog_of(spark).definitions(spark, DefinitionType.EXTERNAL_TABLE)
    used = [str(t.name) for t in tables if t.connection.lower() == statement.name.lower()]
    if used:
        raise StreamqlError(
            "CONNECTION_IN_USE",
            f"{counted(len(used), 'external table')} {'uses' if len(used) == 1 else 'use'} the storage connection {found.name}: "
            f"{', '.join(used[:5])}{' …' if len(used) > 5 else ''}",
            hint="; ".join(f"DROP EXTERNAL TABLE {t}" for t in used[:3])
            + "; CREATE OR REPLACE STORAGE CONNECTION changes it",
            tables=used,
        )
    _drop(spark, found)


def drop_external_table(spark: SparkSession, statement: DropExternalTable, text: str) -> None:  # noqa: ARG001 - no row is written
    """Drops an external table; its topic stays. Streams on it then raise STREAM_SOURCE_MISSING. Raises EXTERNAL_TABLE_NOT_FOUND."""
    name = qualify(spark, statement.name)
    if statement.if_exists and catalog_of(spark).definition(spark, name, DefinitionType.EXTERNAL_TABLE) is None:
        return
    _drop(spark, _need_table(spark, name, statement.name_span))


def _drop(spark: SparkSession, found: Definition) -> None:
    if not catalog_of(spark).commit(spark, [found], [None], []):
        message = f"the {found.type.value} {found.name} was changed meanwhile"
        raise StreamqlError("STREAM_BUSY", message, hint="run the statement again")


# -- shown


def show_connections(spark: SparkSession, statement: ShowConnections) -> DataFrame:
    """Returns the storage connections, a row each: CONNECTIONS_COLUMNS."""
    rows: list[list[Value]] = [
        [
            d.name.object,
            "KAFKA",
            d.options.get("bootstrap.servers"),
            d.options.get("security.protocol", "PLAINTEXT"),
            d.comment,
            d.created_by,
            d.created_at_ms,
        ]
        for d in catalog_of(spark).definitions(spark, DefinitionType.CONNECTION)
    ]
    return _liked(small_frame(spark, CONNECTIONS_COLUMNS, rows), statement.like)


def show_external_tables(spark: SparkSession, statement: ShowExternalTables) -> DataFrame:
    """Returns the external tables of a schema, the current one unless named: TABLES_COLUMNS. Asks no broker. Raises SCHEMA_NOT_FOUND."""
    catalog, schema = listed_schema(spark, statement.schema)
    rows: list[list[Value]] = [
        [
            d.name.object,
            d.name.schema,
            d.connection,
            d.options["topics"],
            d.options.get("starting_offset", "earliest"),
            d.options.get("ending_offset", "latest"),
            d.comment,
            d.created_at_ms,
        ]
        for d in catalog_of(spark).definitions(spark, DefinitionType.EXTERNAL_TABLE)
        if (d.name.catalog, d.name.schema.lower()) == (catalog, schema.lower())
    ]
    return _liked(small_frame(spark, TABLES_COLUMNS, rows), statement.like)


def _liked(frame: DataFrame, like: str | None) -> DataFrame:
    return narrowed(frame, like, None, None)


def describe_connection(spark: SparkSession, statement: DescribeConnection) -> DataFrame:
    """Returns what is known of a storage connection, a row a fact. References to secrets are shown as they were written."""
    found = need_connection(spark, statement.name, place_of(statement.name_span))
    facts: list[tuple[str, str | None]] = [("name", found.name.object), ("type", "KAFKA")]
    return _described(spark, found, [*facts, *sorted(found.options.items())])


def describe_external_table(spark: SparkSession, statement: DescribeExternalTable) -> DataFrame:
    """Returns what is known of an external table, a row a fact; of its topic, what the brokers say now, or why they say nothing."""
    found = _need_table(spark, qualify(spark, statement.name), statement.name_span)
    facts: list[tuple[str, str | None]] = [
        ("name", str(found.name)),
        ("connection", found.connection),
        *sorted(found.options.items()),
        *((f"column {c}", COLUMNS[c]) for c in found.columns),
    ]
    try:
        opened = open_definition(spark, found)
        facts += [("topic_id", opened.topic.id or None), ("partitions", str(len(opened.topic.latest)))]
        facts += [("earliest_position", str(parts(opened.topic.earliest))), ("latest_position", str(opened.latest))]
    except StreamqlError as e:
        facts.append(("invalid_reason", f"{e.code}: {e.message}"))
    return _described(spark, found, facts)


def _described(spark: SparkSession, found: Definition, facts: Sequence[tuple[str, str | None]]) -> DataFrame:
    rows: list[list[Value]] = [[key, value] for key, value in facts]
    created = time_text(spark, found.created_at_ms)
    more = (("comment", found.comment), ("created_by", found.created_by), ("create_time", created))
    rows += [[key, value] for key, value in (*more, ("definition", found.text))]
    return small_frame(spark, DESCRIBE_COLUMNS, rows)


def show_create_external_table(spark: SparkSession, statement: ShowCreateExternalTable) -> DataFrame:
    """Returns the statement that made the external table, as it was written."""
    found = _need_table(spark, qualify(spark, statement.name), statement.name_span)
    return small_frame(spark, CREATE_COLUMNS, [[found.text]])


def _need_table(spark: SparkSession, name: Name, span: Span | None) -> Definition:
    found = catalog_of(spark).definition(spark, name, DefinitionType.EXTERNAL_TABLE)
    if found is not None:
        return found
    known = [d.name for d in catalog_of(spark).definitions(spark, DefinitionType.EXTERNAL_TABLE)]
    raise StreamqlError(
        "EXTERNAL_TABLE_NOT_FOUND",
        f"there is no external table {name}",
        hint=name_suggestion(name, known) or "SHOW EXTERNAL TABLES lists those there are",
        **place_of(span),
    )


STATEMENTS = (
    StatementType(CreateConnection, create_connection),
    StatementType(DropConnection, drop_connection),
    StatementType(ShowConnections, without_text(show_connections), CONNECTIONS_COLUMNS),
    StatementType(DescribeConnection, without_text(describe_connection), DESCRIBE_COLUMNS),
    StatementType(CreateExternalTable, create_external_table),
    StatementType(DropExternalTable, drop_external_table),
    StatementType(ShowExternalTables, without_text(show_external_tables), TABLES_COLUMNS),
    StatementType(DescribeExternalTable, without_text(describe_external_table), DESCRIBE_COLUMNS),
    StatementType(ShowCreateExternalTable, without_text(show_create_external_table), CREATE_COLUMNS),
)
