"""Sums what the commits of an interval did to files. The sum gives each file state a weight. Pure.

A commit that changes data takes a file from a state s to a state t, and contributes t - s. A state is absent, or present with or without a
deletion vector. The sum over all commits is last state - first state.

A move (`dataChange = false`: OPTIMIZE, REORG, backfill) takes rows from files to other files and changes no row. Summed over rows it
contributes nothing, but summed over files it does. So it may be counted or left out, whichever leaves fewer bytes to read. Usually it is
left out: a compaction of the whole table then adds nothing to read. If rewrites came before and after a move, both the files that it took
and the files that it made are in the sum. Then counting the move cancels them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamql.delta.log import Commit, FileChange, FileState


@dataclass
class NetFile:
    """The states of one file that are left in the sum.

    `weights`: state → its weight. `moved`: a move has made one of these states. `inserted`: a commit that removed nothing added the file,
    so that every row of it was new then.
    """

    weights: dict[FileState, int] = field(default_factory=dict)
    moved: bool = False
    inserted: bool = False

    @property
    def is_pair(self) -> bool:
        """Returns whether one old and one new state are left: the file stayed, and its deletion vector changed."""
        return sorted(self.weights.values()) == [-1, +1]

    def count(self, state: FileState, weight: int) -> None:
        """Adds to the weight of a state. Of equal states, one is kept whose action has the file's size and partition."""
        old = self.weights.pop(state, 0) if state.has_metadata else self.weights.get(state, 0)
        self.weights[state] = old + weight


GREEDY_MOVES_MAX = 16
"""If an interval has more moves than this, either all of them are counted or none."""


def least_files(commits: Sequence[Commit]) -> tuple[dict[str, NetFile], frozenset[int]]:
    """Returns `net_files` with a choice of counted moves that leaves few bytes to read, and the versions of these moves."""
    best, counted = net_files(commits), frozenset[int]()
    if not any(f.moved for f in best.values()):
        return best, counted
    # Only moves whose commit says so kept the rows' ids. A user who rewrites a table with dataChange = false gives its rows new ones.
    moves = [c.version for c in commits if c.row_tracking_preserved and any(not m.data_change for m in c.changes)]
    choices = [frozenset(moves)]
    if len(moves) <= GREEDY_MOVES_MAX:
        choices += [frozenset({v}) for v in moves]
    for choice in choices:
        candidate = net_files(commits, counted | choice)
        if bytes_read(candidate) < bytes_read(best):
            best, counted = candidate, counted | choice
    return best, counted


def bytes_read(files: Mapping[str, NetFile]) -> int:
    """Returns how many bytes must be read for a sum: a file whose deletion vector changed counts once, others once for each state."""
    total = 0
    for file in files.values():
        size = max(int(s.action.get("size") or 0) for s in file.weights)
        total += size * (1 if file.is_pair else sum(map(abs, file.weights.values())))
    return total


def net_files(commits: Sequence[Commit], counted: frozenset[int] = frozenset()) -> dict[str, NetFile]:
    """Returns path → what is left of the file in the sum over the commits. Files of which nothing is left are not in it. `counted`: the
    versions whose moves are counted."""
    files: dict[str, NetFile] = {}
    moved: set[FileState] = set()
    for commit in commits:
        counts = commit.version in counted
        removes = any(c.before is not None and (c.data_change or counts) for c in commit.changes)
        for change in commit.changes:
            before, after = change.before, change.after
            if not (change.data_change or counts):
                if after is not None and before != after:
                    moved.add(after)
                continue
            path = change.path
            if path not in files:
                new_here = after is not None and before is None and after.default_row_commit_version == commit.version
                files[path] = NetFile(inserted=new_here and not removes)
            if after is not None:
                files[path].count(after, +1)
            if before is not None:
                files[path].count(before, -1)
    left = {}
    for path, net in files.items():
        net.weights = {state: weight for state, weight in net.weights.items() if weight}
        net.moved = any(state in moved for state in net.weights)
        if net.weights:
            left[path] = net
    return left


def first_adds(commits: Sequence[Commit], after: int) -> dict[str, FileState]:
    """Returns each file whose rows were first written in the interval, in the state of its first add action.

    RESTORE and changed deletion vectors add a file again. So an add counts only if the file's own commit version is in the interval. A file
    that a move made has rows that were there before, whatever ids it gave them. It does not count, even if a data change adds it again.
    """
    first: dict[str, FileState] = {}
    seen: set[str] = set()
    for commit in commits:
        for change in commit.changes:
            state = change.after
            if state is None or state.path in seen:
                continue
            seen.add(state.path)
            version = state.default_row_commit_version
            if change.data_change and version is not None and version > after:
                first[state.path] = state
    return first


REWRITING_OPERATIONS = frozenset(
    {"WRITE", "STREAMING UPDATE", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "OPTIMIZE", "REORG"}
)
"""Operations that write new row images or carry existing ones along, and never bring back an image that was removed."""


def versions_tell(commits: Sequence[Commit]) -> bool:
    """Returns whether no commit brought back removed row images, as RESTORE does. Then a row with a row commit version from before the
    interval is certainly unchanged.

    Two types of actions bring images back: an add of an old file, and a deletion vector that does not grow. The operation is checked as
    well, because a vector that grows may still give some rows back.
    """
    for commit in commits:
        for change in commit.changes:
            before, after = change.before, change.after
            if after is None:
                continue
            if commit.operation not in REWRITING_OPERATIONS and before is not None:
                return False
            if before is None and after.default_row_commit_version != commit.version:
                return False
            if before is not None and _cardinality(after) < _cardinality(before):
                return False
    return True


def _cardinality(state: FileState) -> int:
    return int((state.action.get("deletionVector") or {}).get("cardinality", 0))


def rewrite_by_hand(commits: Sequence[Commit]) -> int | None:
    """Returns the version of a commit with dataChange = false that gave rows new ids. None: there is no such commit."""
    rewrites = (
        c
        for c in commits
        if not c.row_tracking_preserved and any(not m.data_change and m.after is None for m in c.changes)
    )
    return next((c.version for c in rewrites), None)


def untracked_rewrite(net: Mapping[str, NetFile], commits: Sequence[Commit]) -> int | None:
    """Returns the version of a move that gave new ids to rows that were written in the interval. None: there is no such move.

    It counts only if later changes to these rows are in the net changes, because these cannot be matched with the rows then.

    Files are followed from move to move. `fresh` has the files that may hold rows written in the interval. `lost` has the files in which
    such rows may have lost their ids, with the version of the move. Rows of each file that a move took may be in each file that it made.
    """
    if rewrite_by_hand(commits) is None:
        return None
    grows = versions_tell(commits)  # then no changed deletion vector gives rows back
    fresh: set[str] = set()
    lost: dict[str, int] = {}
    for commit in commits:
        taken = [m.path for m in commit.changes if not m.data_change and m.after is None]
        is_fresh = any(path in fresh for path in taken)
        lost_by = min((lost[path] for path in taken if path in lost), default=None)
        if lost_by is None and is_fresh and not commit.row_tracking_preserved:
            lost_by = commit.version
        for change in commit.changes:
            before, after = change.before, change.after
            if after is None:
                continue
            if change.data_change:
                if before is None or not grows:
                    fresh.add(change.path)
            # A file that is only added again, with other statistics, keeps its commit version, and its rows keep their ids.
            elif before is None and after.default_row_commit_version == commit.version:
                if is_fresh:
                    fresh.add(change.path)
                if lost_by is not None:
                    lost[change.path] = lost_by
    return min((lost[p] for p, f in net.items() if p in lost and any(w < 0 for w in f.weights.values())), default=None)


def there_before(commits: Sequence[Commit]) -> dict[str, FileState]:
    """Returns path → the state at the interval's begin, of the files that the interval touched and that were in the table then."""
    return {path: c.before for path, c in first_changes(commits).items() if c.before is not None}


def first_changes(commits: Sequence[Commit]) -> dict[str, FileChange]:
    """Returns path → the first change of the file in the interval."""
    first: dict[str, FileChange] = {}
    for commit in commits:
        for change in commit.changes:
            first.setdefault(change.path, change)
    return first


def gone_after(commits: Sequence[Commit]) -> set[str]:
    """Returns the paths of the files whose last change in the interval removed them. Only these can have been vacuumed since."""
    gone: set[str] = set()
    for commit in commits:
        for change in commit.changes:
            if change.after is None:
                gone.add(change.path)
            else:
                gone.discard(change.path)
    return gone
