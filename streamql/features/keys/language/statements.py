"""The statements about primary keys, as data."""

from __future__ import annotations

from dataclasses import dataclass

from streamql.dialect.statements import Statement
from streamql.dialect.text.tokens import NameParts, Span


@dataclass(frozen=True)
class AddPrimaryKey(Statement):
    """ALTER TABLE table ADD [CONSTRAINT name] PRIMARY KEY (columns) RELY. A name of the constraint is not kept."""

    table: NameParts
    columns: tuple[str, ...]
    table_span: Span | None = None


@dataclass(frozen=True)
class DropPrimaryKey(Statement):
    """ALTER TABLE table DROP PRIMARY KEY [IF EXISTS]."""

    table: NameParts
    if_exists: bool = False
    table_span: Span | None = None


@dataclass(frozen=True)
class ShowPrimaryKeys(Statement):
    """SHOW PRIMARY KEYS {IN | FROM} [TABLE] table."""

    table: NameParts
    table_span: Span | None = None
