"""The query of a dynamic table as a source: the source of the hidden stream whose consumptions are the table's refreshes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamql.changes.net import rewrite_by_hand
from streamql.changes.plan import ChangePlan
from streamql.delta.jvm import sentence
from streamql.delta.names import look_up
from streamql.delta.table import DeltaTable
from streamql.errors import StreamqlError
from streamql.features.dynamic.source.analysis import analysed, known_by
from streamql.features.dynamic.source.costs import (
    AUTO,
    FULL,
    INCREMENTAL,
    SMALL_BYTES,
    Chosen,
    Estimate,
    TableReads,
    Timings,
    choose,
)
from streamql.features.dynamic.source.keys import keys_of
from streamql.features.dynamic.source.queries import DynamicQuery, SparkError, stored_rows
from streamql.features.dynamic.source.table import DynamicTable, all_dynamic, dynamic_of_id
from streamql.model import Interval, Offset, Parts, SourceRef, StreamMode
from streamql.names import Name
from streamql.sources.protocol import HIDDEN_TYPE, Backlog, Expiry, SourceType
from streamql.sources.registry import type_of
from streamql.sources.tables.backlog import backlog, bytes_read
from streamql.sources.tables.history import check_all_trackable
from streamql.sources.tables.source_type import open_named
from streamql.sources.tables.table import OpenTable, open_table
from streamql.sources.views import reading
from streamql.sources.views.positions import key_of, part_of, parts_of, versions_of
from streamql.sources.views.query import OpenQuery, OpenTables, QuerySource
from streamql.sources.views.texts import reason_text
from streamql.times import now_ms

REPLACED: Mapping[str, str] = MappingProxyType(
    {
        "SOURCE_REPLACED": "a table that it reads was replaced",
        "TEXT_REPLACED": "a view or a function that it reads was replaced",
        "MEANING_CHANGED": "columns of its tables or parameters of its functions have changed what its query means",
    }
)


@dataclass(frozen=True)
class Explained:
    """What a refresh would do with an interval. `changes`: the changes of each table, by part. `strategies`: as `OpenRefresh.strategies`
    returns them. `estimate`: None: the query cannot be refreshed incrementally."""

    changes: Mapping[str, Backlog]
    strategies: Sequence[Mapping[str, Any]]
    estimate: Estimate | None


@dataclass(frozen=True)
class ModeChoice:
    """The mode in which a refresh runs (FULL or INCREMENTAL), and why, as a text for messages. `estimate`: None: the modes were not
    compared by bytes. `frame`: the changes that the refresh writes, if the choice has planned them already; None: it has not."""

    mode: str
    why: str
    estimate: Estimate | None = None
    frame: DataFrame | None = None

    @property
    def why_full(self) -> str | None:
        """Returns why the mode is FULL. None: it is not FULL."""
        return self.why if self.mode == FULL else None

    @property
    def bytes(self) -> int | None:
        """Returns the bytes of the estimate, which AUTO compares with those of later refreshes. It is the same number for all small tables.
        None: there is no estimate."""
        if self.estimate is None:
            return None
        return SMALL_BYTES if self.estimate.is_small else self.estimate.of(self.mode)


@dataclass(frozen=True)
class _Changed:
    """The interval of one table, and the plan that reads its change set."""

    interval: Interval
    plan: ChangePlan


class _NotIncremental(Exception):
    """Raised if a refresh cannot be incremental. `why`: the reason, as a text for messages."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@contextlib.contextmanager
def _errors_as_reasons() -> Iterator[None]:
    """Raises `_NotIncremental` in place of the errors that streamql and Spark raise in the body."""
    try:
        yield
    except StreamqlError as e:
        raise _NotIncremental(e.message) from e
    except SparkError as e:
        raise _NotIncremental(sentence(e)) from e


@dataclass(frozen=True)
class OpenRefresh(OpenTables):
    """A dynamic table's query and the opened tables that it reads. It is an `OpenSource` whose changes are those that a refresh writes.

    `replaced`: a key of `REPLACED` if the query reads or means something else than at the last refresh; None: it does not.
    """

    dynamic: DynamicTable
    query: DynamicQuery
    replaced: str | None

    def check_trackable(self, mode: StreamMode, where: Mapping[str, int]) -> None:  # noqa: ARG002 - tables have both modes
        """Raises RESERVED_COLUMN_NAME, and CHANGE_TRACKING_DISABLED for the tables that must track changes to be refreshed from."""
        check_all_trackable(self.tables.values(), where, is_created=False)

    def check_history(self, offset: Offset, seen: SourceRef, stream: Name) -> None:
        """Checks nothing, because a refresh computes the whole query if the history of a table is missing."""

    def choose_mode(self, interval: Interval, timings: Timings) -> ModeChoice:
        """Returns the mode in which a refresh of an interval runs. `timings`: of earlier refreshes."""
        estimate = None
        try:
            with _errors_as_reasons():
                changed = self._changed_if_incremental(interval)
                if self.dynamic.refresh_mode != AUTO:
                    chosen = Chosen(INCREMENTAL, "REFRESH_MODE is INCREMENTAL")
                elif changed is None or self._reads_single_rows:
                    chosen = Chosen(INCREMENTAL, "filters, projections and UNION ALL compute only the changed rows")
                else:
                    estimate = self._estimate(interval, changed)
                    chosen = choose(estimate, timings)
                if chosen.mode == FULL:
                    return ModeChoice(FULL, chosen.why, estimate)
                return ModeChoice(INCREMENTAL, chosen.why, estimate, self._incremental(interval, changed))
        except _NotIncremental as e:
            return ModeChoice(FULL, e.why, estimate)

    def explained(self, interval: Interval, estimate: Estimate | None) -> Explained | None:
        """Returns what a refresh would do with an interval. None: the history of a table is missing, so that its changes are not known.

        `estimate`: that of `ModeChoice`; None: it has none."""
        try:
            changed = self._changed(interval)
            backlogs = {part: backlog(c.plan, c.interval.versions) for part, c in changed.items()}
            if estimate is None and self.query.unfollowed(self._ids(changed)) is None:
                estimate = self._estimate(interval, changed)
            return Explained(backlogs, self.strategies(changed), estimate)
        except (StreamqlError, *SparkError):
            return None

    def strategies(self, changed: Iterable[str] | None = None) -> Sequence[Mapping[str, Any]]:
        """Returns how an incremental refresh computes each operator, as `DynamicQuery.strategies` does. `changed`: the parts of the tables
        that have changed; None: all. Empty: the query cannot be refreshed incrementally, and the reason is not one of its operators."""
        ids = self._ids(self.tables if changed is None else changed)
        found = self.query.strategies(ids)
        is_possible = self.query.unfollowed(ids) is None or any(one["way"] == "WHOLE" for one in found)
        return found if is_possible else ()

    def changes(self, interval: Interval, mode: StreamMode) -> DataFrame:  # noqa: ARG002 - the protocol's
        """Returns what `changes_in_mode` returns for INCREMENTAL."""
        return self.changes_in_mode(interval, INCREMENTAL)

    def changes_in_mode(self, interval: Interval, mode: str) -> DataFrame:
        """Returns the row changes that turn the table's rows into the query's rows as of the interval's end. Lazy.

        They are INSERT, UPDATE_AFTER, UPDATE_HIDDEN (only columns change that the table does not show) and DELETE. `mode`: as `choose_mode`
        has chosen it. If INCREMENTAL is not possible, the changes are computed fully.
        """
        if mode == INCREMENTAL:
            with contextlib.suppress(_NotIncremental), _errors_as_reasons():
                return self._incremental(interval, self._changed_if_incremental(interval))
        return self._difference(interval)

    def _changed_if_incremental(self, interval: Interval) -> dict[str, _Changed] | None:
        """Returns the tables that have changes, by part. None: each row of the query is a row of one table, recognized by its id, so the
        caller need not know them. Raises `_NotIncremental`, and what reading the logs raises."""
        if self.dynamic.refresh_mode == FULL:
            raise _NotIncremental("REFRESH_MODE is FULL")
        if interval.initial:
            raise _NotIncremental("the table is filled anew")
        self._check_histories(interval)
        if self._reads_single_rows and all(table.needs_tracking for table in self.tables.values()):
            return None
        changed = self._changed(interval)
        if (what := self.query.unfollowed(self._ids(changed))) is not None:
            raise _NotIncremental(f"the query {reason_text(what)}")
        return changed

    def _incremental(self, interval: Interval, changed: Mapping[str, _Changed] | None) -> DataFrame:
        """Returns the row changes of the table, computed from the changes of the tables that its query reads. `changed`: as
        `_changed_if_incremental` returns it."""
        return self._changes_of_rows(interval) if changed is None else self._changes_of_query(interval, changed)

    def _check_histories(self, interval: Interval) -> None:
        """Checks that the histories of the tables show all changes of their rows. Raises `_NotIncremental`, and what the tables raise."""
        super().check_history(Offset(interval.after, False), self.ref, self.dynamic.name)
        if (name := self.replaced_columns(interval)) is not None:
            raise _NotIncremental(f"columns of {name} were replaced, or their types were changed")
        for part, table in self.tables.items():
            versions = versions_of(interval, part)
            if versions.is_empty or not table.needs_tracking:
                continue
            if (rewrite := rewrite_by_hand(table.commits(versions))) is not None:
                why = f"version {rewrite} of {table.ref.name} rewrote rows with dataChange = false, which gave them new ids"
                raise _NotIncremental(why)

    def replaced_columns(self, interval: Interval) -> Name | None:
        """Returns a table in which a column was replaced by another one of its name. That changes rows which no commit has written. None:
        there is no such table. Raises STREAM_STALE."""
        after, through = parts_of(interval.after), parts_of(interval.through)
        changed = [part for part in self.tables if after[part] != through[part]]
        # The query is analysed with the newest columns of a table, even if the interval ends at an earlier version.
        ends = (
            (self.tables[part], after[part], end)
            for part in changed
            for end in {through[part], self.tables[part].latest}
        )
        return next((t.ref.name for t, begin, end in ends if not t.has_same_columns(begin, end)), None)

    @property
    def _reads_single_rows(self) -> bool:
        """Returns whether each row of the query is made of one row of one table."""
        query = self.query.tracked
        return query.refused is None and all(len(tables) == 1 for tables in query.branches)

    def _changes_of_rows(self, interval: Interval) -> DataFrame:
        query = self.query.tracked
        by_id = {table.ref.table_id: part for part, table in self.tables.items()}
        tables = {by_id[t.table_id]: self.tables[by_id[t.table_id]] for t in query.tables}
        source = OpenQuery(self.spark, self.ref, tables, self.label, query)
        return reading.keyed_changes(source, interval, self.query.keys, self.query.branch_keys)

    def _changed(self, interval: Interval) -> dict[str, _Changed]:
        """Returns the tables that have changes in an interval, by part."""
        versions = {part: versions_of(interval, part) for part in self.tables}
        planned = {
            part: _Changed(Interval(v.after, v.through), self.tables[part].plan(v, StreamMode.STANDARD))
            for part, v in versions.items()
            if not v.is_empty
        }
        return {part: changed for part, changed in planned.items() if changed.plan.files}

    def _ids(self, parts: Iterable[str]) -> list[str]:
        return [self.tables[part].ref.table_id for part in parts]

    def _estimate(self, interval: Interval, changed: Mapping[str, _Changed]) -> Estimate:
        end = self._versions(parts_of(interval.through))
        sets = {self.tables[part].ref.table_id: bytes_read(c.plan) for part, c in changed.items()}
        reads = self.query.reads(end, sets)
        return Estimate.of_tables({uid: TableReads(*numbers, sets.get(uid, 0)) for uid, numbers in reads.items()})

    def _changes_of_query(self, interval: Interval, changed: Mapping[str, _Changed]) -> DataFrame:
        sets = {}
        for part, only in ((part, c.interval) for part, c in changed.items()):
            table = self.tables[part]
            sets[table.ref.table_id] = table.changes_for_query(only.versions, StreamMode.STANDARD)
        backing = DeltaTable(self.spark, self.dynamic.backing.path)
        end = self._versions(parts_of(interval.through))
        return self.query.changes(end, sets, stored_rows(self.spark, backing, backing.latest()))

    def _versions(self, at: Mapping[str, int]) -> dict[str, int]:
        return {table.ref.table_id: at[part] for part, table in self.tables.items()}

    def _difference(self, interval: Interval) -> DataFrame:
        """Returns the difference between the rows that the table has now and the query's rows as of the interval's end."""
        versions = self._versions(parts_of(interval.through))
        backing = DeltaTable(self.spark, self.dynamic.backing.path)
        latest = backing.latest()
        if backing.is_empty(latest):
            return self.query.inserts(versions)
        # If the table is filled anew, the query may read another table now. Row ids of both begin at 0, so equal keys may be other rows.
        return self.query.difference(versions, backing.rows(latest), is_anew=interval.initial)

    def as_at(self, position: object, frame: DataFrame, end: object) -> DataFrame:  # noqa: ARG002 - the protocol's
        """Returns `frame` as it is, because the columns of a dynamic table never change."""
        return frame

    def batch_end(self, interval: Interval, mode: StreamMode, rows_max: int) -> Parts:  # noqa: ARG002 - the protocol's
        """Returns the end of the interval, because a refresh is not divided into batches."""
        assert isinstance(interval.through, Parts)
        return interval.through

    def backlog(self, interval: Interval, mode: StreamMode) -> Backlog:
        """Counts the changes of the tables."""
        return self.backlog_of_tables(interval, mode, rows_known=False)

    def expiry(self, interval: Interval, mode: StreamMode) -> Expiry | None:  # noqa: ARG002 - the protocol's
        """Returns None, because a refresh needs no history."""
        return None


def open_refresh(spark: SparkSession, source: QuerySource) -> OpenRefresh:
    """Opens the query of a dynamic table, and its tables. Raises STREAM_SOURCE_MISSING if a table or view is missing or has changed."""
    dynamic = dynamic_of_id(spark, source.digest)
    if dynamic is None:
        raise StreamqlError(
            "STREAM_SOURCE_MISSING",
            f"the dynamic table {source.name} no longer exists",
            hint="SHOW DYNAMIC TABLES and SHOW MATERIALIZED VIEWS list those there are",
            source=str(source.name),
        )
    began = now_ms()  # taken before the analysis, because TIMESTAMP 'now' is the time of the analysis
    found, moved = _tables(spark, source)
    read = {table.ref.table_id for table in found.values()}
    for other in all_dynamic(spark):
        former = other.names_since(dynamic.definition.created_at_ms)
        # A table that is not among those read may have replaced one of them: then one of these is missing, and the former name is free.
        if other.backing.table_id not in read:
            former = [n for n in former if len(read) < len(source.tables) and look_up(spark, n).type == "missing"]
        moved |= {key_of(n): other.name.parts for n in former}
    query = analysed(spark, dynamic, moved, keys_of((part, table.ref) for part, table in found.items()))
    by_id = {table.ref.table_id: part for part, table in found.items()}
    is_same = {t.table_id for t in query.tables} == set(by_id)
    tables = found if is_same else _parts(spark, query, by_id)
    refs = tuple((part, table.ref) for part, table in tables.items())
    found_now = replace(source, name=dynamic.name, tables=refs, tried_ms=began, attempt=source.attempt + 1)
    ref = known_by(found_now, query)
    replaced = None
    if ref.texts != source.texts:
        replaced = "TEXT_REPLACED"
    elif (source.plan and ref.plan != source.plan) or query.widens:
        replaced = "MEANING_CHANGED"
    return OpenRefresh(
        spark,
        ref,
        tables,
        dynamic.definition.type.value,
        dynamic,
        query,
        replaced if is_same else "SOURCE_REPLACED",
    )


def _parts(spark: SparkSession, query: DynamicQuery, known: Mapping[str, str]) -> dict[str, OpenTable]:
    """Returns the tables of a query, by part. `known`: the parts of the tables that it read before, by table id. These keep their parts, so
    a renamed table has the name that is in the text."""
    tables: dict[str, OpenTable] = {}
    for table in sorted(query.tables, key=lambda t: t.table_id not in known):
        part = known.get(table.table_id) or part_of(table)
        while part in tables:
            part += "'"
        tables[part] = open_table(spark, table)
    return tables


def _tables(spark: SparkSession, source: QuerySource) -> tuple[dict[str, OpenTable], dict[str, tuple[str, ...]]]:
    """Returns the tables of a source that still exist, by part, and the present names of those that were renamed, by part."""
    found: dict[str, OpenTable] = {}
    moved: dict[str, tuple[str, ...]] = {}
    for part, table in source.tables:
        try:
            found[part] = open_named(spark, table)
        except StreamqlError as e:
            if e.code not in ("STREAM_SOURCE_MISSING", "STREAM_SOURCE_REPLACED"):
                raise
            continue  # the analysis of the query's text finds the table that has the name now
        name = found[part].ref.name
        if key_of(name) != part:
            moved[part] = name.parts
    return found, moved


def _read(data: Mapping[str, Any]) -> QuerySource:
    return QuerySource.from_json(HIDDEN_TYPE, data)


def _consumed(spark: SparkSession, source: QuerySource) -> None:
    """Calls what the types of the tables want to be called."""
    for _, table in source.tables:
        if (call := type_of(table).consumed) is not None:
            call(spark, table)


REFRESH = SourceType(
    name=HIDDEN_TYPE,
    label="QUERY",
    read=_read,
    open=open_refresh,
    find=lambda _, __: None,  # no name stands for it
    statement_types=(),
    consumed=_consumed,
    query_plan=lambda spark, source: open_refresh(spark, source).query.handle.analysed(),
)
