"""The analysed statement that a consumption runs, as the JVM holds it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import JavaObject, analyzed, java_list, scala, session_of
from streamql.shared import constants

_CREATIONS = constants("creations")
CREATE = _CREATIONS["create"]


@dataclass(frozen=True)
class Target:
    """Where a statement writes. `format`: delta or other. `operation`: Spark's name of the write; CTAS, RTAS or REPLACE if it
    creates the table; EXISTS: a write by path that a table there keeps from writing (mode ignore, error). `mark`: of the empty
    table that reserves the name for the statement; empty: the name is not reserved. `table_id`, `path`: of a Delta table that
    `exists`. `managed`: whether DROP TABLE removes its files. `forgets`: after how long the table that the statement creates would
    forget transactions; empty: it would not."""

    format: str
    operation: str
    name: str
    path: str
    table_id: str
    exists: bool
    mark: str = ""
    managed: bool = False
    forgets: str = ""

    @property
    def is_reserved(self) -> bool:
        """Returns whether the name is reserved: a table with a mark and without rows has it."""
        return bool(self.mark)

    @property
    def is_created(self) -> bool:
        """Returns whether the statement makes the table, or makes it anew: then it is looked up by name each time."""
        return self.operation in _CREATIONS.values()


@dataclass(frozen=True)
class ClaimedWrite:
    """The write of a claimed statement, as the Scala class of that name has it. Its commit carries `number` for the app id. `path`,
    `table_id`: of the target; `seen`: the target's version when the statement was claimed. `is_reserved`: the statement replaces an
    empty table that was made for it, unless that has been written since. `expected`: how many rows streams must still have at the commit,
    by their tokens, JSON; empty: they cannot have fewer."""

    app_id: str
    number: int
    path: str
    table_id: str
    seen: int
    is_reserved: bool
    expected: str = ""


class Command:
    """One or several writes that read streams, or a query that consumes by reading."""

    def __init__(self, spark: SparkSession, handle: JavaObject) -> None:
        self._spark = spark
        self._handle = handle

    @property
    def tokens(self) -> list[str]:
        """Returns the tokens of all stream reads, each once."""
        return str(self._handle.tokens()).splitlines()

    @property
    def followers(self) -> list[str]:
        """Returns the tokens of tables that are read AT a stream or at its END, each once."""
        return str(self._handle.followers()).splitlines()

    @property
    def text(self) -> str:
        """Returns the statement as it was written, as far as Spark kept it."""
        return str(self._handle.text())

    @property
    def key(self) -> str:
        """Returns the text, and where in it the statement stands, since statements of one BEGIN … END script share its text."""
        return str(self._handle.key())

    @property
    def is_query(self) -> bool:
        """Returns whether the rows are the result, and nothing is written."""
        return bool(self._handle.isQuery())

    @property
    def asked(self) -> frozenset[str]:
        """Returns the ids of the streams that a query asked to consume."""
        return frozenset(str(self._handle.askedFor()).splitlines())

    @property
    def count(self) -> int:
        """Returns how many statements."""
        return int(self._handle.statementCount())

    def target(self, i: int) -> Target:
        """Returns where statement `i` writes, looked up now."""
        t = json.loads(self._handle.target(session_of(self._spark), i))
        where = (t["name"], t["path"], t["tableId"], t["exists"], t.get("mark", ""), t.get("managed", False))
        return Target(t["format"], t["operation"], *where, t.get("forgets", ""))

    @property
    def pin(self) -> str:
        """Returns the name under which the intervals of this statement's reads were pinned."""
        return str(self._handle.pin())

    def fingerprint(self, i: int) -> str:
        """Equal for equal statements: of the text, or if there is none (a DataFrame writer) of what is written where."""
        return str(self._handle.fingerprint(session_of(self._spark), i))

    def rebind(self, token: str, frame: DataFrame, new_token: str) -> None:
        """Lets every read with this token stand for another interval, of the same columns."""
        self._handle.rebind(token, analyzed(frame), new_token)

    @contextlib.contextmanager
    def keeping_reads(self) -> Iterator[None]:
        """Reads that are given other intervals inside have their own again behind."""
        kept = self._handle.keepReads()
        try:
            yield
        finally:
            kept.putBack()

    def reserve(self, i: int, mark: str) -> None:
        """Makes the empty marked table that CREATE TABLE AS will replace."""
        self._handle.reserve(session_of(self._spark), i, mark)

    def no_rows(self) -> JavaObject:
        """Returns a result without rows."""
        return java_list(self._spark, [])

    def execute(self, i: int, claimed: ClaimedWrite | None = None) -> JavaObject:
        """Runs statement `i` as analysed. Returns its rows, which stay in the JVM. `claimed`: what its commit carries; None: nothing.

        Raises CONSUMPTION_FAILED if the target is no longer the one that was claimed.
        """
        if claimed is None:
            return self._handle.execute(session_of(self._spark), i, None)
        write = scala(self._spark).bridge.ClaimedWrite(
            claimed.app_id,
            claimed.number,
            claimed.path,
            claimed.table_id,
            claimed.seen,
            claimed.is_reserved,
            claimed.expected,
        )
        return self._handle.execute(session_of(self._spark), i, write)

    def changes(self, i: int) -> dict[str, dict[str, int]]:
        """Returns how many rows of each change type statement `i` took when it was last executed, by the tokens of the streams."""
        counted: dict[str, dict[str, int]] = json.loads(self._handle.changes(i))
        return counted
