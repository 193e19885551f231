"""What each commit of an interval did to rows, read from files that are opened once. Pure; the plan is data.

`plan.py` plans the net changes of an interval. Here each commit counts by itself: a file that one commit added and a later one removed has
its rows in both. A plan for each commit would take jobs for each commit, and open such a file twice. Therefore this plan lists each file
once, with all its uses: which commit added or removed which of its rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from streamql.changes.net import gone_after, versions_tell
from streamql.changes.plan import check_readable, check_row_tracking
from streamql.delta.log import Commit, FileChange, FileState

ADDED, REMOVED = +1, -1

USES_MAX = 10_000
"""How many uses of files one plan has, unless a single commit has more: the list of them passes the driver, and Spark plans with it."""


@dataclass(frozen=True)
class Use:
    """Rows of one file that a commit added (`sign` +1) or removed (-1): those that `state` has and `other` has not.

    A state has the rows of its file that its deletion vector does not mark. `other`: another state of the file. None: no state, so all
    rows of `state` are meant.
    """

    version: int
    sign: int
    state: FileState
    other: FileState | None = None

    @property
    def is_whole(self) -> bool:
        """Returns whether all rows in the file are meant, so that no bitmap is needed."""
        return self.state.vector is None and self.other is None


@dataclass(frozen=True)
class FileUses:
    """A file and its uses, in the order of versions. `file`: a state by whose action the file is found and read. Its deletion vector is not
    to be applied, since each use has its own rows."""

    file: FileState
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class CommitsPlan:
    """What to read for the changes of each commit.

    `files`: each file once. `compared`: versions that both added and removed rows. Old and new images of a row may meet in these, and rows
    that a rewrite carried along unchanged are on both sides; in other versions each row is a change. `told`: those of the compared versions
    in which an added row is unchanged if and only if its row commit version is lower than the version. `perishable`: states whose file or
    deletion vector VACUUM may have removed.
    """

    files: tuple[FileUses, ...]
    compared: frozenset[int]
    told: frozenset[int]
    perishable: tuple[FileState, ...]

    @property
    def uses(self) -> int:
        """Returns how many uses it has."""
        return sum(len(file.uses) for file in self.files)


def changed_files(commits: Sequence[Commit]) -> Iterator[tuple[int, FileChange]]:
    """Returns the changes of files that changed rows, each with its version. Left out are moves (OPTIMIZE and others), and files that were
    only named again."""
    for commit in commits:
        for change in commit.changes:
            if change.data_change and change.before != change.after:
                yield commit.version, change


def plan_commits(commits: Sequence[Commit]) -> CommitsPlan:
    """Returns the plan for commits, which are in the order of versions. Only commits that changed rows have uses.

    Raises CHANGE_TRACKING_DISABLED and CHANGES_UNREADABLE, as `plan_changes` does.
    """
    check_row_tracking(commits)
    uses: dict[str, list[Use]] = {}
    readable: dict[str, FileState] = {}
    for version, change in changed_files(commits):
        for use in _uses(version, change):
            uses.setdefault(change.path, []).append(use)
            if change.path not in readable or not readable[change.path].has_metadata:
                readable[change.path] = use.state
    for file in readable.values():
        check_readable(file)
    files = tuple(FileUses(readable[path], tuple(of_file)) for path, of_file in uses.items())
    compared = _compared(files)
    told = frozenset(c.version for c in commits if c.version in compared and versions_tell([c]))
    return CommitsPlan(files, compared, told, _perishable(commits, files))


def first_commit(commit: Commit) -> Commit:
    """Returns the first commit of a table, which may have replaced another table, without the files that it removed: these were the other
    table's."""
    return replace(commit, changes=tuple(change for change in commit.changes if change.before is None))


def without_uses(plan: CommitsPlan, empty: Collection[Use]) -> CommitsPlan:
    """Returns the plan without uses that have no rows, which the deletion vectors tell, and without files that lose all their uses."""
    gone = frozenset(empty)
    kept = ((f, tuple(use for use in f.uses if use not in gone)) for f in plan.files)
    files = tuple(replace(f, uses=uses) for f, uses in kept if uses)
    compared = _compared(files)
    return replace(plan, files=files, compared=compared, told=plan.told & compared)


def _compared(files: Sequence[FileUses]) -> frozenset[int]:
    removed, added = ({u.version for f in files for u in f.uses if u.sign == sign} for sign in (REMOVED, ADDED))
    return frozenset(removed & added)


def _uses(version: int, change: FileChange) -> Iterator[Use]:
    """Yields the rows that left the file, then those that came. A vector that grew has only the former, but a vector may lose rows too."""
    if change.before is not None:
        yield Use(version, REMOVED, change.before, change.after)
    if change.after is not None and (change.before is None or change.before.vector is not None):
        yield Use(version, ADDED, change.after, change.before)


def _perishable(commits: Sequence[Commit], files: Sequence[FileUses]) -> tuple[FileState, ...]:
    gone = gone_after(commits)
    states = (s for f in files for use in f.uses for s in (use.state, use.other) if s is not None)
    return tuple(dict.fromkeys(s for s in states if s.path in gone or s.vector is not None))


def in_batches(commits: Sequence[Commit], uses_max: int = USES_MAX, begins: Collection[int] = ()) -> list[list[Commit]]:
    """Splits commits into runs, each of which is planned by itself. A run has at most `uses_max` changed files, or is one commit. `begins`:
    versions at which a run begins in any case."""
    batches: list[list[Commit]] = []
    size = 0
    for commit in commits:
        changes = sum(1 for _ in changed_files([commit]))
        if not batches or commit.version in begins or size + changes > uses_max:
            batches.append([])
            size = 0
        batches[-1].append(commit)
        size += changes
    return batches
