"""The check of dynamic tables: their queries, views, rows and lag, and what a crash has left of tables without a definition."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.jvm import sentence
from streamql.delta.names import look_up, tables_like
from streamql.delta.neutral import dynamic_session
from streamql.delta.table import DeltaTable
from streamql.engine.doctor.check import About, Check, Finding, Problem, Severity, finding_of
from streamql.errors import StreamqlError
from streamql.features.dynamic.lines import failed_text, held_text, late_text
from streamql.features.dynamic.refreshes.facts import DynamicFacts, dynamic_facts
from streamql.features.dynamic.refreshes.written import written_by_others
from streamql.features.dynamic.source.backing import MARK, make_view, mark_of
from streamql.features.dynamic.source.refresh import REPLACED, open_refresh
from streamql.features.dynamic.source.table import BACKING_PREFIX, DynamicTable, all_dynamic, dynamic_of_id
from streamql.features.dynamic.vocabulary import BACKING_NAME
from streamql.names import Name, quote
from streamql.sources.views.query import QuerySource
from streamql.times import HOUR_MS, iso, now_ms

LATE_TIMES = 2
"""A table is reported once it has been behind for so many times its target."""

BEING_MADE_MS = HOUR_MS
"""A table without a definition that is younger may belong to a CREATE that is under way."""


@dataclass(frozen=True)
class Repair:
    """What the fix does, and what it says it has done."""

    work: Callable[[], None]
    done: str


class DynamicTables(Check[Repair]):
    """Dynamic tables that cannot be refreshed or read, are late, or were written by others; and tables of rows without a definition."""

    about = About.DYNAMIC_TABLES

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[Repair]]:  # noqa: ARG002 - not of streams
        """See Check."""
        tables = all_dynamic(spark)
        facts = {f.uuid: f for f in dynamic_facts(spark)}
        failing = {f.name for f in facts.values() if f.failures}
        for table in tables:
            try:
                yield from _problems(spark, table, facts[table.definition.uuid], failing)
            except StreamqlError as e:
                yield Problem(finding_of(str(table.name), e))
            except Exception as e:  # the storage's own: the other tables are examined all the same
                remedy = f"check whether {table.backing.path} can be read"
                yield Problem(Finding(str(table.name), "error", "DYNAMIC_TABLE_INVALID", sentence(e), remedy))
        yield from _left_over(spark)

    def fix(self, spark: SparkSession, problems: Sequence[Problem[Repair]]) -> list[Finding]:  # noqa: ARG002 - facts have it
        """See Check."""
        return [p.finding if p.for_fix is None else _repaired(p.finding, p.for_fix) for p in problems]


def _repaired(found: Finding, repair: Repair) -> Finding:
    try:
        repair.work()
    except Exception as e:  # the user may not write there
        return replace(found, what=f"{found.what}; the fix failed: {sentence(e)}")
    return replace(found, remedy=repair.done, is_fixed=True)


def _problems(
    spark: SparkSession, table: DynamicTable, facts: DynamicFacts, failing: Container[str]
) -> Iterator[Problem[Repair]]:
    """`failing`: the names of the tables whose last refresh failed."""
    name = str(table.name)
    yield from _failures(table, facts, failing)
    view = _view(spark, table)
    if view is not None:
        yield view
    if facts.held_by is not None:
        remedy = f"ALTER DYNAMIC TABLE {facts.held_by} RESUME, or ALTER {table.label} {name} SUSPEND"
        yield Problem(Finding(name, "warning", "DYNAMIC_TABLE_SUSPENDED", held_text(facts), remedy))
    state = catalog_of(spark).by_uuid(spark, table.stream_id)
    if state is not None and isinstance(state.stream.source, QuerySource):
        opened = open_refresh(spark, state.stream.source)  # raises what is wrong with the query
        if opened.replaced is not None:
            what = f"{REPLACED[opened.replaced]} since its last refresh, which the next refresh follows"
            yield Problem(Finding(name, "warning", "STREAM_SOURCE_REPLACED", what, f"REFRESH {table.label} {name}"))
        opened.check_trackable(state.stream.mode, {})
    if facts.is_filled and written_by_others(spark, table):
        what = "a statement other than a refresh has written its rows, which the next refresh puts right"
        yield Problem(Finding(name, "error", "DYNAMIC_TABLE_WRITTEN", what, f"REFRESH {table.label} {name}"))
    if facts.target_ms is not None and facts.lag_ms > LATE_TIMES * facts.target_ms and not facts.is_suspended:
        remedy = "streamql scheduler keeps targets; SHOW DYNAMIC TABLE REFRESH HISTORY tells how long refreshes take"
        yield Problem(Finding(name, "warning", "DYNAMIC_TABLE_LATE", late_text(facts), remedy))


def _failures(table: DynamicTable, facts: DynamicFacts, failing: Container[str]) -> Iterator[Problem[Repair]]:
    name = str(table.name)
    for read in [other for other in facts.reads if other in failing]:
        what = f"it is not refreshed while refreshes of {read} fail, which it reads"
        yield Problem(Finding(name, "warning", "DYNAMIC_TABLE_FAILED", what, f"see {read}"))
    if not facts.failures:
        return
    what = failed_text(facts, since="" if facts.failed_since_ms is None else iso(facts.failed_since_ms))
    remedy = (
        f"correct the rows or the query, then REFRESH {table.label} {name}; "
        f"SHOW {table.label} REFRESH HISTORY FOR {name} shows each failure"
    )
    severity: Severity = "warning" if facts.is_suspended else "error"
    yield Problem(Finding(name, severity, "DYNAMIC_TABLE_FAILED", what, remedy))


def _view(spark: SparkSession, table: DynamicTable) -> Problem[Repair] | None:
    """Returns what is wrong with the view by which the rows are read."""
    name, mark = str(table.name), mark_of(spark, table.name)
    if mark == table.definition.uuid:
        return None
    if mark is not None:
        what = "the view of its name shows the rows of another definition: a process died while it replaced the table"
        again = Repair(lambda: make_view(spark, table, {}, replace=True), "the view shows its rows again")
        return Problem(
            Finding(name, "error", "DYNAMIC_TABLE_HIDDEN", what, "streamql doctor --fix makes it again"), again
        )
    found = look_up(spark, table.name).type
    if found != "missing":
        what = f"another {found} has the name, so its rows cannot be read"
        remedy = (
            f"rename that one, then run streamql doctor --fix; or ALTER {table.label} {name} RENAME TO another name"
        )
        return Problem(Finding(name, "error", "DYNAMIC_TABLE_HIDDEN", what, remedy))
    what = f"the view by which its rows are read is missing: they are in {table.backing.name}"
    repair = Repair(lambda: make_view(spark, table, {}, replace=False), "the view is there again")
    return Problem(Finding(name, "error", "DYNAMIC_TABLE_HIDDEN", what, "streamql doctor --fix makes it again"), repair)


# -- what a crash has left


def _left_over(spark: SparkSession) -> Iterator[Problem[Repair]]:
    """Tables of rows that no definition has. One is dropped by the fix if this catalog has dropped its definition, or if it is empty and
    has no view: a catalog of other settings may have a definition of it."""
    events: DataFrame | None = None
    for name, table, uid in _backing_tables(spark):
        if table.latest().time_ms > now_ms() - BEING_MADE_MS or _is_defined(spark, uid):
            continue
        events = catalog_of(spark).events(spark) if events is None else events
        is_ours = events is not None and not (
            events.where((events.event == "dropped") & events.source_id.startswith(f"{uid} ")).limit(1).isEmpty()
        )
        what = (
            "it holds the rows of a dynamic table that has no definition: a process died while it made or dropped one"
        )
        if is_ours or (_is_empty(table) and not _has_view(spark, name, uid)):
            repair = Repair(partial(_drop, spark, name, uid), "it was dropped")
            remedy = "streamql doctor --fix drops it"
        else:
            repair = None
            remedy = f"DROP TABLE {name}, unless another catalog (spark.streamql.catalog) has the dynamic table"
        yield Problem(Finding(str(name), "warning", "DYNAMIC_TABLE_LEFT_OVER", what, remedy), repair)


def _backing_tables(spark: SparkSession) -> Iterator[tuple[Name, DeltaTable, str]]:
    """Yields all tables that hold rows of dynamic tables, with the ids of their definitions."""
    own = dynamic_session(spark)
    for name in tables_like(own, f"{BACKING_PREFIX}*"):
        found = look_up(own, name) if BACKING_NAME.match(name.object) else None
        if found is not None and found.type == "delta":
            table = DeltaTable(spark, found.path)
            uid = table.latest().configuration.get(MARK)
            if uid is not None:
                yield name, table, uid


def _is_empty(table: DeltaTable) -> bool:
    return table.is_empty(table.latest())


def _has_view(spark: SparkSession, name: Name, uid: str) -> bool:
    """Returns whether a view of its schema was made for the definition."""
    views = dynamic_session(spark).sql(f"SHOW VIEWS IN {quote(name.schema)}").collect()
    return any(mark_of(spark, Name(name.catalog, name.schema, v["viewName"])) == uid for v in views)


def _is_defined(spark: SparkSession, uid: str) -> bool:
    return dynamic_of_id(spark, uid) is not None


def _drop(spark: SparkSession, name: Name, uid: str) -> None:
    if not _is_defined(spark, uid):
        dynamic_session(spark).sql(f"DROP TABLE IF EXISTS {name.sql}")
