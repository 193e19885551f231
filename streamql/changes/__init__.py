"""Change sets: the smallest sets of row changes that turn an earlier version of a table into a later one. They are read from the files that
changed."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from streamql.changes import schema
from streamql.changes.build import HIDDEN_COLUMNS, build
from streamql.changes.plan import ChangePlan, PlanType, plan_changes, tracking_disabled
from streamql.changes.scan import Reading, RowQuery, complete
from streamql.delta.log import Commit, CommitMissing
from streamql.delta.table import DeltaTable, Snapshot
from streamql.errors import StreamqlError
from streamql.model import StreamMode, Versions
from streamql.names import quote

__all__ = ["HIDDEN_COLUMNS", "ChangePlan", "PlanType", "RowQuery", "change_set", "explain", "read_commits"]


def change_set(
    spark: SparkSession,
    path: str,
    interval: Versions,
    mode: StreamMode,
    table: DeltaTable | None = None,
    end: Snapshot | None = None,
    query: RowQuery | None = None,
    *,
    bitwise: bool = False,
) -> DataFrame:
    """Returns the changes of a Delta table over an interval: the three metadata columns, the table's columns as of `interval.through`, then
    HIDDEN_COLUMNS. Lazy.

    In STANDARD mode, a row id has at most one DELETE, or one INSERT, or one UPDATE_BEFORE with one UPDATE_AFTER. The version and time of a
    row are those of its row image. In APPEND_ONLY mode, rows are as they were first inserted.

    `query`: makes the rows that are shown of the table's rows; None: the table's rows themselves. `bitwise`: an update is also shown if it
    changes only the sign of zero, the order of a map or the layout of a variant. Raises STREAM_STALE, CHANGE_TRACKING_DISABLED,
    INCOMPATIBLE_SCHEMA_CHANGE, RESERVED_COLUMN_NAME, CHANGES_UNREADABLE, before any job runs.
    """
    reading, plan = _prepare(spark, path, interval, mode, table, end)
    return build(replace(reading, query=query, bitwise=bitwise), plan)


def explain(spark: SparkSession, path: str, interval: Versions, mode: StreamMode) -> ChangePlan:
    """Returns the plan by which `change_set` would read. Raises the same errors, and reads no rows."""
    return _prepare(spark, path, interval, mode, None, None)[1]


def read_commits(table: DeltaTable, snapshot: Snapshot, interval: Versions) -> list[Commit]:
    """Returns all commits of an interval. Raises STREAM_STALE if one is no longer in the log."""
    try:
        return table.commits(snapshot, interval.after, interval.through)
    except CommitMissing as e:
        raise table.stale(e.version) from e


def _prepare(
    spark: SparkSession, path: str, interval: Versions, mode: StreamMode, table: DeltaTable | None, end: Snapshot | None
) -> tuple[Reading, ChangePlan]:
    table = table or DeltaTable(spark, path)
    latest = end or table.latest()
    end = table.at(interval.through) if interval.through < latest.version else latest
    if end.version != interval.through:
        raise table.stale(interval.through)
    schema.check_reserved(end.metadata, f"delta.{quote(path)}")
    if end.configuration.get("delta.enableRowTracking") != "true":
        raise tracking_disabled(end.version, "has change tracking off")
    commits = read_commits(table, latest, interval)
    is_latest = end.version == latest.version
    needs_later = interval.initial and not is_latest
    later = read_commits(table, latest, Versions(interval.through, latest.version)) if needs_later else ()
    plan = plan_changes(commits, interval, mode, later)
    epochs = _epochs(table, end, interval, commits)
    return complete(Reading(spark, table, end, commits, epochs, lambda: table.at(interval.after), is_latest), plan)


def _epochs(table: DeltaTable, end: Snapshot, interval: Versions, commits: list[Commit]) -> list[schema.Epoch]:
    if not any(c.metadata is not None for c in commits):
        return [schema.Epoch(interval.after, end.metadata)]
    start = _start(table, interval, commits)
    if start.configuration.get("delta.enableRowTracking") != "true":
        raise tracking_disabled(start.version, "has change tracking off")
    return schema.epochs(start.metadata, interval.after, commits)


def _start(table: DeltaTable, interval: Versions, commits: list[Commit]) -> Snapshot:
    """Returns the table as of the interval's begin, for its metadata.

    A checkpoint at the interval's first commit may have let log cleanup remove the version of the begin. Then the next version is returned.
    It has the same metadata unless the commit changed it, in which case the error is raised.
    """
    try:
        return table.at(interval.after)
    except StreamqlError:
        if not commits or commits[0].metadata is not None:
            raise
        return table.at(interval.after + 1)
