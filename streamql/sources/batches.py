"""Batches: how many commits of a table fit, and how a batch is spread over the parts of a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from streamql.delta.log import Commit

Part = TypeVar("Part")


def longest_prefix(length: int, known: int, fits: Callable[[int], bool]) -> int:
    """Returns how many of `length` things fit, where the first `known` do, and what is asked for costs as much as it is long: in steps that
    double, then by halves."""
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
    """No fewer than the changes a commit can make: every row of every file it names, twice (an update is two changes)."""
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
    """Of each part how much fits into a batch of `total`: a share by its size, whole numbers, `total` in all. If everything fits: all.

    Shares are rounded down, and what is left goes one each to the parts with the largest remainders (Hamilton's method).
    """
    everything = sum(sizes.values())
    if everything <= total:
        return dict(sizes)
    shares = {part: size * total // everything for part, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda part: (-(sizes[part] * total % everything), list(sizes).index(part)))
    for part in by_remainder[: total - sum(shares.values())]:
        shares[part] += 1
    return shares
