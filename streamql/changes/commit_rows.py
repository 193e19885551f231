"""Builds lazy DataFrames of what each commit did to rows. `by_commit.py` plans which files are read.

Commits are read in *runs*. A run is consecutive commits with one schema, and is read by one scan. The scan reads each file once, even if
several commits of the run added or removed its rows. It returns each row once for each of these commits. If a commit may have both an old
and a new image of a row, the images are grouped by version and row id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamql.changes import schema
from streamql.changes.by_commit import (
    USES_MAX,
    CommitsPlan,
    FileUses,
    changed_files,
    in_batches,
    plan_commits,
    without_uses,
)
from streamql.changes.plan import Piece
from streamql.changes.scan import Reading, by_partitioning, descriptor, in_final_columns, loose_columns
from streamql.delta.images import select
from streamql.delta.log import Commit, Json
from streamql.delta.table import ROW_ID, ROW_VERSION, DeltaTable, Snapshot
from streamql.delta.uses import SIGN, SLICE, TIME, TOLD, VERSION, CommitValues, UsedFiles, with_changed
from streamql.dialect import quote_string
from streamql.errors import StreamqlError, counted
from streamql.names import quote

BEFORE = "__streamql_before"
AFTER = "__streamql_after"
CHANGED = "__streamql_changed"

COLUMNS = (VERSION, TIME, SLICE, ROW_ID, BEFORE, AFTER, CHANGED)
"""The columns of `RunChanges`: version and time (milliseconds since 1970) of the commit, its slice, the row's id, its images before and
after (structs of the table's columns, NULL: there was no row), and for each of these columns whether it differs. NULL: an image is
missing."""

_CARRIED = "__streamql_carried"
_IMAGE = "__streamql_image"


@dataclass(frozen=True)
class RunChanges:
    """The row changes of the commits `first` to `last`, which have one schema. `metadata`: as of `last`.

    `flat`: the rows of commits that only added or only removed rows, in the columns VERSION, TIME, SLICE, ROW_ID, SIGN and the table's.
    `compared`: the row changes of the other commits, in COLUMNS, without rows that these carried along unchanged. None: there are no such
    rows. Each row change is in exactly one of the two.
    """

    first: int
    last: int
    metadata: Json
    flat: DataFrame | None
    compared: DataFrame | None

    @property
    def apart(self) -> DataFrame | None:
        """Returns the rows of `flat` in COLUMNS; None: there are none."""
        return None if self.flat is None else _apart(self.flat, schema.column_names(self.metadata))

    @property
    def rows(self) -> DataFrame | None:
        """Returns all row changes. None: there are none."""
        apart = self.apart
        if apart is None or self.compared is None:
            return apart if self.compared is None else self.compared
        return apart.unionByName(self.compared)


@dataclass(frozen=True)
class History:
    """Consecutive commits of a table. `start`: the table's metadata before them; None: the first commit creates the table, or replaces
    another one. `latest`: the newest version of the table."""

    table: DeltaTable
    latest: Snapshot
    commits: Sequence[Commit]
    start: Json | None

    @property
    def epochs(self) -> list[schema.Epoch]:
        """Returns the table's metadata before the commits, then each one that a commit brought, with its version."""
        first = self.commits[0]
        if self.start is not None:
            return schema.epochs(self.start, first.version - 1, self.commits)
        assert first.metadata is not None
        return schema.epochs(first.metadata, first.version, self.commits[1:])


def changes_by_commit(
    spark: SparkSession,
    history: History,
    *,
    cuts: Collection[int] = (),
    slice_of: Mapping[int, int] | None = None,
    uses_max: int = USES_MAX,
) -> Iterator[RunChanges]:
    """Yields the row changes of the commits, run by run. Reads deletion vectors and runs no job; the DataFrames are lazy.

    `cuts`: versions at which a new run begins. `slice_of`: the slice of each version; None: all are in slice 0. `uses_max`: how many
    changes of files a run has at most. Raises STREAM_STALE, CHANGE_TRACKING_DISABLED, INCOMPATIBLE_SCHEMA_CHANGE, RESERVED_COLUMN_NAME and
    CHANGES_UNREADABLE.
    """
    epochs = history.epochs if history.commits else []
    for commits, epoch in _runs(history.commits, epochs, frozenset(cuts), uses_max):
        known = [e for e in epochs if e.version <= commits[-1].version]
        reading = _reading(spark, history, commits, known, epoch)
        yield _changes(spark, reading, commits, slice_of or {}, history.latest.version)


def _runs(
    commits: Sequence[Commit], epochs: Sequence[schema.Epoch], cuts: frozenset[int], uses_max: int
) -> Iterator[tuple[list[Commit], schema.Epoch]]:
    """Yields each run that changed rows: its commits, and the epoch of the last one."""
    epoch_of: dict[int, schema.Epoch] = {}
    index = 0
    for commit in commits:
        while index + 1 < len(epochs) and epochs[index + 1].version <= commit.version:
            index += 1
        epoch_of[commit.version] = epochs[index]
    begins = cuts | {
        later.version
        for earlier, later in pairwise(commits)
        if not _is_alike(epoch_of[earlier.version].metadata, epoch_of[later.version].metadata)
    }
    for run in in_batches(commits, uses_max, begins):
        if any(changed_files(run)):
            yield run, epoch_of[run[-1].version]


def _is_alike(one: Json, other: Json) -> bool:
    """Returns whether files that were written under the two metadata can be read by one scan."""

    def layout(metadata: Json) -> tuple[object, ...]:
        mapping = (metadata.get("configuration") or {}).get(schema.MAPPING_MODE, "none")
        return metadata["schemaString"], tuple(metadata.get("partitionColumns") or ()), mapping

    return layout(one) == layout(other)


def _reading(
    spark: SparkSession,
    history: History,
    commits: Sequence[Commit],
    epochs: Sequence[schema.Epoch],
    epoch: schema.Epoch,
) -> Reading:
    latest, last = history.latest, commits[-1].version
    schema.check_reserved(epoch.metadata, f"delta.{quote(history.table.path)}")
    handle = (
        latest.handle
        if epoch.metadata == latest.metadata
        else history.table.descriptor(latest, epoch.version, epoch.metadata)
    )
    end = replace(latest, version=last, metadata=epoch.metadata, handle=handle)
    before = [c for c in history.commits if c.version <= last]
    return Reading(spark, history.table, end, before, epochs, _no_start, last == latest.version)


def _no_start() -> Snapshot:
    raise ValueError("changes by commit need no snapshot of their start")


def _changes(
    spark: SparkSession, reading: Reading, commits: Sequence[Commit], slice_of: Mapping[int, int], latest: int
) -> RunChanges:
    plan = plan_commits(commits)
    files = [(f.file, [(use.version, use.sign, use.state, use.other) for use in f.uses]) for f in plan.files]
    used = UsedFiles(spark, reading.table, files)
    kept = without_uses(plan, {plan.files[file].uses[use] for file, use in used.empty()})
    _check_files_exist(reading, kept, is_latest=commits[-1].version == latest)
    values = [CommitValues(c.version, c.time_ms, slice_of.get(c.version, 0), c.version in kept.told) for c in commits]
    number = {f.file.path: i for i, f in enumerate(plan.files)}

    def rows(files: Sequence[FileUses]) -> DataFrame | None:
        return _scan(reading, used, [(number[f.file.path], f) for f in files], values) if files else None

    def is_compared(file: FileUses) -> bool:
        return any(use.version in kept.compared for use in file.uses)

    flat = rows([f for f in kept.files if not is_compared(f)])
    together = rows([f for f in kept.files if is_compared(f)])
    columns = schema.column_names(reading.end.metadata)
    return RunChanges(
        commits[0].version,
        commits[-1].version,
        reading.end.metadata,
        flat,
        None if together is None else _compared(together, columns),
    )


def _check_files_exist(reading: Reading, plan: CommitsPlan, *, is_latest: bool) -> None:
    files = [*plan.perishable, *(() if is_latest else (f.file for f in plan.files))]
    missing = reading.table.missing_files(files) if files else []
    if missing:
        raise StreamqlError(
            "STREAM_STALE",
            f"VACUUM removed {counted(len(missing), 'data file')} that the changes of version {reading.commits[0].version} or later need, "
            f"e.g. {missing[0]}",
            hint="read from a later version on; data_retention_days of the table keeps files for longer",
            files=missing[:10],
        )


def _scan(
    reading: Reading, used: UsedFiles, files: Sequence[tuple[int, FileUses]], values: Sequence[CommitValues]
) -> DataFrame:
    """Returns the rows of files, once for each use: the row's id and version, the values of its commit, then the table's columns of the
    run."""
    numbers = {file.file.path: number for number, file in files}
    pieces = [Piece(+1, file.file) for _, file in files]
    own = [ROW_ID, ROW_VERSION, VERSION, TIME, SLICE, SIGN, TOLD]
    parts: DataFrame | None = None
    for epoch, group in by_partitioning(reading, pieces):
        chosen = [numbers[piece.file.path] for piece in group]
        rows = used.scan(descriptor(reading, epoch), chosen, values, loose_columns(reading, epoch))
        shown = in_final_columns(reading, rows, epoch, own)
        parts = shown if parts is None else parts.unionByName(shown)
    assert parts is not None
    return parts


def _image(columns: Sequence[str]) -> str:
    return f"named_struct({', '.join(part for c in columns for part in (quote_string(c), quote(c)))})"


def _apart(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    image = _image(columns)
    return select(
        rows,
        [
            *map(quote, (VERSION, TIME, SLICE, ROW_ID)),
            f"IF({SIGN} < 0, {image}, NULL) AS {BEFORE}",
            f"IF({SIGN} > 0, {image}, NULL) AS {AFTER}",
            f"CAST(NULL AS ARRAY<BOOLEAN>) AS {CHANGED}",
        ],
    )


def _compared(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Returns the row changes of each commit in COLUMNS, one for each row id. Rows that were carried along unchanged are left out. If the
    row version tells that (TOLD), the image of the row is not even made."""
    carried = f"({TOLD} AND {SIGN} > 0 AND {ROW_VERSION} < {VERSION})"
    images = select(
        rows,
        [
            *map(quote, (VERSION, TIME, SLICE, ROW_ID, SIGN)),
            f"{carried} AS {_CARRIED}",
            f"IF({carried}, NULL, {_image(columns)}) AS {_IMAGE}",
        ],
    )
    sides = {
        side: f"any_value(IF({SIGN} {sign} 0, {_IMAGE}, NULL), true)" for side, sign in ((BEFORE, "<"), (AFTER, ">"))
    }
    pairs = (
        images.groupBy(VERSION, ROW_ID)
        .agg(
            *(F.any_value(c).alias(c) for c in (TIME, SLICE)),
            F.max(_CARRIED).alias(_CARRIED),
            *(F.expr(text).alias(side) for side, text in sides.items()),
        )
        .where(~F.col(_CARRIED))
    )
    found = with_changed(pairs, BEFORE, AFTER, CHANGED)
    return found.where(F.expr(f"{CHANGED} IS NULL OR array_contains({CHANGED}, true)")).select(*COLUMNS)
