"""What the commits of an interval did to files, summed: from log actions to file states with weights. Pure.

Each data-changing commit takes a file from a state s to a state t (absent, or present with a deletion vector) and so contributes
t - s. Over all commits that sums to last - first; what a move (`dataChange = false`: OPTIMIZE, REORG, backfill) did is left out, since
it moves rows and changes none. A file both added and removed inside the interval vanishes in the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from streamql.delta.log import Commit, FileState


@dataclass
class NetFile:
    """The states of one file that are left in the sum.

    `weights`: state → its weight. `moved`: a state left in the sum was (also) put there by a move. `inserted`: the file came by a
    commit that removed nothing, so every row of it was new then.
    """

    weights: dict[FileState, int] = field(default_factory=dict)
    moved: bool = False
    inserted: bool = False

    def count(self, state: FileState, weight: int) -> None:
        """Adds to the weight of a state; of the actions that show it, one that has the file's size and partition is kept."""
        old = self.weights.pop(state, 0) if state.has_metadata else self.weights.get(state, 0)
        self.weights[state] = old + weight


def net_files(commits: Sequence[Commit]) -> dict[str, NetFile]:
    """Path → what is left of the file in the sum over the commits; files of which nothing is left are not in it."""
    files: dict[str, NetFile] = {}
    moved: set[FileState] = set()
    for commit in commits:
        removes = any(c.before is not None and c.data_change for c in commit.changes)
        for change in commit.changes:
            before, after = change.before, change.after
            if not change.data_change:
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
    """Each file whose rows were first written in the interval, at its first add by a data change, with the vector it had then.

    RESTORE and grown deletion vectors add a file again: an add counts only where the file's own commit version lies in the interval.
    """
    first: dict[str, FileState] = {}
    for commit in commits:
        for change in commit.changes:
            state = change.after
            if state is None or not change.data_change or state.path in first:
                continue
            version = state.default_row_commit_version
            if version is not None and version > after:
                first[state.path] = state
    return first


REWRITING_OPERATIONS = frozenset(
    {"WRITE", "STREAMING UPDATE", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "OPTIMIZE", "REORG"}
)
"""Operations that make new row images, or carry along those there are, and never bring back an old one."""


def versions_tell(commits: Sequence[Commit]) -> bool:
    """Whether no commit brought old row images back, as RESTORE does: then a row whose version is older than the interval is unchanged.

    Said by what the actions show, an old file added again or a deletion vector that does not grow, and by the operation besides, since a
    vector may lose rows while it gains others.
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
