"""Times as the catalog and Delta's log keep them: whole milliseconds since 1970, UTC."""

from __future__ import annotations

import time
from datetime import datetime, timezone

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def now_ms() -> int:
    """The time, in milliseconds since 1970."""
    return int(time.time() * 1000)


def iso(time_ms: int) -> str:
    """A time in milliseconds since 1970 for people to read, in UTC."""
    text = datetime.fromtimestamp(time_ms / 1000, timezone.utc).isoformat(sep=" ", timespec="milliseconds")
    return text.replace("+00:00", "Z")
