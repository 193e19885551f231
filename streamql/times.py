"""Times as the catalog and Delta's log keep them: whole milliseconds since 1970, UTC."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def now_ms() -> int:
    """Returns the time, in milliseconds since 1970."""
    return int(time.time() * 1000)


def now_us() -> int:
    """Return the time, in microseconds since 1970."""
    return time.time_ns() // 1000


def is_near(at_ms: int, retention_ms: int, now: int) -> bool:
    """Returns whether the end of a retention is near: in a day, or in a quarter of the retention if that is less. All in milliseconds."""
    return at_ms - now <= min(DAY_MS, retention_ms // 4)


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def iso(time_ms: int) -> str:
    """Returns a time in milliseconds since 1970 for display, in UTC."""
    try:
        text = (_EPOCH + timedelta(milliseconds=time_ms)).isoformat(sep=" ", timespec="milliseconds")
    except OverflowError:  # Spark's times reach farther than Python's
        return f"{time_ms} ms since 1970"
    return text.replace("+00:00", "Z")
