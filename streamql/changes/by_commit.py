"""Plans how to read what each commit of an interval did to rows, so that every file is opened once. Pure; the plan is data.

`plan.py` plans the net changes of an interval. This module plans the changes of each commit. If one commit adds a file and a later one
removes it, its rows are changes of both. With one plan for each commit, each commit would take jobs, and such a file would be opened twice.
So this plan lists each file once, with all its uses. A use says which commit added or removed which of the file's rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from streamql.changes.net import gone_after, versions_tell
from streamql.changes.plan import check_readable, check_row_tracking
from streamql.delta.log import Commit, FileChange, FileState

ADDED, REMOVED = +1, -1

USES_MAX = 10_000
"""How many uses one plan has at most, unless a single commit has more. The list of uses goes through the driver and into Spark's plan."""


@dataclass(frozen=True)
class Use:
    """Rows of one file that a commit added (`sign` +1) or removed (-1): the rows that `state` has and `other` does not have.

    A state has the rows of its file that its deletion vector does not mark. `other`: another state of the file. None: all rows of `state`
    are meant.
    """

    version: int
    sign: int
    state: FileState
    other: FileState | None = None

    @property
    def is_whole(self) -> bool:
        """Returns whether all rows of the file are meant, so that no deletion vector has to be read."""
        return self.state.vector is None and self.other is None


@dataclass(frozen=True)
class FileUses:
    """A file and its uses, in the order of versions. `file`: a state whose action says how to read the file. Its deletion vector must not
    be applied, because each use has rows of its own."""

    file: FileState
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class CommitsPlan:
    """What to read for the changes of each commit.

    `files`: each file once. `compared`: the versions that both added and removed rows. In these, a row may have an old and a new image, and
    rows that a rewrite carried along unchanged have two equal images. In other versions each row is a change. `told`: the compared versions
    in which the row commit version alone tells which added rows are unchanged: those whose row commit version is lower than the version.
    `perishable`: states whose file or deletion vector VACUUM may have removed.
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
    """Yields the changes of files that changed rows, each with its version. Leaves out moves of rows (OPTIMIZE and others), and files that
    a commit added again in the same state."""
    for commit in commits:
        for change in commit.changes:
            if change.data_change and change.before != change.after:
                yield commit.version, change


def plan_commits(commits: Sequence[Commit]) -> CommitsPlan:
    """Returns the plan for commits, which must be in the order of their versions. Only commits that changed rows have uses.

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
    """Returns the first commit of a table without the files that it removed. If it replaced another table, it removed the files of that
    one."""
    return replace(commit, changes=tuple(change for change in commit.changes if change.before is None))


def without_uses(plan: CommitsPlan, empty: Collection[Use]) -> CommitsPlan:
    """Returns the plan without the uses that have no rows, and without the files that have no other uses. `empty`: these uses, by the
    deletion vectors."""
    gone = frozenset(empty)
    kept = ((f, tuple(use for use in f.uses if use not in gone)) for f in plan.files)
    files = tuple(replace(f, uses=uses) for f, uses in kept if uses)
    compared = _compared(files)
    return replace(plan, files=files, compared=compared, told=plan.told & compared)


def _compared(files: Sequence[FileUses]) -> frozenset[int]:
    removed, added = ({u.version for f in files for u in f.uses if u.sign == sign} for sign in (REMOVED, ADDED))
    return frozenset(removed & added)


def _uses(version: int, change: FileChange) -> Iterator[Use]:
    """Yields the use of the rows that a change removed from a file, then the use of those that it added. A deletion vector that only grew
    adds no rows, but a vector may also give rows back."""
    if change.before is not None:
        yield Use(version, REMOVED, change.before, change.after)
    if change.after is not None and (change.before is None or change.before.vector is not None):
        yield Use(version, ADDED, change.after, change.before)


def _perishable(commits: Sequence[Commit], files: Sequence[FileUses]) -> tuple[FileState, ...]:
    gone = gone_after(commits)
    states = (s for f in files for use in f.uses for s in (use.state, use.other) if s is not None)
    return tuple(dict.fromkeys(s for s in states if s.path in gone or s.vector is not None))


def in_batches(commits: Sequence[Commit], uses_max: int = USES_MAX, begins: Collection[int] = ()) -> list[list[Commit]]:
    """Splits commits into runs, each of which gets a plan of its own. A run has at most `uses_max` changed files, or is one commit.
    `begins`: the versions at which a run must begin."""
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
