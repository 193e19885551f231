"""What the parser returns for statements about tasks. Names are as written; None or empty: the statement does not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamql.dialect.statements import Statement
from streamql.dialect.text.tokens import NameParts, Span
from streamql.features.tasks.model.schedule import Schedule


@dataclass(frozen=True)
class Settings:
    """The parameters that CREATE TASK and ALTER TASK … SET give.

    `unused`: parameters of other systems that have no effect here. `conf`: settings of Spark for the session in which the task runs.
    """

    schedule: Schedule | None = None
    allows_overlap: bool | None = None
    failures_max: int | None = None
    retries: int | None = None
    timeout_ms: int | None = None
    trigger_ms: int | None = None
    finalizes: NameParts | None = None
    comment: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateTask(Statement):
    """CREATE [OR REPLACE] TASK [IF NOT EXISTS] name … AS body."""

    name: NameParts
    body: str
    settings: Settings
    after: tuple[NameParts, ...] = ()
    condition: str | None = None
    or_replace: bool = False
    if_not_exists: bool = False
    name_span: Span | None = None

    @property
    def note(self) -> str:
        """See Statement."""
        once = "" if self.after or self.settings.finalizes else ", EXECUTE TASK runs it once"
        return f"the task is suspended: ALTER TASK … RESUME starts it{once}"


@dataclass(frozen=True)
class Resume:
    """RESUME."""


@dataclass(frozen=True)
class Suspend:
    """SUSPEND."""


@dataclass(frozen=True)
class Set:
    """SET parameter = value …"""

    settings: Settings


@dataclass(frozen=True)
class Unset:
    """UNSET parameter, …: fields of `Settings`, and keys of Spark's settings."""

    fields: tuple[str, ...]
    conf: tuple[str, ...] = ()


@dataclass(frozen=True)
class AddAfter:
    """ADD AFTER task, …"""

    tasks: tuple[NameParts, ...]


@dataclass(frozen=True)
class RemoveAfter:
    """REMOVE AFTER task, …"""

    tasks: tuple[NameParts, ...]


@dataclass(frozen=True)
class ModifyBody:
    """MODIFY AS body."""

    body: str


@dataclass(frozen=True)
class ModifyCondition:
    """MODIFY WHEN condition, or REMOVE WHEN (None)."""

    condition: str | None


Action = Resume | Suspend | Set | Unset | AddAfter | RemoveAfter | ModifyBody | ModifyCondition


@dataclass(frozen=True)
class AlterTask(Statement):
    """ALTER TASK [IF EXISTS] name action."""

    name: NameParts
    action: Action
    if_exists: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class DropTask(Statement):
    """DROP TASK [IF EXISTS] name."""

    name: NameParts
    if_exists: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class ExecuteTask(Statement):
    """EXECUTE TASK name [RETRY LAST]."""

    name: NameParts
    retries_last: bool = False
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowTasks(Statement):
    """SHOW TASKS, with the clauses of a listing."""

    schema: NameParts | None = None
    like: str | None = None
    where: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class ShowTaskHistory(Statement):
    """SHOW TASK HISTORY [FOR name]; `name` None: of all tasks."""

    name: NameParts | None = None
    where: str | None = None
    limit: int | None = None
    name_span: Span | None = None


@dataclass(frozen=True)
class DescribeTask(Statement):
    """DESCRIBE TASK name."""

    name: NameParts
    name_span: Span | None = None


@dataclass(frozen=True)
class ShowCreateTask(Statement):
    """SHOW CREATE TASK name."""

    name: NameParts
    name_span: Span | None = None
