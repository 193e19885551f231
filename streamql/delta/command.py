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
    """Where a statement writes.

    `format`: "delta" or "other". `operation`: Spark's name of the write; CTAS, RTAS or REPLACE if it creates the table; EXISTS for a write
    by path in mode ignore or error to a path that has a table already. `table_id` and `path`: of a Delta table that `exists`. `mark`: the
    mark of the empty table that reserves the name for the statement; empty if the name is not reserved. `managed`: whether DROP TABLE
    removes the table's files. `forgets`: after how long the table that the statement creates would forget transactions (a property of
    Delta); empty if it would keep them.
    """

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
        """Returns whether the name is reserved, which means that an empty table with a mark has it."""
        return bool(self.mark)

    @property
    def is_created(self) -> bool:
        """Returns whether the statement creates or replaces the table. Such a target is looked up by its name each time."""
        return self.operation in _CREATIONS.values()


@dataclass(frozen=True)
class ClaimedWrite:
    """The write of a claimed statement, as the Scala class of the same name has it.

    `app_id` and `number`: the application transaction (Delta's `txn` action) that the commit carries. `path` and `table_id`: of the target.
    `seen`: the target's version when the statement was claimed. `is_reserved`: the statement replaces an empty table that was made for it,
    unless that table has been written since. `expected`: JSON of how many rows each read must still have at the commit, by the read's
    description; empty if no read can have fewer rows than before.
    """

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
    def reads(self) -> list[str]:
        """Returns the descriptions of all reads of streams, each once: JSON, which `reading.parse_read` reads."""
        return str(self._handle.readDescriptions()).splitlines()

    @property
    def table_reads(self) -> list[str]:
        """Returns the descriptions of all reads of tables AT a stream or at its END, each once."""
        return str(self._handle.tableReadDescriptions()).splitlines()

    @property
    def text(self) -> str:
        """Returns the text of the statement as the user wrote it; empty if Spark has not kept it (a DataFrame writer)."""
        return str(self._handle.text())

    @property
    def key(self) -> str:
        """Returns the text and the position of the statement in it, because all statements of a BEGIN … END script have the script's
        text."""
        return str(self._handle.key())

    @property
    def is_query(self) -> bool:
        """Returns whether it is a query: it returns rows and writes nothing."""
        return bool(self._handle.isQuery())

    @property
    def asked(self) -> frozenset[str]:
        """Returns the ids of the streams that a query consumes by WITH CONSUME."""
        return frozenset(str(self._handle.askedFor()).splitlines())

    @property
    def count(self) -> int:
        """Returns how many statements it has: one for each INSERT of a multi-insert, else 1."""
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
        """Returns a text that is equal for equal statements. It is made of the statement's text, or, for a DataFrame writer, of what is
        written where."""
        return str(self._handle.fingerprint(session_of(self._spark), i))

    def lineage(self, i: int) -> str:
        """Returns from which columns of what it reads the columns of its target are computed: JSON of the Scala class `Lineage`."""
        return str(self._handle.lineage(i))

    def rebind(self, description: str, frame: DataFrame, new_description: str) -> None:
        """Binds every read that has this description to `frame`, which shows another interval in the same columns."""
        self._handle.rebind(description, analyzed(frame), new_description)

    @contextlib.contextmanager
    def keeping_reads(self) -> Iterator[None]:
        """Restores on exit the intervals that the reads had on entry."""
        kept = self._handle.keepReads()
        try:
            yield
        finally:
            kept.putBack()

    def reserve(self, i: int, mark: str) -> None:
        """Creates the empty table with a mark that CREATE TABLE AS will replace."""
        self._handle.reserve(session_of(self._spark), i, mark)

    def no_rows(self) -> JavaObject:
        """Returns a result without rows."""
        return java_list(self._spark, [])

    def execute(self, i: int, claimed: ClaimedWrite | None = None) -> JavaObject:
        """Runs statement `i` as it was analysed. Returns its rows, which stay in the JVM. `claimed`: its write; None: it has no claim.

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
        """Returns how many rows of each change type statement `i` took when it was last executed, by the descriptions of its reads."""
        counted: dict[str, dict[str, int]] = json.loads(self._handle.changes(i))
        return counted

    def checked(self, i: int) -> dict[str, list[str]]:
        """Returns what the checks of rows have found when statement `i` was last executed, as JSON, by the descriptions of its reads."""
        found: dict[str, list[str]] = json.loads(self._handle.checked(i))
        return found
