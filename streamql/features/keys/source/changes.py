"""Builds the lazy DataFrame of the changes of an interval by key. Runs no job."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamql.changes import schema
from streamql.changes.build import DELETE, INSERT, Part, check_files_exist, shown_parts
from streamql.changes.plan import ChangePlan, Piece, PlanType
from streamql.changes.scan import Reading, complete, in_final_columns, scanned, scans, without_carried
from streamql.changes.schema import Epoch
from streamql.delta.jvm import JavaObject
from streamql.delta.log import Commit, FileState
from streamql.delta.table import BASE_ROW_ID, FILE_VERSION, ROW_ID, ROW_VERSION, Snapshot
from streamql.errors import StreamqlError
from streamql.features.keys.source.columns import comparable
from streamql.features.keys.source.images import changed_by_key, with_key_hash, with_unique_keys, without_keys_of
from streamql.features.keys.source.plan import KeyedPlan, Rewrite, plan_appended, plan_keyed
from streamql.model import StreamMode, Versions
from streamql.names import quote
from streamql.sources.tables.history import TableVersions

UNKNOWN_VERSION = -1
"""Stands for the row commit version of a row in a file that has none, and that no commit of the interval wrote. It is shown as NULL."""


class KeyedSource(TableVersions, Protocol):
    """What of an `OpenKeyed` is asked here."""

    @property
    def spark(self) -> SparkSession:
        """Returns the session."""

    def key_at(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Returns the columns of the key in the names of a version. Raises INCOMPATIBLE_SCHEMA_CHANGE if it lacks one."""


def key_is_missing(table: str, version: int, column: str) -> StreamqlError:
    """Returns the error for a version that lacks a column of the key, so that its rows have no key."""
    return StreamqlError(
        "INCOMPATIBLE_SCHEMA_CHANGE",
        f"version {version} of {table} lacks the column {column} of the key, so that its rows cannot be recognized",
        hint=f"if {column} was renamed, rename it back; or CREATE OR REPLACE the stream, or ALTER STREAM … SET OFFSET VERSION n with a "
        "version that has the key",
        column_name=column,
        version=version,
    )


def keyed_changes(source: KeyedSource, interval: Versions, mode: StreamMode, *, bitwise: bool = False) -> DataFrame:
    """Returns the changes of an interval by key: the three metadata columns, the table's columns as of `interval.through`, then
    HIDDEN_COLUMNS. Lazy.

    In STANDARD mode, a key has at most one DELETE, or one INSERT, or one UPDATE_BEFORE with one UPDATE_AFTER. In APPEND_ONLY mode, the rows
    are those whose key the table did not have just before the commit that wrote them. METADATA$ROW_ID is a hash of the key. The version of
    a row is NULL if no row tracking says it. `bitwise`: values are equal only if their bits are. Raises STREAM_STALE,
    INCOMPATIBLE_SCHEMA_CHANGE, RESERVED_COLUMN_NAME, CHANGES_UNREADABLE, before any job runs. In STANDARD mode, the rows raise
    KEY_NOT_UNIQUE.
    """
    return _Reader(source, interval, mode, bitwise).changes()


class _Reader:
    """Reads the changes of one interval."""

    def __init__(self, source: KeyedSource, interval: Versions, mode: StreamMode, bitwise: bool) -> None:
        self._source, self._interval, self._mode, self._bitwise = source, interval, mode, bitwise
        self._table = source.table
        self._commits: Sequence[Commit] = source.commits(interval)
        self._end = source.at(interval.through)
        self._key = source.key_at(self._end)

    def changes(self) -> DataFrame:
        schema.check_reserved(self._end.metadata, str(self._source.ref.name))
        if self._mode is StreamMode.APPEND_ONLY:
            initial = [self._all_rows(self._interval.after)] if self._interval.initial else []
            parts = [Part(with_key_hash(rows, self._key), INSERT) for rows in initial + self._appended()]
        elif self._interval.initial:
            rows = self._all_rows(self._interval.through)
            parts = [Part(self._unique(rows, self._interval.through), INSERT)]
        else:
            parts = self._net()
        return shown_parts(self._reading, parts)

    # -- the table in the interval

    @cached_property
    def _start(self) -> Snapshot:
        """Returns the table at the interval's begin, for its metadata. If no commit changed the metadata, the end has the same."""
        is_same = all(c.metadata is None for c in self._commits)
        return self._end if is_same else self._source.at(self._interval.after)

    @cached_property
    def _epochs(self) -> list[Epoch]:
        """Returns the metadata at the interval's begin, and each one that a commit brought. Columns have the identities of those at the
        end."""
        known = schema.epochs(self._start.metadata, self._interval.after, self._commits)
        if self._mode is StreamMode.STANDARD:  # only the begin and the end are read
            known = [known[0], known[-1]] if len(known) > 1 else known
        last, name = self._interval.through, str(self._source.ref.name)
        return [Epoch(e.version, comparable(e.metadata, self._end.metadata, last, name)) for e in known]

    @cached_property
    def _reading(self) -> Reading:
        is_latest = self._interval.through == self._source.latest
        return Reading(
            self._source.spark,
            self._table,
            self._end,
            self._commits,
            self._epochs,
            lambda: self._start,
            is_latest,
        )

    # -- rows

    def _rows(self, reading: Reading, pieces: Sequence[Piece], version: int, *, origins: bool = False) -> DataFrame:
        """Returns the rows of pieces in the columns of the interval's end. `version`: one whose metadata read their files."""
        epoch, reads_with = self._epoch(version)
        own = [ROW_ID, ROW_VERSION, *((BASE_ROW_ID, FILE_VERSION) if origins else ())]
        known = [replace(p, file=self._with_version(p.file)) for p in pieces]
        parts = [
            in_final_columns(reading, rows, epoch, own) for rows in scans(reading, known, epoch, reads_with, origins)
        ]
        return functools.reduce(DataFrame.unionByName, parts)

    def _epoch(self, version: int) -> tuple[Epoch, JavaObject]:
        """Returns the epoch of a version, and the descriptor that reads its files."""
        at = max(i for i, e in enumerate(self._epochs) if e.version <= version)
        epoch = self._epochs[at]
        if at == len(self._epochs) - 1:
            return epoch, self._end.handle
        if at == 0:
            return epoch, self._start.handle
        metadata = next(c.metadata for c in self._commits if c.version == epoch.version)
        assert metadata is not None
        return epoch, self._table.descriptor(self._end, epoch.version, metadata)

    def _with_version(self, file: FileState) -> FileState:
        """Returns a file with a row commit version, if it was written without row tracking."""
        if file.base_row_id is not None and file.default_row_commit_version is not None:
            return file
        version = self._written.get(file.path, UNKNOWN_VERSION)
        return replace(file, action={**file.action, "baseRowId": 0, "defaultRowCommitVersion": version})

    @cached_property
    def _written(self) -> dict[str, int]:
        """Returns the commits of the interval by the paths of the files that they wrote."""
        found: dict[str, int] = {}
        for commit in self._commits:
            for change in commit.changes:
                if change.after is not None and change.before is None and change.data_change:
                    found.setdefault(change.path, commit.version)
        return found

    def _all_rows(self, version: int) -> DataFrame:
        """Returns all rows of a version in the columns of the interval's end."""
        snapshot = self._end if version == self._interval.through else self._source.at(version)
        if snapshot.configuration.get("delta.enableRowTracking") == "true":
            rows = self._table.rows(snapshot)
        else:
            rows = self._table.image(snapshot)
            own = [F.lit(0).cast("bigint").alias(ROW_ID), F.lit(UNKNOWN_VERSION).cast("bigint").alias(ROW_VERSION)]
            rows = rows.select(*own, *(F.col(quote(c)) for c in rows.columns))
        return in_final_columns(self._reading, rows, self._epoch(version)[0], [ROW_ID, ROW_VERSION])

    def _check_key(self, version: int) -> None:
        """Raises INCOMPATIBLE_SCHEMA_CHANGE if a version lacks a column of the key. Columns are found as those of the interval's end."""
        epoch, own = self._epoch(version)[0], schema.fields(self._end.metadata)
        known = {schema.identity(f) for f in schema.fields(epoch.metadata)}
        identities = {str(f["name"]): schema.identity(f) for f in own}
        for column in self._key:
            if identities[column] not in known:
                raise key_is_missing(str(self._source.ref.name), version, column)

    def _unique(self, rows: DataFrame, version: int) -> DataFrame:
        return with_unique_keys(rows, self._key, self._subject(version))

    def _subject(self, version: int) -> str:
        return f"version {version} of {self._source.ref.name}"

    # -- STANDARD

    def _net(self) -> list[Part]:
        """Compares the rows of the begin with those of the end. Removed rows are read as the table was at the begin, added ones as it is at
        the end."""
        reading, found = complete(self._reading, plan_keyed(self._commits, self._interval))
        assert isinstance(found, KeyedPlan)
        check_files_exist(reading, found)
        removed, added = ([p for p in found.pieces if p.weight * sign > 0] for sign in (-1, +1))
        begin, end = self._interval.after, self._interval.through
        if removed:
            self._check_key(begin)
        if not removed and not added:
            return []
        if not removed:
            return [Part(self._unique(self._rows(reading, added, end), end), INSERT)]
        if not added:
            return [Part(self._unique(self._rows(reading, removed, begin), begin), DELETE)]
        if found.has_carried:
            old, new = scanned(reading, removed, self._epoch(begin)[1]), scanned(reading, added, self._epoch(end)[1])
            reading = without_carried(reading, old, new, begin)
        before, after = self._rows(reading, removed, begin), self._rows(reading, added, end)
        subjects = (self._subject(begin), self._subject(end))
        changed = changed_by_key(
            before,
            after,
            self._key,
            subjects,
            bits=found.bucket_bits,
            in_one_task=found.meets_in_one_task,
            bitwise=self._bitwise,
        )
        return [Part(changed)]

    # -- APPEND_ONLY

    def _appended(self) -> list[DataFrame]:
        plan = plan_appended(self._commits)
        files = [p.file for r in plan.rewrites for p in (*r.removed, *r.added)] + [f for _, f in plan.appended]
        check_files_exist(self._reading, ChangePlan(PlanType.APPENDED, self._interval, perishable=tuple(files)))
        by_epoch: dict[int, list[Piece]] = {}
        for version, file in plan.appended:
            by_epoch.setdefault(self._epoch(version)[0].version, []).append(Piece(+1, file))
        found = [self._new(self._reading, pieces, version) for version, pieces in by_epoch.items()]
        return found + [self._of_rewrite(rewrite) for rewrite in plan.rewrites]

    def _new(self, reading: Reading, pieces: Sequence[Piece], version: int) -> DataFrame:
        """Returns the rows that files were written with, without those that a rewrite carried along."""
        rows = self._rows(reading, pieces, version, origins=True)
        is_new = (F.col(ROW_ID) >= F.col(BASE_ROW_ID)) & (F.col(ROW_VERSION) == F.col(FILE_VERSION))
        return rows.where(is_new).drop(BASE_ROW_ID, FILE_VERSION)

    def _of_rewrite(self, rewrite: Rewrite) -> DataFrame:
        """Returns the rows of a commit whose key no row has that the commit removed."""
        pieces = ChangePlan(PlanType.MINIMIZE, self._interval, pieces=rewrite.removed)
        reading, removed = complete(self._reading, pieces)
        rows = self._new(reading, rewrite.added, rewrite.version)
        if not removed.pieces:
            return rows
        self._check_key(rewrite.version - 1)
        return without_keys_of(rows, self._rows(reading, removed.pieces, rewrite.version - 1), self._key)
