"""Batches of a table's changes: how many commits fit."""

from __future__ import annotations

from collections.abc import Callable

from streamql.delta.log import Commit


def longest_prefix(length: int, known: int, fits: Callable[[int], bool]) -> int:
    """How many of `length` things fit, where the first `known` do, and what is asked for costs as much as it is long: in steps that double,
    then by halves."""
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
