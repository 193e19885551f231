"""Every error streamql raises: one root, a stable code, the facts, and what to type next."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class ErrorClass:
    """What a code means: its SQLSTATE (ISO 9075, class 42 = syntax or rule violation) and one line for the documentation."""

    sqlstate: str
    summary: str


ERROR_CLASSES = MappingProxyType(
    {
        "SYNTAX_ERROR": ErrorClass("42601", "the statement cannot be parsed"),
        "UNSUPPORTED_CLAUSE": ErrorClass("0A000", "a clause that parses but cannot be honoured"),
        "UNSUPPORTED_SOURCE": ErrorClass("0A000", "a kind of source that streams cannot be made on"),
        "UNSUPPORTED_STATEMENT": ErrorClass("0A000", "a statement that may not read a stream"),
        "INVALID_PROPERTY": ErrorClass("22023", "an unknown property, or a value it does not take"),
        "INVALID_POINT_IN_TIME": ErrorClass("22023", "a version or time that means nothing for this source"),
        "STREAM_NOT_FOUND": ErrorClass("42P01", "no stream of that name"),
        "STREAM_ALREADY_EXISTS": ErrorClass("42P07", "a stream of that name exists"),
        "NAME_ALREADY_IN_USE": ErrorClass(
            "42P07", "a table or view has that name, or a stream where a table is wanted"
        ),
        "TABLE_NOT_FOUND": ErrorClass("42P01", "no table or view of that name"),
        "SCHEMA_NOT_FOUND": ErrorClass("3F000", "no schema (database) of that name"),
        "NOT_A_DELTA_TABLE": ErrorClass("0A000", "streams need a Delta table"),
        "RESERVED_COLUMN_NAME": ErrorClass("42939", "a source column named like a metadata column of streams"),
        "CHANGE_TRACKING_DISABLED": ErrorClass("55000", "the source does not record row identity"),
        "STREAM_STALE": ErrorClass("55000", "the history a stream needs is gone"),
        "STREAM_SOURCE_MISSING": ErrorClass("55000", "the source of the stream was dropped"),
        "STREAM_SOURCE_REPLACED": ErrorClass("55000", "the source of the stream is another table now"),
        "STREAM_INVALID": ErrorClass("55000", "the stream cannot be read for a named reason"),
        "STREAM_NEEDS_FILES": ErrorClass("55006", "VACUUM would remove files that a stream has still to read"),
        "INCOMPATIBLE_SCHEMA_CHANGE": ErrorClass("55000", "row images of the interval do not fit one schema"),
        "CHANGES_UNREADABLE": ErrorClass("55000", "the log lacks what change sets are computed from"),
        "STREAM_BUSY": ErrorClass("55P03", "another statement is consuming the stream"),
        "STREAM_MOVED": ErrorClass("40001", "the stream moved on since the statement read it"),
        "CLAIM_LOST": ErrorClass("40001", "the claim was taken over while the statement ran"),
        "CONSUMPTION_IN_DOUBT": ErrorClass(
            "55000", "whether a consumption committed cannot be told; a person must say"
        ),
        "CONSUMPTION_PARTIALLY_COMMITTED": ErrorClass(
            "55000", "some statements of a transaction committed, others did not"
        ),
        "CONSUMPTION_FAILED": ErrorClass("58000", "the statement failed and the stream did not move"),
        "INVALID_TRANSACTION_STATE": ErrorClass(
            "25000", "BEGIN, COMMIT or a statement where the transaction does not allow it"
        ),
        "STATEMENT_COMMITTED": ErrorClass(
            "25000", "an earlier statement of the transaction committed, though it reported an error"
        ),
        "TRANSACTION_COMMITTED": ErrorClass("25000", "ROLLBACK of a transaction whose COMMIT came through"),
        "UNSUPPORTED_TARGET": ErrorClass("0A000", "a target that cannot be written exactly once"),
        "CATALOG_UNREADABLE": ErrorClass("58000", "the catalog of streams is missing, foreign, restored or newer"),
        "EXTENSION_NOT_INSTALLED": ErrorClass("58000", "the Spark session lacks the streamql extension"),
        "SIDECAR_FAILED": ErrorClass("58000", "the Python process that serves a JVM did not start, or ended"),
        "JAVA_NOT_FOUND": ErrorClass("58000", "no Java runtime that Spark can use"),
        "JAR_BUILD_FAILED": ErrorClass("58000", "the extension jar could not be built or its jars not be fetched"),
        "INVALID_ARGUMENT": ErrorClass("22023", "an argument of a function or option that it does not take"),
        "INTERNAL_ERROR": ErrorClass("XX000", "a fault of streamql's own; please report it"),
    }
)


SPARK_WRAPPERS = ("[TASK_WRITE_FAILED]", "Job aborted", "Exception thrown in awaitResult")
"""How messages of Spark's begin that say no more than that something failed; their causes say what."""


def counted(number: int, what: str) -> str:
    """A number and what it counts: 1 row, 2 rows."""
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
        """The SQLSTATE that front ends show."""
        return ERROR_CLASSES[self.code].sqlstate

    def __str__(self) -> str:
        where = f" (line {self.line}, column {self.column})" if self.line is not None else ""
        hint = f"\nHint: {self.hint}" if self.hint else ""
        return f"[{self.code}] {self.message}{where}{hint}"
