"""Protects the history that streams still have to read: refuses VACUUM, and extends and restores the retention of sources."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta import neutral
from streamql.delta.log import Commit, FileState
from streamql.delta.table import DeltaTable
from streamql.dialect import quote_string
from streamql.errors import StreamqlError
from streamql.model import Interval, StreamMode, TableSource, Versions
from streamql.names import Name, quote
from streamql.settings import MAX_RETENTION_EXTENSION, VACUUM_GUARD, choice, seconds
from streamql.sources.protocol import OpenSource
from streamql.sources.registry import TABLE_TYPE, open_source
from streamql.sources.tables.retention import FILE_RETENTION, LOG_RETENTION, file_retention_ms, log_retention_ms
from streamql.sources.tables.table import OpenTable, open_table
from streamql.times import DAY_MS, HOUR_MS, iso, now_ms

log = logging.getLogger("streamql")

EXTENDED = "streamql.retentionExtension"
"""The property of a source whose retention was extended for a stream that lags. Its value is JSON: the values that its owner had set
`before` (null: none), the values that were `set`, and the ids of the `catalogs` whose streams need the extension."""

EXTENDED_BY_MS = 7 * DAY_MS
"""For how long an extension keeps the history beyond the stream's present lag."""

IGNORES_RETAIN = "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled"
"""A setting of Delta, on by default. With it, VACUUM … RETAIN n uses the table's own retention in place of n, unless n rounds to 0
hours."""


@dataclass(frozen=True)
class Removal:
    """A file state that a table no longer has, because the file or its deletion vector was removed. `time_ms`: when, in milliseconds since
    1970."""

    state: FileState
    time_ms: int


def removals(commits: Sequence[Commit]) -> list[Removal]:
    """Returns the file states that these commits removed from a table and that it does not have at their end. A removal without a time
    counts as very old, as it does for VACUUM."""
    last = {change.path: change.after for commit in commits for change in commit.changes}
    found: dict[FileState, Removal] = {}
    for change in (change for commit in commits for change in commit.changes):
        before, now = change.before, last[change.path]
        if before is not None and (now is None or before.vector not in (None, now.vector)):
            found[before] = Removal(before, int(before.action.get("deletionTimestamp") or 0))
    return list(found.values())


def check_vacuum(spark: SparkSession, path: str, hours: float | None) -> None:
    """Refuses a VACUUM of the table at a path if it would remove files that a stream needs. `hours`: of RETAIN; None: the table's
    retention.

    Raises STREAM_NEEDS_FILES, unless spark.streamql.vacuumGuard is false, and INVALID_ARGUMENT.
    """
    if choice(spark, VACUUM_GUARD) == "false":
        return
    table = DeltaTable(spark, path)
    latest = table.latest()
    if not latest.exists:
        return
    try:
        states = catalog_of(spark).all(spark)
    except StreamqlError as e:  # a broken catalog must not keep users from vacuuming their tables
        log.warning("whether a stream needs files of the table could not be looked up: %s", e.message)
        return
    vacuumed = OpenTable(spark, TableSource(Name("", "", ""), path, latest.table_id), table, latest)
    streams = [(s, table_source) for s in states for table_source in _held_by(s, vacuumed)]
    if not streams:
        return
    # Remove actions that are older than the retention are no longer in the table's state, and so do not protect their files.
    retained = file_retention_ms(spark, latest.configuration)
    if hours is not None:
        asked = int(hours + 0.5) * HOUR_MS
        if asked == 0 or str(spark.conf.get(IGNORES_RETAIN, "true")).lower() != "true":
            retained = min(retained, asked)
    cutoff = now_ms() - retained
    for state, table_source in streams:
        source = OpenTable(spark, table_source, table, latest)
        removed = removed_behind(source, state)
        expired = [r for r in removed if r.time_ms < cutoff]
        lost = expired or forgotten(source, removed)
        if not lost or _is_stale(source, state):
            continue
        first = min(r.time_ms for r in lost)
        # The hint does not name data_retention_days, which would also set the log's retention, and might shorten it.
        longer = (
            f", or ALTER TABLE … SET TBLPROPERTIES ('{FILE_RETENTION}' = 'interval {-(-(now_ms() - first + DAY_MS) // DAY_MS)} days')"
            ", which helps where no checkpoint has dropped the removals yet"
        )
        raise StreamqlError(
            "STREAM_NEEDS_FILES",
            f"stream {state.name} has still to read files that were removed at {iso(first)}, and VACUUM would take them"
            + (
                ""
                if expired
                else ": a checkpoint has dropped their removals, so that the table's retention no longer holds them"
            ),
            hint=f"consume the stream first, or drop it{longer if expired else ''}; SET {VACUUM_GUARD.key} = false lets them go",
            stream=str(state.name),
            removed_at_ms=first,
        )


def _held_by(state: StreamState, table: OpenTable) -> list[TableSource]:
    """Returns [the table] if a stream needs its history: it is the stream's source, or one of the tables that the source reads. Else
    empty."""
    own = table.ref
    held = state.stream.source.holds(offset_of(state))
    return [t for t, _ in held if t.is_table(own.table_id, own.path, table.id_at)][:1]


def offset_of(state: StreamState) -> Interval:
    """Returns the offset of a stream as an interval without commits, for `SourceRef.holds` if the end of the source is not known."""
    offset = state.offset
    return Interval(offset.position, offset.position, offset.initial)


def held_tables(spark: SparkSession, source: OpenSource, interval: Interval) -> list[OpenTable]:
    """Returns the tables whose history an interval of a source needs. Raises STREAM_SOURCE_MISSING, STREAM_SOURCE_REPLACED."""
    if isinstance(source, OpenTable):
        return [source]
    return [open_table(spark, table) for table, _ in source.ref.holds(interval)]


def _waiting(table: OpenTable, state: StreamState) -> list[Versions]:
    """Returns the versions of a table that a stream still has to read, from its offset to the table's newest version."""
    parts = versions_of(table, state, offset_of(state))
    return [Versions(v.after, max(v.after, table.latest), v.initial) for v in parts]


def versions_of(table: OpenTable, state: StreamState, interval: Interval) -> list[Versions]:
    """Returns the versions of a table that an interval of a stream needs; empty if it does not need the table."""
    own = table.ref
    return [v for t, v in state.stream.source.holds(interval) if t.is_table(own.table_id, own.path)]


def removed_behind(table: OpenTable, state: StreamState) -> list[Removal]:
    """Returns the removals of file states that a stream may still have to read: all since its offset. If it has a claim, they are all since
    the begin of the claim's interval, because a resumed consumption reads that interval again."""
    uuid, claim = state.stream.uuid, state.claim
    parts = _waiting(table, state)
    if claim is not None and uuid in claim.intervals:
        parts += versions_of(table, state, claim.intervals[uuid])
    begin = min((_needs_since(state, part) for part in parts), default=table.latest)
    if begin >= table.latest:
        return []
    try:
        return removals(table.commits(Versions(begin, table.latest)))
    except StreamqlError:  # the log no longer has these commits: the stream is stale already
        return []


def _needs_since(state: StreamState, versions: Versions) -> int:
    """Returns the version since which removed files are needed. Initial rows in STANDARD mode are those of the interval's end, so nothing
    before that is needed."""
    is_of_end = versions.initial and state.stream.mode is StreamMode.STANDARD
    return versions.through if is_of_end else versions.after


def forgotten(source: OpenTable, removed: Sequence[Removal]) -> list[Removal]:
    """Returns the removals whose files no retention protects, because the table's state no longer has their remove actions."""
    if not removed:
        return []
    states = source.table.forgotten(source.snapshot, [r.state for r in removed], min(r.time_ms for r in removed))
    return [r for r in removed if r.state in set(states)]


def _is_stale(table: OpenTable, state: StreamState) -> bool:
    """Returns whether the stream is stale already, or its table is another one by now. If it cannot be read for another reason, batches of
    it may still be readable."""
    try:
        source: OpenSource = table
        if (
            table.ref.type_name != TABLE_TYPE
        ):  # rows are recognized otherwise than by their ids, so other files are needed
            source = open_source(table.spark, table.ref)
            source.check_history(state.offset, table.ref, state.name)
        for v in _waiting(table, state):
            if not v.is_empty:
                source.changes(Interval(v.after, v.through, v.initial), state.stream.mode)
    except StreamqlError as e:
        return e.code in ("STREAM_STALE", "STREAM_SOURCE_REPLACED")
    return False


def extend(spark: SparkSession, source: OpenTable, lag_ms: int) -> int | None:
    """Extends the retention of a source to the lag of a stream plus EXTENDED_BY_MS, in whole days, but not beyond
    `spark.streamql.maxRetentionExtension`. Returns the days. None: the source keeps its history for so long already, or the limit is too
    low.

    This commits metadata, which makes concurrent writers fail. So a read never does it, and one lag causes it at most once.
    """
    days_max = int(seconds(spark, MAX_RETENTION_EXTENSION) * 1000 // DAY_MS)
    days = min(-(-(lag_ms + EXTENDED_BY_MS) // DAY_MS), days_max)
    latest = source.snapshot
    short = [
        key
        for key, ms in (
            (FILE_RETENTION, file_retention_ms(spark, latest.configuration)),
            (LOG_RETENTION, log_retention_ms(spark, latest.configuration)),
        )
        if ms < days * DAY_MS
    ]
    if not short or days * DAY_MS <= lag_ms:
        return None
    had = extension_of(source) or Extension({}, frozenset())
    before = {key: had.before.get(key, latest.configuration.get(key)) for key in {*had.before, *short}}
    wanted = dict.fromkeys(short, f"interval {days} days")
    now = {key: wanted.get(key, latest.configuration.get(key)) for key in before}
    noted = {"before": before, "set": now, "catalogs": sorted({*had.catalogs, catalog_of(spark).table_id})}
    _set(spark, source, wanted | {EXTENDED: json.dumps(noted, sort_keys=True)})
    return days


@dataclass(frozen=True)
class Extension:
    """An extension of a source's retention. `before`: the former values of the properties that the owner has not changed since; None: it
    was not set. `catalogs`: the ids of the catalogs whose streams need the extension."""

    before: Mapping[str, str | None]
    catalogs: frozenset[str]


def extension_of(source: OpenTable) -> Extension | None:
    """Returns the extension of a source's retention; None: there is none."""
    text = source.snapshot.configuration.get(EXTENDED)
    if text is None:
        return None
    try:
        noted = json.loads(text)
        before, ours = noted["before"], noted["set"]
        now = source.snapshot.configuration
        kept = {k: before[k] for k in (FILE_RETENTION, LOG_RETENTION) if k in before and now.get(k) == ours.get(k)}
        return Extension(kept, frozenset(map(str, noted.get("catalogs", ()))))
    except (ValueError, TypeError, KeyError):  # the property was edited by hand, so the former values are not known
        return Extension({}, frozenset())


def is_ours(spark: SparkSession, extension: Extension) -> bool:
    """Returns whether this session's catalog may revert an extension. If the extension notes no catalog, any may."""
    return not extension.catalogs or has_joined(spark, extension)


def has_joined(spark: SparkSession, extension: Extension) -> bool:
    """Returns whether an extension notes that this session's catalog needs it."""
    return catalog_of(spark).table_id in extension.catalogs


def join(spark: SparkSession, source: OpenTable, extension: Extension) -> None:
    """Notes that this session's catalog needs an extension, too. Otherwise the doctor of the catalog that made it would revert it."""
    catalogs = extension.catalogs | {catalog_of(spark).table_id}
    noted = json.loads(source.snapshot.configuration[EXTENDED]) | {"catalogs": sorted(catalogs)}
    _set(spark, source, {EXTENDED: json.dumps(noted, sort_keys=True)})


def revert(spark: SparkSession, source: OpenTable, extension: Extension) -> bool:
    """Reverts an extension that this session's catalog no longer needs. Returns False if other catalogs need it, so that it stays."""
    others = extension.catalogs - {catalog_of(spark).table_id}
    if others:
        noted = json.loads(source.snapshot.configuration[EXTENDED]) | {"catalogs": sorted(others)}
        _set(spark, source, {EXTENDED: json.dumps(noted, sort_keys=True)})
        return False
    before = extension.before
    _set(spark, source, {key: value for key, value in before.items() if value is not None})
    gone = ", ".join(quote_string(key) for key in (*(k for k, v in before.items() if v is None), EXTENDED))
    neutral.run(spark, f"ALTER TABLE {_sql(source)} UNSET TBLPROPERTIES ({gone})")
    return True


def _sql(source: OpenTable) -> str:
    """Returns how SQL names the table by its path, because its name may stand for another table now, or in another metastore."""
    return f"spark_catalog.delta.{quote(source.table.path)}"


def _set(spark: SparkSession, source: OpenTable, properties: dict[str, str]) -> None:
    if properties:
        listed = ", ".join(f"{quote_string(k)} = {quote_string(v)}" for k, v in properties.items())
        neutral.run(spark, f"ALTER TABLE {_sql(source)} SET TBLPROPERTIES ({listed})")
