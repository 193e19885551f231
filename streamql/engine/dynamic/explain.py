"""EXPLAIN REFRESH: what a refresh of a dynamic table would do now, and how."""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from streamql.engine.dynamic.refresh import (
    REASONS,
    REFRESHED,
    UNCHANGED,
    choose_mode,
    due,
    free_stream,
    pinned_versions,
)
from streamql.engine.dynamic.tables import shown_names
from streamql.engine.dynamic.timings import timings_of
from streamql.model import Interval
from streamql.sources.protocol import Backlog
from streamql.sources.queries.dynamic import DynamicTable, all_dynamic
from streamql.sources.queries.query import parts_of
from streamql.sources.queries.refresh import Explained
from streamql.sources.queries.refresh_costs import FULL, INCREMENTAL, Timings, bytes_text, expected_ms, seconds_text
from streamql.sources.queries.texts import WAYS

Fact = tuple[str, str | None]


def explain(spark: SparkSession, table: DynamicTable) -> list[Fact]:
    """Returns what a refresh of a table would do now, as facts. The dynamic tables that it reads are taken as they are."""
    state = free_stream(spark, table)
    reason, opened, through = due(spark, table, state, pinned_versions(spark, [table], all_dynamic(spark)))
    after = parts_of(state.offset.position)
    timings = partial(timings_of, spark, table, state)
    choice = None if opened is None or reason is None else choose_mode(opened, state, through, reason, timings)
    facts: list[Fact] = [
        ("outcome", UNCHANGED if reason is None else REFRESHED),
        ("mode", None if choice is None else choice.mode),
        ("reason", None if reason is None else REASONS[reason]),
        ("why_not_incremental", None if choice is None else choice.why_full),
    ]
    names = shown_names(spark)
    for part, version in parts_of(through).items():
        since = after.get(part)
        what = f"after {since}, through {version}" if since is not None else f"{version}"
        facts.append((f"versions of {names.get(part, part)}", what))
    if opened is not None and choice is not None and reason == "CHANGED":
        explained = opened.explained(Interval(state.offset.position, through), choice.estimate)
        if explained is not None:
            facts += _details(explained, names, timings)
    return facts


def _details(explained: Explained, names: dict[str, str], timings: Timings) -> list[Fact]:
    facts: list[Fact] = [
        (f"changes of {names.get(part, part)}", _rows(backlog)) for part, backlog in explained.changes.items()
    ]
    if explained.estimate is not None:
        read = explained.estimate
        known = [] if read.is_small else timings()
        facts += [(f"estimated read, {mode.lower()}", bytes_text(read.of(mode))) for mode in (INCREMENTAL, FULL)]
        expected = [(mode, expected_ms(known, mode, read.of(mode))) for mode in (INCREMENTAL, FULL)]
        facts += [(f"estimated time, {mode.lower()}", seconds_text(ms)) for mode, ms in expected if ms is not None]
    for i, one in enumerate(explained.ways, start=1):
        facts.append((f"operator {i:02}", f"{_branch(one['depth'])}{one['operator']}: {WAYS[one['way']]}"))
    return facts


def _branch(depth: int) -> str:
    """Returns what stands before an operator, as in the plans that Spark's EXPLAIN prints."""
    return f"{':  ' * (depth - 1)}+- " if depth else ""


def _rows(backlog: Backlog) -> str:
    """Returns what a table changed, at most: where files were rewritten, rows that stayed count as well."""
    counts = [(backlog.rows_added, "added"), (backlog.rows_removed, "removed")]
    rows = [f"{n:,} {'row' if n == 1 else 'rows'} {what}" for n, what in counts if n]
    files = f"{backlog.files} {'file' if backlog.files == 1 else 'files'}, {bytes_text(backlog.bytes)}"
    return f"at most {', '.join(rows)}; {files}" if rows else files
