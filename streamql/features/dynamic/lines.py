"""Dynamic tables as lines for display, and as records for programs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamql.console.render import quantities
from streamql.durations import in_words
from streamql.errors import counted
from streamql.features.dynamic.refreshes.facts import DynamicFacts
from streamql.features.dynamic.source.table import Schedule

HEADER = ("dynamic table", "reads", "lag", "target", "state", "next refresh", "last refresh")

RANKS = {"failed": 0, "late": 1, "held": 2, "empty": 3, "refreshing": 4, "behind": 5, "suspended": 6, "current": 7}
"""What needs attention comes first."""


@dataclass(frozen=True)
class DynamicLine:
    """A dynamic table in short: one cell a column of HEADER; `trouble`: what is wrong, in a sentence, empty if nothing is."""

    cells: tuple[str, ...]
    state: str
    is_late: bool
    trouble: str

    @property
    def rank(self) -> int:
        """Returns its place among others: lower needs attention sooner."""
        return RANKS[self.state]


def lines(tables: Sequence[DynamicFacts], at_ms: int, *, worst_first: bool = False) -> list[DynamicLine]:
    """Returns a line a dynamic table as it stood at a time, in milliseconds since 1970: in their order, or those with trouble first."""
    made = [line_of(facts, at_ms) for facts in tables]
    return sorted(made, key=lambda line: line.rank) if worst_first else made


def line_of(facts: DynamicFacts, now_ms: int) -> DynamicLine:
    """Returns the line of one dynamic table."""
    cells = (
        facts.name,
        ", ".join((*facts.reads, *facts.sources)),
        lag_text(facts),
        schedule_text(facts.schedule, facts.target_ms),
        facts.state,
        next_text(facts, now_ms),
        last_text(facts, now_ms),
    )
    return DynamicLine(cells, facts.state, facts.is_late, trouble_of(facts))


def lag_text(facts: DynamicFacts) -> str:
    """3 min; where it is above the target: 3 min (late). 0: the table shows all changes."""
    if not facts.is_filled:
        return "never filled"
    shown = in_words(facts.lag_ms) if facts.lag_ms else "0"
    return f"{shown} (late)" if facts.is_late else shown


def schedule_text(schedule: Schedule, target_ms: int | None) -> str:
    """10 minutes; every 5 minutes; downstream (10 minutes); empty: only statements refresh it."""
    if schedule.is_downstream:
        return "downstream" + ("" if target_ms is None else f" ({in_words(target_ms, is_exact=True, is_long=True)})")
    if schedule.lag_ms is not None:
        return in_words(schedule.lag_ms, is_exact=True, is_long=True)
    if schedule.interval_ms is None:
        return ""
    return f"every {in_words(schedule.interval_ms, is_exact=True, is_long=True)}"


def next_text(facts: DynamicFacts, now_ms: int) -> str:
    """Returns when a refresh is due: now; in 3 min; empty: no schedule asks for one."""
    if facts.due_ms is None:
        return ""
    return "now" if facts.is_due(now_ms) else quantities.until(facts.due_ms, now_ms)


def last_text(facts: DynamicFacts, now_ms: int) -> str:
    """5 min ago, +12 ~3 -1; where it failed: FAILED 5 min ago."""
    last = facts.last
    if last is None:
        return "never"
    ago = quantities.ago(last.ended_ms, now_ms)
    if last.outcome != "REFRESHED":
        return f"{last.outcome} {ago}"
    rows = last.rows
    return ago if rows is None else f"{ago}, +{rows['inserted']} ~{rows['updated']} -{rows['deleted']}"


def trouble_of(facts: DynamicFacts) -> str:
    """Returns what is wrong with a dynamic table, in a sentence; empty: nothing."""
    if facts.state == "held":
        return f"no run can refresh it: {facts.held_by}, which it reads, is suspended"
    if facts.state == "failed":
        error = "" if facts.last is None or facts.last.error is None else f": {facts.last.error}"
        times = "its last refresh" if facts.failures == 1 else f"its last {facts.failures} refreshes"
        return f"{times} failed{error}"
    if facts.state == "late" and facts.target_ms is not None:
        lag, target = in_words(facts.lag_ms), in_words(facts.target_ms, is_exact=True, is_long=True)
        return f"it has been behind for {lag}, and its target is {target}: streamql refresh --due --loop keeps it"
    return ""


def summary(tables: Sequence[DynamicFacts]) -> str:
    """3 dynamic tables: 1 late, 2 current."""
    counts: dict[str, int] = {}
    for facts in tables:
        counts[facts.state] = counts.get(facts.state, 0) + 1
    parts = [f"{n} {state}" for state, n in sorted(counts.items(), key=lambda item: RANKS[item[0]])]
    return counted(len(tables), "dynamic table") + (f": {', '.join(parts)}" if parts else "")


RECORD = (
    "name", "type", "state", "schedule", "lag_seconds", "target_seconds", "is_late", "next_refresh", "reads", "sources", "held_by",
    "last_refresh", "last_outcome", "last_reason", "last_rows_inserted", "last_rows_updated", "last_rows_deleted", "last_seconds",
    "last_error", "failures",
)  # fmt: skip
"""The fields of a record, in their order."""

NUMERIC = frozenset(
    (
        "lag_seconds",
        "target_seconds",
        "last_rows_inserted",
        "last_rows_updated",
        "last_rows_deleted",
        "last_seconds",
        "failures",
    )
)


def record(facts: DynamicFacts) -> Mapping[str, object]:
    """Returns a dynamic table for a program: RECORD's fields; times are ISO 8601 in UTC, None: not known, or there is none."""
    last = facts.last
    rows: Mapping[str, int] = {} if last is None or last.rows is None else last.rows
    values: Sequence[object] = (
        facts.name,
        facts.label,
        facts.state,
        schedule_text(facts.schedule, None) or None,
        facts.lag_ms // 1000,
        None if facts.target_ms is None else facts.target_ms // 1000,
        facts.is_late,
        None if facts.due_ms is None else quantities.clock(facts.due_ms),
        ", ".join(facts.reads) or None,
        ", ".join(facts.sources) or None,
        facts.held_by,
        None if last is None else quantities.clock(last.ended_ms),
        None if last is None else last.outcome,
        None if last is None else last.reason,
        rows.get("inserted"),
        rows.get("updated"),
        rows.get("deleted"),
        None if last is None else round((last.ended_ms - last.started_ms) / 1000, 3),
        None if last is None else last.error,
        facts.failures,
    )
    return dict(zip(RECORD, values, strict=True))
