"""Statements about dynamic tables and materialized views, as data. `is_materialized_view` says which of the two words was written."""

from __future__ import annotations

from dataclasses import dataclass

from streamql.dialect.actions import RenameTo, SetComment
from streamql.dialect.statements import CreateByQuery, Statement
from streamql.dialect.text.tokens import NameParts, Span
from streamql.names import quote_if_needed


@dataclass(frozen=True)
class Schedule:
    """When a table is refreshed. A schedule has a lag or an interval, or is_downstream is true.

    `lag_s` is TARGET_LAG in seconds, `interval_s` is REFRESH INTERVAL in seconds. `start` is the SQL text of REFRESH START WITH,
    which only an interval has. `is_downstream`: TARGET_LAG = DOWNSTREAM.
    """

    lag_s: int | None = None
    interval_s: int | None = None
    start: str | None = None
    is_downstream: bool = False


def _refreshed_by(name: NameParts, schedule: Schedule | None) -> str:
    """Returns what refreshes a table by a schedule; empty: it has none of its own."""
    if schedule is None or schedule.is_downstream:
        return ""
    table = ".".join(map(quote_if_needed, name))
    return f"{table} is refreshed by a process that runs streamql scheduler, or by streamql refresh --due from cron"


@dataclass(frozen=True)
class CreateDynamicTable(CreateByQuery):
    """CREATE [OR REPLACE] {DYNAMIC TABLE | MATERIALIZED VIEW} [IF NOT EXISTS] name [(columns)] … AS query.

    `columns` are (name, comment); empty: the query names them. `schedule` None: only statements refresh the table. `refresh_mode` is
    AUTO, FULL, INCREMENTAL or None (not named). `is_initialized`: CREATE fills the table (INITIALIZE = ON_CREATE, BUILD IMMEDIATE).
    `unused`: clauses that are accepted and have no effect, of WAREHOUSE,
    VCLUSTER and DISABLE QUERY REWRITE, in the order of the statement.
    """

    or_replace: bool = False
    if_not_exists: bool = False
    columns: tuple[tuple[str, str | None], ...] = ()
    partitioned_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    comment: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    schedule: Schedule | None = None
    refresh_mode: str | None = None
    is_initialized: bool = True
    unused: tuple[str, ...] = ()
    name_span: Span | None = None

    @property
    def is_scheduled(self) -> bool:
        """Returns whether a schedule refreshes the table."""
        return self.schedule is not None

    @property
    def note(self) -> str:
        """Returns what refreshes the table."""
        return _refreshed_by(self.name, self.schedule)


@dataclass(frozen=True)
class DropDynamicTable(Statement):
    """DROP {DYNAMIC TABLE | MATERIALIZED VIEW} [IF EXISTS] name."""

    name: NameParts
    is_materialized_view: bool = False
    if_exists: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class Suspend:
    """SUSPEND: the schedule does not refresh the table until RESUME."""


@dataclass(frozen=True)
class Resume:
    """RESUME: the schedule refreshes the table again."""


@dataclass(frozen=True)
class SetSchedule:
    """SET TARGET_LAG = …, SET REFRESH …, or UNSET SCHEDULE and UNSET TARGET_LAG (None)."""

    schedule: Schedule | None


@dataclass(frozen=True)
class SetRefreshMode:
    """SET REFRESH_MODE = AUTO | FULL | INCREMENTAL."""

    mode: str


@dataclass(frozen=True)
class AlterDynamicTable(Statement):
    """ALTER {DYNAMIC TABLE | MATERIALIZED VIEW} [IF EXISTS] name action."""

    name: NameParts
    is_materialized_view: bool
    action: Suspend | Resume | SetSchedule | SetRefreshMode | SetComment | RenameTo
    if_exists: bool = False
    name_span: Span | None = None

    @property
    def note(self) -> str:
        """Returns what refreshes the table by its new schedule."""
        return _refreshed_by(self.name, self.action.schedule) if isinstance(self.action, SetSchedule) else ""


@dataclass(frozen=True)
class RefreshDynamicTable(Statement):
    """REFRESH {DYNAMIC TABLE | MATERIALIZED VIEW} name, ALTER {DYNAMIC TABLE | MATERIALIZED VIEW} name REFRESH."""

    name: NameParts
    is_materialized_view: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class VerifyDynamicTable(Statement):
    """VERIFY {DYNAMIC TABLE | MATERIALIZED VIEW} name."""

    name: NameParts
    is_materialized_view: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class ExplainRefresh(Statement):
    """EXPLAIN REFRESH {DYNAMIC TABLE | MATERIALIZED VIEW} name."""

    name: NameParts
    is_materialized_view: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowDynamicTables(Statement):
    """SHOW {DYNAMIC TABLES | MATERIALIZED VIEWS} [{IN|FROM} schema] [LIKE 'pattern' | WHERE expression] [LIMIT n]."""

    is_materialized_view: bool = False
    schema: NameParts | None = None
    like: str | None = None
    where: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class ShowRefreshHistory(Statement):
    """SHOW {DYNAMIC TABLE | MATERIALIZED VIEW} REFRESH HISTORY [{FOR|OF} name] [WHERE expression] [LIMIT n]; `name` None: of all."""

    is_materialized_view: bool = False
    name: NameParts | None = None
    where: str | None = None
    limit: int | None = None
    name_span: Span | None = None


@dataclass(frozen=True)
class DescribeDynamicTable(Statement):
    """{DESC|DESCRIBE} {DYNAMIC TABLE | MATERIALIZED VIEW} name."""

    name: NameParts
    is_materialized_view: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowCreateDynamicTable(Statement):
    """SHOW CREATE {DYNAMIC TABLE | MATERIALIZED VIEW} name."""

    name: NameParts
    is_materialized_view: bool = False
    name_span: Span | None = None
