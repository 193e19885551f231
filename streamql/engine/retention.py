"""How long a source's history lasts, and what of it streams have still to read."""

from __future__ import annotations

import json
import logging
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.log import Commit
from streamql.delta.table import DeltaTable
from streamql.dialect import quote_string
from streamql.errors import StreamqlError
from streamql.model import Interval, StreamMode
from streamql.names import quote
from streamql.settings import MAX_RETENTION_EXTENSION, VACUUM_GUARD, is_on, seconds
from streamql.sources.table import FILE_RETENTION, LOG_RETENTION, OpenSource, file_retention_ms, log_retention_ms
from streamql.times import DAY_MS, HOUR_MS, iso, now_ms

log = logging.getLogger("streamql")

EXTENDED = "streamql.retentionExtension"
"""Property of a source whose retention was extended for a stream that lags, JSON: what its owner had set `before` (null: nothing), what was
`set`, and the ids of the `catalogs` that have streams it was set for."""

EXTENDED_BY_MS = 7 * DAY_MS
"""How much more time a stream gets that is about to go stale."""

IGNORES_RETAIN = "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled"
"""Setting of Delta, by default on: VACUUM … RETAIN n goes by the table's own retention, unless n is 0 in whole hours."""


def first_needed_removal_ms(commits: Sequence[Commit], needed: Container[str]) -> int | None:
    """When the first of the files was removed, or got another deletion vector, that a stream behind these commits has still to read;
    None: none was."""
    times = [
        min(c.time_ms, int(change.before.action.get("deletionTimestamp") or c.time_ms))
        for c in commits
        for change in c.changes
        if change.before is not None
        and change.path in needed
        and (change.after is None or change.before.vector is not None)
    ]
    return min(times, default=None)


def check_vacuum(spark: SparkSession, path: str, hours: float | None) -> None:
    """Refuses a VACUUM of the table at a path that would take files from a stream. `hours`: what it retains; None: the table's setting.

    Raises STREAM_NEEDS_FILES, unless spark.streamql.vacuumGuard is false.
    """
    if not is_on(spark, VACUUM_GUARD):
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
    streams = [s for s in states if s.stream.source.table_id == latest.table_id]
    if not streams:
        return
    # A removal that is older than what the table keeps is not in its state any more, and does not protect its file.
    retained = file_retention_ms(spark, latest.configuration)
    if hours is not None:
        asked = int(hours + 0.5) * HOUR_MS
        if asked == 0 or str(spark.conf.get(IGNORES_RETAIN, "true")).lower() != "true":
            retained = min(retained, asked)
    cutoff = now_ms() - retained
    for state in streams:
        needed = _needed_since(OpenSource(spark, state.stream.source, table, latest), state)
        if needed is not None and needed < cutoff:
            raise StreamqlError(
                "STREAM_NEEDS_FILES",
                f"stream {state.name} has still to read files that were removed at {iso(needed)}, and VACUUM would take them",
                # Not data_retention_days, which would have the log kept for so long only, too.
                hint=f"consume the stream first, or ALTER TABLE … SET TBLPROPERTIES ('{FILE_RETENTION}' = "
                f"'interval {-(-(now_ms() - needed + DAY_MS) // DAY_MS)} days'); SET {VACUUM_GUARD.key} = false lets them go",
                stream=str(state.name),
                removed_at_ms=needed,
            )


def _needed_since(source: OpenSource, state: StreamState) -> int | None:
    """When the first file was removed that the stream has still to read: for all since its offset, or for what an unfinished consumption
    took, which is read again as it was."""
    uuid, claim = state.stream.uuid, state.claim
    taken = [] if claim is None or uuid not in claim.intervals else [claim.intervals[uuid]]
    if state.offset.version < source.latest.version:
        taken.append(Interval(state.offset.version, source.latest.version, state.offset.initial))
    needed = [at_ms for interval in taken if (at_ms := _needed_in(source, state, interval)) is not None]
    return min(needed, default=None)


def _needed_in(source: OpenSource, state: StreamState, interval: Interval) -> int | None:
    if interval.is_empty:
        return None
    try:
        if interval.initial and state.stream.mode is StreamMode.STANDARD:  # the table as it is at the interval's end
            commits = source.commits(Interval(interval.through, source.latest.version))
            return first_needed_removal_ms(commits, {c.path for commit in commits for c in commit.changes})
        commits = source.commits(Interval(interval.after, source.latest.version))
        if interval.initial:  # the table as it was, and what was appended since
            return first_needed_removal_ms(commits, {c.path for commit in commits for c in commit.changes})
        plan = source.plan(interval, state.stream.mode)
        needed = {f.path for f in plan.perishable}
        if interval.through < source.latest.version:  # what was there at its end may be gone by now
            needed |= {p.file.path for p in (*plan.inserted, *plan.pieces)}
        return first_needed_removal_ms(commits, needed)
    except StreamqlError:  # it is stale already: nothing is left to be protected
        return None


def extend(spark: SparkSession, source: OpenSource, lag_ms: int) -> int | None:
    """Makes a source keep its history for as long as a stream lags and EXTENDED_BY_MS more, in whole days, at most
    spark.streamql.maxRetentionExtension; the days. None: it keeps it for so long already, or may not be made to.

    A metadata commit, which makes writers that are about to commit fail: never done by reading, and at most once a lag.
    """
    days_max = int(seconds(spark, MAX_RETENTION_EXTENSION) * 1000 // DAY_MS)
    days = min(-(-(lag_ms + EXTENDED_BY_MS) // DAY_MS), days_max)
    latest = source.latest
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


def extension_of(source: OpenSource) -> Extension | None:
    """The extension of a source's retention; None: there is none."""
    text = source.latest.configuration.get(EXTENDED)
    if text is None:
        return None
    try:
        noted = json.loads(text)
        before, ours = noted["before"], noted["set"]
        now = source.latest.configuration
        kept = {k: before[k] for k in (FILE_RETENTION, LOG_RETENTION) if k in before and now.get(k) == ours.get(k)}
        return Extension(kept, frozenset(map(str, noted.get("catalogs", ()))))
    except (ValueError, TypeError, KeyError):  # somebody edited it: there is nothing to go back to
        return Extension({}, frozenset())


def is_ours(spark: SparkSession, extension: Extension) -> bool:
    """Whether it is for this session's catalog to take an extension back; that of nobody is anybody's."""
    return not extension.catalogs or catalog_of(spark).table_id in extension.catalogs


def revert(spark: SparkSession, source: OpenSource, extension: Extension) -> bool:
    """Takes an extension back as far as this session's catalog is concerned. False: others need it, and it stays for them."""
    others = extension.catalogs - {catalog_of(spark).table_id}
    if others:
        noted = json.loads(source.latest.configuration[EXTENDED]) | {"catalogs": sorted(others)}
        _set(spark, source, {EXTENDED: json.dumps(noted, sort_keys=True)})
        return False
    before = extension.before
    _set(spark, source, {key: value for key, value in before.items() if value is not None})
    gone = ", ".join(quote_string(key) for key in (*(k for k, v in before.items() if v is None), EXTENDED))
    spark.sql(f"ALTER TABLE {_sql(source)} UNSET TBLPROPERTIES ({gone})")
    return True


def _sql(source: OpenSource) -> str:
    """The very table, whatever has its name by now, here or in another metastore."""
    return f"delta.{quote(source.table.path)}"


def _set(spark: SparkSession, source: OpenSource, properties: dict[str, str]) -> None:
    if properties:
        listed = ", ".join(f"{quote_string(k)} = {quote_string(v)}" for k, v in properties.items())
        spark.sql(f"ALTER TABLE {_sql(source)} SET TBLPROPERTIES ({listed})")
