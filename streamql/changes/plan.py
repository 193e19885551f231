"""Chooses how a change set is read, by the sum of the interval's file states (`net.py`). Pure; the plan is data.

The idea is that of "What's the Difference? Incremental Processing with Change Queries in Snowflake" (SIGMOD 2023). Most intervals only add
rows. An interval that only adds or only removes rows needs no comparison of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from streamql.changes.net import (
    NetFile,
    first_adds,
    gone_after,
    least_files,
    there_before,
    untracked_rewrite,
    versions_tell,
)
from streamql.delta.log import Commit, FileState
from streamql.errors import StreamqlError
from streamql.garbage import uncollected
from streamql.model import StreamMode, Versions


class PlanType(Enum):
    """How a change set is read."""

    NOTHING = "NOTHING"  # no job at all
    ADDED_ONLY = "ADDED_ONLY"  # scan, no shuffle
    REMOVED_ONLY = "REMOVED_ONLY"  # scan, no shuffle
    ADDED_AND_REMOVED = "ADDED_AND_REMOVED"  # both, but no row has an old and a new image: scans, no shuffle
    MINIMIZE = "MINIMIZE"  # old and new images are joined by row id
    MINIMIZE_CARRIED = "MINIMIZE_CARRIED"  # the same if rewrites carried many rows along: reads the ids first, then the rows that changed
    MINIMIZE_MOVED = "MINIMIZE_MOVED"  # the same if moves copied row images, which must cancel first
    APPENDED = "APPENDED"  # APPEND_ONLY: scan, no shuffle
    INITIAL_ROWS = "INITIAL_ROWS"  # the whole table as INSERTs
    INITIAL_APPENDED = "INITIAL_APPENDED"  # APPEND_ONLY: the table as it was, then what was appended


CARRIED_BYTES_MIN = 4 << 20
"""If the rewritten files of one side are smaller than this, all rows are compared: reading the ids first takes a Spark job."""

CARRIED_ROWS_MAX = 1 << 26
"""If there are more rows than this, the set of ids would be too large for one task. An id takes up to two bytes in it."""

ONE_TASK_BYTES_MAX = 32 << 20
"""If all files together are no larger than this, their rows are compared in one task. A shuffle, with its two stages and the planning
between them, takes longer than reading so much. The rows fit into the memory of any executor, and sorts may spill."""

ONE_TASK_FILES_MAX = 32


@dataclass(frozen=True)
class Piece:
    """Rows of one file with their weight in the sum. `other`: another state of the file; the rows are those that `file` has and `other` has
    deleted. None: they are all rows of `file`."""

    weight: int
    file: FileState
    other: FileState | None = None


@dataclass(frozen=True)
class ChangePlan:
    """What to read. `inserted`: files all of whose rows are new. `pieces`: the rest. `perishable`: files whose data or deletion vectors
    VACUUM may have removed."""

    type: PlanType
    interval: Versions
    inserted: tuple[Piece, ...] = ()
    pieces: tuple[Piece, ...] = ()
    perishable: tuple[FileState, ...] = ()
    versions_tell: bool = False
    """Whether a row is certainly unchanged if its row commit version at the interval's end is from before the interval."""
    moves: frozenset[int] = frozenset()
    """The versions whose moves of rows between files are counted, because that leaves less to read."""

    @property
    def files(self) -> int:
        """Returns how many file states are read."""
        return len(self.inserted) + len(self.pieces)

    @property
    def meets_in_one_task(self) -> bool:
        """Returns whether the rows to compare are so few that one task is faster than a shuffle."""
        size = sum(int(p.file.action["size"]) for p in self.pieces)
        return size <= ONE_TASK_BYTES_MAX and len(self.pieces) <= ONE_TASK_FILES_MAX


def plan_changes(
    commits: Sequence[Commit], interval: Versions, mode: StreamMode, later: Sequence[Commit] = ()
) -> ChangePlan:
    """Returns the plan for an interval with these commits. `later`: the commits after the interval, which may have removed files that
    initial rows need.

    Raises CHANGE_TRACKING_DISABLED and CHANGES_UNREADABLE.
    """
    with uncollected():
        check_row_tracking(commits)
        if interval.initial:
            return _initial(commits, interval, mode, later)
        if mode is StreamMode.APPEND_ONLY:
            return _appended(commits, interval, PlanType.APPENDED)
        return _standard(commits, interval)


def _initial(commits: Sequence[Commit], interval: Versions, mode: StreamMode, later: Sequence[Commit]) -> ChangePlan:
    if mode is StreamMode.STANDARD:
        plan, since = ChangePlan(PlanType.INITIAL_ROWS, interval), tuple(later)
    else:
        plan, since = _appended(commits, interval, PlanType.INITIAL_APPENDED), (*commits, *later)
    gone = gone_after(since)
    touched = (s for path, s in there_before(since).items() if path in gone or s.vector is not None)
    return replace(plan, perishable=(*plan.perishable, *touched))


def _appended(commits: Sequence[Commit], interval: Versions, plan_type: PlanType) -> ChangePlan:
    files = tuple(Piece(+1, f) for f in first_adds(commits, interval.after).values())
    if not files and plan_type is PlanType.APPENDED:
        return ChangePlan(PlanType.NOTHING, interval)
    return ChangePlan(plan_type, interval, inserted=files, perishable=perishable(commits, files))


def _standard(commits: Sequence[Commit], interval: Versions) -> ChangePlan:
    net, counted = least_files(commits)
    by_hand = untracked_rewrite(net, commits)
    if by_hand is not None:
        raise tracking_disabled(
            by_hand,
            "rewrote the table's files with dataChange = false and gave their rows new identities, and rows that changed before it "
            "changed again after it",
            hint="take it commit by commit, … FROM the stream WITH (MAX_BATCH_SIZE = 1); OPTIMIZE, unlike a rewrite by hand, keeps "
            "identities",
        )
    moved = any(f.moved or any(abs(w) > 1 for w in f.weights.values()) for f in net.values())
    inserted, pieces = pieces_of(net, check_readable, keep_inserted_apart=not moved)
    tell = versions_tell(commits)
    plan_type = _type(inserted, pieces, moved, tell)
    return ChangePlan(plan_type, interval, inserted, pieces, perishable(commits, inserted + pieces), tell, counted)


def pieces_of(
    net: Mapping[str, NetFile], check: Callable[[FileState], None], *, keep_inserted_apart: bool
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Returns what is read of net files: files all of whose rows are new, then the rest. `check`: raises an error for a file
    that cannot be read. `keep_inserted_apart`: whether the former are not among the rest."""
    inserted: list[Piece] = []
    pieces: list[Piece] = []
    for file in net.values():
        if file.is_pair:  # only the rows by which the two states differ are read
            (old,) = (s for s, w in file.weights.items() if w < 0)
            (new,) = (s for s, w in file.weights.items() if w > 0)
            pieces.append(Piece(-1, old, new))
            pieces.append(Piece(+1, new, old))
            continue
        for state, weight in file.weights.items():
            alone = file.inserted and weight == 1 and len(file.weights) == 1
            (inserted if alone and keep_inserted_apart else pieces).append(Piece(weight, state))
    for piece in inserted + pieces:
        check(piece.file)
    return tuple(inserted), tuple(pieces)


def without_pairs(plan: ChangePlan, weights: set[int]) -> ChangePlan:
    """Returns the plan without the pieces of changed deletion vectors on the given sides. `weights`: the sides on which the vectors turned
    out to differ by no row."""
    pieces = tuple(p for p in plan.pieces if p.other is None or p.weight not in weights)
    plan_type = _type(plan.inserted, pieces, plan.type is PlanType.MINIMIZE_MOVED, plan.versions_tell)
    return replace(plan, type=plan_type, pieces=pieces)


def _type(inserted: Sequence[Piece], pieces: Sequence[Piece], moved: bool, tell: bool) -> PlanType:
    signs = {p.weight > 0 for p in (*inserted, *pieces)}
    if not signs:
        return PlanType.NOTHING
    if signs == {True}:
        return PlanType.ADDED_ONLY
    if signs == {False}:
        return PlanType.REMOVED_ONLY
    if moved:
        return PlanType.MINIMIZE_MOVED
    if len({p.weight > 0 for p in pieces}) == 1:
        return PlanType.ADDED_AND_REMOVED
    return PlanType.MINIMIZE_CARRIED if tell and much_is_rewritten(pieces) else PlanType.MINIMIZE


def much_is_rewritten(pieces: Sequence[Piece]) -> bool:
    """Returns whether so much was rewritten that reading the ids of the rows first is worth a Spark job."""
    sides = [[p for p in pieces if p.other is None and p.weight == sign] for sign in (-1, +1)]
    size = min(sum(int(p.file.action["size"]) for p in side) for side in sides)
    # A row that is carried is on both sides. UPDATE removes files without saying how many rows they have.
    return size >= max(1, CARRIED_BYTES_MIN) and min(map(_records, sides)) <= CARRIED_ROWS_MAX


def _records(pieces: Sequence[Piece]) -> float:
    """Returns how many rows the files have. It is infinite if a file has no statistics."""
    return sum(float(p.file.action.get("numRecords", "inf")) for p in pieces)


def perishable(commits: Sequence[Commit], pieces: Sequence[Piece]) -> tuple[FileState, ...]:
    """Returns the files of pieces whose data or deletion vectors VACUUM may have removed."""
    gone = gone_after(commits)
    return tuple({p.file: p.file for p in pieces if p.file.path in gone or p.file.vector is not None}.values())


MOVING_OPERATIONS = frozenset({"UPDATE", "DELETE", "MERGE", "OPTIMIZE"})
"""Operations that rewrite rows. Their commits must say that row ids and versions were kept."""


def check_row_tracking(commits: Sequence[Commit]) -> None:
    """Raises CHANGE_TRACKING_DISABLED if a commit did not keep the ids of rows, or switched change tracking off."""
    for commit in commits:
        configuration = (commit.metadata or {}).get("configuration") or {}
        if commit.metadata is not None and configuration.get("delta.enableRowTracking") != "true":
            raise tracking_disabled(commit.version, "switched change tracking off, or was made before it was on")
        rewrites = any(c.before is not None for c in commit.changes)
        kept = commit.row_tracking_preserved
        if rewrites and (kept is False or (kept is None and commit.operation in MOVING_OPERATIONS)):
            raise tracking_disabled(commit.version, f"({commit.operation}) did not keep the identity of rows")


def check_readable(file: FileState) -> None:
    """Checks that the rows of a file can be read with their ids. Raises CHANGE_TRACKING_DISABLED if the file has none, and
    CHANGES_UNREADABLE if its action lacks size or partition."""
    if file.base_row_id is None or file.default_row_commit_version is None:
        raise StreamqlError(
            "CHANGE_TRACKING_DISABLED",
            f"file {file.path} was written without change tracking",
            hint="CREATE OR REPLACE the stream: it then starts after that file",
            path=file.path,
        )
    check_has_metadata(file)


def check_has_metadata(file: FileState) -> None:
    """Raises CHANGES_UNREADABLE if the action of a file lacks size or partition."""
    if not file.has_metadata:
        raise StreamqlError(
            "CHANGES_UNREADABLE",
            f"the log does not say size and partition of the removed file {file.path}",
            hint="CREATE OR REPLACE the stream; writers must record extended file metadata with removals",
            path=file.path,
        )


TRACK_AGAIN = "ALTER TABLE … SET PROPERTIES ('change_tracking' = 'true'), then CREATE OR REPLACE the stream"


def tracking_disabled(version: int, what: str, hint: str = TRACK_AGAIN) -> StreamqlError:
    """Returns the error for a version that does not keep the ids of rows. `what`: what the version did."""
    return StreamqlError(
        "CHANGE_TRACKING_DISABLED",
        f"version {version} of the source {what}",
        hint=hint,
        version=version,
    )
