"""Actions of ALTER that objects of several types have."""

from __future__ import annotations

from dataclasses import dataclass

from streamql.dialect.text.tokens import NameParts


@dataclass(frozen=True)
class SetComment:
    """SET COMMENT = '…', or UNSET COMMENT (None)."""

    comment: str | None


@dataclass(frozen=True)
class RenameTo:
    """RENAME TO name."""

    name: NameParts
