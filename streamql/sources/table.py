"""Delta tables as sources of streams: found by identity, read by interval, asked from the log."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

from pyspark.sql import DataFrame, SparkSession

from streamql.changes import HIDDEN_COLUMNS, change_set, read_commits
from streamql.changes.plan import ChangePlan, Piece, PlanKind, plan_changes
from streamql.changes.scan import followed
from streamql.changes.schema import Epoch, check_compatible, fields
from streamql.delta.log import Commit, CommitMissing
from streamql.delta.names import look_up, tables_of
from streamql.delta.table import DeltaTable, Snapshot, duration_ms
from streamql.errors import StreamqlError
from streamql.model import METADATA_COLUMNS, Interval, StreamMode, TableSource
from streamql.names import Name, quote
from streamql.times import DAY_MS, now_ms

log = logging.getLogger("streamql")


@dataclass(frozen=True)
class OpenSource:
    """A source found: its table and the newest version there is."""

    spark: SparkSession
    source: TableSource
    table: DeltaTable
    latest: Snapshot

    def changes(self, interval: Interval, mode: StreamMode) -> DataFrame:
        """The change set of an interval. Lazy."""
        return change_set(self.spark, self.table.path, interval, mode, self.table, self.latest)

    def as_at(self, version: int, frame: DataFrame, end: int) -> DataFrame:
        """The change set of an interval that ends at `end`, in the table's columns of a later version, NULL in those that came since. Lazy.
        Raises INCOMPATIBLE_SCHEMA_CHANGE."""
        then, now = self.table.at(end).metadata, self.table.at(version)
        if then["schemaString"] == now.metadata["schemaString"]:
            return frame
        check_compatible(Epoch(end, then), now.metadata, version)
        columns = followed(lambda name: frame[quote(name)], fields(then), fields(now.metadata), self.table.schema(now))
        return frame.select(*METADATA_COLUMNS, *columns, *(frame[quote(name)] for name in HIDDEN_COLUMNS))

    def seen_at(self, version: int) -> tuple[int, int] | None:
        """What a version's commit is known again by; None where commits do not tell."""
        if self.source.seen is None or version == self.latest.version:
            return self.source.seen
        commit = self._commit(version)
        # In-commit timestamps may have been switched on later; a file's time is another one where it is copied.
        return (version, commit.time_ms) if commit is not None and commit.has_own_time else None

    def has_history(self, seen: tuple[int, int]) -> bool:
        """Whether the log has the commit that a version was seen with; also where it does not tell any more, or went back before it."""
        version, time_ms = seen
        return version > self.latest.version or self.time_ms(version) in (None, time_ms)

    def time_ms(self, version: int) -> int | None:
        """When a version was committed, in milliseconds; None where its commit is not in the log any more."""
        if version == self.latest.version:
            return self.latest.time_ms
        commit = self._commit(version)
        return None if commit is None else commit.time_ms

    def _commit(self, version: int) -> Commit | None:
        """A commit, without its files; None where it is not in the log any more."""
        try:
            return None if version < 0 else self.table.commits(self.latest, version - 1, version, files=False)[0]
        except CommitMissing:
            return None

    def first_time_ms(self, interval: Interval) -> int:
        """When the first commit of an interval was made, in milliseconds. Raises STREAM_STALE."""
        return self.commits(Interval(interval.after, interval.after + 1))[0].time_ms

    def commits(self, interval: Interval) -> list[Commit]:
        """The commits of an interval. Raises STREAM_STALE."""
        return read_commits(self.table, self.latest, interval)

    def plan(self, interval: Interval, mode: StreamMode) -> ChangePlan:
        """How an interval would be read; NOTHING means that no row can be in it."""
        return plan_changes(self.commits(interval), interval, mode)

    def batch_end(self, interval: Interval, mode: StreamMode, rows_max: int) -> int:
        """The last version of the longest prefix of the interval with at most `rows_max` changes: whole commits, at least one.

        Initial rows come whole: they are one state of the table, in STANDARD mode that of now, else that of the stream's creation, alone.
        """
        if interval.initial:
            return interval.through if mode is StreamMode.STANDARD else interval.after
        if interval.is_empty:
            return interval.through
        commits = self.commits(interval)
        touched = list(accumulate(rows_touched_max(c) for c in commits))
        end = longest_prefix(
            len(commits),
            bisect_right(touched, rows_max),  # so many fit for certain, and no row is counted
            lambda n: self._at_most(Interval(interval.after, commits[n - 1].version), mode, rows_max),
        )
        return commits[max(1, end) - 1].version

    def _at_most(self, interval: Interval, mode: StreamMode, rows_max: int) -> bool:
        try:
            return self.changes(interval, mode).limit(rows_max + 1).count() <= rows_max
        except StreamqlError as e:  # these commits cannot be read together: perhaps fewer can
            log.info("the portion ends before version %s: %s", interval.through, e)
            return False


def longest_prefix(length: int, known: int, fits: Callable[[int], bool]) -> int:
    """How many of `length` things fit, where the first `known` do, and what is asked for costs as much as it is long: in steps that double,
    then by halves."""
    step = 1
    while known < length:
        tried = min(known + step, length)
        if fits(tried):
            known, step = tried, 2 * step
            continue
        length = tried - 1
        step = max(1, (length - known + 1) // 2)
    return known


def rows_touched_max(commit: Commit) -> int:
    """No fewer than the changes a commit can make: every row of every file it names, twice (an update is two changes)."""
    total = 0
    for change in commit.changes:
        if change.data_change:
            for state in (change.before, change.after):
                records = state.action.get("numRecords") if state is not None else 0
                if records is None:
                    return 2**62
                total += int(records)
    return total


def open_source(spark: SparkSession, source: TableSource) -> OpenSource:
    """Finds the table that has the source's id: where it was, else by its name, else under another name of its schema.

    Raises STREAM_SOURCE_MISSING, STREAM_SOURCE_REPLACED.
    """
    known = _opened(spark, source)
    if known.latest.exists and known.latest.table_id == source.table_id:
        return known
    found = look_up(spark, source.name)
    if found.kind == "delta" and found.table_id == source.table_id:
        return _opened(spark, replace(source, path=found.path))
    renamed = _renamed(spark, source)
    if len(renamed) == 1:
        return renamed[0]
    if renamed:
        names = ", ".join(str(r.source.name) for r in renamed)
        raise _not_found(
            source,
            "STREAM_SOURCE_REPLACED",
            f" is not there any more, and several tables have its id and its history: {names}",
            hint="take the tables that are copies of it out of the metastore, or CREATE OR REPLACE the stream on one of them",
        )
    if known.latest.exists or found.kind != "missing":
        raise _not_found(
            source,
            "STREAM_SOURCE_REPLACED",
            " is another table now: it was replaced, or dropped and created again",
            hint="CREATE OR REPLACE the stream on the new table",
        )
    raise _not_found(
        source,
        "STREAM_SOURCE_MISSING",
        ", the source of the stream, does not exist any more",
        hint="DROP the stream, or CREATE OR REPLACE it on another table",
    )


def _not_found(source: TableSource, code: str, what: str, hint: str) -> StreamqlError:
    return StreamqlError(code, f"{source.name}{what}", hint=hint, source=str(source.name), table_id=source.table_id)


def _opened(spark: SparkSession, source: TableSource) -> OpenSource:
    table = DeltaTable(spark, source.path)
    latest = table.latest()
    in_commit = latest.exists and latest.configuration.get("delta.enableInCommitTimestamps") == "true"
    seen = (latest.version, latest.time_ms) if in_commit else None
    return OpenSource(spark, replace(source, seen=seen), table, latest)


def _renamed(spark: SparkSession, source: TableSource) -> list[OpenSource]:
    """Tables of the schema that have the source's id, and all of its history that was seen: a copy of the files, which has the id as well,
    often has less."""
    try:
        names = tables_of(spark, source.name.catalog, source.name.schema)
    except Exception:  # the schema or catalog is gone: whatever the catalog's own error, nothing can be found there
        return []
    tables = []
    for object_name in names:
        name = Name(source.name.catalog, source.name.schema, object_name)
        found = look_up(spark, name)
        if found.kind == "delta" and found.table_id == source.table_id:
            table = _opened(spark, replace(source, name=name, path=found.path))
            if source.seen is None or (table.latest.version >= source.seen[0] and table.has_history(source.seen)):
                tables.append(table)
    return tables


@dataclass(frozen=True)
class Backlog:
    """What an interval holds, by the log alone: an upper bound of rows where files were rewritten."""

    versions: int
    rows_added: int | None
    rows_removed: int | None
    files: int
    bytes: int
    has_data: bool


def backlog(source: OpenSource, interval: Interval, mode: StreamMode) -> Backlog:
    """Counts rows, files and bytes that reading the interval would touch; no job runs."""
    plan = source.plan(interval, mode)
    pieces = plan.inserted + plan.pieces
    added = _rows(p for p in pieces if p.weight > 0)
    removed = _rows(p for p in pieces if p.weight < 0)
    size = sum(int(p.file.action.get("size", 0)) for p in pieces)
    versions = interval.through - interval.after
    return Backlog(
        versions, added, removed, len({p.file.path for p in pieces}), size, plan.kind is not PlanKind.NOTHING
    )


def _rows(pieces: Iterable[Piece]) -> int | None:
    """Count the rows of pieces of files, by their statistics; None if one has none."""
    total = 0
    for piece in pieces:
        rows = piece.file.rows
        if piece.other is not None:
            rows = max(0, piece.other.deleted_rows - piece.file.deleted_rows)
        if rows is None:
            return None
        total += rows
    return total


def is_stale_soon(first_ms: int, retention: int) -> bool:
    """Whether a commit of that time, of a source that keeps its history for so long (both in milliseconds), may be gone in a day, or in
    a quarter of that."""
    return first_ms + retention - now_ms() <= min(DAY_MS, retention // 4)


FILE_RETENTION, LOG_RETENTION = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


def retention_ms(spark: SparkSession, configuration: Mapping[str, str]) -> int:
    """How long after a commit its history may be gone, by a table's properties: the shorter of Delta's file and log retention, in
    milliseconds."""
    return min(file_retention_ms(spark, configuration), log_retention_ms(spark, configuration))


def file_retention_ms(spark: SparkSession, configuration: Mapping[str, str]) -> int:
    """How long after its removal VACUUM leaves a file, in milliseconds."""
    return duration_ms(spark, configuration.get(FILE_RETENTION, "interval 1 week"))


def log_retention_ms(spark: SparkSession, configuration: Mapping[str, str]) -> int:
    """How long after a commit Delta may remove it from the log, in milliseconds."""
    return duration_ms(spark, configuration.get(LOG_RETENTION, "interval 30 days"))


def history_ms(spark: SparkSession, configuration: Mapping[str, str], interval: Interval, mode: StreamMode) -> int:
    """How long after the first commit of an interval it may become unreadable. The first read of a STANDARD stream that shows its table's
    rows takes those of the interval's end: it needs the log, and no file that was removed."""
    if interval.initial and mode is StreamMode.STANDARD:
        return log_retention_ms(spark, configuration)
    return retention_ms(spark, configuration)
