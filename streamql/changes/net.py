"""What the commits of an interval did to files, summed: from log actions to file states with weights. Pure.

Each data-changing commit takes a file from a state s to a state t, and so contributes t - s. A state is absent, or present with a deletion
vector. Over all commits that sums to last - first. A move (`dataChange = false`: OPTIMIZE, REORG, backfill) takes rows from files to files
and changes none, so what it contributes is zero as rows, if not as files: it may be left out, or counted, whichever leaves less to read.
Left out, as a rule: an interval that compacts the whole table then has nothing of it. But if rewrites came before and after a move, what it
took and what it gave are both in the sum. Counting the move makes them vanish.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamql.delta.log import Commit, FileChange, FileState


@dataclass
class NetFile:
    """The states of one file that are left in the sum.

    `weights`: state → its weight. `moved`: a state left in the sum was (also) put there by a move. `inserted`: the file came by a commit
    that removed nothing, so every row of it was new then.
    """

    weights: dict[FileState, int] = field(default_factory=dict)
    moved: bool = False
    inserted: bool = False

    @property
    def is_pair(self) -> bool:
        """Returns whether what is left is one state before and one after: the file's vector changed."""
        return sorted(self.weights.values()) == [-1, +1]

    def count(self, state: FileState, weight: int) -> None:
        """Adds to the weight of a state; of the actions that show it, one that has the file's size and partition is kept."""
        old = self.weights.pop(state, 0) if state.has_metadata else self.weights.get(state, 0)
        self.weights[state] = old + weight


GREEDY_MOVES_MAX = 16
"""With more moves than this in an interval, either all are counted or none."""


def least_files(commits: Sequence[Commit]) -> tuple[dict[str, NetFile], frozenset[int]]:
    """`net_files` with those moves counted that leave least to read, and the versions that made them."""
    best, counted = net_files(commits), frozenset[int]()
    if not any(f.moved for f in best.values()):
        return best, counted
    # Only moves that say so took the rows' ids along: to rewrite a table by hand with dataChange = false gives it new ones.
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
    """Returns how much of the table a sum makes one read: a file whose vector changed once, others once for each state."""
    total = 0
    for file in files.values():
        size = max(int(s.action.get("size") or 0) for s in file.weights)
        total += size * (1 if file.is_pair else sum(map(abs, file.weights.values())))
    return total


def net_files(commits: Sequence[Commit], counted: frozenset[int] = frozenset()) -> dict[str, NetFile]:
    """Path → what is left of the file in the sum over the commits, moves of the `counted` versions among them; files of which nothing is
    left are not in it."""
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
    """Each file whose rows were first written in the interval, at its first add, with the vector it had then.

    RESTORE and grown deletion vectors add a file again: an add counts only where the file's own commit version lies in the interval. A
    file that a move brought holds rows that were there before, whatever ids it gave them, even if a data change adds it again.
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
"""Operations that make new row images, or carry along those there are, and never bring back an old one."""


def versions_tell(commits: Sequence[Commit]) -> bool:
    """Returns whether no commit brought old row images back, as RESTORE does: then a row whose version is older than the interval is
    unchanged.

    The actions show it: an old file is added again, or a deletion vector does not grow. The operation shows it too, since a vector may lose
    rows while it gains others.
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
    """Returns the version of a rewrite that gave rows new ids, and says that it changed none. None: there is no such rewrite."""
    rewrites = (
        c
        for c in commits
        if not c.row_tracking_preserved and any(not m.data_change and m.after is None for m in c.changes)
    )
    return next((c.version for c in rewrites), None)


def untracked_rewrite(net: Mapping[str, NetFile], commits: Sequence[Commit]) -> int | None:
    """Returns the version of a rewrite that gave new row ids to rows which the interval brought. None: there is no such rewrite.

    It counts only if later changes to these rows are in the net changes: then the changes cannot be matched with the row.

    A file is followed from move to move: that it holds rows which the interval brought (`fresh`), and that such rows lost their ids on
    the way (`lost`, by which version). Of several files that one move took and made, each may have gone into each.
    """
    if rewrite_by_hand(commits) is None:
        return None
    grows = versions_tell(commits)  # then no changed vector gives rows back
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
            # A file that is only named again, with other statistics, keeps its version, and its rows their ids.
            elif before is None and after.default_row_commit_version == commit.version:
                if is_fresh:
                    fresh.add(change.path)
                if lost_by is not None:
                    lost[change.path] = lost_by
    return min((lost[p] for p, f in net.items() if p in lost and any(w < 0 for w in f.weights.values())), default=None)


def there_before(commits: Sequence[Commit]) -> dict[str, FileState]:
    """Files that were in the table when the interval began, with the vector they had, of those that it touched."""
    return {path: c.before for path, c in first_changes(commits).items() if c.before is not None}


def first_changes(commits: Sequence[Commit]) -> dict[str, FileChange]:
    """Returns what the first commit that touched a file did to it, by path."""
    first: dict[str, FileChange] = {}
    for commit in commits:
        for change in commit.changes:
            first.setdefault(change.path, change)
    return first


def gone_after(commits: Sequence[Commit]) -> set[str]:
    """Files that the last action of the interval on them removed: only these can have been vacuumed since."""
    gone: set[str] = set()
    for commit in commits:
        for change in commit.changes:
            if change.after is None:
                gone.add(change.path)
            else:
                gone.discard(change.path)
    return gone
