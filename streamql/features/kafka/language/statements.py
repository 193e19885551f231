"""Statements about storage connections and external tables, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamql.dialect.statements import Statement
from streamql.dialect.text.tokens import NameParts, Span


@dataclass(frozen=True)
class CreateConnection(Statement):
    """CREATE [OR REPLACE] STORAGE CONNECTION [IF NOT EXISTS] name TYPE type key = value …

    `options` are by Kafka's own property names: bootstrap.servers, security.protocol. No value is a secret: `parse`
    accepts only references such as ${env:NAME} in their place.
    """

    name: str
    type: str
    options: Mapping[str, str]
    or_replace: bool = False
    if_not_exists: bool = False
    comment: str | None = None
    name_span: Span | None = None


@dataclass(frozen=True)
class DropConnection(Statement):
    """DROP [STORAGE] CONNECTION [IF EXISTS] name."""

    name: str
    if_exists: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowConnections(Statement):
    """SHOW [STORAGE] CONNECTIONS [LIKE 'pattern']."""

    like: str | None = None


@dataclass(frozen=True)
class DescribeConnection(Statement):
    """{DESC|DESCRIBE} STORAGE CONNECTION name."""

    name: str
    name_span: Span | None = None


@dataclass(frozen=True)
class CreateExternalTable(Statement):
    """CREATE [OR REPLACE] EXTERNAL TABLE [IF NOT EXISTS] name [(columns)] USING KAFKA OPTIONS (…) CONNECTION connection.

    `columns` are (name as written, type in upper case); empty if the statement lists none. `options` are by name:
    group_id, topics, starting_offset and ending_offset in lower case, others (kafka.…) as written.
    """

    name: NameParts
    columns: tuple[tuple[str, str], ...]
    options: Mapping[str, str]
    connection: str
    or_replace: bool = False
    if_not_exists: bool = False
    comment: str | None = None
    name_span: Span | None = None
    connection_span: Span | None = None


@dataclass(frozen=True)
class DropExternalTable(Statement):
    """DROP EXTERNAL TABLE [IF EXISTS] name."""

    name: NameParts
    if_exists: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowExternalTables(Statement):
    """SHOW EXTERNAL TABLES [{IN|FROM} schema] [LIKE 'pattern']."""

    schema: NameParts | None = None
    like: str | None = None


@dataclass(frozen=True)
class DescribeExternalTable(Statement):
    """{DESC|DESCRIBE} EXTERNAL TABLE name."""

    name: NameParts
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowCreateExternalTable(Statement):
    """SHOW CREATE EXTERNAL TABLE name."""

    name: NameParts
    name_span: Span | None = None
