"""The nearest known word to a misspelt one, for hints.

Callers need a bound on the number of mistakes, and the ratio of `difflib` is none: `data_retention_time_in_days` is 8 letters away from
`data_retention_days`, and its ratio is higher than that of STRM and STREAM, which are 2 letters apart.
"""

from __future__ import annotations

from collections.abc import Iterable


def distance(one: str, other: str, limit: int) -> int:
    """How many letters to add, drop, change or swap with a neighbour (optimal string alignment); at most limit + 1."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return min(last[-1], limit + 1)


def nearest(word: str, known: Iterable[str], limit: int | None = None) -> str | None:
    """The known word within `limit` mistakes of the word (by default a third of its letters), whatever the case."""
    allowed = max(1, len(word) // 3) if limit is None else limit
    best = min(((distance(word.upper(), k.upper(), allowed), k) for k in known), default=(allowed + 1, ""))
    return best[1] if best[0] <= allowed else None
