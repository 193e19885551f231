"""What is read to find the changes of an interval by key. Pure; the plan is data.

The rows of the interval's begin and end are compared by key. A file that both have, in one state, is not read. Row ids tell only which
rows of rewritten files were carried along unchanged, and commits need not keep them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from streamql.changes.net import NetFile, net_files, versions_tell
from streamql.changes.plan import (
    CARRIED_BYTES_MIN,
    ChangePlan,
    Piece,
    PlanType,
    check_has_metadata,
    check_row_tracking,
    much_is_rewritten,
    perishable,
    pieces_of,
)
from streamql.delta.log import Commit, FileState
from streamql.errors import StreamqlError
from streamql.model import Versions

CARRYING_OPERATIONS = frozenset({"UPDATE", "DELETE", "MERGE", "OPTIMIZE", "REORG"})
"""Operations that carry unchanged rows into new files. Others, such as an overwrite, write all their rows anew."""


BUCKET_BITS_MIN, BUCKET_BITS_MAX = 16, 22
"""The least and the most buckets, as powers of two. A task has 8 bytes for each bucket: 32 MB at most."""

ROWS_PER_BUCKET = 32
"""How many rows share a bucket on average. If 0.1 % of the keys differ, 3 % of the rows are in buckets that differ."""

ROW_BYTES = 50
"""The size of a row, if a file has no statistics."""


@dataclass(frozen=True)
class KeyedPlan(ChangePlan):
    """What to read. `has_carried`: rewrites carried many rows along, which are left out by their row ids. `bucket_bits`: the
    number of buckets, as a power of two, in which rows that differ are found by hashes first. 0: few rows were written anew, so all of them
    are compared."""

    has_carried: bool = False
    bucket_bits: int = 0


def plan_keyed(commits: Sequence[Commit], interval: Versions) -> KeyedPlan:
    """Returns the plan to read the changes of an interval in STANDARD mode, without initial rows. Raises CHANGES_UNREADABLE.

    Its type says on which sides there are rows. The pieces on both sides are compared in any case.
    """
    net, counted = _files(commits)
    _, pieces = pieces_of(net, check_has_metadata, keep_inserted_apart=False)
    signs = {p.weight > 0 for p in pieces}
    if len(signs) < 2:
        plan_type = PlanType.NOTHING if not signs else PlanType.ADDED_ONLY if signs == {True} else PlanType.REMOVED_ONLY
    else:
        plan_type = PlanType.MINIMIZE
    by_carrying = _of_carrying(commits, pieces)
    has_carried = versions_tell(commits) and much_is_rewritten(by_carrying) and _keeps_ids(commits, pieces)
    anew = set(pieces) - set(by_carrying) if has_carried else pieces
    plan = KeyedPlan(
        plan_type, interval, (), pieces, perishable(commits, pieces), moves=counted, has_carried=has_carried
    )
    size = sum(int(p.file.action["size"]) for p in anew if p.other is None)
    if size < CARRIED_BYTES_MIN or plan.meets_in_one_task:
        return plan
    rows = sum(p.file.rows or int(p.file.action["size"]) // ROW_BYTES for p in anew)
    return replace(plan, bucket_bits=min(max((rows // ROWS_PER_BUCKET).bit_length(), BUCKET_BITS_MIN), BUCKET_BITS_MAX))


def _files(commits: Sequence[Commit]) -> tuple[Mapping[str, NetFile], frozenset[int]]:
    """Returns the net files, and the versions of moves that are counted.

    A move that keeps row ids, as OPTIMIZE does, is left out if the files that it made are left alone since. Then the rest are rows of the
    begin and of the end. Otherwise all moves are counted, and the files are those by which the two versions differ. A rewrite by hand with
    dataChange = false is always counted, because only its word says that it changed no row.
    """
    moves = frozenset(c.version for c in commits if any(not m.data_change and m.after is None for m in c.changes))
    by_hand = frozenset(c.version for c in commits if c.version in moves and not c.row_tracking_preserved)
    net = net_files(commits, by_hand)
    if any(f.moved or any(abs(w) > 1 for w in f.weights.values()) for f in net.values()):
        return net_files(commits, moves), moves
    return net, by_hand


def _keeps_ids(commits: Sequence[Commit], pieces: Sequence[Piece]) -> bool:
    """Returns whether all commits of the interval kept the ids of rows, and all files have them."""
    if any(p.file.base_row_id is None or p.file.default_row_commit_version is None for p in pieces):
        return False
    try:
        check_row_tracking(commits)
    except StreamqlError:
        return False
    return True


def _of_carrying(commits: Sequence[Commit], pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Returns the pieces of files that an operation has made or removed that carries rows along."""
    paths = {c.path for commit in commits if commit.operation in CARRYING_OPERATIONS for c in commit.changes}
    return tuple(p for p in pieces if p.file.path in paths)


# -- APPEND_ONLY


@dataclass(frozen=True)
class Rewrite:
    """A commit that removed rows and wrote rows. `removed`, `added`: what it took from the table, and put into it."""

    version: int
    removed: tuple[Piece, ...]
    added: tuple[Piece, ...]


@dataclass(frozen=True)
class AppendedPlan:
    """What to read in APPEND_ONLY mode. `appended`: files of commits that only wrote rows, with the versions of these. `rewrites`: commits
    whose rows are new only if the rows that they removed lack their keys."""

    appended: tuple[tuple[int, FileState], ...]
    rewrites: tuple[Rewrite, ...]


def plan_appended(commits: Sequence[Commit]) -> AppendedPlan:
    """Returns the plan to read the keys that came into the table, commit by commit. A row that a RESTORE brings back is not read: its file
    was written before."""
    appended: list[tuple[int, FileState]] = []
    rewrites: list[Rewrite] = []
    seen: set[str] = set()
    for commit in commits:
        data = [c for c in commit.changes if c.data_change]
        written = [
            c.after
            for c in data
            if c.after is not None
            and c.before is None
            and c.path not in seen
            and c.after.default_row_commit_version in (None, commit.version)
        ]
        seen.update(c.path for c in commit.changes)
        removed = [Piece(-1, c.before, c.after) for c in data if c.before is not None and c.before != c.after]
        for piece in removed:
            check_has_metadata(piece.file)
        if written and removed:
            rewrites.append(Rewrite(commit.version, tuple(removed), tuple(Piece(+1, f) for f in written)))
        else:
            appended += [(commit.version, f) for f in written]
    return AppendedPlan(tuple(appended), tuple(rewrites))
