"""Refreshes a dynamic table. A refresh is a consumption of the table's hidden stream by a statement that writes the rows that differ."""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pyspark.sql import SparkSession

from streamql.bridge.errors import explained
from streamql.catalog.events import UNCHANGED, refresh_event, stream_event
from streamql.catalog.identity import user_of
from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.consume import wait_until_free
from streamql.delta.jvm import Cause, cause_of, sentence
from streamql.delta.names import moved
from streamql.delta.neutral import dynamic_session
from streamql.delta.table import DeltaTable, latest_versions
from streamql.errors import ERROR_CLASSES, StreamqlError
from streamql.features.dynamic.refreshes.clock import has_failed, outdated_since
from streamql.features.dynamic.refreshes.status import NOT_COMPUTED, REFRESHED
from streamql.features.dynamic.refreshes.timings import remember, timings_of
from streamql.features.dynamic.refreshes.written import (
    drop_duplicates,
    note,
    refresh_after,
    rows_of,
    write_statement,
    written_by_others,
)
from streamql.features.dynamic.source.analysis import not_computed
from streamql.features.dynamic.source.backing import check_acyclic, hidden_stream, query_of, show_rows, take_types
from streamql.features.dynamic.source.costs import FULL, INCREMENTAL, Timing, Timings
from streamql.features.dynamic.source.graph import upstream
from streamql.features.dynamic.source.queries import SparkError, run_refresh
from streamql.features.dynamic.source.refresh import REPLACED, ModeChoice, OpenRefresh, open_refresh
from streamql.features.dynamic.source.table import DynamicTable, all_dynamic
from streamql.model import Interval, Offset, Parts, StreamMode, is_ordered
from streamql.reading import StreamReading
from streamql.sources.views.positions import parts_of
from streamql.sources.views.query import QuerySource
from streamql.times import now_ms

log = logging.getLogger("streamql")

REASONS = {
    "FIRST": "the first refresh",
    "CHANGED": "its sources changed",
    "TIME_PASSED": "its query reads the clock",
    **REPLACED,
    "WRITTEN_BY_OTHERS": "another statement wrote into the table",
}

_IN_PLACE = frozenset(("CHANGED", "TIME_PASSED"))
"""The reasons for which the hidden stream is not reset before the refresh."""

_CLASSES_OF_ROWS = re.compile(
    r"java\.lang\.\w+Exception|java\.util\.\w+Exception|org\.apache\.spark\.Spark\w+Exception"
)
"""The Java classes of errors in the rows of a query that have no SQLSTATE in Spark, for example if sequence() has no end."""

_STATES_OF_ROWS = ("0A", "21", "22", "23", "38", "39", "42", "54", "P0", "XX000", "XXKD0")
"""The prefixes of the SQLSTATEs of errors in the rows or the plan of a query. Others come from files, transactions, memory or cancels."""


@dataclass(frozen=True)
class Result:
    """What a refresh did. `reason`: why it wrote, a key of REASONS; `mode`: FULL or INCREMENTAL; both are None if it wrote nothing.
    `why_full`: why the mode is FULL; None: it is not FULL. `version`: the version of the backing table after the refresh."""

    table: DynamicTable
    outcome: str
    reason: str | None
    mode: str | None
    version: int
    rows: Mapping[str, int]
    duration_ms: int
    why_full: str | None = None


class Overtaken(Exception):
    """Raised if a run has to start again: another process has refreshed a table from later versions of its sources, or its query reads
    other dynamic tables than the run knows. `reads`: in the latter case {table: tables that it reads}, by the ids of definitions."""

    def __init__(self, reads: Mapping[str, list[str]] = MappingProxyType({})) -> None:
        super().__init__("a run began with versions or tables that are not those of now")
        self.reads = reads


class _NotComputed(Exception):
    """Raised if the statement of an incremental refresh fails for the rows or plan of its query. Its text is Spark's error."""


Pinned = Mapping[tuple[str, str], int]
"""(table id, path) → the version that all refreshes of one run read. The path is part of the key, because a copy of a table has the same
id. Of other tables, the refreshes read the newest version."""


def pinned_versions(
    spark: SparkSession, tables: Sequence[DynamicTable], known: Iterable[DynamicTable]
) -> dict[tuple[str, str], int]:
    """Returns the present versions of the tables that dynamic tables read, as `Pinned`, without those that are backing tables."""
    backing = {t.backing.table_id for t in known}
    read = {t for table in tables for _, t in query_of(hidden_stream(spark, table)).tables if t.table_id not in backing}
    now = latest_versions(spark, sorted({t.path for t in read}))
    ids = {t.path: now[t.path].table_id for t in read}
    # A table that is recognized by a key is the same one after it was replaced.
    return {(ids[t.path], t.path): now[t.path].version for t in read if t.key or ids[t.path] == t.table_id}


# -- one table


def refresh_table(
    spark: SparkSession, table: DynamicTable, pinned: Pinned, reads: Iterable[str] | None = None
) -> Result:
    """Refreshes one table. Raises `Overtaken`, and what the statement raises. A failure gets a row in the table's history.

    `pinned`: the versions of the tables that it reads. `reads`: the dynamic tables that it is known to read, by the ids of their
    definitions; None: this is not checked.

    If the statement of an incremental refresh fails for its rows, a full refresh runs instead. An incremental one may join rows that were
    never in the tables at the same time, and an expression may fail for them."""
    started = time.monotonic()
    try:
        return _refreshed(spark, table, pinned, reads, started, None)
    except _NotComputed as e:
        why = f"{NOT_COMPUTED}: {e}"
        log.warning("%s is refreshed fully, because %s", table.name, why)
    return _refreshed(spark, table, pinned, reads, started, why)


def _refreshed(
    spark: SparkSession,
    table: DynamicTable,
    pinned: Pinned,
    reads: Iterable[str] | None,
    started: float,
    why_full: str | None,
) -> Result:
    """Refreshes one table once. `why_full`: why the refresh must be full; None: `choose_mode` chooses its mode."""
    began_ms = now_ms()
    backing = DeltaTable(spark, table.backing.path)
    before = backing.latest().version
    state = free_stream(spark, table)
    try:
        reason, opened, through = due(spark, table, state, pinned)
        if reason is None or opened is None:
            # The new version may be that of another refresh, which has read later versions than this run.
            if backing.latest().version != before:
                raise Overtaken
            show_rows(spark, table)
            if has_failed(state) is not False:
                _note_unchanged(spark, table, state, opened, began_ms)
            return _result(table, UNCHANGED, None, None, before, {}, started)
        if reads is not None:
            _check_reads(spark, table, opened, set(reads))
        if reason not in _IN_PLACE and not _is_at(state, opened, through):
            state = _reset(spark, table, state, opened, through)
        if reason not in _IN_PLACE and written_by_others(spark, table):
            drop_duplicates(spark, table)
        choice = (
            ModeChoice(FULL, why_full)
            if why_full is not None
            else choose_mode(opened, state, through, reason, lambda: timings_of(spark, table, state))
        )
        if not take_types(spark, table, opened.query):
            raise Overtaken
        version, rows = _write(opened, table, state, through, choice, reason, before)
        show_rows(spark, table)
        return _result(table, REFRESHED, reason, choice, version, rows, started)
    except (Overtaken, _NotComputed):
        raise
    except Exception as e:
        if code_of(e) == "STREAM_MOVED":  # another process has refreshed the table first
            raise Overtaken from e
        _note_failure(spark, table, state, began_ms, e)
        if isinstance(e, SparkError) and code_of(e) not in ERROR_CLASSES and _is_of_rows(cause_of(e)):
            raise not_computed(table, e) from e
        raise


def _is_of_rows(cause: Cause) -> bool:
    """Returns whether an error is one of the rows or the plan of a query."""
    if cause.sql_state is not None:
        return cause.sql_state.startswith(_STATES_OF_ROWS)
    return cause.class_name != "java.lang.InterruptedException" and bool(_CLASSES_OF_ROWS.fullmatch(cause.class_name))


def code_of(e: BaseException) -> str | None:
    """Returns the code of an error of streamql or Spark, even if it came back through the JVM. None: it has none."""
    code = e.code if isinstance(e, StreamqlError) else getattr(e, "getCondition", lambda: None)()
    return code if isinstance(code, str) else None


def free_stream(spark: SparkSession, table: DynamicTable) -> StreamState:
    """Waits until no refresh of the table is under way, and returns its hidden stream. A refresh whose process died is resolved."""
    return wait_until_free(spark, hidden_stream(spark, table))


def due(
    spark: SparkSession, table: DynamicTable, state: StreamState, pinned: Pinned
) -> tuple[str | None, OpenRefresh | None, Parts]:
    """Returns why a table must be refreshed, its opened query, and the versions to compute it at. None in place of the reason: the table is
    up to date. None in place of the query: it was not needed to find that out."""
    source = query_of(state)
    assert isinstance(state.offset.position, Parts)
    written = written_by_others(spark, table, state.offset.position)
    # Views and functions have no versions, so a query that reads some is analysed. So is one that an earlier streamql has stored.
    is_unchanged = not state.offset.initial and not written and not source.texts and source.clock is not None
    is_unchanged = is_unchanged and outdated_since(spark, state, source.clock or "") is None
    if is_unchanged and _is_current(spark, source, state, pinned):
        return None, None, state.offset.position
    opened = open_refresh(dynamic_session(spark), source)
    opened.check_trackable(StreamMode.STANDARD, {})
    through = Parts.of({part: pinned.get((t.ref.table_id, t.ref.path), t.latest) for part, t in opened.tables.items()})
    at = parts_of(state.offset.position)
    if opened.replaced == "SOURCE_REPLACED" or set(parts_of(through)) != set(at) or _is_put_back(opened, source, at):
        return "SOURCE_REPLACED", opened, through
    if state.offset.initial:
        return "FIRST", opened, through
    if not is_ordered(state.offset.position, through):
        raise Overtaken
    if opened.replaced is not None:
        return opened.replaced, opened, through
    if written:
        return "WRITTEN_BY_OTHERS", opened, through
    interval = Interval(state.offset.position, through)
    if _has_changes(opened, interval):
        return "CHANGED", opened, through
    is_outdated = outdated_since(spark, state, opened.ref.clock or "") is not None
    return ("TIME_PASSED" if is_outdated else None), opened, through


def _is_current(spark: SparkSession, source: QuerySource, state: StreamState, pinned: Pinned) -> bool:
    """Returns whether the tables that a query reads have the names and versions that they had at the last refresh."""
    at = parts_of(state.offset.position)
    now = latest_versions(spark, sorted({t.path for _, t in source.tables}))
    return not moved(spark, (t for _, t in source.tables)) and all(
        now[t.path].table_id == t.table_id
        and pinned.get((t.table_id, t.path), now[t.path].version) == at[part]
        and (t.seen is None or t.seen[0] != now[t.path].version or t.seen[1] == now[t.path].time_ms)
        for part, t in source.tables
    )


def _is_put_back(opened: OpenRefresh, source: QuerySource, at: Mapping[str, int]) -> bool:
    """Returns whether a table was put back from a copy of its files, and so may lack the version at which the query was computed. If its
    commits have no in-commit timestamps, it counts as put back if its path has changed."""
    known = dict(source.tables)
    return any(t.latest < at[part] or not t.continues(known[part]) for part, t in opened.tables.items())


def _check_reads(spark: SparkSession, table: DynamicTable, opened: OpenRefresh, known: set[str]) -> None:
    """Checks that a query reads only dynamic tables that the run knows: others would not be refreshed before it. Raises `Overtaken`, and
    UNSUPPORTED_SOURCE if the table reads itself."""
    ids, own = frozenset(t.ref.table_id for t in opened.tables.values()), table.definition.uuid
    read = upstream(all_dynamic(spark), {own: ids})[own]
    if set(read) <= known and own not in read:
        return
    check_acyclic(spark, table, ids)
    raise Overtaken({own: read})


def _has_changes(opened: OpenRefresh, interval: Interval) -> bool:
    if interval.is_empty:
        return False
    try:
        return opened.replaced_columns(interval) is not None or opened.backlog(interval, StreamMode.STANDARD).has_data
    except StreamqlError:  # the log does not show the changes: the refresh has to compare all rows
        return True


def _is_at(state: StreamState, opened: OpenRefresh, through: Parts) -> bool:
    """Returns whether the hidden stream need not be reset: it has the query's tables, and shows all rows."""
    return (
        query_of(state).tables == opened.ref.tables
        and state.offset.initial
        and is_ordered(state.offset.position, through)
    )


def _reset(
    spark: SparkSession, table: DynamicTable, state: StreamState, opened: OpenRefresh, through: Parts
) -> StreamState:
    """Gives the hidden stream the tables that the query reads now, and initial rows: the next claim is for all rows. Raises `Overtaken`."""
    catalog = catalog_of(spark)
    stream = replace(state.stream, source=opened.ref)
    changed = replace(state, stream=stream, offset=Offset(through, True), sequence=catalog.number_of(state) + 1)
    event = stream_event("altered", changed, now_ms(), user_of(spark), f"REFRESH {table.label} {table.name}")
    if not catalog.commit(spark, [state], [changed], [event]):
        raise Overtaken
    return changed


def choose_mode(opened: OpenRefresh, state: StreamState, through: Parts, reason: str, timings: Timings) -> ModeChoice:
    """Returns the mode of a refresh with a reason. `timings`: of earlier refreshes."""
    if reason != "CHANGED":
        return ModeChoice(FULL, REASONS[reason])
    return opened.choose_mode(Interval(state.offset.position, through, state.offset.initial), timings)


def _details(choice: ModeChoice, reason: str) -> str:
    """Returns the JSON that the ledger's column `details` has for a refresh."""
    said: dict[str, str | int] = {} if choice.bytes is None else {"bytes": choice.bytes}
    why = {} if choice.why_full is None else {"why_full": choice.why_full}
    return json.dumps({"mode": choice.mode, "reason": reason, **why, **said})


def _write(
    opened: OpenRefresh,
    table: DynamicTable,
    state: StreamState,
    through: Parts,
    choice: ModeChoice,
    reason: str,
    seen: int,
) -> tuple[int, dict[str, int]]:
    """Runs the statement that writes the rows, in a session of its own. It fails if the hidden stream is no longer as `state` has it.
    Returns the version that the statement made, and how many rows it inserted, updated and deleted. `seen`: up to this version, the backing
    table has no rows of other writers that no refresh has seen. Raises `_NotComputed`, and what Spark raises."""
    spark, backing, started = opened.spark, DeltaTable(opened.spark, table.backing.path), time.monotonic()
    before = backing.latest()
    # A full refresh compares all rows up to `before`. An incremental one does not see what other writers have written since `seen`.
    compared = seen if choice.mode == INCREMENTAL else before.version
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", note(compared, through))
    text = write_statement(table, backing, before)
    interval = Interval(state.offset.position, through, state.offset.initial)
    try:
        rows = opened.changes_in_mode(interval, choice.mode) if choice.frame is None else choice.frame
        reading = StreamReading(state, interval, opened.seen_at(through), rows, details=_details(choice, reason))
        run_refresh(spark, text, reading.frame, reading.description, reading.visible)
    except SparkError as e:
        if (known := explained(e)) is not None:
            raise known from e
        if choice.mode == INCREMENTAL and _is_of_rows(cause_of(e)):
            raise _NotComputed(sentence(e)) from e
        raise
    written = refresh_after(backing, before.version, table)
    took = int((time.monotonic() - started) * 1000)
    remember(spark, table, state, Timing(choice.mode, took, choice.bytes, reason == "FIRST"))
    return (backing.latest().version, rows_of({})) if written is None else (written.version, rows_of(written.metrics))


def _result(
    table: DynamicTable,
    outcome: str,
    reason: str | None,
    choice: ModeChoice | None,
    version: int,
    rows: Mapping[str, int],
    started: float,
) -> Result:
    mode, why_full = (None, None) if choice is None else (choice.mode, choice.why_full)
    return Result(table, outcome, reason, mode, version, rows, int((time.monotonic() - started) * 1000), why_full)


def _note_unchanged(
    spark: SparkSession, table: DynamicTable, state: StreamState, opened: OpenRefresh | None, began_ms: int
) -> None:
    """Adds a refresh to the table's history that found nothing to do. It is added only after a failed refresh, to show that the failure is
    over. Raises `Overtaken`."""
    clock = query_of(state).clock if opened is None else opened.ref.clock
    tried = replace(query_of(state), clock=clock, tried_ms=began_ms)
    after = state.next(stream=replace(state.stream, source=tried), last_consumed_ms=now_ms())
    if not _committed(spark, table, state, after, began_ms, None):
        raise Overtaken


def _committed(
    spark: SparkSession, table: DynamicTable, before: StreamState, after: StreamState, began_ms: int, error: str | None
) -> bool:
    """Commits a refresh that claimed nothing, with its row of the ledger. `before`, `after`: the hidden stream. Returns False if another
    process has changed it."""
    text = f"REFRESH {table.label} {table.name}"
    event = refresh_event(after, str(uuid.uuid4()), text, user_of(spark), began_ms, now_ms(), error)
    return catalog_of(spark).commit(spark, [before], [after.counting([event])], [event])


def _note_failure(
    spark: SparkSession, table: DynamicTable, before: StreamState, began_ms: int, e: BaseException
) -> None:
    """Adds a failed refresh to the table's history, unless the end of its claim has added it already."""
    try:
        state = catalog_of(spark).by_uuid(spark, table.stream_id)
        if state is None or state.claim is not None or state.sequence > before.sequence + 1:
            return
        after = state.next(stream=replace(state.stream, source=replace(query_of(state), tried_ms=began_ms)))
        _committed(spark, table, state, after, began_ms, sentence(e))
    except Exception as other:  # the caller raises the error of the refresh, which matters more
        log.debug("the failure was not noted: %s", other)
