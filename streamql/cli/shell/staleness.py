"""Which streams are about to lose their history, as the shell warns of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from streamql.durations import in_words
from streamql.engine.stream_facts import StreamFacts


def mentions(streams: Iterable[StreamFacts], now_ms: int, mentioned: set[tuple[str, bool]]) -> list[str]:
    """Returns a sentence for each stream that is stale, or will be soon; each once: `mentioned` grows.

    A stream that was consumed meanwhile may be mentioned again.
    """
    found = []
    for stream in streams:
        status, key = stream.status, (stream.name, stream.status.stale)
        if not status.stale and not status.stale_soon:
            mentioned -= {(stream.name, True), (stream.name, False)}
        elif key not in mentioned:
            mentioned.add(key)
            found.append(_sentence(stream, (status.stale_after_ms or now_ms) - now_ms))
    return found


def _sentence(stream: StreamFacts, left_ms: int) -> str:
    if stream.status.stale:
        return f"stream {stream.name} is stale: a part of its source's history is lost; \\d {stream.name} says more"
    remedy = "consume it, or raise the source's data_retention_days (\\help retention)"
    when = f"in {in_words(left_ms, parts=2, is_long=True)}" if left_ms > 0 else "any moment"
    return f"stream {stream.name} may become stale {when}: {remedy}"
