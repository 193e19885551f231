"""Batches: how many commits of a table fit into a batch, and how a batch is divided among the parts of a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from streamql.delta.log import Commit

Part = TypeVar("Part")


def longest_prefix(length: int, known: int, fits: Callable[[int], bool]) -> int:
    """Returns the length of the longest prefix of `length` items that fits. The first `known` items are known to fit.

    A call of `fits` costs the more the longer the prefix is. So the search tries steps that double until one does not fit, and then halves
    its steps.
    """
    step = 1
    while known < length:
        tried = min(known + step, length)
        if fits(tried):
            known, step = tried, 2 * step
            continue
        length = tried - 1
        step = max(1, (length - known + 1) // 2)
    return known


def rows_touched_max(commit: Commit) -> int:
    """Returns an upper bound of the changes that a commit makes. It counts the rows of every file before and after the commit, because an
    update is two changes. If a file has no statistics, the bound is practically infinite."""
    total = 0
    for change in commit.changes:
        if change.data_change:
            for state in (change.before, change.after):
                records = state.action.get("numRecords") if state is not None else 0
                if records is None:
                    return 2**62
                total += int(records)
    return total


def spread(sizes: Mapping[Part, int], total: int) -> dict[Part, int]:
    """Divides a batch of `total` among parts in proportion to their sizes. Returns whole numbers whose sum is `total`, or, if everything
    fits, the sizes.

    Shares are rounded down. The rest goes, one each, to the parts with the largest remainders (Hamilton's method).
    """
    everything = sum(sizes.values())
    if everything <= total:
        return dict(sizes)
    shares = {part: size * total // everything for part, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda part: (-(sizes[part] * total % everything), list(sizes).index(part)))
    for part in by_remainder[: total - sum(shares.values())]:
        shares[part] += 1
    return shares
