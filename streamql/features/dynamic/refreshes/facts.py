"""The status of dynamic tables for operators: the lag and its target, the last refresh, and when the next one is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import SparkSession

from streamql.engine.ledger import or_nothing
from streamql.features.dynamic.refreshes.due import Timing, due_times, held_by, is_due
from streamql.features.dynamic.refreshes.status import DynamicStatus, Recent, Refresh, recent_refreshes, statuses
from streamql.features.dynamic.source.table import DynamicTable, Schedule, all_dynamic
from streamql.times import now_ms

DynamicState = Literal["failed", "late", "held", "suspended", "refreshing", "empty", "behind", "current"]


@dataclass(frozen=True)
class DynamicFacts:
    """The present status of a dynamic table. Times in milliseconds since 1970, durations in milliseconds.

    `lag_ms`: how long it has been behind. `target_ms`: how long it may be behind; None: it has no such schedule. `reads`, `sources`: the
    names of the dynamic tables, and of the other tables, that it reads. `due_ms`: when a refresh is due; None: its schedule never refreshes
    it. `held_by`: a suspended table that it reads, which keeps all runs from refreshing it; None: there is none. `last`: its last refresh.
    `failures`: how many refreshes have failed in a row. `failed_since_ms`: when the first of these ended; None: none has failed, or the
    ledger does not have it.
    """

    uuid: str
    name: str
    label: str
    schedule: Schedule
    is_suspended: bool
    is_filled: bool
    is_refreshing: bool
    lag_ms: int
    target_ms: int | None = None
    reads: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    due_ms: int | None = None
    held_by: str | None = None
    last: Refresh | None = None
    failures: int = 0
    failed_since_ms: int | None = None

    @property
    def is_late(self) -> bool:
        """Returns whether it has been behind for longer than its target."""
        return self.target_ms is not None and self.lag_ms > self.target_ms

    @property
    def state(self) -> DynamicState:
        """Returns one word for the status. If several apply, it is the one that needs attention most."""
        if self.is_suspended:
            return "suspended"
        if self.held_by is not None:
            return "held"
        if self.failures:
            return "failed"
        if self.is_refreshing:
            return "refreshing"
        if self.is_late:
            return "late"
        if not self.is_filled:
            return "empty"
        return "behind" if self.lag_ms else "current"

    def is_due(self, at_ms: int) -> bool:
        """Returns whether its schedule makes a refresh due at a time."""
        return is_due(self.due_ms, at_ms)


@dataclass(frozen=True)
class Tried:
    """The last refresh of a table by this process. The ledger may not have it, because a refresh that changes nothing adds no row.

    `began_ms`, `ended_ms`: when it ran, in milliseconds since 1970. `failures`: how many refreshes in a row failed or were held up.
    """

    began_ms: int
    ended_ms: int
    failures: int = 0


def dynamic_facts(
    spark: SparkSession,
    chosen: Sequence[DynamicTable] | None = None,
    *,
    tried: Mapping[str, Tried] | None = None,
) -> list[DynamicFacts]:
    """Returns the present status of dynamic tables, sorted by name. Reads the logs, and the ledger by one job. `chosen`: these tables;
    None: all. `tried`: the refreshes of this process, by the id of the definition. Raises CATALOG_UNREADABLE."""
    known = all_dynamic(spark)
    if not known:
        return []
    return facts_of(spark, or_nothing(lambda: recent_refreshes(spark, known), "last refresh"), chosen, tried=tried)


def facts_of(
    spark: SparkSession,
    recent: Mapping[str, Recent],
    chosen: Sequence[DynamicTable] | None = None,
    *,
    tried: Mapping[str, Tried] | None = None,
) -> list[DynamicFacts]:
    """Returns what `dynamic_facts` returns. `recent`: the last refreshes, by the id of the definition, so that no job is needed."""
    found = {s.table.definition.uuid: s for s in statuses(spark)}
    ids = {str(s.table.name): uid for uid, s in found.items()}
    now = now_ms()
    timings = {
        uid: timing(s, recent.get(uid), (tried or {}).get(uid), [ids[n] for n in s.reads if n in ids])
        for uid, s in found.items()
    }
    due, held = due_times(timings, now), held_by(timings)
    wanted = set(found) if chosen is None else {t.definition.uuid for t in chosen}
    made = []
    for uid, status in found.items():
        if uid in wanted:
            by = found[held[uid]].table if uid in held else None
            made.append(_facts(status, recent.get(uid), timings[uid], due[uid], None if by is None else str(by.name)))
    return sorted(made, key=lambda f: f.name)


def timing(status: DynamicStatus, recent: Recent | None, tried: Tried | None, reads: Sequence[str]) -> Timing:
    """Returns the properties of a table that say when it is due. `reads`: the ids of the dynamic tables that it reads."""
    began = [recent.last.started_ms] if recent else []
    failures, failed_ms = (recent.failures, recent.last.ended_ms) if recent and recent.failures else (0, 0)
    failures = failures or int(status.has_failed)
    behind = status.behind_since_ms
    if tried is not None:
        began.append(tried.began_ms)
        if tried.failures:
            failures, failed_ms = max(failures, tried.failures), max(failed_ms, tried.ended_ms)
        elif recent is None or recent.last.ended_ms <= tried.ended_ms:
            failures = 0
            # The refresh has seen all changes up to its begin, even if the offset did not move.
            behind = None if behind is None else max(behind, tried.began_ms)
    return Timing(
        schedule=status.table.schedule,
        is_suspended=status.table.is_suspended,
        is_filled=status.positions is not None,
        behind_since_ms=behind,
        tried_ms=max(began, default=None),
        duration_ms=recent.duration_ms if recent else 0,
        failures=failures,
        failed_ms=failed_ms,
        reads=tuple(reads),
    )


def _facts(
    status: DynamicStatus, recent: Recent | None, timing: Timing, due_ms: int | None, held: str | None
) -> DynamicFacts:
    table = status.table
    return DynamicFacts(
        uuid=table.definition.uuid,
        name=str(table.name),
        label=table.label,
        schedule=table.schedule,
        is_suspended=table.is_suspended,
        is_filled=status.positions is not None,
        is_refreshing=status.is_refreshing,
        lag_ms=status.lag_ms,
        target_ms=status.target_ms,
        reads=status.reads,
        sources=status.sources,
        due_ms=due_ms,
        held_by=held,
        last=None if recent is None else recent.last,
        failures=timing.failures,
        failed_since_ms=None if recent is None else recent.failed_since_ms,
    )
