"""How long a source's history lasts, and what of it streams have still to read."""

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
from streamql.names import quote
from streamql.settings import MAX_RETENTION_EXTENSION, VACUUM_GUARD, choice, seconds
from streamql.sources.protocol import OpenSource
from streamql.sources.tables.retention import FILE_RETENTION, LOG_RETENTION, file_retention_ms, log_retention_ms
from streamql.sources.tables.table import OpenTable, open_table
from streamql.times import DAY_MS, HOUR_MS, iso, now_ms

log = logging.getLogger("streamql")

EXTENDED = "streamql.retentionExtension"
"""Property of a source whose retention was extended for a stream that lags, JSON: what its owner had set `before` (null: nothing), what was
`set`, and the ids of the `catalogs` that have streams it was set for."""

EXTENDED_BY_MS = 7 * DAY_MS
"""How much more time a stream gets that is about to go stale."""

IGNORES_RETAIN = "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled"
"""Setting of Delta, by default on: VACUUM … RETAIN n goes by the table's own retention, unless n is 0 in whole hours."""


@dataclass(frozen=True)
class Removal:
    """A file, or a deletion vector of one, that a table no longer has: its last state, and when it was removed, in milliseconds."""

    state: FileState
    time_ms: int


def removals(commits: Sequence[Commit]) -> list[Removal]:
    """Returns what these commits took from a table and, at their end, it has not got back. A removal that does not say when it was counts
    as very old, as it does for VACUUM."""
    last = {change.path: change.after for commit in commits for change in commit.changes}
    found: dict[FileState, Removal] = {}
    for change in (change for commit in commits for change in commit.changes):
        before, now = change.before, last[change.path]
        if before is not None and (now is None or before.vector not in (None, now.vector)):
            found[before] = Removal(before, int(before.action.get("deletionTimestamp") or 0))
    return list(found.values())


def check_vacuum(spark: SparkSession, path: str, hours: float | None) -> None:
    """Refuses a VACUUM of the table at a path that would take files from a stream. `hours`: what it retains; None: the table's setting.

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
    except StreamqlError as e:  # tables without streams are to be vacuumed all the same
        log.warning("whether a stream needs files of the table could not be looked up: %s", e.message)
        return
    streams = [(s, table_source) for s in states for table_source in _held_by(s, latest.table_id)]
    if not streams:
        return
    # A removal that is older than what the table keeps is no longer in its state, and does not protect its file.
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
        # Not data_retention_days, which would have the log kept for so long only, too.
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


def _held_by(state: StreamState, table_id: str) -> list[TableSource]:
    """Returns a table, if a stream needs its history: it is the stream's source, or one of the tables behind that."""
    return [table for table, _ in state.stream.source.holds(offset_of(state)) if table.table_id == table_id][:1]


def offset_of(state: StreamState) -> Interval:
    """Returns the offset of a stream as an interval without commits: what `holds` takes if the end of the source is not known."""
    offset = state.offset
    return Interval(offset.position, offset.position, offset.initial)


def held_tables(spark: SparkSession, source: OpenSource, interval: Interval) -> list[OpenTable]:
    """Returns the tables whose history an interval of a source needs. Raises STREAM_SOURCE_MISSING, STREAM_SOURCE_REPLACED."""
    if isinstance(source, OpenTable):
        return [source]
    return [open_table(spark, table) for table, _ in source.ref.holds(interval)]


def _waiting(table: OpenTable, state: StreamState) -> list[Versions]:
    """Returns what a stream has still to read of a table: from its offset to the table's end."""
    parts = versions_of(table, state, offset_of(state))
    return [Versions(v.after, max(v.after, table.latest), v.initial) for v in parts]


def versions_of(table: OpenTable, state: StreamState, interval: Interval) -> list[Versions]:
    """Returns the versions of a table that an interval of a stream needs; none if the stream does not need the table."""
    return [v for t, v in state.stream.source.holds(interval) if t.table_id == table.ref.table_id]


def removed_behind(table: OpenTable, state: StreamState) -> list[Removal]:
    """Returns what went from a table that a stream may have still to read, if only in batches: all since its offset, or since the begin of
    an partially committed consumption, which is read again as it was."""
    uuid, claim = state.stream.uuid, state.claim
    parts = _waiting(table, state)
    if claim is not None and uuid in claim.intervals:
        parts += versions_of(table, state, claim.intervals[uuid])
    begin = min((_needs_since(state, part) for part in parts), default=table.latest)
    if begin >= table.latest:
        return []
    try:
        return removals(table.commits(Versions(begin, table.latest)))
    except StreamqlError:  # the log does not reach back: it is stale, and nothing is left to be protected
        return []


def _needs_since(state: StreamState, versions: Versions) -> int:
    """Returns the version from which on nothing may go: initial rows are in STANDARD mode those of the interval's end."""
    is_of_end = versions.initial and state.stream.mode is StreamMode.STANDARD
    return versions.through if is_of_end else versions.after


def forgotten(source: OpenTable, removed: Sequence[Removal]) -> list[Removal]:
    """Returns those whose files no retention protects any longer."""
    if not removed:
        return []
    states = source.table.forgotten(source.snapshot, [r.state for r in removed], min(r.time_ms for r in removed))
    return [r for r in removed if r.state in set(states)]


def _is_stale(table: OpenTable, state: StreamState) -> bool:
    """Returns whether what the stream needs is gone already. One that cannot be read for another reason may yet be, in batches."""
    try:
        for v in _waiting(table, state):
            if not v.is_empty:
                table.changes(Interval(v.after, v.through, v.initial), state.stream.mode)
    except StreamqlError as e:
        return e.code == "STREAM_STALE"
    return False


def extend(spark: SparkSession, source: OpenTable, lag_ms: int) -> int | None:
    """Makes a source keep its history for as long as a stream lags and EXTENDED_BY_MS more, in whole days, at most
    spark.streamql.maxRetentionExtension; the days. None: it keeps it for so long already, or may not be made to.

    A metadata commit, which makes writers that are about to commit fail: never done by reading, and at most once a lag.
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
    """A retention that was extended. `before`: what the source's owner had set, of what is still as the extension left it: what the owner
    has set since stays. `catalogs`: ids of those that have the streams it was made for."""

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
    except (ValueError, TypeError, KeyError):  # it was edited by hand: there is nothing to go back to
        return Extension({}, frozenset())


def is_ours(spark: SparkSession, extension: Extension) -> bool:
    """Returns whether it is for this session's catalog to take an extension back; one without an owner may be taken back by any."""
    return not extension.catalogs or has_joined(spark, extension)


def has_joined(spark: SparkSession, extension: Extension) -> bool:
    """Returns whether an extension is noted as needed by this session's catalog."""
    return catalog_of(spark).table_id in extension.catalogs


def join(spark: SparkSession, source: OpenTable, extension: Extension) -> None:
    """Notes that this session's catalog needs an extension, too, which another's doctor made and would take back."""
    catalogs = extension.catalogs | {catalog_of(spark).table_id}
    noted = json.loads(source.snapshot.configuration[EXTENDED]) | {"catalogs": sorted(catalogs)}
    _set(spark, source, {EXTENDED: json.dumps(noted, sort_keys=True)})


def revert(spark: SparkSession, source: OpenTable, extension: Extension) -> bool:
    """Takes an extension back as far as this session's catalog is concerned. False: others need it, and it stays for them."""
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
    """Returns the very table, whatever has its name by now, here or in another metastore."""
    return f"spark_catalog.delta.{quote(source.table.path)}"


def _set(spark: SparkSession, source: OpenTable, properties: dict[str, str]) -> None:
    if properties:
        listed = ", ".join(f"{quote_string(k)} = {quote_string(v)}" for k, v in properties.items())
        neutral.run(spark, f"ALTER TABLE {_sql(source)} SET TBLPROPERTIES ({listed})")
