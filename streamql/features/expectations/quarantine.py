"""Quarantine tables: makes them, and writes the rows of a consumption into them, once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamql.catalog.states import StreamState
from streamql.changes import HIDDEN_COLUMNS
from streamql.delta import neutral
from streamql.delta.jvm import frame, java_frame, scala, session_of
from streamql.delta.names import look_up
from streamql.delta.table import DeltaTable
from streamql.delta.txns import fence, find_txn
from streamql.dialect import quote_string
from streamql.errors import StreamqlError
from streamql.features.expectations.expectation import Expectation, to_text
from streamql.model import Interval
from streamql.names import Name, quote
from streamql.sources.registry import open_source
from streamql.terms import Completion

NAME, VIOLATED, ERROR = _OWN = ("__expectation", "__violated", "__error")
STREAM, NUMBER, CONSUMPTION = ("__stream", "__consumption", "__consumption_id")
OWN_DDL = (
    f"{NAME} STRING, {VIOLATED} ARRAY<STRING>, {ERROR} STRING, {STREAM} STRING, {NUMBER} BIGINT, {CONSUMPTION} STRING"
)
"""The columns of a quarantine table that come before those of the stream."""
_OWN_COLUMNS = (*_OWN, STREAM, NUMBER, CONSUMPTION)

_NEEDS_MAPPING = " ,;{}()\n\t="
"""Characters of a column's name for which Delta Lake needs column mapping."""


@dataclass(frozen=True)
class Quarantine:
    """A quarantine table. `version`: its newest version when it was looked up."""

    path: str
    table_id: str
    version: int


def shown_columns(changes: DataFrame) -> DataFrame:
    """Returns a change set in the columns that SELECT * shows."""
    return changes.select(*(F.col(quote(c)) for c in changes.columns[: len(changes.columns) - len(HIDDEN_COLUMNS)]))


def changes_of(spark: SparkSession, state: StreamState, interval: Interval | None = None) -> DataFrame:
    """Returns the changes of a stream's source over an interval. `interval`: None: an empty one, for its columns. Lazy."""
    source = open_source(spark, state.stream.source)
    return source.changes(interval or Interval(source.latest, source.latest), state.stream.mode)


def ready(spark: SparkSession, state: StreamState, name: Name, rows: DataFrame) -> Quarantine:
    """Returns the quarantine table of a name, with all columns of rows that a stream shows. Creates it if it does not exist.

    Raises INVALID_EXPECTATION if the name is another table's, or if a column has another type there. Raises SCHEMA_NOT_FOUND.
    """
    columns = json.loads(scala(spark).expectations.Quarantine.columns(java_frame(rows)))
    found = look_up(spark, name)
    if found.type == "missing":
        _create(spark, state, name, columns)
        found = look_up(spark, name)
    if found.type != "delta":
        raise _unfit(name, f"is a {found.provider or found.type}", "name a new table behind INTO; streamql creates it")
    table = DeltaTable(spark, found.path)
    missing = _missing(name, table.schema(table.latest()), columns)
    if missing:
        neutral.run(spark, f"ALTER TABLE {name.sql} ADD COLUMNS ({', '.join(missing)})")
    latest = table.latest()
    return Quarantine(found.path, latest.table_id, latest.version)


def _create(spark: SparkSession, state: StreamState, name: Name, columns: Sequence[Mapping[str, str]]) -> None:
    taken = {c.lower() for c in _OWN_COLUMNS} & {c["name"].lower() for c in columns}
    if taken:
        raise _unfit(name, f"would have the column {min(taken)} twice", "rename the column of the source")
    mapping = any(character in c["name"] for c in columns for character in _NEEDS_MAPPING)
    properties = " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')" if mapping else ""
    comment = quote_string(f"rows of stream {state.name} that violate its expectations")
    ddl = ", ".join([OWN_DDL, *(c["ddl"] for c in columns)])
    neutral.neutral_clone(spark).sql(
        f"CREATE TABLE IF NOT EXISTS {name.sql} ({ddl}) USING delta COMMENT {comment}{properties}"
    )


def _missing(name: Name, schema: StructType, columns: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns the columns that a table lacks, as DDL. Raises INVALID_EXPECTATION if it is not a quarantine table, or if a column has
    another type there."""
    types = {f.name.lower(): f.dataType.json() for f in schema.fields}
    lacking = [c for c in _OWN_COLUMNS if c not in types]
    if lacking:
        raise _unfit(
            name,
            f"is not a quarantine table: it lacks {', '.join(lacking)}",
            "name a new table behind INTO; streamql creates it",
        )
    for column in columns:
        known = types.get(column["name"].lower())
        if known is not None and json.loads(known) != json.loads(column["type"]):
            raise _unfit(
                name,
                f"has the column {column['name']} with another type than the stream",
                "DROP EXPECTATION, and ADD it INTO a new table",
            )
    return [c["ddl"] for c in columns if c["name"].lower() not in types]


def _unfit(name: Name, what: str, hint: str) -> StreamqlError:
    return StreamqlError("INVALID_EXPECTATION", f"{name} {what}", hint=hint, table=str(name))


# -- rows


def app_id(state: StreamState) -> str:
    """Returns the application id by which the commits of a quarantine table are numbered that have rows of a stream."""
    return f"streamql:{state.stream.uuid}:quarantine"


@dataclass(frozen=True)
class Written:
    """What a consumption has in a quarantine table. `rows`, `version`: of its commit; None: they are not known. `violations`: rows by the
    expectation that they violate; None: this call has not written."""

    rows: int | None
    version: int | None
    violations: Mapping[str, int] | None


def write(c: Completion, expectations: Sequence[Expectation], table: Name, names: Sequence[str], kept: Any) -> Written:
    """Writes the rows of a consumption into a quarantine table, unless they are there. `names`: of the expectations whose rows go there.
    `kept`: the rows, as the statement has kept them; None: they are read again."""
    found = None
    if kept is not None:
        rows = _kept_rows(c.spark, kept, names)
    else:
        changes = changes_of(c.spark, c.state, c.claim.intervals[c.state.stream.uuid])
        found = violations(changes, expectations, [e.name for e in expectations if e.table is not None], names)
        rows = shown_columns(frame(c.spark, found.rows()))
    shown = [F.col(quote(n)) for n in rows.columns[len(_OWN) :]]
    own = [F.lit(str(c.state.name)), F.lit(c.state.sequence + 1).cast("bigint"), F.lit(c.claim.consumption_id)]
    named = [value.alias(name) for value, name in zip(own, (STREAM, NUMBER, CONSUMPTION), strict=True)]
    selected = rows.select(*(F.col(n) for n in _OWN), *named, *shown)
    target = ready(c.spark, c.state, table, rows.select(*shown))
    known: Mapping[str, Any] = c.joined.prepared.get("expectations", {}).get(table.key, {})
    seen = known["version"] if known.get("table_id") == target.table_id else -1
    number = c.joined.commit_number
    scala(c.spark).expectations.Quarantine.append(
        session_of(c.spark), java_frame(selected), target.path, target.table_id, app_id(c.state), number, seen
    )
    delta = DeltaTable(c.spark, target.path)
    commit = find_txn(c.spark, delta, delta.latest(), app_id(c.state), number, seen)
    if commit is not None and commit.number == c.joined.fence_number:
        raise StreamqlError(
            "CLAIM_LOST",
            f"the consumption was given up, and {table} was fenced",
            hint=f"ALTER STREAM {c.state.name} RELEASE",
        )
    written = None if commit is None else commit.metrics.get("numOutputRows")
    facts = None if found is None else json.loads(found.found())
    counts: Mapping[str, int] | None = None if facts is None else facts["rows"]
    return Written(None if written is None else int(written), None if commit is None else commit.version, counts)


def _kept_rows(spark: SparkSession, kept: Any, names: Sequence[str]) -> DataFrame:
    """Returns the rows that a statement has kept, as `violations` has them, in one partition."""
    made = scala(spark).expectations.Screens.kept(
        session_of(spark), json.dumps(kept), json.dumps(list(names)), json.dumps(list(_OWN))
    )
    return frame(spark, made).coalesce(1)


def is_written(c: Completion, table: Name) -> bool:
    """Returns whether a quarantine table has rows of a consumption. If it has none, it gets none later. If the table is gone, it has
    none."""
    found = look_up(c.spark, table)
    while found.type == "delta":
        number = fence(c.spark, found.path, app_id(c.state), c.joined.fence_number, c.joined.commit_number)
        if number is not None:
            return number == c.joined.commit_number
    return False


def violations(
    changes: DataFrame, expectations: Sequence[Expectation], candidates: Sequence[str], wanted: Sequence[str]
) -> Any:
    """Returns the rows of a change set that violate expectations, as the JVM has them (`Violations`): NAME, VIOLATED, ERROR, and the
    columns of the change set. `candidates`: the expectations of which the first one is named; `wanted`: the rows of which first ones are
    wanted."""
    return scala(changes.sparkSession).expectations.Screens.violations(
        java_frame(changes),
        to_text(expectations),
        json.dumps(list(candidates)),
        json.dumps(list(wanted)),
        json.dumps(list(_OWN)),
    )
