"""The queries of dynamic tables. They are stored as Spark stores the query of a view, and are computed at versions of their tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import JavaObject, analyzed, frame, java_frame, jvm, scala, session_of
from streamql.delta.queries import TrackedQuery, described
from streamql.delta.table import DeltaTable, Snapshot
from streamql.features.dynamic.source.keys import SourceKey
from streamql.model import TableSource
from streamql.names import Name
from streamql.shared import constants

NO_STATES: Mapping[str, Any] = {"type": "struct", "fields": []}
"""The schema of a query without states."""

ROWS = constants("dynamicTables")["rows"]
"""The name of the relation that stands for the row changes in the statement of a refresh."""

SparkError = (Py4JJavaError, PySparkException)
"""The classes of Spark's errors, for example if a query cannot be analysed."""


@dataclass(frozen=True)
class Misfit:
    """A column of a backing table, or a field in one, that cannot hold the query's values. `was`: its type. `now`: the type that the query
    has for it; None: the query has no such field."""

    column: str
    was: str
    now: str | None


@dataclass(frozen=True)
class DynamicQuery:
    """An analysed query of a dynamic table.

    `refused`: why it cannot be the query of a dynamic table, as `reason_text` in `sources/views/texts.py` reads it; None: it can. `varies`:
    why its rows may differ from run to run over the same tables, in the same form; None: they do not. `tables`: the tables that it reads,
    each once. `schema`: its columns, in JSON. `keys`: the columns of `rows` that identify a row. `states`: the columns from which
    incremental refreshes compute its aggregates, as a schema in JSON. `texts`: the texts of the views and SQL functions that it reads.
    `plan`: a text of Spark's plan; if it differs, the query means something else.

    `clock`: what it reads of the clock. It is TIME (the time of day), or DATE and the names of the time zones whose dates it reads,
    separated by spaces, or empty. `widens`: the backing table must get other types before the rows are written (`widen`). `misfit`: a
    column of the backing table that cannot hold the query's values; None: there is none, or the table does not exist yet.
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
        """Returns the query as that of a view with a stream. Its `refused` says whether it has the form that such a query must have."""
        return described(self.spark, self.handle.tracked())

    def unfollowed(self, changed: Iterable[str]) -> str | None:
        """Returns why its changes cannot be computed from those of the tables with the ids `changed`, in the form of `refused`. None: they
        can."""
        found: str | None = self.handle.unfollowed(json.dumps(sorted(changed)))
        return found

    @property
    def branch_keys(self) -> tuple[tuple[str | int | None, ...], ...]:
        """Returns the values of `keys` in the rows of each branch of `tracked`, as `keyed_changes` takes them. No branch may join
        tables."""
        return tuple(tuple(keys) for keys in json.loads(self.handle.branchKeys()))

    def rows(self, versions: Mapping[str, int]) -> DataFrame:
        """Returns its rows, with the key columns that it does not show, and the states. `versions`: of its tables, by table id. Lazy."""
        return frame(self.spark, self.handle.rows(json.dumps(dict(versions))))

    def inserts(self, versions: Mapping[str, int]) -> DataFrame:
        """Returns `rows` as INSERTs, in the columns of a stream. Lazy."""
        return frame(self.spark, self.handle.inserts(json.dumps(dict(versions))))

    def reads(self, versions: Mapping[str, int], changed: Iterable[str]) -> dict[str, tuple[int, int, int]]:
        """Returns {table id: (bytes, incremental, full)}: the bytes of the table at `versions`, and how often an incremental and a full
        refresh read them. `changed`: the ids of the tables that have changed. Change sets do not count, and files that Spark may skip
        do."""
        found = json.loads(self.handle.reads(json.dumps(dict(versions)), json.dumps(sorted(changed))))
        return {uid: (int(size), int(incremental), int(full)) for uid, (size, incremental, full) in found.items()}

    def strategies(self, changed: Iterable[str]) -> list[Mapping[str, Any]]:
        """Returns how an incremental refresh would compute each operator, the outermost first: {`depth`, `operator`, `way`}. `way` is a key
        of STRATEGIES in `sources/views/texts.py`. `changed`: the ids of the tables that have changed. Empty: a function or a value keeps
        the query from being incremental."""
        found: list[Mapping[str, Any]] = json.loads(self.handle.strategies(json.dumps(sorted(changed))))
        return found

    def changes(self, end: Mapping[str, int], changed: Mapping[str, DataFrame], stored: JavaObject) -> DataFrame:
        """Returns the row changes that turn `stored`, its rows as of an interval's begin, into its rows at the versions `end`. They are
        INSERT, UPDATE_AFTER, UPDATE_HIDDEN (only columns change that the table does not show) and DELETE, in the columns of a stream.

        `changed`: the change sets of its tables, by table id; other tables have not changed. `stored`: as `stored_rows` returns them. Lazy;
        the statement of the refresh prepares parts of it when it runs.
        """
        sets = jvm(self.spark).java.util.HashMap()
        for table_id, rows in changed.items():
            sets.put(table_id, java_frame(rows))
        return frame(self.spark, self.handle.changes(json.dumps(dict(end)), sets, stored))

    def widen(self, path: str) -> None:
        """Gives the columns of the backing table the types that the query's values need, by a commit without data. `path`: of that
        table."""
        self.handle.widen(path)

    def difference(self, versions: Mapping[str, int], stored: DataFrame, *, is_anew: bool) -> DataFrame:
        """Returns the row changes that turn `stored` into `rows`, in the form of `changes`. Computes all rows. `is_anew`: a key need not
        stand for the same row in both. Lazy."""
        return frame(self.spark, self.handle.difference(json.dumps(dict(versions)), java_frame(stored), is_anew))


def run_refresh(spark: SparkSession, text: str, rows: DataFrame, description: str, visible: int) -> None:
    """Runs the statement of a refresh: an INSERT or a MERGE in which the relation ROWS stands for `rows`. Raises `SparkError`.

    `rows` is a read of the hidden stream. `description`: of that read (`StreamReading.description`). `visible`: how many of its columns
    SELECT * shows.
    """
    scala(spark).refreshes.RefreshStatement.run(session_of(spark), text, analyzed(rows), description, visible)


def stored_rows(spark: SparkSession, table: DeltaTable, version: Snapshot) -> JavaObject:
    """Returns the rows of a dynamic table at a version, each with its position in the table's files. Lazy."""
    return scala(spark).refreshes.StoredRows.of(table.reader, version.handle)


def substituted(spark: SparkSession, text: str) -> str | None:
    """Returns a query in whose text `${name}` is replaced by the value of the session's variable. None: it has variables of the process,
    such as `${env:NAME}`."""
    found: str | None = scala(spark).refreshes.StoredQuery.substituted(session_of(spark), text)
    return found


def query_properties(spark: SparkSession, text: str, before: str = "") -> tuple[str, dict[str, Any]]:
    """Analyses a query. Returns what its meaning depends on besides its text (settings, current catalog and schema; JSON), and its columns
    as Spark's JSON schema.

    `before`: the part of the user's statement before the query, so that places in Spark's errors are places in that statement. Raises
    `SparkError`.
    """
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
    keys: Mapping[str, SourceKey] = MappingProxyType({}),
    *,
    derives: bool = True,
) -> DynamicQuery:
    """Analyses a stored query, and returns it with the present types of its columns. Raises `SparkError`.

    `moved`: the present names of tables that were renamed, by the name in the text in lower case. `stored`: the columns of the backing
    table, as a schema in JSON; None: it does not exist yet. `keys`: of its tables, by table id. `derives`: whether `row_number() = 1`
    gives a key.
    """
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
    known = json.dumps({table_id: key._asdict() for table_id, key in keys.items()})
    handle = scala(spark).refreshes.StoredQuery.stored(
        session_of(spark), array(name.parts), text, schema, properties, names, stored, known, derives
    )
    said = json.loads(handle.describe())
    tables = tuple(
        TableSource(Name.of(["spark_catalog", *t["name"]][-3:]), t["path"], t["id"]) for t in said.get("tables", ())
    )
    row_key, found = tuple(said.get("keys", ())), json.dumps(said.get("states", NO_STATES))
    columns, texts = json.dumps(said["columns"]), tuple(said["texts"])
    plan, clock = said.get("plan", ""), said["clock"] or ""
    misfit = Misfit(**said["misfit"]) if "misfit" in said else None
    refused, varies, widens = said.get("refused"), said["varies"], bool(said.get("widens"))
    return DynamicQuery(
        spark, handle, refused, varies, tables, columns, row_key, found, texts, plan, clock, widens, misfit
    )


def next_day(spark: SparkSession, after_ms: int, zone: str) -> int:
    """Returns when the first day of a time zone begins after a time, in milliseconds since 1970."""
    return int(scala(spark).queries.ClockReads.nextDay(after_ms, zone))
