"""What the parser returns: statements as data. Names are tuples of 1 to 3 parts, as written, unquoted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from streamql.dialect.actions import RenameTo, SetComment
from streamql.dialect.dynamic.statements import (
    AlterDynamicTable,
    CreateDynamicTable,
    DescribeDynamicTable,
    DropDynamicTable,
    ExplainRefresh,
    RefreshDynamicTable,
    ShowCreateDynamicTable,
    ShowDynamicTables,
    ShowRefreshHistory,
    VerifyDynamicTable,
)
from streamql.dialect.text.tokens import NameParts, Span
from streamql.model import SourceType, StreamMode


@dataclass(frozen=True)
class PointInTime:
    """AT | BEFORE (type => value).

    `expression` is SQL text for TIMESTAMP and OFFSET (seconds, negative = back), `version` a number for VERSION,
    `stream` the name for STREAM. `positions` is (part, number) pairs for POSITIONS, ordered as `parse_positions` says.
    """

    type: Literal["TIMESTAMP", "OFFSET", "VERSION", "STREAM", "POSITIONS"]
    before: bool = False
    expression: str | None = None
    version: int | None = None
    stream: NameParts | None = None
    span: Span | None = None
    positions: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True)
class CreateStream:
    """CREATE [OR REPLACE] [TABLE] STREAM [IF NOT EXISTS] name ON type source …; `mode` None: not named."""

    name: NameParts
    source: NameParts
    source_type: SourceType = SourceType.TABLE
    mode: StreamMode | None = None
    or_replace: bool = False
    if_not_exists: bool = False
    point: PointInTime | None = None
    show_initial_rows: bool = False
    comment: str | None = None
    name_span: Span | None = None
    source_span: Span | None = None


@dataclass(frozen=True)
class DropStream:
    """DROP [TABLE] STREAM [IF EXISTS] name."""

    name: NameParts
    if_exists: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class SetOffset:
    """SET OFFSET VERSION n | TIMESTAMP expression | '{"part": number, …}' | TO LATEST (point is None)."""

    point: PointInTime | None


@dataclass(frozen=True)
class Release:
    """RELEASE: a partially committed or in doubt consumption is given up, the offset stays."""


@dataclass(frozen=True)
class AlterStream:
    """ALTER [TABLE] STREAM [IF EXISTS] name action."""

    name: NameParts
    action: SetComment | RenameTo | SetOffset | Release
    if_exists: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowStreams:
    """SHOW [FULL|TERSE] [TABLE] STREAMS [{IN|FROM} schema] [LIKE 'pattern' | WHERE expression] [LIMIT n]."""

    schema: NameParts | None = None
    like: str | None = None
    where: str | None = None
    limit: int | None = None
    terse: bool = False


@dataclass(frozen=True)
class DescribeStream:
    """{DESC|DESCRIBE} [TABLE] STREAM name."""

    name: NameParts
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowCreateStream:
    """SHOW CREATE [TABLE] STREAM name."""

    name: NameParts
    name_span: Span | None = None


@dataclass(frozen=True)
class SetTableProperties:
    """ALTER TABLE name SET [TBL]PROPERTIES (…) with a key of ours, or ALTER TABLE name SET CHANGE_TRACKING = TRUE.

    `change_tracking` and `data_retention_days` are ours (None = not named); `others` go to Delta as they are.
    """

    table: NameParts
    change_tracking: bool | None = None
    data_retention_days: int | None = None
    others: dict[str, str] = field(default_factory=dict)
    table_span: Span | None = None


@dataclass(frozen=True)
class CreateConnection:
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
class DropConnection:
    """DROP [STORAGE] CONNECTION [IF EXISTS] name."""

    name: str
    if_exists: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowConnections:
    """SHOW [STORAGE] CONNECTIONS [LIKE 'pattern']."""

    like: str | None = None


@dataclass(frozen=True)
class DescribeConnection:
    """{DESC|DESCRIBE} STORAGE CONNECTION name."""

    name: str
    name_span: Span | None = None


@dataclass(frozen=True)
class CreateExternalTable:
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
class DropExternalTable:
    """DROP EXTERNAL TABLE [IF EXISTS] name."""

    name: NameParts
    if_exists: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowExternalTables:
    """SHOW EXTERNAL TABLES [{IN|FROM} schema] [LIKE 'pattern']."""

    schema: NameParts | None = None
    like: str | None = None


@dataclass(frozen=True)
class DescribeExternalTable:
    """{DESC|DESCRIBE} EXTERNAL TABLE name."""

    name: NameParts
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowCreateExternalTable:
    """SHOW CREATE EXTERNAL TABLE name."""

    name: NameParts
    name_span: Span | None = None


@dataclass(frozen=True)
class BeginTransaction:
    """BEGIN [TRANSACTION | TRAN | WORK], START TRANSACTION."""


@dataclass(frozen=True)
class CommitTransaction:
    """COMMIT [TRANSACTION | TRAN | WORK]."""


@dataclass(frozen=True)
class RollbackTransaction:
    """ROLLBACK [TRANSACTION | TRAN | WORK]."""


@dataclass(frozen=True)
class RollbackStatement:
    """ROLLBACK STATEMENT."""


Statement = (
    CreateStream
    | DropStream
    | AlterStream
    | ShowStreams
    | DescribeStream
    | ShowCreateStream
    | SetTableProperties
    | CreateConnection
    | DropConnection
    | ShowConnections
    | DescribeConnection
    | CreateExternalTable
    | DropExternalTable
    | ShowExternalTables
    | DescribeExternalTable
    | ShowCreateExternalTable
    | CreateDynamicTable
    | DropDynamicTable
    | AlterDynamicTable
    | RefreshDynamicTable
    | VerifyDynamicTable
    | ExplainRefresh
    | ShowDynamicTables
    | ShowRefreshHistory
    | DescribeDynamicTable
    | ShowCreateDynamicTable
    | BeginTransaction
    | CommitTransaction
    | RollbackTransaction
    | RollbackStatement
)


@dataclass(frozen=True)
class Rewrite:
    """A statement that stays Spark's, with pieces of its text spliced.

    `consume`: the statement is a query that asked to be consumed (WITH CONSUME); `consumed`: the names it asked that
    of, as written: it is not known yet whether they are streams. `warnings`: sentences for the user.
    """

    text: str
    consume: bool = False
    warnings: tuple[str, ...] = ()
    consumed: tuple[NameParts, ...] = ()
