"""Numbers, sizes and times in few words. Pure."""

from __future__ import annotations

from datetime import datetime, timezone

from streamql.durations import in_words


def ago(at_ms: int, now_ms: int) -> str:
    """Returns how long ago a time was."""
    return f"{in_words(max(0, now_ms - at_ms))} ago"


def until(at_ms: int, now_ms: int) -> str:
    """Returns how far off a time is; one that is over, how long ago it was."""
    return ago(at_ms, now_ms) if at_ms <= now_ms else f"in {in_words(at_ms - now_ms)}"


def count(number: int) -> str:
    """Returns a number in at most five characters: 999, 1.2k, 34M."""
    return _scaled(number, 1000, ("", "k", "M", "G", "T", "P"), "")


def size(byte_count: int) -> str:
    """Returns a size: 512 B, 3.4 KB, 12 MB."""
    return _scaled(byte_count, 1024, ("B", "KB", "MB", "GB", "TB", "PB"), " ")


def clock(at_ms: int) -> str:
    """Returns a time to the second, in UTC, as ISO 8601 has it."""
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def plain_clock(at_ms: int) -> str:
    """Returns the same for people: a page that says once that its times are UTC."""
    return clock(at_ms).replace("T", " ").rstrip("Z")


def shortened(text: str, width: int) -> str:
    """Returns the text, or its beginning and an ellipsis."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def _scaled(number: int, step: int, units: tuple[str, ...], space: str) -> str:
    value, unit = float(number), 0
    while round(value) >= step and unit < len(units) - 1:
        value, unit = value / step, unit + 1
    text = f"{value:.0f}" if not unit or value >= 9.95 else f"{value:.1f}".removesuffix(".0")
    return f"{text}{space}{units[unit]}"
