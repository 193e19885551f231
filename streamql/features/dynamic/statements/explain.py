"""EXPLAIN REFRESH: what a refresh of a dynamic table would do now, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from streamql.catalog.events import UNCHANGED
from streamql.delta.neutral import dynamic_session
from streamql.features.dynamic.refreshes.refresh import (
    REASONS,
    choose_mode,
    due,
    free_stream,
    pinned_versions,
)
from streamql.features.dynamic.refreshes.status import REFRESHED, newest_refreshes
from streamql.features.dynamic.refreshes.timings import timings_of
from streamql.features.dynamic.source.analysis import not_incremental
from streamql.features.dynamic.source.backing import query_of, shown_names
from streamql.features.dynamic.source.costs import (
    FULL,
    INCREMENTAL,
    Estimate,
    TableReads,
    Timings,
    bytes_text,
    expected_ms,
    seconds_text,
)
from streamql.features.dynamic.source.refresh import open_refresh
from streamql.features.dynamic.source.table import DynamicTable, all_dynamic
from streamql.model import Interval
from streamql.sources.protocol import Backlog
from streamql.sources.views.positions import parts_of
from streamql.sources.views.texts import STRATEGIES

Property = tuple[str, str | None]


def explain(spark: SparkSession, table: DynamicTable) -> list[Property]:
    """Returns what a refresh of a table would do now, as rows (property, value). The dynamic tables that it reads are taken as they are."""
    state = free_stream(spark, table)
    reason, opened, through = due(spark, table, state, pinned_versions(spark, [table], all_dynamic(spark)))
    after, names = parts_of(state.offset.position), shown_names(spark)
    versions: list[Property] = []
    for part, version in parts_of(through).items():
        since = after.get(part)
        what = f"after {since}, through {version}" if since is not None and since != version else f"{version}"
        versions.append((f"versions of {names.get(part, part)}", what))
    if opened is None:
        opened = open_refresh(dynamic_session(spark), query_of(state))
    why = not_incremental(opened.query)
    last: list[Property] = [
        ("can be incremental", "yes" if why is None else f"not if all sources have changed: the query {why}"),
        *_last(spark, table),
    ]
    if reason is None:
        return [*_choice(UNCHANGED, None, None, None), *versions, *last, *_operators(opened.strategies())]
    timings = partial(timings_of, spark, table, state)
    choice = choose_mode(opened, state, through, reason, timings)
    chosen = [*_choice(REFRESHED, choice.mode, REASONS[reason], choice.why), *versions]
    explained = None
    if reason == "CHANGED":
        explained = opened.explained(Interval(state.offset.position, through), choice.estimate)
    if explained is None:
        return [*chosen, *last]
    shown = {t.ref.table_id: names.get(part, part) for part, t in sorted(opened.tables.items())}
    return [
        *chosen,
        *((f"changes of {names.get(part, part)}", _rows(backlog)) for part, backlog in explained.changes.items()),
        *([] if explained.estimate is None else _estimated(explained.estimate, shown, timings)),
        *last,
        *_operators(explained.strategies),
    ]


def _choice(outcome: str, mode: str | None, reason: str | None, why: str | None) -> list[Property]:
    return [
        ("outcome", outcome),
        ("mode", mode),
        ("reason", reason),
        ("why_not_incremental", why if mode == FULL else None),
        ("why_incremental", why if mode == INCREMENTAL else None),
    ]


def _last(spark: SparkSession, table: DynamicTable) -> list[Property]:
    """Returns how the last refresh of a table went. Empty: the ledger has none."""
    last = newest_refreshes(spark, [table]).get(table.definition.uuid)
    if last is None:
        return []
    return [
        ("last outcome", last.outcome),
        ("last mode", last.mode),
        ("last duration", seconds_text(last.ended_ms - last.started_ms)),
        ("last why_not_incremental", last.why_full),
    ]


def _estimated(read: Estimate, names: Mapping[str, str], timings: Timings) -> list[Property]:
    """Returns what both modes read, and how long they take. `names`: of tables, by their ids."""
    known = [] if read.is_small else timings()
    expected = [(mode, expected_ms(known, mode, read.of(mode))) for mode in (INCREMENTAL, FULL)]
    return [
        *((f"estimated read of {name}", _reads(read.tables[uid])) for uid, name in names.items() if uid in read.tables),
        *((f"estimated read, {mode.lower()}", bytes_text(read.of(mode))) for mode in (INCREMENTAL, FULL)),
        *((f"estimated time, {mode.lower()}", seconds_text(ms)) for mode, ms in expected if ms is not None),
    ]


def _operators(strategies: Sequence[Mapping[str, Any]]) -> list[Property]:
    return [
        (f"operator {i:02}, incremental", f"{_branch(one['depth'])}{one['operator']}: {STRATEGIES[one['way']]}")
        for i, one in enumerate(strategies, start=1)
    ]


def _branch(depth: int) -> str:
    """Returns what stands before an operator, as in the plans that Spark's EXPLAIN prints."""
    return f"{':  ' * (depth - 1)}+- " if depth else ""


def _reads(table: TableReads) -> str:
    """Returns what each mode reads of a table, as if no file were skipped."""
    times = {0: [], 1: ["all files"]}.get(table.incremental, [f"all files {table.incremental} times"])
    what = " and ".join([*times, *(["the changes"] if table.changes else [])])
    incremental = f"{bytes_text(table.bytes_of(INCREMENTAL))} ({what})" if what else "nothing"
    return f"incremental {incremental}; full {bytes_text(table.bytes_of(FULL))}"


def _rows(backlog: Backlog) -> str:
    """Returns what a table changed, at most: where files were rewritten, rows that stayed count as well."""
    counts = [(backlog.rows_added, "added"), (backlog.rows_removed, "removed")]
    rows = [f"{n:,} {'row' if n == 1 else 'rows'} {what}" for n, what in counts if n]
    files = f"{backlog.files} {'file' if backlog.files == 1 else 'files'}, {bytes_text(backlog.bytes)}"
    return f"at most {', '.join(rows)}; {files}" if rows else files
