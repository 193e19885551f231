"""Every error streamql raises: one root, a stable code, the facts, and what to type next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from streamql.shared import errors


@dataclass(frozen=True)
class ErrorClass:
    """What a code means: its SQLSTATE (ISO 9075, class 42 = syntax or rule violation) and one line for the documentation."""

    sqlstate: str
    summary: str


ERROR_CLASSES = MappingProxyType(
    {code: ErrorClass(entry["sqlstate"], entry["summary"]) for code, entry in errors().items()}
)
"""By code. The extension raises errors of the same catalogue."""


SPARK_WRAPPERS = ("[TASK_WRITE_FAILED]", "Job aborted", "Exception thrown in awaitResult")
"""How messages of Spark's begin that say no more than that something failed; their causes say what."""


def counted(number: int, what: str) -> str:
    """Returns a number and what it counts: 1 row, 2 rows."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


class StreamqlError(Exception):
    """The root of all errors.

    `code` is a key of ERROR_CLASSES; `message` one sentence with the facts in it; `hint` what to type next; `line` and
    `column` count from 1 and are set where the text of a statement is at fault; `facts` holds the values named in the message.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        line: int | None = None,
        column: int | None = None,
        **facts: object,
    ) -> None:
        if code not in ERROR_CLASSES:
            raise ValueError(f"no such error class: {code}")
        self.code = code
        self.message = message
        self.hint = hint
        self.line = line
        self.column = column
        self.facts: dict[str, object] = facts
        super().__init__(str(self))

    @property
    def sqlstate(self) -> str:
        """Returns the SQLSTATE that front ends show."""
        return ERROR_CLASSES[self.code].sqlstate

    def __str__(self) -> str:
        where = f" (line {self.line}, column {self.column})" if self.line is not None else ""
        hint = f"\nHint: {self.hint}" if self.hint else ""
        return f"[{self.code}] {self.message}{where}{hint}"


def of_catalogue(code: str, message: str, facts: Mapping[str, object]) -> StreamqlError:
    """Returns an error with one of the messages that the catalogue has for `code`, which the extension raises too. `facts`: what stands in
    the places of their names."""
    entry = errors()[code]["messages"][message]
    error = StreamqlError(code, entry["message"].format_map(facts), hint=entry["hint"].format_map(facts))
    error.facts = dict(facts)
    return error
