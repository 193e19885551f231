"""How long a source's history lasts, and what of it streams have still to read."""

from __future__ import annotations

import json
import logging
from collections.abc import Container, Sequence

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of, now_ms
from streamql.delta.log import Commit
from streamql.delta.table import DeltaTable, iso
from streamql.dialect import quote_string
from streamql.errors import StreamqlError
from streamql.model import Interval
from streamql.settings import MAX_RETENTION_EXTENSION, VACUUM_GUARD, is_on, seconds
from streamql.sources.table import FILE_RETENTION, LOG_RETENTION, OpenSource, file_retention_ms, log_retention_ms

log = logging.getLogger("streamql")

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

EXTENDED = "streamql.retentionBeforeExtension"
"""Property of a source whose retention was extended for a stream that lags: what its owner had set, as JSON (null: nothing)."""


def is_stale_soon(first_ms: int, retention: int) -> bool:
    """Whether a commit of that time, of a source that keeps its history for so long (both in milliseconds), may be gone in a day, or in
    a quarter of that."""
    return first_ms + retention - now_ms() <= min(DAY_MS, retention // 4)


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
    table_keeps = file_retention_ms(latest.configuration)
    retained = table_keeps if hours is None else min(table_keeps, int(hours * HOUR_MS))
    cutoff = now_ms() - retained
    for state in streams:
        needed = _needed_since(OpenSource(spark, state.stream.source, table, latest), state)
        if needed is not None and needed < cutoff:
            raise StreamqlError(
                "STREAM_NEEDS_FILES",
                f"stream {state.name} has still to read files that were removed at {iso(needed)}, and VACUUM would take them",
                hint=f"consume the stream first, retain {-(-(now_ms() - needed) // HOUR_MS)} hours, or SET {VACUUM_GUARD.key} = false",
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
        commits = source.commits(Interval(interval.after, source.latest.version))
        if interval.initial:  # the table as it was, whole
            return first_needed_removal_ms(commits, {c.path for commit in commits for c in commit.changes})
        plan = source.plan(interval, state.stream.mode)
        needed = {f.path for f in plan.perishable}
        if interval.through < source.latest.version:  # what was there at its end may be gone by now
            needed |= {p.file.path for p in (*plan.inserted, *plan.pieces)}
        return first_needed_removal_ms(commits, needed)
    except StreamqlError:  # it is stale already: nothing is left to be protected
        return None


def extend(spark: SparkSession, source: OpenSource, wanted_ms: int) -> int | None:
    """Makes a source keep its history for so long, in whole days, at most spark.streamql.maxRetentionExtension; the days. None: it keeps
    it for so long already, or may not be made to.

    A metadata commit, which makes writers that are about to commit fail: never done by reading, and at most once a lag.
    """
    days_max = int(seconds(spark, MAX_RETENTION_EXTENSION) * 1000 // DAY_MS)
    days = min(-(-wanted_ms // DAY_MS), days_max)
    latest = source.latest
    short = [
        key
        for key, ms in (
            (FILE_RETENTION, file_retention_ms(latest.configuration)),
            (LOG_RETENTION, log_retention_ms(latest.configuration)),
        )
        if ms < days * DAY_MS
    ]
    if not short:
        return None
    had = json.loads(latest.configuration.get(EXTENDED, "{}"))
    before = {key: had.get(key, latest.configuration.get(key)) for key in {*had, *short}}
    properties = dict.fromkeys(short, f"interval {days} days") | {EXTENDED: json.dumps(before, sort_keys=True)}
    _set(spark, source, properties)
    return days


def before_extension(source: OpenSource) -> dict[str, str | None] | None:
    """The retention that the source's owner had set; None: it was not extended."""
    text = source.latest.configuration.get(EXTENDED)
    if text is None:
        return None
    try:
        had = json.loads(text)
        return {key: had[key] for key in (FILE_RETENTION, LOG_RETENTION) if key in had}
    except (ValueError, TypeError):  # somebody edited it: there is nothing to go back to
        return {}


def revert(spark: SparkSession, source: OpenSource, before: dict[str, str | None]) -> None:
    """Takes an extension back."""
    _set(spark, source, {key: value for key, value in before.items() if value is not None})
    gone = ", ".join(quote_string(key) for key in (*(k for k, v in before.items() if v is None), EXTENDED))
    spark.sql(f"ALTER TABLE {source.source.name.sql} UNSET TBLPROPERTIES ({gone})")


def _set(spark: SparkSession, source: OpenSource, properties: dict[str, str]) -> None:
    if properties:
        listed = ", ".join(f"{quote_string(k)} = {quote_string(v)}" for k, v in properties.items())
        spark.sql(f"ALTER TABLE {source.source.name.sql} SET TBLPROPERTIES ({listed})")
