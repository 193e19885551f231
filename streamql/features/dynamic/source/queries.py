"""Queries of dynamic tables: stored as Spark stores a view's, and computed at versions of their tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import JavaObject, analyzed, frame, java_frame, jvm, scala, session_of
from streamql.delta.queries import TrackedQuery, described
from streamql.delta.table import DeltaTable, Snapshot
from streamql.model import TableSource
from streamql.names import Name
from streamql.shared import constants

NO_STATES: Mapping[str, Any] = {"type": "struct", "fields": []}
"""The schema of a query without states."""

ROWS = constants("dynamicTables")["rows"]
"""The name of the relation that stands, in the statement of a refresh, for what it writes."""

SparkError = (Py4JJavaError, PySparkException)
"""What Spark raises for a query that it cannot analyse."""


@dataclass(frozen=True)
class Misfit:
    """A column of a table, or a field in one, that had the type `was`. `now`: the type that the query has for it; None: it has no such
    field."""

    column: str
    was: str
    now: str | None


@dataclass(frozen=True)
class DynamicQuery:
    """A query that was analysed.

    `refused`: why it cannot be the query of a dynamic table, as `reason_text` in `sources/views/texts.py` reads it; None: it can.
    `varies`: why its rows may differ from run to run over the same tables, such a reason; None: they do not. `tables`: what it reads, each
    once. `schema`: its columns, JSON. `keys`: columns of `rows` that identify a row. `states`: those from which its aggregates follow, as a
    schema, JSON. `texts`: those of the views and SQL functions that it reads. `plan`: what Spark makes of it: another text, another query.
    `clock`: what it reads of the clock: TIME, the time of day; DATE and time zones, with spaces between, only the dates that they have;
    empty: nothing.
    `widens`: whether the table that its rows are in must get other types first, as `widen` gives it. `misfit`: a column of that table which
    cannot hold the query's values; None: there is none, or no table yet.
    """

    spark: SparkSession
    handle: JavaObject
    refused: str | None
    varies: str | None
    tables: tuple[TableSource, ...]
    schema: str
    keys: tuple[str, ...]
    states: str
    texts: tuple[str, ...]
    plan: str
    clock: str
    widens: bool = False
    misfit: Misfit | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Returns the names of its columns."""
        return tuple(field["name"] for field in json.loads(self.schema)["fields"])

    @cached_property
    def tracked(self) -> TrackedQuery:
        """Returns the query as that of a view with a stream: its `refused` says whether the changes of its tables can be followed."""
        return described(self.spark, self.handle.tracked())

    def unfollowed(self, changed: Iterable[str]) -> str | None:
        """Returns why its change does not follow from those of tables with some ids, as `refused` has reasons; None: it does."""
        found: str | None = self.handle.unfollowed(json.dumps(sorted(changed)))
        return found

    @property
    def branch_keys(self) -> tuple[tuple[str | int | None, ...], ...]:
        """Returns what `keys` are in the rows of each branch of `tracked`, if none of them joins: "id", the table's row id; a number; or
        NULL."""
        return tuple(tuple(keys) for keys in json.loads(self.handle.branchKeys()))

    def rows(self, versions: Mapping[str, int]) -> DataFrame:
        """Returns its rows, with the key columns that it does not show, and the states. `versions`: of its tables, by their ids. Lazy."""
        return frame(self.spark, self.handle.rows(json.dumps(dict(versions))))

    def inserts(self, versions: Mapping[str, int]) -> DataFrame:
        """`rows` as INSERTs, in the columns of a stream. Lazy."""
        return frame(self.spark, self.handle.inserts(json.dumps(dict(versions))))

    def reads(self, versions: Mapping[str, int], changed: Iterable[str]) -> dict[str, tuple[int, int, int]]:
        """Returns by the ids of tables: the bytes that they have at `versions`; how often a refresh reads them if those of some ids have
        changed; how often the whole query does. Change sets do not count, and skipped files count as if they were read."""
        found = json.loads(self.handle.reads(json.dumps(dict(versions)), json.dumps(sorted(changed))))
        return {uid: (int(size), int(by_changes), int(whole)) for uid, (size, by_changes, whole) in found.items()}

    def ways(self, changed: Iterable[str]) -> list[Mapping[str, Any]]:
        """Returns how an incremental refresh would compute each operator if tables of some ids have changed, the outermost first: `depth`,
        `operator`, `way` (a key of STRATEGIES in `sources/views/texts.py`). Empty: a function or a value keeps the query from being
        incremental."""
        found: list[Mapping[str, Any]] = json.loads(self.handle.ways(json.dumps(sorted(changed))))
        return found

    def changes(self, end: Mapping[str, int], changed: Mapping[str, DataFrame], stored: JavaObject) -> DataFrame:
        """Returns what turns `stored`, its rows as of the begin of an interval, into those at the versions `end`: INSERT, UPDATE_AFTER,
        UPDATE_HIDDEN (of a row that is shown as before) and DELETE, in a stream's columns. `changed`: change sets of its tables, by their
        ids; the others have none. `stored`: as `stored_rows` returns them. Lazy; a refresh computes parts of it when its statement runs."""
        sets = jvm(self.spark).java.util.HashMap()
        for table_id, rows in changed.items():
            sets.put(table_id, java_frame(rows))
        return frame(self.spark, self.handle.changes(json.dumps(dict(end)), sets, stored))

    def widen(self, path: str) -> None:
        """Gives the columns of the table that its rows are in, in a directory, the types that they need: a commit without data."""
        self.handle.widen(path)

    def difference(self, versions: Mapping[str, int], stored: DataFrame, *, is_anew: bool) -> DataFrame:
        """Returns what turns `stored` into `rows`: INSERT, UPDATE_AFTER, UPDATE_HIDDEN (of a row that is shown as before) and DELETE, in a
        stream's columns. `is_anew`: rows of one key need not be the same row. Lazy."""
        return frame(self.spark, self.handle.difference(json.dumps(dict(versions)), java_frame(stored), is_anew))


def run_refresh(spark: SparkSession, text: str, rows: DataFrame, token: str, visible: int) -> None:
    """Runs the statement of a refresh: an INSERT or a MERGE in which the relation ROWS stands for `rows`, a read of the hidden stream
    (`token`), which shows `visible` columns. Raises `SparkError`."""
    scala(spark).refreshes.RefreshStatement.run(session_of(spark), text, analyzed(rows), token, visible)


def stored_rows(spark: SparkSession, table: DeltaTable, version: Snapshot) -> JavaObject:
    """Returns the rows of a dynamic table at a version, each with its place in the table's files. Lazy."""
    return scala(spark).refreshes.StoredRows.of(table.reader, version.handle)


def substituted(spark: SparkSession, text: str) -> str | None:
    """Returns a query with the values of the session's variables that are in its text as `${name}`. None: it has variables of the process,
    such as `${env:NAME}`."""
    found: str | None = scala(spark).refreshes.StoredQuery.substituted(session_of(spark), text)
    return found


def query_properties(spark: SparkSession, text: str, before: str = "") -> tuple[str, dict[str, Any]]:
    """Returns what a query's meaning depends on beside its text (settings, current catalog and schema; JSON), and its columns as Spark's
    JSON has them. `before`: the part of the user's statement before the query. Raises what Spark says of the text, as `SparkError`, with
    places in that statement."""
    said = json.loads(scala(spark).refreshes.StoredQuery.properties(session_of(spark), before, text))
    return json.dumps(said["properties"]), said["schema"]


def stored_query(
    spark: SparkSession,
    name: Name,
    text: str,
    schema: str,
    properties: str,
    moved: Mapping[str, Sequence[str]],
    stored: str | None = None,
) -> DynamicQuery:
    """Returns a query that was stored, with the types that its columns have now. `moved`: tables that have another name than in the text,
    by that name in lower case. `stored`: the columns of the table that its rows are in, as a schema, JSON; None: there is no table yet.
    Raises what Spark says of it, as `SparkError`."""
    view = jvm(spark)
    gateway = spark.sparkContext._gateway
    assert gateway is not None

    def array(parts: Sequence[str]) -> JavaObject:
        made = gateway.new_array(view.java.lang.String, len(parts))
        for i, part in enumerate(parts):
            made[i] = part
        return made

    names = view.java.util.HashMap()
    for old, new in moved.items():
        names.put(old, array(new))
    handle = scala(spark).refreshes.StoredQuery.stored(
        session_of(spark), array(name.parts), text, schema, properties, names, stored
    )
    said = json.loads(handle.describe())
    tables = tuple(
        TableSource(Name.of(["spark_catalog", *t["name"]][-3:]), t["path"], t["id"]) for t in said.get("tables", ())
    )
    keys, found = tuple(said.get("keys", ())), json.dumps(said.get("states", NO_STATES))
    columns, texts = json.dumps(said["columns"]), tuple(said["texts"])
    plan, clock = said.get("plan", ""), said["clock"] or ""
    misfit = Misfit(**said["misfit"]) if "misfit" in said else None
    refused, varies, widens = said.get("refused"), said["varies"], bool(said.get("widens"))
    return DynamicQuery(
        spark, handle, refused, varies, tables, columns, keys, found, texts, plan, clock, widens, misfit
    )


def next_day(spark: SparkSession, after_ms: int, zone: str) -> int:
    """Returns when the first day of a time zone begins after a time, in milliseconds since 1970."""
    return int(scala(spark).queries.ClockReads.nextDay(after_ms, zone))
