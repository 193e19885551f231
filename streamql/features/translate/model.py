"""What a translation is made of: systems, and the result for each statement."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class System(Enum):
    """A system whose scripts can be translated."""

    SNOWFLAKE = "snowflake"
    DATABEND = "databend"
    CLICKZETTA = "clickzetta"

    @property
    def title(self) -> str:
        """Returns the name as the system's own pages write it."""
        return "ClickZetta" if self is System.CLICKZETTA else self.value.capitalize()


class Outcome(Enum):
    """What became of a statement."""

    TRANSLATED = "translated"
    NOTED = "translated with notes"
    REFUSED = "not translated"


@dataclass(frozen=True)
class Translated:
    """One or more statements that stand for the source's, without semicolons. `notes`: what differs, one sentence each."""

    statements: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """A statement without a counterpart. `hint`: what to use instead. `body`: the text of each statement inside it."""

    reason: str
    hint: str = ""
    body: tuple[str, ...] = ()


Result = Translated | Refused


class NotTranslatedError(Exception):
    """Raised inside the package for a statement that has no translation."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.refused = Refused(reason, hint)


@dataclass(frozen=True)
class Piece:
    """A statement of the source script, the line where it starts (from 1), and its result."""

    source: str
    line: int
    result: Result

    @property
    def outcome(self) -> Outcome:
        """Returns whether it was translated, and whether with notes."""
        if isinstance(self.result, Refused):
            return Outcome.REFUSED
        return Outcome.NOTED if self.result.notes else Outcome.TRANSLATED


@dataclass(frozen=True)
class Translation:
    """A translated script: its text, and its statements in the order of the source."""

    text: str
    pieces: tuple[Piece, ...]

    def count(self, outcome: Outcome) -> int:
        """Returns the number of statements with this outcome."""
        return sum(piece.outcome is outcome for piece in self.pieces)
