"""What the parser returns: statements as data. Names are tuples of 1 to 3 parts, as written, unquoted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from streamql.dialect.actions import RenameTo, SetComment
from streamql.dialect.text.tokens import NameParts, Span
from streamql.model import StreamMode

IDENTITIES = ("ROW_ID", "KEY")
"""How a stream recognizes a row in a later version: by Delta's row id, or by the declared key of the table."""


class Statement:
    """A statement that `parse` returns. Each feature has its own types of them."""

    @property
    def note(self) -> str:
        """Returns what the user reads once the statement has run, if it returns no rows; empty: nothing."""
        return ""


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


class StreamAction:
    """What a feature changes of a stream: an action of ALTER STREAM, or a clause of CREATE STREAM. Each feature has its own types."""


@dataclass(frozen=True)
class CreateStream(Statement):
    """CREATE [OR REPLACE] [TABLE] STREAM [IF NOT EXISTS] name ON type source …; `mode` None: not named.

    `source_type`: the keywords before the source, as `Grammar.sources` has them. `identity`: one of `IDENTITIES`; None: not named.
    `clauses`: those of features, in their order.
    """

    name: NameParts
    source: NameParts
    source_type: str = "TABLE"
    mode: StreamMode | None = None
    or_replace: bool = False
    if_not_exists: bool = False
    point: PointInTime | None = None
    show_initial_rows: bool = False
    comment: str | None = None
    identity: str | None = None
    clauses: tuple[StreamAction, ...] = ()
    name_span: Span | None = None
    source_span: Span | None = None


@dataclass(frozen=True)
class DropStream(Statement):
    """DROP [TABLE] STREAM [IF EXISTS] name."""

    name: NameParts
    if_exists: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class SetOffset:
    """SET OFFSET VERSION n | TIMESTAMP expression | '{"part": number, …}' | TO LATEST (point is None)."""

    point: PointInTime | None


@dataclass(frozen=True)
class SetIdentity:
    """SET IDENTITY = KEY | ROW_ID."""

    identity: str


@dataclass(frozen=True)
class Release:
    """RELEASE: a partially committed or in doubt consumption is given up, the offset stays."""


@dataclass(frozen=True)
class AlterStream(Statement):
    """ALTER [TABLE] STREAM [IF EXISTS] name action."""

    name: NameParts
    action: SetComment | RenameTo | SetOffset | SetIdentity | Release | StreamAction
    if_exists: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowStreams(Statement):
    """SHOW [FULL|TERSE] [TABLE] STREAMS [{IN|FROM} schema] [LIKE 'pattern' | WHERE expression] [LIMIT n]."""

    schema: NameParts | None = None
    like: str | None = None
    where: str | None = None
    limit: int | None = None
    terse: bool = False


@dataclass(frozen=True)
class DescribeStream(Statement):
    """{DESC|DESCRIBE} [TABLE] STREAM name."""

    name: NameParts
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowCreateStream(Statement):
    """SHOW CREATE [TABLE] STREAM name."""

    name: NameParts
    name_span: Span | None = None


@dataclass(frozen=True)
class SetTableProperties(Statement):
    """ALTER TABLE name SET [TBL]PROPERTIES (…) with a key of ours, or ALTER TABLE name SET CHANGE_TRACKING = TRUE.

    `change_tracking` and `data_retention_days` are ours (None = not named); `others` go to Delta as they are.
    """

    table: NameParts
    change_tracking: bool | None = None
    data_retention_days: int | None = None
    others: dict[str, str] = field(default_factory=dict)
    table_span: Span | None = None


@dataclass(frozen=True)
class CreateByQuery(Statement):
    """A statement that makes a table of the rows of a query. `query` is its text as written, `query_span` its place.
    `is_materialized_view`: the statement calls it that."""

    name: NameParts
    query: str
    is_materialized_view: bool = False
    query_span: Span | None = field(default=None, kw_only=True)

    @property
    def is_scheduled(self) -> bool:
        """Returns whether a schedule refreshes the table."""
        return False


@dataclass(frozen=True)
class BeginTransaction(Statement):
    """BEGIN [TRANSACTION | TRAN | WORK], START TRANSACTION."""


@dataclass(frozen=True)
class CommitTransaction(Statement):
    """COMMIT [TRANSACTION | TRAN | WORK]."""


@dataclass(frozen=True)
class RollbackTransaction(Statement):
    """ROLLBACK [TRANSACTION | TRAN | WORK]."""


@dataclass(frozen=True)
class RollbackStatement(Statement):
    """ROLLBACK STATEMENT."""


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
