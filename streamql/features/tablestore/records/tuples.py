"""The TableStore stream of a Delta table: its shards, what of its history is left, and its commits."""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from streamql.changes import commit_rows
from streamql.changes.by_commit import changed_files, first_commit
from streamql.changes.schema import fields
from streamql.delta.log import Commit, CommitMissing
from streamql.delta.neutral import neutral
from streamql.delta.table import DeltaTable, Snapshot
from streamql.delta.txns import set_properties
from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.keys import declared
from streamql.features.tablestore.jobs.shards import (
    SHARDS,
    Followed,
    Metadata,
    ShardTree,
    follow,
    follow_on,
    needs_writing,
    recorded,
)
from streamql.features.tablestore.jobs.windows import History
from streamql.features.tablestore.records.rows import columns_ddl, no_records, records_of_commits, tuples
from streamql.names import Name
from streamql.sources.tables.history import TRACKING_LINE

ATTEMPTS_MAX = 20
"""How often the property of shards is written again after other processes changed the table's metadata."""

COMMITS_AT_ONCE = 1000
"""How many commits are read at once, to find those of a window."""

SLICE_ROWS = 250_000
"""How many changed rows a slice has about. A slice of a shard is one task and one file."""


METADATA_COMMITS_MAX = 1000
"""How many commits are read at most to learn a version's metadata, before Delta is asked to reconstruct the version."""


@dataclass(frozen=True)
class MetadataLog:
    """The metadata of a table's versions from `start` on. `metadata`: that of `start`. None: it is unknown. `changes`: the later versions
    that have other metadata, in their order."""

    start: int
    metadata: Metadata | None
    changes: Sequence[tuple[int, Metadata]]

    def at(self, version: int) -> Metadata | None:
        """Returns the metadata of a version. None: it is unknown."""
        earlier = [metadata for changed, metadata in self.changes if changed <= version]
        return earlier[-1] if earlier else self.metadata if version >= self.start else None


@dataclass(frozen=True)
class TableStream:
    """The stream of a table, as of the table's version `latest`. `metadata`: what is known of the metadata of versions."""

    spark: SparkSession
    name: Name
    table: DeltaTable
    latest: Snapshot
    tree: ShardTree
    metadata: MetadataLog

    @property
    def stream_id(self) -> str:
        """Names the stream: another one after tracking was switched off and on, or after the table was replaced."""
        return self.tree.stream_id

    @cached_property
    def history(self) -> History:
        """Returns which changes can be read."""
        earliest, _ = self.table.earliest()
        first = max(earliest, self.tree.first)
        commits = [] if first > self.latest.version else self.commits(first - 1, first)
        time_ms = commits[0].time_ms if commits else None
        return History(self.tree.first - 1, earliest - 1, time_ms)

    def commits(self, after: int, through: int) -> list[Commit]:
        """Returns the commits of (after, through], without their files. Raises STREAM_STALE if one is gone."""
        return self._read(after, through, files=False)

    def commits_after(self, after: int) -> Iterator[Commit]:
        """Returns the commits after a version, without their files; reads no more of them than are taken, about."""
        while after < self.latest.version:
            through = min(after + COMMITS_AT_ONCE, self.latest.version)
            yield from self.commits(after, through)
            after = through

    def version_at(self, time_ms: int, after: int) -> int:
        """Returns the first version after `after` that was committed at or after a time, in milliseconds since 1970. The version behind
        `latest`: none was.

        If the table has in-commit timestamps, which always grow, it reads a few commits; else those up to the version.
        """
        configuration = self.latest.configuration
        began = int(configuration.get("delta.inCommitTimestampEnablementVersion", 0))
        if configuration.get("delta.enableInCommitTimestamps") != "true" or after + 1 < began:
            return next((c.version for c in self.commits_after(after) if c.time_ms >= time_ms), self.latest.version + 1)
        return bisect_left(
            range(self.latest.version + 1), time_ms, lo=after + 1, key=lambda v: self.commits(v - 1, v)[0].time_ms
        )

    def section(self, first: int, last: int) -> commit_rows.History:
        """Returns the commits `first` to `last` for reading their changes. Raises STREAM_STALE if one is gone."""
        commits = self._read(first - 1, last, files=True)
        before = self._before(first, commits[0])
        if before is None:
            commits[0] = first_commit(commits[0])
        return commit_rows.History(self.table, self.latest, commits, before)

    def _before(self, first: int, commit: Commit) -> Metadata | None:
        """Returns the metadata before a version. None: the version made the table, or replaced another one."""
        if first == 0:
            return None
        before = self._metadata_at(first - 1)
        if (
            commit.metadata is None
        ):  # log cleanup may have taken the version a moment ago; the one behind the commit has the same
            return before if before is not None else self.table.at(first).metadata
        if before is None and first > self.tree.first:
            raise self.table.stale(first - 1)
        return before if before is not None and before["id"] == self.tree.table_id else None

    def _metadata_at(self, version: int) -> Metadata | None:
        """Returns the metadata of a version. None: its log is gone."""
        known = self.metadata.at(version)
        if known is not None:
            return known
        start = self.metadata.start
        if self.metadata.metadata is not None and version < start <= version + METADATA_COMMITS_MAX:
            with contextlib.suppress(StreamqlError):
                if all(commit.metadata is None for commit in self.commits(version, start)):
                    return self.metadata.metadata
        return self._metadata_or_none(version)

    def _metadata_or_none(self, version: int) -> Metadata | None:
        try:
            return self.table.at(version).metadata
        except StreamqlError:
            return None

    def _read(self, after: int, through: int, *, files: bool) -> list[Commit]:
        try:
            return self.table.commits(self.latest, after, through, files=files)
        except CommitMissing as e:
            raise self.table.stale(e.version) from e


def stream_at(
    spark: SparkSession,
    name: Name,
    table: DeltaTable,
    latest: Snapshot | None = None,
    known: Sequence[Followed] = (),
) -> TableStream:
    """Returns the stream of a table, whose shards are computed from its properties and what is left of its log.

    `latest`: the table's newest version. None: it is looked for. `known`: shard trees of this table and others, from which its metadata
    need only be followed further. Raises CHANGE_TRACKING_DISABLED, PRIMARY_KEY_NOT_DECLARED and INVALID_PROPERTY.
    """
    newest = latest or table.latest()
    own = [f for f in known if f.tree.table_id == newest.table_id and f.version <= newest.version]
    tree, metadata = _followed(table, newest, str(name), max(own, key=lambda f: f.version, default=None))
    if tree is None:
        raise StreamqlError(
            "CHANGE_TRACKING_DISABLED", f"{name} does not track changes", hint=TRACKING_LINE.format(name), table=name
        )
    declared(newest.configuration, fields(newest.metadata), str(name))
    return TableStream(spark, name, table, newest, tree, metadata)


def recorded_stream(stream: TableStream, properties: Mapping[str, str]) -> TableStream:
    """Writes the property of shards, if that is missing or outdated, and other properties, if the table does not have them so, in one
    commit. Returns the stream as it is then. Raises what `stream_at` raises, and STREAM_BUSY if other processes keep changing the table's
    metadata."""
    for _ in range(ATTEMPTS_MAX):
        latest, tree = stream.latest, stream.tree
        version = latest.version + 1
        missing = {key: value for key, value in properties.items() if latest.configuration.get(key) != value}
        if needs_writing(tree, latest.metadata, str(stream.name)):
            missing[SHARDS] = replace(tree, written=version).to_text(version)
        if not missing:
            return stream
        set_properties(stream.spark, stream.table, latest, missing)
        stream = stream_at(stream.spark, stream.name, stream.table, known=[Followed(latest.version, tree)])
    raise StreamqlError(
        "STREAM_BUSY",
        f"the property {SHARDS} of {stream.name} could not be written: other processes changed the table's metadata {ATTEMPTS_MAX} times",
        hint="try again",
    )


def _followed(
    table: DeltaTable, latest: Snapshot, name: str, known: Followed | None
) -> tuple[ShardTree | None, MetadataLog]:
    """Returns the shard tree of a table, and the metadata from which it was computed. None: the table does not track changes."""
    if known is not None:
        changes = _with_metadata(table, latest, known.version + 1)
        metadata = None if changes else latest.metadata
        return follow_on(known, changes, latest.metadata, name), MetadataLog(known.version, metadata, changes)
    start, metadata, changes = _metadata_changes(table, latest, name)
    return follow(start, metadata, changes, name), MetadataLog(start, metadata, changes)


def _metadata_changes(
    table: DeltaTable, latest: Snapshot, name: str
) -> tuple[int, Metadata, list[tuple[int, Metadata]]]:
    """Returns the first version that is known, its metadata, and the later versions that have other metadata.

    The first version is the one that wrote the property of shards. If its commit is gone, or there is no property, it is the log's first.
    """
    tree = recorded(latest.metadata, name)
    text = latest.configuration.get(SHARDS)
    earliest, _ = table.earliest()
    if tree is not None and tree.written is not None and tree.written >= earliest:
        found = _with_metadata(table, latest, tree.written)
        for i, (version, metadata) in enumerate(found):
            if (metadata.get("configuration") or {}).get(SHARDS) == text:
                return version, metadata, found[i + 1 :]
    found = _with_metadata(table, latest, earliest)
    if not found:
        return earliest, latest.metadata, []
    if found[0][0] > earliest:
        try:
            return earliest, table.at(earliest).metadata, found
        except StreamqlError:  # no checkpoint is left from which that version could be made
            pass
    return found[0][0], found[0][1], found[1:]


def _with_metadata(table: DeltaTable, latest: Snapshot, first: int) -> list[tuple[int, Metadata]]:
    """Returns the versions from one on whose commits have metadata."""
    try:
        commits = table.commits(latest, first - 1, latest.version, files=False)
    except CommitMissing as e:
        raise table.stale(e.version) from e
    return [(c.version, c.metadata) for c in commits if c.metadata is not None]


def slices(commits: Sequence[Commit]) -> dict[int, int]:
    """Returns the slice of each version. A slice has about SLICE_ROWS rows, or is one commit. Files without statistics count by size."""
    found: dict[int, int] = {}
    number = rows = 0
    for commit in commits:
        of_commit = rows_of(commit)
        if rows and rows + of_commit > SLICE_ROWS:
            number, rows = number + 1, 0
        rows += of_commit
        found[commit.version] = number
    return found


def rows_of(commit: Commit) -> int:
    """Returns about how many row images a commit added and removed: by the statistics of its files, or by their size."""
    rows = 0
    for _, change in changed_files([commit]):
        states = [s for s in (change.before, change.after) if s is not None]
        deleted = [s.deleted_rows for s in states]
        known = states[-1].rows
        size = int(states[-1].action.get("size") or 0) // 100
        rows += max(deleted) - min(deleted) if len(states) > 1 else size if known is None else known
    return rows


def tuples_between(stream: TableStream, after: int, through: int) -> DataFrame:
    """Returns the 6-tuples of the commits (after, through], with sequenceInfo. Lazy. Raises what reading changes raises."""
    section = stream.section(after + 1, through) if after < through else None
    if section is None:
        records = no_records(stream.spark, stream.tree.generations[-1], stream.latest.metadata, str(stream.name))
    else:
        records = records_of_commits(stream.spark, section, stream.tree, str(stream.name), slices(section.commits))
    found = tuples(records, sequence_info=True)
    if found is not None:
        return found
    return neutral(stream.spark).createDataFrame([], columns_ddl(records.key, sequence_info=True))
