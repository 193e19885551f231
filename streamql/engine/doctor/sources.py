"""The checks of sources: whether the changes that streams still have to read can be read, and for how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.engine.doctor.check import Check, Finding, Problem, finding_of, unread, with_sources
from streamql.engine.retention import EXTENDED_BY_MS, extend, forgotten, held_tables, removed_behind
from streamql.errors import StreamqlError
from streamql.model import Interval
from streamql.reading import interval_now
from streamql.settings import MAX_RETENTION_EXTENSION
from streamql.sources.protocol import Opened, OpenSource
from streamql.sources.registry import open_source, type_of
from streamql.sources.tables.history import TRACKING_LINE
from streamql.sources.tables.retention import file_retention_ms, log_retention_ms
from streamql.sources.tables.table import OpenTable
from streamql.times import DAY_MS, iso, now_ms


class Sources(Check[None]):
    """Finds sources that cannot be opened or read. Has no fix."""

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[None]]:
        """See Check."""
        for state, opened in with_sources(spark, states):
            finding = self._finding(spark, state, opened)
            if finding is not None:
                yield Problem(finding)

    def _finding(self, spark: SparkSession, state: StreamState, opened: Opened | None) -> Finding | None:
        name = str(state.name)
        try:
            source = open_source(spark, state.stream.source, opened)
            interval = interval_now(spark, state, source)
            for table in held_tables(spark, source, interval):
                if table.needs_tracking and not table.tracks_changes:
                    what = f"{table.ref.name} has change tracking off"
                    remedy = f"{TRACKING_LINE.format(table.ref.name)}, then CREATE OR REPLACE the stream"
                    return Finding(name, "error", "CHANGE_TRACKING_DISABLED", what, remedy)
            if not interval.is_empty:
                # The DataFrame is lazy: this reads the log and checks the files, but reads no rows.
                source.changes(interval, state.stream.mode)
        except StreamqlError as e:
            return finding_of(name, e)
        except Exception as e:  # also errors of the storage, so that the other streams are still checked
            what = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
            where = state.stream.source.path or state.stream.source.name
            return Finding(name, "error", "STREAM_INVALID", what, f"check whether {where} can be read")
        return None


@dataclass(frozen=True)
class Expiring:
    """Tables that keep their history for less time than a stream needs it. `lag_ms`: the age of the first change that the stream needs."""

    tables: Sequence[OpenTable]
    lag_ms: int


class Staleness(Check[Expiring]):
    """Finds streams that may become stale soon. The fix extends the retention of their sources.

    A stream whose interval cannot be read as a whole is checked as well, because batches of it may be readable. Streams that are stale
    already are left out.
    """

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[Expiring]]:
        """See Check."""
        for state, opened in with_sources(spark, states):
            found = unread(spark, state, opened)
            if found is not None and not _is_gone(*found, state):
                problem = self._problem(spark, state, *found)
                if problem is not None:
                    yield problem

    def fix(self, spark: SparkSession, problems: Sequence[Problem[Expiring]]) -> list[Finding]:
        """See Check."""
        findings = []
        for problem in problems:
            needed = problem.for_fix
            extended = [(t, days) for t in needed.tables if (days := extend(spark, t, needed.lag_ms))] if needed else []
            kept = ", ".join(f"{table.ref.name} keeps its history for {days} days now" for table, days in extended)
            done = replace(problem.finding, remedy=f"{kept}, until the stream has caught up; consume it", is_fixed=True)
            findings.append(done if extended else problem.finding)
        return findings

    def _problem(
        self, spark: SparkSession, state: StreamState, source: OpenSource, interval: Interval
    ) -> Problem[Expiring] | None:
        expiry = source.expiry(interval, state.stream.mode)
        if expiry is None or expiry.at_ms is None or not expiry.is_soon:
            return None
        when = f"{'since' if expiry.at_ms <= now_ms() else 'at'} {iso(expiry.at_ms)}"
        advice = type_of(source.ref).keep_longer
        if advice:  # the history is not that of Delta tables, whose retention could be altered
            what = f"what it has still to read may be deleted by its source {when}"
            return Problem(Finding(str(state.name), "warning", "STREAM_STALE", what, f"consume it, or {advice}"))
        what = f"what it has still to read may be removed by VACUUM and log cleanup {when}"
        lag, tables = now_ms() - expiry.first_ms, held_tables(spark, source, interval)
        alter = [
            f"ALTER TABLE {table.ref.name} SET PROPERTIES ('data_retention_days' = '{-(-wanted // DAY_MS)}')"
            for table in tables
            # data_retention_days also sets the retention of the log, which must not become shorter.
            for wanted in [max(lag + EXTENDED_BY_MS, log_retention_ms(spark, table.snapshot.configuration))]
        ]
        remedy = (
            f"consume it, or {', '.join(alter)}; "
            f"streamql doctor --fix keeps what it needs for as long as it lags, up to {MAX_RETENTION_EXTENSION.key}"
        )
        return Problem(Finding(str(state.name), "warning", "STREAM_STALE", what, remedy), Expiring(tables, lag))


class Files(Check[None]):
    """Finds files that a stream still has to read and that the next VACUUM removes, although they are within the table's retention: a
    checkpoint has dropped their remove actions. Has no fix. It runs after the fix of Staleness, which may have extended the retention."""

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[None]]:
        """See Check."""
        for state, opened in with_sources(spark, states):
            found = unread(spark, state, opened)
            if found is not None and not _is_gone(*found, state):
                for table in held_tables(spark, *found):
                    finding = self._finding(spark, state, table)
                    if finding is not None:
                        yield Problem(finding)

    def _finding(self, spark: SparkSession, state: StreamState, table: OpenTable) -> Finding | None:
        kept_since = now_ms() - file_retention_ms(spark, table.snapshot.configuration)
        lost = forgotten(table, [r for r in removed_behind(table, state) if r.time_ms >= kept_since])
        if not lost:
            return None
        what = (
            f"it has still to read files that were removed at {iso(min(r.time_ms for r in lost))}, and a checkpoint has dropped their "
            "removals: the next VACUUM takes them, however long the source keeps its history"
        )
        remedy = "consume it; sessions of streamql refuse VACUUM until then"
        return Finding(str(state.name), "warning", "STREAM_NEEDS_FILES", what, remedy)


def _is_gone(source: OpenSource, interval: Interval, state: StreamState) -> bool:
    """Returns whether the history is lost already, or cannot be read. The check of sources reports both."""
    try:
        source.changes(interval, state.stream.mode)
    except StreamqlError as e:
        return e.code == "STREAM_STALE"
    except Exception:
        return True
    return False
