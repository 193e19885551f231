"""A run: refreshes several dynamic tables from the same versions of their source tables, each one after those that it reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from streamql.catalog.events import UNCHANGED
from streamql.consume import session_transactions
from streamql.errors import StreamqlError
from streamql.features.dynamic.refreshes.refresh import (
    Overtaken,
    Result,
    code_of,
    pinned_versions,
    refresh_table,
)
from streamql.features.dynamic.refreshes.status import REFRESHED
from streamql.features.dynamic.source.backing import reads_of
from streamql.features.dynamic.source.graph import in_order
from streamql.features.dynamic.source.table import DynamicTable, all_dynamic

ATTEMPTS_MAX = 10
"""How often a run starts again because another process was ahead of it, or because a query reads other dynamic tables than before."""

FAILED, SKIPPED = "FAILED", "SKIPPED"

BUSY_CODES = frozenset(("STREAM_BUSY", "STREAM_MOVED"))
"""The codes of errors which mean that another process refreshes the table."""


@dataclass(frozen=True)
class Outcome:
    """What became of a table in a run. It has one of three: `result`, the result of its refresh; `error`; or `held_by`, a table that it
    reads and that was not refreshed, because it failed or is suspended."""

    table: DynamicTable
    result: Result | None = None
    error: Exception | None = None
    held_by: DynamicTable | None = None
    duration_ms: int = 0

    @property
    def word(self) -> str:
        """Returns REFRESHED, UNCHANGED, FAILED or SKIPPED. SKIPPED: another table held it up, or another process refreshes it."""
        if self.result is not None:
            return self.result.outcome
        return FAILED if self.error is not None and code_of(self.error) not in BUSY_CODES else SKIPPED


Report = Callable[[DynamicTable, Outcome | None], None]
"""Called when the refresh of a table begins (with None), and when it has ended. If there are several jobs, several threads call it at
once."""


def nothing(_: DynamicTable, __: Outcome | None) -> None:
    """Reports nothing."""


def never() -> bool:
    """Returns False: the run does not stop early."""
    return False


def refresh_created(spark: SparkSession, table: DynamicTable) -> None:
    """Does the first refresh of a new table, and refreshes the dynamic tables that it reads."""
    run(spark, [table])


def run(spark: SparkSession, wanted: Sequence[DynamicTable]) -> list[Result]:
    """Refreshes tables, and the dynamic tables that they read, for a statement. It runs in the calling thread, and ends with the first
    error. Raises DYNAMIC_TABLE_SUSPENDED if a table that is read is suspended, STREAM_BUSY, and what a refresh raises."""
    outcomes = _run(spark, wanted, jobs=1, report=nothing, stops=never, is_strict=True)
    return [o.result for o in outcomes if o.result is not None]


def run_all(
    spark: SparkSession,
    wanted: Sequence[DynamicTable],
    *,
    jobs: int = 1,
    report: Report = nothing,
    stops: Callable[[], bool] = never,
) -> list[Outcome]:
    """Refreshes tables, and the dynamic tables that they read, up to `jobs` at once. Returns the outcomes in the order of the graph.

    A table that fails holds up only the tables that read it. A suspended table is refreshed if it is among `wanted`. Otherwise it holds up
    the tables that read it. `stops`: called before each refresh; if it returns True, no further refresh begins.
    """
    return _run(spark, wanted, jobs=jobs, report=report, stops=stops, is_strict=False)


def _run(
    spark: SparkSession,
    wanted: Sequence[DynamicTable],
    *,
    jobs: int,
    report: Report,
    stops: Callable[[], bool],
    is_strict: bool,
) -> list[Outcome]:
    session_transactions.refuse_in_transaction(spark, "REFRESH")
    asked = {t.definition.uuid: t for t in wanted}
    earlier: dict[str, Outcome] = {}
    others: dict[str, list[str]] = {}  # the reads of tables that read other tables than at their last refresh
    for _ in range(ATTEMPTS_MAX):
        tables = {t.definition.uuid: t for t in all_dynamic(spark)}
        reads = reads_of(spark, tables.values()) | {uid: read for uid, read in others.items() if uid in tables}
        order = in_order([uid for uid in asked if uid in tables], reads)
        suspended = {uid for uid in order if tables[uid].is_suspended and uid not in asked}
        if is_strict and suspended:
            raise _suspended(tables[next(uid for uid in order if uid in suspended)], wanted[0])
        pinned = pinned_versions(spark, [tables[uid] for uid in order], tables.values())
        one = _Round(spark, tables, reads, suspended, pinned, report, stops, is_strict, earlier)
        try:
            one.play([uid for uid in order if uid not in suspended], jobs)
        except Overtaken as e:
            earlier |= one.done
            others |= e.reads
            continue
        return [one.done[uid] for uid in order if uid in one.done]
    busy = StreamqlError(
        "STREAM_BUSY",
        f"other processes keep refreshing {wanted[0].name} or a dynamic table that it reads",
        hint="run the statement again",
    )
    if is_strict:
        raise busy
    return [earlier.get(uid) or Outcome(t, error=busy) for uid, t in asked.items()]


def _suspended(table: DynamicTable, reader: DynamicTable) -> StreamqlError:
    return StreamqlError(
        "DYNAMIC_TABLE_SUSPENDED",
        f"the {table.definition.type.value} {table.name}, which {reader.name} reads, is suspended",
        hint=f"ALTER {table.label} {table.name} RESUME; or streamql refresh {table.name} {reader.name}",
    )


@dataclass
class _Round:
    """One attempt at a run, with fixed versions. `earlier`: the outcomes of earlier attempts. `done`: its own outcomes, which `play`
    adds."""

    spark: SparkSession
    tables: Mapping[str, DynamicTable]
    reads: Mapping[str, list[str]]
    suspended: set[str]
    pinned: dict[tuple[str, str], int]
    report: Report
    stops: Callable[[], bool]
    is_strict: bool
    earlier: Mapping[str, Outcome]
    done: dict[str, Outcome] = field(default_factory=dict)

    def play(self, order: Sequence[str], jobs: int) -> None:
        """Refreshes the tables. Raises `Overtaken`, and, if it is strict, the error of the first refresh that fails."""
        if jobs == 1:
            for uid in order:
                if self.stops():
                    return
                self._note(uid, self._refresh(uid))
            return
        left, running = list(order), dict[Future[Outcome], str]()
        overtaken: Overtaken | None = None
        with ThreadPoolExecutor(jobs, thread_name_prefix="streamql-refresh") as pool:
            while True:
                ready = [] if overtaken or self.stops() else [uid for uid in left if self._is_ready(uid)]
                for uid in ready[: jobs - len(running)]:
                    left.remove(uid)
                    running[pool.submit(self._refresh, uid)] = uid
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    uid = running.pop(future)
                    try:
                        self._note(uid, future.result())
                    except Overtaken as e:
                        overtaken = e
        if overtaken:
            raise overtaken

    def _is_ready(self, uid: str) -> bool:
        return all(other in self.done or other in self.suspended for other in self.reads[uid])

    def _refresh(self, uid: str) -> Outcome:
        """Refreshes one table, unless a table that it reads holds it up, or it has failed in an earlier attempt."""
        table, before = self.tables[uid], self.earlier.get(uid)
        if before is not None and before.word == FAILED:
            return before
        held_by = next(
            (o for o in self.reads[uid] if o in self.suspended or (o in self.done and self.done[o].result is None)),
            None,
        )
        if held_by is not None:
            outcome = Outcome(table, held_by=self.tables[held_by])
            self.report(table, outcome)
            return outcome
        self.report(table, None)
        started = time.monotonic()
        try:
            result = refresh_table(self.spark, table, self.pinned, self.reads[uid])
            outcome = Outcome(table, result, duration_ms=result.duration_ms)
        except Overtaken:
            raise
        except Exception as e:
            if self.is_strict:
                raise
            outcome = Outcome(table, error=e, duration_ms=int((time.monotonic() - started) * 1000))
        outcome = outcome if before is None else together(before, outcome)
        self.report(table, outcome)
        return outcome

    def _note(self, uid: str, outcome: Outcome) -> None:
        self.done[uid] = outcome
        if outcome.result is not None:
            backing = self.tables[uid].backing
            self.pinned[backing.table_id, backing.path] = outcome.result.version


def together(before: Outcome, now: Outcome) -> Outcome:
    """Returns the joint outcome of a table that two attempts of one run have refreshed."""
    duration = before.duration_ms + now.duration_ms
    if before.result is None or now.result is None or before.result.outcome == UNCHANGED:
        return replace(now, duration_ms=duration)
    if now.result.outcome == UNCHANGED:
        return replace(now, result=replace(before.result, version=now.result.version), duration_ms=duration)
    rows = {k: before.result.rows.get(k, 0) + now.result.rows.get(k, 0) for k in now.result.rows}
    result = replace(now.result, outcome=REFRESHED, rows=rows, duration_ms=duration)
    return Outcome(now.table, result, duration_ms=duration)
