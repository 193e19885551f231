"""Delta tables as sources of streams: finds them by their ids, reads intervals of them, and answers questions from their logs."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from streamql.changes import HIDDEN_COLUMNS, change_set, read_commits
from streamql.changes.plan import ChangePlan, plan_changes
from streamql.changes.scan import followed
from streamql.changes.schema import Epoch, check_compatible, fields, has_same_columns
from streamql.delta.log import Commit, CommitMissing, Json
from streamql.delta.names import Found, look_up, moved, tables_of
from streamql.delta.table import DeltaTable, Snapshot
from streamql.errors import StreamqlError
from streamql.model import (
    METADATA_COLUMNS,
    Interval,
    Offset,
    Position,
    SourceRef,
    StreamMode,
    TableSource,
    Versions,
    version_of,
)
from streamql.names import Name, quote
from streamql.sources.batches import longest_prefix, rows_touched_max
from streamql.sources.protocol import Backlog, Expiry, Point
from streamql.sources.tables import history
from streamql.sources.tables.backlog import backlog
from streamql.sources.tables.replaced import replaced_hint
from streamql.sources.tables.retention import history_ms

log = logging.getLogger("streamql")


@dataclass(frozen=True)
class OpenTable:
    """A Delta table that was found, with its newest version. It is an `OpenSource` whose positions are versions."""

    spark: SparkSession
    ref: TableSource
    table: DeltaTable
    snapshot: Snapshot

    @property
    def latest(self) -> int:
        """Returns the newest version."""
        return self.snapshot.version

    @property
    def tracks_changes(self) -> bool:
        """Returns whether its newest version tracks changes."""
        return self.snapshot.configuration.get("delta.enableRowTracking") == "true"

    def at(self, version: int) -> Snapshot:
        """Returns a version. Raises STREAM_STALE if the log no longer has it."""
        return self.snapshot if version == self.latest else self.table.at(version)

    def id_at(self, version: int) -> str | None:
        """Returns the id that the table had in a version. None: there is no such version, or the log no longer has it."""
        if not 0 <= version <= self.latest:
            return None
        try:
            return self.at(version).table_id
        except StreamqlError:
            return None

    @property
    def needs_tracking(self) -> bool:
        """Returns whether its changes can only be read while it tracks changes."""
        return True

    def continues(self, seen: TableSource) -> bool:
        """Returns whether its log may be the one of which `seen` was read. Without in-commit timestamps, a table at another path is taken
        for a copy."""
        return seen.path == self.ref.path if seen.seen is None else self.has_history(seen.seen)

    # -- checks

    def check_trackable(self, mode: StreamMode, where: Mapping[str, int]) -> None:  # noqa: ARG002 - tables have both modes
        """Raises RESERVED_COLUMN_NAME, CHANGE_TRACKING_DISABLED."""
        history.check_all_trackable([self], where)

    def check_start(self, offset: Offset) -> None:
        """Checks that all commits since an offset can be read as changes. Raises INVALID_POINT_IN_TIME."""
        history.check_start(self, version_of(offset.position))

    def check_history(self, offset: Offset, seen: SourceRef, stream: Name) -> None:
        """Checks that the offset is a version of the history that the stream saw. Raises STREAM_STALE if the table's newest version is
        before the offset: it was put back from a copy. Raises STREAM_SOURCE_REPLACED if it was also written since, and has other commits
        now."""
        version = version_of(offset.position)
        if self.latest < version:
            raise self.table.stale(version)
        known = seen.seen if isinstance(seen, TableSource) else None
        if known is not None and not self.has_history(known):
            raise StreamqlError(
                "STREAM_SOURCE_REPLACED",
                f"{self.ref.name} has another history than when stream {stream} saw its version {known[0]}: it was put back from a "
                "copy, or is one, and has been written since",
                hint=f"ALTER STREAM {stream} SET OFFSET VERSION n, the last version of this history that its target has, or CREATE OR "
                "REPLACE the stream",
                source=str(self.ref.name),
                version=known[0],
            )

    def has_history(self, seen: tuple[int, int]) -> bool:
        """Returns whether the history may be the one in which a version was seen. `seen`: the version and its commit time. It is not if the
        log has another commit time for that version. It may be if the log no longer has the version, or does not have it yet."""
        version, time_ms = seen
        return version > self.latest or self.time_ms(version) in (None, time_ms)

    # -- points in its history

    def offset_at(self, point: Point) -> Offset:
        """Returns the offset that a point names. Raises INVALID_POINT_IN_TIME."""
        return Offset(history.version_at(self, point))

    def one_earlier(self, position: Position, point: Point) -> int:
        """Returns the version before another one. Raises INVALID_POINT_IN_TIME."""
        return history.checked(self, version_of(position) - 1, point)

    def time_ms(self, position: Position) -> int | None:
        """Returns when a version was committed, in milliseconds since 1970. None: its commit is no longer in the log."""
        version = version_of(position)
        if version == self.latest:
            return self.snapshot.time_ms
        commit = self._commit(version)
        return None if commit is None else commit.time_ms

    def seen_at(self, position: Position) -> TableSource:
        """Returns the table with the mark by which a version is recognised later (`TableSource.seen`): its in-commit time, if it has
        one."""
        version = version_of(position)
        if self.ref.seen is None or version == self.latest:
            return self.ref
        commit = self._commit(version)
        # A commit from before in-commit timestamps were enabled has only its file's time, which changes when the table is copied.
        seen = (version, commit.time_ms) if commit is not None and commit.has_own_time else None
        return replace(self.ref, seen=seen)

    def lag(self, offset: Offset) -> int:
        """Returns the number of versions after an offset."""
        return max(0, self.latest - version_of(offset.position))

    def describe_move(self, stream: Name, mode: StreamMode, old: Offset, new: Offset) -> str | None:
        """Returns a text that says how many versions and rows a stream skips, or shows again, if its offset is set. None: there is no
        change between the two offsets."""
        return history.describe_move(self, stream, mode, old, new)

    def _commit(self, version: int) -> Commit | None:
        """Returns a commit without its files; None: it is no longer in the log."""
        try:
            return None if version < 0 else self.table.commits(self.snapshot, version - 1, version, files=False)[0]
        except CommitMissing:
            return None

    # -- reading

    def changes(self, interval: Interval, mode: StreamMode) -> DataFrame:
        """Returns the change set of an interval. Lazy."""
        return change_set(self.spark, self.table.path, interval.versions, mode, self.table, self.snapshot)

    def changes_for_query(self, versions: Versions, mode: StreamMode) -> DataFrame:
        """Returns the change set of an interval, in the table's present columns, for a query over the table. Lazy.

        It has all updates whose values differ in any bit. Streams leave out updates between values that they treat as equal. A query may
        show the difference, for example by CAST(-0.0 AS STRING) or the first key of a map.
        """
        return self.as_at(self.latest, self.bitwise_changes(versions, mode), versions.through)

    def bitwise_changes(self, versions: Versions, mode: StreamMode) -> DataFrame:
        """Returns the change set of an interval with all updates whose values differ in any bit. Lazy."""
        return change_set(self.spark, self.table.path, versions, mode, self.table, self.snapshot, bitwise=True)

    def as_at(
        self, position: Position, frame: DataFrame, end: Position, shown: Sequence[str] | None = None
    ) -> DataFrame:
        """Returns a change set in the columns that the table has at a later version. `frame`: the change set of an interval that ends at
        `end`. Columns that were added after `end` are NULL. `shown`: the columns that `frame` has; None: all. Lazy. Raises
        INCOMPATIBLE_SCHEMA_CHANGE."""
        return self.followed(frame, version_of(end), version_of(position), METADATA_COLUMNS, HIDDEN_COLUMNS, shown)

    def followed(
        self,
        frame: DataFrame,
        end: int,
        version: int,
        before: Sequence[str],
        behind: Sequence[str],
        shown: Sequence[str] | None = None,
    ) -> DataFrame:
        """Returns rows, which have the table's columns at version `end`, in the table's columns at a later version. Lazy.

        `before` and `behind`: further columns in front of the table's columns and behind them, which stay as they are. `shown`: the table's
        columns that the rows have; None: all. Raises INCOMPATIBLE_SCHEMA_CHANGE.
        """
        if end == version:
            return frame
        then, now = self.table.at(end).metadata, self.table.at(version)
        if then["schemaString"] == now.metadata["schemaString"]:
            return frame
        then = self.comparable(then, now)
        types = self.table.schema(now)
        new = {f["name"]: (f, t) for f, t in zip(fields(now.metadata), types.fields, strict=True)}
        kept = [new[name] for name in (new if shown is None else shown)]
        columns = followed(
            lambda name: frame[quote(name)], fields(then), [f for f, _ in kept], StructType([t for _, t in kept])
        )
        return frame.select(*(frame[quote(n)] for n in before), *columns, *(frame[quote(n)] for n in behind))

    def comparable(self, then: Json, now: Snapshot) -> Json:
        """Returns metadata of an earlier version, in which columns have the identities of those in a later one. Raises
        INCOMPATIBLE_SCHEMA_CHANGE."""
        check_compatible(Epoch(now.version, then), now.metadata, now.version)
        return then

    def has_same_columns(self, version: int, later: int) -> bool:
        """Returns whether the names of columns stand for the same columns in two versions (`changes.schema.has_same_columns`). Raises
        STREAM_STALE."""
        if all(commit.metadata is None for commit in self.commits(Versions(version, later))):
            return True
        return self.are_same_columns(self.at(version).metadata, self.at(later).metadata)

    def are_same_columns(self, then: Json, now: Json) -> bool:
        """Returns whether the names of columns stand for the same columns in two metadata of its log."""
        return has_same_columns(then, now)

    def commits(self, versions: Versions) -> list[Commit]:
        """Returns the commits of an interval. Raises STREAM_STALE."""
        return read_commits(self.table, self.snapshot, versions)

    def plan(self, versions: Versions, mode: StreamMode) -> ChangePlan:
        """Returns the plan to read an interval. The type NOTHING means that the interval has no changes."""
        return plan_changes(self.commits(versions), versions, mode)

    def backlog(self, interval: Interval, mode: StreamMode) -> Backlog:
        """Counts the rows, files and bytes that reading the interval would touch. Runs no job."""
        return backlog(self.plan(interval.versions, mode), interval.versions)

    def expiry(self, interval: Interval, mode: StreamMode) -> Expiry | None:
        """Returns when an interval may become unreadable, by the retention of files and log. None: it has no commit. Raises
        STREAM_STALE."""
        if interval.after == interval.through:
            return None
        retention_ms = history_ms(self.spark, self.snapshot.configuration, interval.versions, mode)
        return Expiry(self.first_time_ms(interval.versions), retention_ms)

    def first_time_ms(self, versions: Versions) -> int:
        """Returns when the first commit of an interval was made, in milliseconds. Raises STREAM_STALE."""
        return self.commits(Versions(versions.after, versions.after + 1))[0].time_ms

    def first_step(self, interval: Interval) -> Interval:
        """Returns the first commit of an interval."""
        after = version_of(interval.after)
        return Interval(after, after + 1)

    def batch_end(self, interval: Interval, mode: StreamMode, rows_max: int) -> int:
        """Returns the last version of the longest part of the interval, from its begin, with at most `rows_max` changes. It has whole
        commits, and at least one.

        Initial rows are never divided, because they are the rows of one version. In STANDARD mode they are those of the interval's end. In
        APPEND_ONLY mode they are those of its begin, and the batch has nothing else.
        """
        versions = interval.versions
        if versions.initial:
            return versions.through if mode is StreamMode.STANDARD else versions.after
        if versions.is_empty:
            return versions.through
        commits = self.commits(versions)
        touched = list(accumulate(rows_touched_max(c) for c in commits))
        end = longest_prefix(
            len(commits),
            bisect_right(touched, rows_max),  # so many commits fit by their upper bounds, without counting rows
            lambda n: self._at_most(Interval(versions.after, commits[n - 1].version), mode, rows_max),
        )
        return commits[max(1, end) - 1].version

    def _at_most(self, interval: Interval, mode: StreamMode, rows_max: int) -> bool:
        try:
            return self.changes(interval, mode).limit(rows_max + 1).count() <= rows_max
        except StreamqlError as e:  # these commits cannot be read together; fewer of them may be readable
            log.info("the batch ends before version %s: %s", interval.through, e)
            return False


def open_table(spark: SparkSession, source: TableSource, *, by_name: bool = False) -> OpenTable:
    """Finds the table that has the source's id: first at its path, then by its name, then under other names in its schema.

    `by_name`: the table must have a name. Without it, the files that a dropped external table left at its path count as well. Raises
    STREAM_SOURCE_MISSING, STREAM_SOURCE_REPLACED.
    """
    known = opened(spark, source)
    is_there = known.snapshot.exists and known.snapshot.table_id == source.table_id
    if is_there and not (by_name and moved(spark, [source])):
        return known
    found = look_up(spark, source.name)
    if found.type == "delta" and found.table_id == source.table_id:
        return opened(spark, replace(source, path=found.path))
    renamed = _renamed(spark, source)
    if len(renamed) == 1:
        return renamed[0]
    if renamed:
        names = ", ".join(str(r.ref.name) for r in renamed)
        raise _not_found(
            source,
            "STREAM_SOURCE_REPLACED",
            f" no longer exists, and several tables have its id and its history: {names}",
            hint="take the tables that are copies of it out of the metastore, or CREATE OR REPLACE the stream on one of them",
        )
    if (known.snapshot.exists and not is_there) or found.type != "missing":
        raise _not_found(
            source,
            "STREAM_SOURCE_REPLACED",
            " is another table now: it was replaced, or dropped and created again",
            hint=replaced_hint(
                source, known, opened(spark, replace(source, path=found.path)) if found.type == "delta" else None
            ),
        )
    raise _not_found(
        source,
        "STREAM_SOURCE_MISSING",
        ", the source of the stream, no longer exists",
        hint="DROP the stream, or CREATE OR REPLACE it on another table",
    )


def _not_found(source: TableSource, code: str, what: str, hint: str) -> StreamqlError:
    return StreamqlError(code, f"{source.name}{what}", hint=hint, source=str(source.name), table_id=source.table_id)


def opened(spark: SparkSession, source: TableSource) -> OpenTable:
    """Returns the table at the path of a source, whatever id it has. Its snapshot does not exist if no table is there."""
    table = DeltaTable(spark, source.path)
    latest = table.latest()
    in_commit = latest.exists and latest.configuration.get("delta.enableInCommitTimestamps") == "true"
    seen = (latest.version, latest.time_ms) if in_commit else None
    return OpenTable(spark, replace(source, seen=seen), table, latest)


def _renamed(spark: SparkSession, source: TableSource) -> list[OpenTable]:
    """Returns the tables of the source's schema that have its id and the version at which it was last seen. A copy of its files has the
    same id, but often not that version."""
    tables = []
    for name, found in delta_tables_beside(spark, source.name):
        if found.table_id == source.table_id:
            table = opened(spark, replace(source, name=name, path=found.path))
            if source.seen is None or (table.latest >= source.seen[0] and table.has_history(source.seen)):
                tables.append(table)
    return tables


def delta_tables_beside(spark: SparkSession, name: Name) -> Iterator[tuple[Name, Found]]:
    """Yields the Delta tables in the schema of a name. There are none if the schema or its catalog no longer exists."""
    try:
        names = tables_of(spark, name.catalog, name.schema)
    except Exception:  # which error says so depends on the catalog
        return
    for object_name in names:
        other = Name(name.catalog, name.schema, object_name)
        found = look_up(spark, other)
        if found.type == "delta":
            yield other, found
