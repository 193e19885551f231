"""Which streams are about to lose their history. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from streamql.durations import in_words
from streamql.times import DAY_MS


class Age(NamedTuple):
    """A stream of SHOW STREAMS. `stale_after_ms`: since 1970, None: not known; `lag_ms`: since when it has something to read."""

    name: str
    is_stale: bool
    stale_after_ms: int | None
    lag_ms: int | None


def mentions(ages: Iterable[Age], now_ms: int, mentioned: set[tuple[str, bool]]) -> list[str]:
    """Returns a sentence for each stream that is stale, or has a day left, or a quarter of its source's retention; each once: `mentioned`
    grows.

    A stream that was consumed meanwhile may be mentioned again.
    """
    found = []
    for age in ages:
        left = None if age.stale_after_ms is None else age.stale_after_ms - now_ms
        is_soon = left is not None and left < min(DAY_MS, (left + (age.lag_ms or 0)) // 4)
        key = (age.name, age.is_stale)
        if not age.is_stale and not is_soon:
            mentioned -= {(age.name, True), (age.name, False)}
        elif key not in mentioned:
            mentioned.add(key)
            found.append(_sentence(age, left or 0))
    return found


def _sentence(age: Age, left_ms: int) -> str:
    if age.is_stale:
        return f"stream {age.name} is stale: a part of its source's history is lost; \\d {age.name} says more"
    remedy = "consume it, or raise the source's data_retention_days (\\help retention)"
    when = f"in {in_words(left_ms, parts=2, is_long=True)}" if left_ms > 0 else "any moment"
    return f"stream {age.name} may become stale {when}: {remedy}"
