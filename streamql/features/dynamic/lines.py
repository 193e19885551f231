"""Dynamic tables in words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from streamql.console.render import quantities
from streamql.console.status import Line, Listing, Subject
from streamql.durations import in_words

if TYPE_CHECKING:
    from streamql.features.dynamic.refreshes.facts import DynamicFacts
    from streamql.features.dynamic.source.table import Schedule


def listing(tables: Sequence[DynamicFacts], at_ms: int) -> Listing:
    """Returns dynamic tables as they stood at a time, in milliseconds since 1970."""
    return Listing(DYNAMIC_TABLES, [line_of(facts, at_ms) for facts in tables])


def line_of(facts: DynamicFacts, now_ms: int) -> Line:
    """Returns the line of one dynamic table."""
    last = facts.last
    marks = {"lag": "late"} if facts.is_late else {}
    return Line(
        name=facts.name,
        origin=", ".join((*facts.reads, *facts.sources)),
        lag=lag_text(facts),
        amount=target_text(facts.schedule, facts.target_ms),
        state=facts.state,
        deadline=next_text(facts, now_ms),
        last=last_text(facts, now_ms),
        tone=DYNAMIC_TABLES.states[facts.state],
        trouble=trouble_of(facts),
        error="" if last is None or not facts.failures else last.error or last.outcome,
        marks=marks | {"last": "failed"} if facts.state == "failed" else marks,
        record={name: read(facts) for name, read in RECORD.items()},
    )


def lag_text(facts: DynamicFacts) -> str:
    """3 min; where it is above the target: 3 min (late). 0: the table shows all changes."""
    if not facts.is_filled:
        return "never filled"
    shown = in_words(facts.lag_ms) if facts.lag_ms else "0"
    return f"{shown} (late)" if facts.is_late else shown


def schedule_text(schedule: Schedule) -> str:
    """10 minutes; every 5 minutes; downstream; empty: only statements refresh it."""
    if schedule.is_downstream:
        return "downstream"
    if schedule.lag_ms is not None:
        return in_words(schedule.lag_ms, is_exact=True, is_long=True)
    if schedule.interval_ms is None:
        return ""
    return f"every {in_words(schedule.interval_ms, is_exact=True, is_long=True)}"


def target_text(schedule: Schedule, target_ms: int | None) -> str:
    """10 minutes; every 5 minutes; downstream (10 minutes): the least target of the tables that read it."""
    text = schedule_text(schedule)
    return (
        f"{text} ({in_words(target_ms, is_exact=True, is_long=True)})"
        if schedule.is_downstream and target_ms is not None
        else text
    )


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
        return held_text(facts)
    if facts.state == "failed":
        return failed_text(facts)
    if facts.state == "late":
        return f"{late_text(facts)}: streamql scheduler keeps it"
    return ""


def held_text(facts: DynamicFacts) -> str:
    """Says why no run can refresh a table that reads a suspended one."""
    return f"no run can refresh it: {facts.held_by}, which it reads, is suspended"


def failed_text(facts: DynamicFacts, since: str = "") -> str:
    """Says how many refreshes of a table failed in a row, and why. `since`: when the first did; empty: this is not said."""
    if facts.failures == 1:
        times = f"its last refresh failed{since and f' at {since}'}"
    else:
        times = f"its last {facts.failures} refreshes failed{since and f', the first at {since}'}"
    return times if facts.last is None or facts.last.error is None else f"{times}: {facts.last.error}"


def late_text(facts: DynamicFacts) -> str:
    """Says how late a table is that has a target."""
    behind, target = in_words(facts.lag_ms), in_words(facts.target_ms or 0, is_exact=True, is_long=True)
    return f"it has been behind for {behind}, and its target is {target}"


RECORD: Mapping[str, Callable[[DynamicFacts], object]] = {
    "name": lambda t: t.name,
    "type": lambda t: t.label,
    "state": lambda t: t.state,
    "schedule": lambda t: schedule_text(t.schedule) or None,
    "lag_seconds": lambda t: t.lag_ms // 1000,
    "target_seconds": lambda t: None if t.target_ms is None else t.target_ms // 1000,
    "is_late": lambda t: t.is_late,
    "next_refresh": lambda t: None if t.due_ms is None else quantities.clock(t.due_ms),
    "reads": lambda t: ", ".join(t.reads) or None,
    "sources": lambda t: ", ".join(t.sources) or None,
    "held_by": lambda t: t.held_by,
    "last_refresh": lambda t: t.last and quantities.clock(t.last.ended_ms),
    "last_outcome": lambda t: t.last and t.last.outcome,
    "last_reason": lambda t: t.last and t.last.reason,
    "last_rows_inserted": lambda t: t.last and t.last.rows and t.last.rows["inserted"],
    "last_rows_updated": lambda t: t.last and t.last.rows and t.last.rows["updated"],
    "last_rows_deleted": lambda t: t.last and t.last.rows and t.last.rows["deleted"],
    "last_seconds": lambda t: t.last and round((t.last.ended_ms - t.last.started_ms) / 1000, 3),
    "last_error": lambda t: t.last and t.last.error,
    "failures": lambda t: t.failures,
}
"""The fields of a record, in their order; times are ISO 8601 in UTC, None: not known, or there is none."""

NUMERIC = frozenset((
    "lag_seconds", "target_seconds", "last_rows_inserted", "last_rows_updated", "last_rows_deleted", "last_seconds", "failures",
))  # fmt: skip

DYNAMIC_TABLES = Subject(
    noun="dynamic table",
    header={
        "name": "dynamic table",
        "origin": "reads",
        "lag": "lag",
        "amount": "target",
        "state": "state",
        "deadline": "next refresh",
        "last": "last refresh",
    },
    states={
        "failed": "bad",
        "late": "bad",
        "held": "warn",
        "empty": "warn",
        "refreshing": "busy",
        "behind": "good",
        "suspended": "quiet",
        "current": "fine",
    },
    fields=tuple(RECORD),
    numeric=NUMERIC,
)
