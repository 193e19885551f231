"""What statements of several subjects are made of: names, places in a text, and actions of ALTER."""

from __future__ import annotations

from dataclasses import dataclass

NameParts = tuple[str, ...]


@dataclass(frozen=True)
class Span:
    """A piece of the statement's text: offsets [start, end) in characters, and where it starts (from 1)."""

    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True)
class SetComment:
    """SET COMMENT = '…', or UNSET COMMENT (None)."""

    comment: str | None


@dataclass(frozen=True)
class RenameTo:
    """RENAME TO name."""

    name: NameParts
