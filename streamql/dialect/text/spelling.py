"""The nearest known word to a misspelt one, for hints.

Callers bound the number of mistakes, so the ratio of `difflib` does not fit: `data_retention_time_in_days` is 8 letters away from
`data_retention_days`, and its ratio is higher than that of STRM and STREAM, which are 2 letters apart.
"""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz.distance import OSA


def distance(one: str, other: str, limit: int) -> int:
    """Returns how many letters to add, drop, change or swap with a neighbour (optimal string alignment); at most limit + 1."""
    return OSA.distance(one, other, score_cutoff=limit)


def nearest(word: str, known: Iterable[str], limit: int | None = None) -> str | None:
    """Returns the known word within `limit` mistakes of the word (by default a third of its letters), whatever the case."""
    allowed = max(1, len(word) // 3) if limit is None else limit
    best = min(((distance(word.upper(), k.upper(), allowed), k) for k in known), default=(allowed + 1, ""))
    return best[1] if best[0] <= allowed else None
