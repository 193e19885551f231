"""Looks at every stream, claim and offset, says what is wrong and what to do, and repairs what can be repaired without a choice."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import SparkSession

from streamql import dialect
from streamql.catalog.events import stream_event
from streamql.catalog.rows import sources_of_dropped, told_wrongly
from streamql.catalog.states import Claim, StreamState
from streamql.catalog.store import catalog_of, user_of
from streamql.consume.claims.liveness import is_abandoned, watch
from streamql.consume.claims.owner import is_of_this_host, is_suspended
from streamql.consume.claims.waiting import check_recovered, recover
from streamql.delta.jvm import sentence
from streamql.delta.names import qualify
from streamql.engine.reads import named_table
from streamql.engine.retention import (
    EXTENDED_BY_MS,
    Extension,
    extend,
    extension_of,
    forgotten,
    has_joined,
    held_tables,
    is_ours,
    join,
    offset_of,
    removed_behind,
    revert,
    versions_of,
)
from streamql.errors import StreamqlError
from streamql.model import Interval, TableSource
from streamql.reading import interval_now
from streamql.settings import MAX_RETENTION_EXTENSION
from streamql.sources.protocol import Expiry, OpenSource
from streamql.sources.registry import open_source
from streamql.sources.retention import file_retention_ms, history_ms, log_retention_ms
from streamql.sources.table import TRACKING_LINE, OpenTable, open_table
from streamql.times import DAY_MS, iso, now_ms

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
            "DROP STREAM takes such a name away; CREATE OR REPLACE the stream, from the offset that its ledger shows",
        )
        for what in catalog_of(spark).contradictions()
    ]
    findings += [_finding("(catalog)", e) for e in catalog_of(spark).unreadable()]
    findings += _views(spark, fix)
    findings += _rows(spark, states, fix)
    if fix:
        watch(spark, [s.claim for s in states if s.claim is not None and not s.claim.is_partially_committed])
    for state in states:
        findings += _claim(spark, state, fix)
    states = catalog_of(spark).all(spark)  # some may stand elsewhere now
    for state in states:
        findings += _source(spark, state, fix)
    return findings + _extensions(spark, states, fix) + (_tended(spark) if fix else [])


def _views(spark: SparkSession, fix: bool) -> list[Finding]:
    """The views of the catalog, if they are missing or outdated. `fix`: they are made."""
    what = "the views of the catalog are missing or outdated"
    try:
        if not catalog_of(spark).lacks_views(spark, fix=fix):
            return []
        remedy = "made again" if fix else "streamql doctor --fix makes them again; streams do not need them"
        return [Finding("(catalog)", "warning", "CATALOG_UNREADABLE", what, remedy, is_fixed=fix)]
    except Exception as e:  # who may not make views
        remedy = "streams do not need them"
        return [
            Finding("(catalog)", "warning", "CATALOG_UNREADABLE", f"{what}, and cannot be made: {sentence(e)}", remedy)
        ]


def _rows(spark: SparkSession, states: Sequence[StreamState], fix: bool) -> list[Finding]:
    """Streams that the rows for people show elsewhere than they are. `fix`: a row is added that shows it; the others stay."""
    catalog, findings = catalog_of(spark), []
    try:
        events = catalog.events(spark)
        wrong = {} if events is None else told_wrongly(events, states)
    except Exception as e:
        what = f"the rows of the catalog cannot be read: {sentence(e)}"
        return [Finding("(catalog)", "warning", "CATALOG_UNREADABLE", what, "streams do not need them; people do")]
    for state in [s for s in states if s.stream.uuid in wrong]:
        if catalog.by_uuid(spark, state.stream.uuid) != state:
            continue  # it moved while the rows were read
        shown = wrong[state.stream.uuid]
        told = "do not show it" if shown.version is None else f"show it at version {shown.version}"
        what = f"the rows of the catalog {told}, though it is at {state.offset.position}: somebody edited them"
        # A row with a later number than the state's would still be the newest; and no new number may make an offset trusted that is not.
        is_plain = state.claim is None and shown.sequence <= state.sequence and not catalog.was_restored(state)
        done = fix and is_plain and _told_anew(spark, state)
        remedy = (
            "a row was added that shows it"
            if done
            else "streams do not need them; streamql doctor --fix adds a row that shows it"
        )
        findings.append(Finding(str(state.name), "warning", "CATALOG_UNREADABLE", what, remedy, is_fixed=done))
    return findings


def _told_anew(spark: SparkSession, state: StreamState) -> bool:
    said = stream_event("altered", state.next(), now_ms(), user_of(spark), "streamql doctor --fix")
    try:
        return catalog_of(spark).commit(spark, [state], [state.next()], [said])
    except Exception:  # who may not write the catalog
        return False


def _tended(spark: SparkSession) -> list[Finding]:
    """Keeps the ledger small; a finding where that fails, as for who may read the catalog and not write it."""
    try:
        catalog_of(spark).tend(spark)
    except Exception as e:
        remedy = "streams go on without; it is tried again every some hundred consumptions"
        return [
            Finding(
                "(catalog)", "warning", "CATALOG_UNREADABLE", f"the ledger was not made small: {sentence(e)}", remedy
            )
        ]
    return []


def _finding(subject: str, e: StreamqlError) -> Finding:
    return Finding(subject, "error", e.code, e.message, e.hint)


def _claim(spark: SparkSession, state: StreamState, fix: bool) -> list[Finding]:
    name = str(state.name)
    now = None if state.claim is None else catalog_of(spark).by_uuid(spark, state.stream.uuid)
    claim = None if now is None else now.claim
    if now is None or claim is None:  # or it has ended meanwhile
        return []
    if claim.is_partially_committed:
        what = f"a transaction of {_owner(claim)} stopped half way: it has written {claim.where_done}"
        remedy = "run the same transaction again; or RESTORE the targets, then ALTER STREAM … RELEASE"
        return [Finding(name, "error", "CONSUMPTION_PARTIALLY_COMMITTED", what, remedy)]
    why = is_abandoned(spark, claim)
    if why is None:
        if fix or not (is_suspended(claim.owner) or not is_of_this_host(claim.owner)):
            return []
        seen = "its process is suspended" if is_suspended(claim.owner) else "whether it lives cannot be seen from here"
        what = f"a consumption of {_owner(claim)} is under way: {seen}"
        remedy = f"streamql doctor --fix watches it for its lease of {claim.lease_seconds:g} s, and ends it if there is no sign of life"
        return [Finding(name, "warning", "STREAM_BUSY", what, remedy)]
    what = f"a consumption of {_owner(claim)} was left behind: {why}"
    remedy = "the next consumer decides it; streamql doctor --fix does so now"
    if not fix:
        return [Finding(name, "warning", "STREAM_BUSY", what, remedy)]
    try:
        recover(spark, claim, why)
        check_recovered(spark, now)
    except StreamqlError as e:
        return [_finding(name, e)]
    except Exception as e:  # the catalog's storage
        return [
            Finding(
                name,
                "error",
                "STREAM_BUSY",
                f"{what}, and could not be ended: {sentence(e)}",
                "run streamql doctor --fix again",
            )
        ]
    after = catalog_of(spark).by_uuid(spark, state.stream.uuid)
    if after is not None and after.claim is not None and after.claim.is_partially_committed:
        return _claim(spark, after, fix=False)
    return [Finding(name, "warning", "STREAM_BUSY", what, "decided by its target's log, and ended", is_fixed=True)]


def _owner(claim: Claim) -> str:
    return f"{claim.owner.who}, process {claim.owner.pid}, begun {iso(claim.started_at_ms)}"


def _source(spark: SparkSession, state: StreamState, fix: bool) -> list[Finding]:
    name = str(state.name)
    try:
        source = open_source(spark, state.stream.source)
        interval = interval_now(spark, state, source)
        for table in held_tables(spark, source, interval):
            if table.snapshot.configuration.get("delta.enableRowTracking") != "true":
                what = f"{table.ref.name} has change tracking off"
                remedy = f"{TRACKING_LINE.format(table.ref.name)}, then CREATE OR REPLACE the stream"
                return [Finding(name, "error", "CHANGE_TRACKING_DISABLED", what, remedy)]
        return [] if interval.is_empty else _unread(spark, state, source, interval, fix)
    except StreamqlError as e:
        return [_finding(name, e)]
    except Exception as e:  # storage's own: the other streams are looked at all the same
        what = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
        where = state.stream.source.path or state.stream.source.name
        return [Finding(name, "error", "STREAM_INVALID", what, f"look whether {where} can be read")]


def _unread(
    spark: SparkSession, state: StreamState, source: OpenSource, interval: Interval, fix: bool
) -> list[Finding]:
    """Whether what waits can be read, and for how long. What cannot be read whole may be readable in batches: it is kept as well."""
    findings = []
    try:
        source.changes(interval, state.stream.mode)  # lazy: the log is read and the files are looked for, no row is
    except StreamqlError as e:
        findings = [_finding(str(state.name), e)]
        if e.code == "STREAM_STALE":
            return findings
    findings += _stale_soon(spark, state, source, interval, fix)
    now = open_source(spark, state.stream.source)  # its retention is extended by now, perhaps
    return findings + [f for table in held_tables(spark, now, interval) for f in _unprotected(spark, state, table)]


def _unprotected(spark: SparkSession, state: StreamState, table: OpenTable) -> list[Finding]:
    """A warning where a table would keep files that the stream needs, but a checkpoint has dropped their removals."""
    kept_since = now_ms() - file_retention_ms(spark, table.snapshot.configuration)
    lost = forgotten(table, [r for r in removed_behind(table, state) if r.time_ms >= kept_since])
    if not lost:
        return []
    what = (
        f"it has still to read files that were removed at {iso(min(r.time_ms for r in lost))}, and a checkpoint has dropped their "
        "removals: the next VACUUM takes them, however long the source keeps its history"
    )
    remedy = "consume it; sessions of streamql refuse VACUUM until then"
    return [Finding(str(state.name), "warning", "STREAM_NEEDS_FILES", what, remedy)]


def _stale_soon(
    spark: SparkSession, state: StreamState, source: OpenSource, interval: Interval, fix: bool
) -> list[Finding]:
    """A warning where history that the stream needs may go soon. `fix`: it is kept for longer."""
    expiry, name = source.expiry(interval, state.stream.mode), str(state.name)
    if expiry is None or not expiry.is_soon:
        return []
    when = f"{'since' if expiry.at_ms <= now_ms() else 'at'} {iso(expiry.at_ms)}"
    what = f"what it has still to read may be removed by VACUUM and log cleanup {when}"
    lag, tables = now_ms() - expiry.first_ms, held_tables(spark, source, interval)
    alter = [
        f"ALTER TABLE {table.ref.name} SET PROPERTIES ('data_retention_days' = '{-(-wanted // DAY_MS)}')"
        for table in tables
        # The property sets the log's retention, too.
        for wanted in [max(lag + EXTENDED_BY_MS, log_retention_ms(spark, table.snapshot.configuration))]
    ]
    remedy = (
        f"consume it, or {', '.join(alter)}; "
        f"streamql doctor --fix keeps what it needs for as long as it lags, up to {MAX_RETENTION_EXTENSION.key}"
    )
    extended = [(t, days) for t in tables if fix and (days := extend(spark, t, lag)) is not None]
    if not extended:
        return [Finding(name, "warning", "STREAM_STALE", what, remedy)]
    kept = ", ".join(f"{table.ref.name} keeps its history for {days} days now" for table, days in extended)
    return [
        Finding(
            name, "warning", "STREAM_STALE", what, f"{kept}, until the stream has caught up; consume it", is_fixed=True
        )
    ]


def _extensions(spark: SparkSession, states: Sequence[StreamState], fix: bool) -> list[Finding]:
    """Sources that keep their history for longer than their owners said, though no stream needs that any more."""
    findings = []
    for source, streams in _tables(spark, states):
        name = str(source.name)
        try:
            found = open_table(spark, source)
            extension = extension_of(found)
            if extension is None:
                continue
            if any(_needs_extension(spark, found, s, extension.before) for s in streams):
                findings += _shared(spark, found, extension, fix)
                continue
            if not is_ours(spark, extension):
                continue
            what = "its history was kept for longer while a stream lagged; all of them have caught up, or are gone"
            remedy = "streamql doctor --fix takes that back"
            if fix:
                is_back = revert(spark, found, extension)
                remedy = f"its own retention is in force again{'' if is_back else ' once no other catalog needs the longer one'}"
            findings.append(Finding(name, "warning", "RETENTION_EXTENDED", what, remedy, is_fixed=fix))
        except StreamqlError:  # the stream's own finding tells
            continue
        except Exception as e:  # whoever may not alter the source, or a source that is written just then
            what = f"its history is kept for longer than it need be, and that could not be taken back: {sentence(e)}"
            remedy = "run streamql doctor --fix again, as somebody who may alter the table"
            findings.append(Finding(name, "warning", "RETENTION_EXTENDED", what, remedy))
    return findings


def _shared(spark: SparkSession, source: OpenTable, extension: Extension, fix: bool) -> list[Finding]:
    """An extension that another catalog's doctor made, and would take back, though streams of this one need it, too. `fix`: it is noted."""
    if has_joined(spark, extension):
        return []
    what = "its history is kept for longer for streams of another catalog only, and streams of this one need that, too"
    remedy = "the source notes so now" if fix else "streamql doctor --fix notes so at the source"
    if fix:
        join(spark, source, extension)
    return [Finding(str(source.ref.name), "warning", "RETENTION_EXTENDED", what, remedy, is_fixed=fix)]


def _tables(spark: SparkSession, states: Sequence[StreamState]) -> list[tuple[TableSource, list[StreamState]]]:
    """Tables, with the streams that need their history; those of streams that were dropped are there still, where their names stand for
    them."""
    by_id: dict[str, tuple[TableSource, list[StreamState]]] = {}
    for state in states:
        for table, _ in state.stream.source.holds(offset_of(state)):
            by_id.setdefault(table.table_id, (table, []))[1].append(state)
    tables = list(by_id.values())
    try:
        events = catalog_of(spark).events(spark)
        gone = set() if events is None else sources_of_dropped(events)
    except Exception:  # has a finding of its own
        gone = set()
    for text, table_id in sorted(gone):
        with contextlib.suppress(Exception):  # the table is gone as well, or cannot be read: no stream needs it
            table = named_table(spark, qualify(spark, dialect.parse_name(text)))
            tables += [(table, [])] if table_id == table.table_id and table_id not in by_id else []
    return tables


def _needs_extension(
    spark: SparkSession, table: OpenTable, state: StreamState, before: Mapping[str, str | None]
) -> bool:
    own = {k: v for k, v in {**table.snapshot.configuration, **before}.items() if v is not None}
    is_source = state.stream.source.identity == table.ref.identity
    try:
        source = table if is_source else open_source(spark, state.stream.source)
        parts = [v for v in versions_of(table, state, interval_now(spark, state, source)) if v.after < v.through]
        return any(Expiry(table.first_time_ms(v), history_ms(spark, own, v, state.stream.mode)).is_soon for v in parts)
    except StreamqlError as e:
        if e.code in ("STREAM_STALE", "STREAM_SOURCE_REPLACED"):  # nothing is left that could be kept for it
            return False
        raise
