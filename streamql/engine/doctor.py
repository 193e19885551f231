"""Looks at every stream, claim and offset, says what is wrong and what to do, and repairs what can be repaired without a choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, StreamState
from streamql.catalog.store import catalog_of, now_ms
from streamql.consume.claims import is_abandoned, recover
from streamql.delta.table import iso
from streamql.engine.retention import DAY_MS, before_extension, extend, is_stale_soon, revert
from streamql.errors import StreamqlError
from streamql.model import Interval
from streamql.reading import interval_now
from streamql.settings import MAX_RETENTION_EXTENSION
from streamql.sources.table import OpenSource, open_source, retention_ms

EXTENDED_BY_MS = 7 * DAY_MS
"""How much more time a stream gets that is about to go stale."""

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, or will be: with which stream (or the catalog), and what to do. `is_fixed`: it has been done."""

    subject: str
    severity: Severity
    code: str
    what: str
    remedy: str
    is_fixed: bool = False


def examine(spark: SparkSession, *, fix: bool = False) -> list[Finding]:
    """All findings. `fix`: claims that a dead process left are decided by their targets' logs and ended, as the next consumer would;
    sources keep for longer what streams that lag have still to read, and no longer so once these have caught up; the ledger is made small.
    """
    try:
        states = catalog_of(spark).all(spark)
    except StreamqlError as e:
        return [_finding("(catalog)", e)]
    findings = [
        Finding(
            "(catalog)",
            "error",
            "CATALOG_UNREADABLE",
            what,
            "CREATE OR REPLACE the stream, from the offset that its ledger shows",
        )
        for what in catalog_of(spark).contradictions()
    ]
    if catalog_of(spark).lacks_views(spark, fix=fix):
        what = "the views of the catalog, which people read, are missing"
        remedy = "made again" if fix else "streamql doctor --fix makes them again; streams do not need them"
        findings.append(Finding("(catalog)", "warning", "CATALOG_UNREADABLE", what, remedy, is_fixed=fix))
    for state in states:
        findings += _claim(spark, state, fix)
        findings += _source(spark, state, fix)
    if fix:
        catalog_of(spark).tend(spark)
    return findings + _extensions(spark, states, fix)


def _finding(subject: str, e: StreamqlError) -> Finding:
    return Finding(subject, "error", e.code, e.message, e.hint)


def _claim(spark: SparkSession, state: StreamState, fix: bool) -> list[Finding]:
    claim, name = state.claim, str(state.name)
    if claim is None:
        return []
    if claim.is_unfinished:
        what = f"a transaction of {_owner(claim)} stopped half way: it has written {claim.where_done}"
        remedy = "run the same transaction again; or RESTORE the targets, then ALTER STREAM … RELEASE"
        return [Finding(name, "error", "CONSUMPTION_UNFINISHED", what, remedy)]
    why = is_abandoned(spark, claim)
    if why is None:
        return []
    what = f"a consumption of {_owner(claim)} was left behind: {why}"
    remedy = "the next consumer decides it; streamql doctor --fix does so now"
    if not fix:
        return [Finding(name, "warning", "STREAM_BUSY", what, remedy)]
    try:
        recover(spark, claim, why)
    except StreamqlError as e:
        return [_finding(name, e)]
    after = catalog_of(spark).by_uuid(spark, state.stream.uuid)
    if after is not None and after.claim is not None and after.claim.is_unfinished:
        return _claim(spark, after, fix=False)
    return [Finding(name, "warning", "STREAM_BUSY", what, "decided by its target's log, and ended", is_fixed=True)]


def _owner(claim: Claim) -> str:
    return f"{claim.owner.who}, process {claim.owner.pid}, begun {iso(claim.started_at_ms)}"


def _source(spark: SparkSession, state: StreamState, fix: bool) -> list[Finding]:
    name = str(state.name)
    try:
        source = open_source(spark, state.stream.source)
        interval = interval_now(spark, state, source)
        if source.latest.configuration.get("delta.enableRowTracking") != "true":
            what = f"{source.source.name} has change tracking off"
            remedy = f"ALTER TABLE {source.source.name} SET PROPERTIES ('change_tracking' = 'true'), then CREATE OR REPLACE the stream"
            return [Finding(name, "error", "CHANGE_TRACKING_DISABLED", what, remedy)]
        if interval.is_empty:
            return []
        source.changes(interval, state.stream.mode)  # lazy: the log is read and the files are looked for, no row is
        return _stale_soon(spark, name, source, interval, fix)
    except StreamqlError as e:
        return [_finding(name, e)]
    except Exception as e:  # storage's own: the other streams are looked at all the same
        what = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
        return [Finding(name, "error", "STREAM_INVALID", what, f"look whether {state.stream.source.path} can be read")]


def _stale_soon(spark: SparkSession, name: str, source: OpenSource, interval: Interval, fix: bool) -> list[Finding]:
    """A warning where history that the stream needs may go soon. `fix`: it is kept for longer."""
    first = _first_ms(source, interval)
    retention = retention_ms(source.latest.configuration)
    if first is None or not is_stale_soon(first, retention):
        return []
    when = f"since {iso(first + retention)}" if first + retention <= now_ms() else f"at {iso(first + retention)}"
    what = f"what it has still to read may be removed by VACUUM and log cleanup {when}"
    wanted = now_ms() - first + EXTENDED_BY_MS
    remedy = (
        f"consume it, or ALTER TABLE {source.source.name} SET PROPERTIES ('data_retention_days' = '{-(-wanted // DAY_MS)}'); "
        f"streamql doctor --fix does so for as long as it lags, up to {MAX_RETENTION_EXTENSION.key}"
    )
    days = extend(spark, source, wanted) if fix else None
    if days is None:
        return [Finding(name, "warning", "STREAM_STALE", what, remedy)]
    done = f"{source.source.name} keeps its history for {days} days now, until the stream has caught up; consume it"
    return [Finding(name, "warning", "STREAM_STALE", what, done, is_fixed=True)]


def _first_ms(source: OpenSource, interval: Interval) -> int | None:
    """When the first commit was made that a stream has still to read; None: there is none."""
    if interval.after >= interval.through:
        return None
    return source.commits(Interval(interval.after, interval.after + 1))[0].time_ms


def _extensions(spark: SparkSession, states: Sequence[StreamState], fix: bool) -> list[Finding]:
    """Sources that keep their history for longer than their owners said, though no stream needs that any more."""
    findings = []
    by_source: dict[str, list[StreamState]] = {}
    for state in states:
        by_source.setdefault(state.stream.source.table_id, []).append(state)
    for streams in by_source.values():
        try:
            source = open_source(spark, streams[0].stream.source)
            before = before_extension(source)
            if before is None or any(_needs_extension(spark, source, s, before) for s in streams):
                continue
            name = str(source.source.name)
            what = "its history was kept for longer while a stream lagged; all of them have caught up"
            if fix:
                revert(spark, source, before)
            remedy = "its own retention is in force again" if fix else "streamql doctor --fix takes that back"
            findings.append(Finding(name, "warning", "RETENTION_EXTENDED", what, remedy, is_fixed=fix))
        except StreamqlError:  # the stream's own finding tells
            continue
    return findings


def _needs_extension(
    spark: SparkSession, source: OpenSource, state: StreamState, before: Mapping[str, str | None]
) -> bool:
    own = {k: v for k, v in {**source.latest.configuration, **before}.items() if v is not None}
    first = _first_ms(source, interval_now(spark, state, source))
    return first is not None and is_stale_soon(first, retention_ms(own))
