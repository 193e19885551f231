"""The status of dynamic tables: how long their rows have been behind, and their refreshes in the ledger."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamql.catalog.events import UNCHANGED
from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.log import CommitMissing
from streamql.delta.names import moved
from streamql.delta.table import DeltaTable, LatestVersion, latest_versions
from streamql.errors import StreamqlError
from streamql.features.dynamic.refreshes.clock import has_failed, outdated_since
from streamql.features.dynamic.source.backing import query_of
from streamql.features.dynamic.source.graph import in_order, readers, upstream
from streamql.features.dynamic.source.table import BACKING_PREFIX, DynamicTable, all_dynamic
from streamql.model import Interval, StreamMode, TableSource
from streamql.sources.tables.source_type import open_named
from streamql.sources.tables.table import OpenTable
from streamql.sources.views.positions import parts_of
from streamql.times import now_ms

BEHIND: Mapping[str, str] = MappingProxyType(
    {
        "FIRST": "it was never filled, or all of it is to be computed again",
        "SOURCE_REPLACED": "a table that it reads was replaced",
        "CHANGED": "its sources changed",
        "TIME_PASSED": "its query reads the clock",
        "READ_BEHIND": "a dynamic table that it reads is behind",
    }
)
"""Why a table is behind, as texts for messages."""

REFRESHED = "REFRESHED"
"""The outcome of a refresh that wrote."""

NOT_COMPUTED = "an incremental refresh failed"
"""The prefix of the reason why a refresh is full, if an incremental one has failed before it."""


@dataclass(frozen=True)
class DynamicStatus:
    """The status of a dynamic table. Times in milliseconds since 1970, durations in milliseconds.

    `positions`: the versions of the tables that it reads at which it equals its query; None: it was never filled. `behind_since_ms`: when
    the first commit was made that it does not show, or since when it may differ from a query that reads the clock; None: it shows all. If a
    dynamic table that it reads is behind, it is behind for at least as long. `behind_by`: why it is behind, a key of BEHIND; None: it is
    not.

    `target_ms`: how long it may be behind; None: it has no such schedule. `reads`: the dynamic tables that it reads. `sources`: the other
    tables that it reads. `missing`: the error for a table that it read at its last refresh and that no longer exists; then it counts as
    behind since that refresh. `has_failed`: whether the last refresh is known to have failed, even if the ledger no longer has its row.
    """

    table: DynamicTable
    positions: Mapping[str, int] | None
    behind_since_ms: int | None
    target_ms: int | None
    is_refreshing: bool
    reads: tuple[str, ...]
    sources: tuple[str, ...] = ()
    missing: StreamqlError | None = None
    behind_by: str | None = None
    has_failed: bool = False

    @property
    def lag_ms(self) -> int:
        """Returns how long the rows have been out of date."""
        return 0 if self.behind_since_ms is None else max(0, now_ms() - self.behind_since_ms)

    @property
    def state(self) -> str:
        """Returns ACTIVE, SUSPENDED, or EMPTY, which means that it was never filled."""
        if self.table.is_suspended:
            return "SUSPENDED"
        return "EMPTY" if self.positions is None else "ACTIVE"


def statuses(spark: SparkSession, tables: Sequence[DynamicTable] | None = None) -> list[DynamicStatus]:
    """Returns the status of tables; None: of all. Reads the versions of their source tables at once, and runs no job."""
    known = all_dynamic(spark)
    states = {t.definition.uuid: catalog_of(spark).last_read(spark, t.stream_id) for t in known}
    sources = {uid: query_of(s) for uid, s in states.items() if s is not None}
    ids = {uid: frozenset(t.table_id for _, t in source.tables) for uid, source in sources.items()}
    reads = upstream(known, ids)
    paths = {t.path for source in sources.values() for _, t in source.tables}
    now = latest_versions(spark, sorted(paths)) if paths else {}
    elsewhere = moved(spark, {t for source in sources.values() for _, t in source.tables})
    targets = target_of(known, reads)
    chosen = known if tables is None else tables
    by_id = {t.definition.uuid: t for t in known}
    order = in_order([t.definition.uuid for t in chosen if t.definition.uuid in by_id], reads)
    found: dict[str, DynamicStatus] = {}
    for uid in order:  # each table comes after those that it reads
        names = [str(by_id[other].name) for other in reads[uid]]
        status = _status(spark, by_id[uid], states[uid], now, elsewhere, targets[uid], names)
        read = [found[other].behind_since_ms for other in reads[uid] if other in found]
        since = [s for s in (status.behind_since_ms, *read) if s is not None]
        by = status.behind_by or ("READ_BEHIND" if since else None)
        found[uid] = replace(status, behind_since_ms=min(since, default=None), behind_by=by)
    return [found[t.definition.uuid] for t in chosen if t.definition.uuid in found]


def _status(
    spark: SparkSession,
    table: DynamicTable,
    state: StreamState | None,
    now: Mapping[str, LatestVersion],
    elsewhere: Container[TableSource],
    target: int | None,
    reads: Sequence[str],
) -> DynamicStatus:
    if state is None:
        return DynamicStatus(table, None, None, target, False, tuple(reads))
    at = parts_of(state.offset.position)
    since: list[int] = []
    missing: StreamqlError | None = None
    for part, source in query_of(state).tables:
        latest = now[source.path]
        is_there = latest.table_id == source.table_id and source not in elsewhere
        if is_there and latest.version <= at[part]:
            continue
        try:
            first = _first_behind(open_named(spark, source), at[part])  # it may have been renamed
        except StreamqlError as e:  # it was replaced, or no longer exists
            missing, first = e, DeltaTable(spark, table.backing.path).latest().time_ms
        since += [] if first is None else [first]
    positions = None if state.offset.initial else at
    by = "FIRST" if positions is None else "SOURCE_REPLACED" if missing else "CHANGED" if since else None
    outdated = outdated_since(spark, state, query_of(state).clock or "")
    if outdated is not None:
        since, by = [*since, outdated], by or "TIME_PASSED"
    behind = table.definition.created_at_ms if positions is None else min(since, default=None)
    sources = tuple(str(t.name) for _, t in query_of(state).tables if not t.name.object.startswith(BACKING_PREFIX))
    failed = state.claim is None and has_failed(state) is True
    is_refreshing = state.claim is not None
    return DynamicStatus(
        table, positions, behind, target, is_refreshing, tuple(reads), sources, missing, behind_by=by, has_failed=failed
    )


def _first_behind(table: OpenTable, version: int) -> int | None:
    """Returns when the first commit after a version was made that changed rows. None: there is no such commit, or the changes of all of
    them cancel out."""
    if version >= table.latest:
        return None
    log, snapshot = table.table, table.snapshot
    is_renewed = not _has_same_columns(table, version)
    for following in range(version + 1, table.latest + 1):
        try:
            (commit,) = log.commits(snapshot, following - 1, following)
        except CommitMissing:
            continue
        if is_renewed and commit.metadata is not None:
            return commit.time_ms
        if any(change.data_change for change in commit.changes):
            return commit.time_ms if is_renewed or _has_changes(table, Interval(version, table.latest)) else None
    return None


def _has_same_columns(table: OpenTable, version: int) -> bool:
    try:
        return table.has_same_columns(version, table.latest)
    except StreamqlError:  # the log no longer tells
        return True


def _has_changes(table: OpenTable, interval: Interval) -> bool:
    try:
        return table.backlog(interval, StreamMode.STANDARD).has_data
    except StreamqlError:  # the log no longer tells
        return True


def target_of(tables: Sequence[DynamicTable], reads: Mapping[str, list[str]]) -> dict[str, int | None]:
    """Returns how long each table may be behind: its target lag or interval, or, for DOWNSTREAM, the least of the tables that read it."""
    by_id = {t.definition.uuid: t for t in tables}
    read_by = readers(reads)

    def target(uid: str, seen: frozenset[str]) -> int | None:
        schedule = by_id[uid].schedule
        if not schedule.is_downstream:
            return schedule.lag_ms if schedule.lag_ms is not None else schedule.interval_ms
        below = [t for other in read_by.get(uid, ()) if other not in seen and (t := target(other, seen | {other}))]
        return min(below, default=None)

    return {uid: target(uid, frozenset({uid})) for uid in by_id}


@dataclass(frozen=True)
class Refresh:
    """A refresh in the ledger. Times in milliseconds since 1970. `why_full`: why the mode is FULL; None: it is not FULL, or the reason is
    not known. `rows`: how many rows it inserted, updated and deleted; None: not known."""

    table: str
    outcome: str
    mode: str | None
    reason: str | None
    started_ms: int
    ended_ms: int
    rows: Mapping[str, int] | None
    positions: str | None
    version: int | None
    error: str | None
    why_full: str | None = None


@dataclass(frozen=True)
class Recent:
    """The last refresh of a table. `failures`: how many refreshes have failed in a row; one that failed incrementally and then fully counts
    once. `duration_ms`: of the last one that wrote; 0: none has written. `failed_since_ms`: when the first failure in the row ended, in
    milliseconds since 1970; None: the last refresh succeeded."""

    last: Refresh
    failures: int
    duration_ms: int
    failed_since_ms: int | None = None


def newest_refreshes(spark: SparkSession, tables: Sequence[DynamicTable]) -> dict[str, Refresh]:
    """Returns the last refresh of each table, by the id of its definition. One job."""
    return {uid: recent.last for uid, recent in recent_refreshes(spark, tables).items()}


def recent_refreshes(spark: SparkSession, tables: Sequence[DynamicTable]) -> dict[str, Recent]:
    """Returns the last refresh and the failures of each table, by the id of its definition. One job."""
    rows = ledger_rows(spark, [t.stream_id for t in tables])
    if rows is None:
        return {}
    newest = F.struct(*(c for c in rows.columns if c != "stream_id"))
    is_good = F.col("outcome") == "CONSUMED"
    is_again = F.coalesce(F.get_json_object("details", "$.why_full").startswith(NOT_COMPUTED), F.lit(False))
    wrote = is_good & F.coalesce(F.get_json_object("details", "$.reason") != UNCHANGED, F.lit(True))
    duration = F.when(wrote, F.col("ended") - F.col("started"))
    found = (
        rows.groupBy("stream_id")
        .agg(
            F.max_by(newest, "sequence").alias("r"),
            F.max(F.when(is_good, F.col("sequence"))).alias("good"),
            F.max_by(duration, F.when(wrote, F.col("sequence"))).alias("duration"),
            F.collect_list(F.when(~is_good & ~is_again, F.struct("sequence", "ended"))).alias("failed"),
        )
        .withColumn("failed", F.expr("filter(failed, f -> f.sequence > coalesce(good, -1))"))
        .select("stream_id", "r.*", "duration", F.size("failed").alias("n"), F.array_min("failed.ended").alias("since"))
    )
    by_id = {t.stream_id: t for t in tables}
    return {
        by_id[r["stream_id"]].definition.uuid: Recent(
            _refresh(by_id[r["stream_id"]], r.asDict()), int(r["n"]), int(r["duration"] or 0), r["since"]
        )
        for r in found.collect()
    }


def refreshes(spark: SparkSession, tables: Sequence[DynamicTable]) -> list[Refresh]:
    """Returns all refreshes of tables in the ledger, the newest first. One job."""
    rows = ledger_rows(spark, [t.stream_id for t in tables])
    if rows is None:
        return []
    by_id = {t.stream_id: t for t in tables}
    found = sorted(rows.collect(), key=lambda r: (-(r["ended"] or 0), -r["sequence"]))
    return [_refresh(by_id[r["stream_id"]], r.asDict()) for r in found]


def ledger_rows(spark: SparkSession, streams: Sequence[str]) -> DataFrame | None:
    """Returns the ledger's rows of refreshes, by the ids of the hidden streams. None: there are none."""
    rows = catalog_of(spark).ledger(spark)
    if rows is None or not streams:
        return None
    rows = rows.where(F.col("stream_id").isin(list(streams)))
    for optional in ("positions", "details"):
        if optional not in rows.columns:
            rows = rows.withColumn(optional, F.lit(None).cast("string"))
    names = ("outcome", "details", "metrics", "changes", "positions", "target_version", "error", "sequence")
    times = (F.unix_millis("started_at").alias("started"), F.unix_millis("ended_at").alias("ended"))
    return rows.select("stream_id", *names, *times)


def _refresh(table: DynamicTable, row: Mapping[str, object]) -> Refresh:
    def read(name: str) -> dict[str, object]:
        text = row[name]
        return json.loads(text) if isinstance(text, str) else {}

    details, metrics = read("details"), read("metrics")
    through = json.loads(str(row["positions"]))[1] if row["positions"] else None
    reason = _text(details.get("reason"))
    outcome = REFRESHED if row["outcome"] == "CONSUMED" else str(row["outcome"])
    return Refresh(
        str(table.name),
        UNCHANGED if reason == UNCHANGED else outcome,
        _text(details.get("mode")),
        None if reason == UNCHANGED else reason,
        _number(row["started"]),
        _number(row["ended"]),
        rows_of(metrics),
        None if through is None else json.dumps(through, sort_keys=True),
        None if row["target_version"] is None else _number(row["target_version"]),
        _text(row["error"]),
        _text(details.get("why_full")),
    )


_METRICS = {
    "numTargetRowsInserted": "inserted",
    "numTargetRowsUpdated": "updated",
    "numTargetRowsDeleted": "deleted",
}


def rows_of(metrics: Mapping[str, object]) -> dict[str, int] | None:
    """Returns how many rows the commit of a refresh inserted, updated and deleted, by Delta's metrics. None: there are no metrics."""
    if not metrics:
        return None
    if not any(key in metrics for key in _METRICS):
        return {"inserted": _number(metrics.get("numOutputRows", 0)), "updated": 0, "deleted": 0}
    return {name: _number(metrics.get(key, 0)) for key, name in _METRICS.items()}


def _number(value: object) -> int:
    return int(str(value))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
