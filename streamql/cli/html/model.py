"""What the page is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamql.cli.status.overview import Overview
from streamql.engine.ledger import Bucket, Flow
from streamql.engine.stream_facts import StreamFacts

PARTS = 60
"""Into how many parts the time window is cut: a bar each."""

SHORTEST_MS = 60_000


@dataclass(frozen=True)
class Window:
    """A span of time, in milliseconds since 1970, cut into PARTS."""

    since_ms: int
    until_ms: int

    @property
    def span_ms(self) -> int:
        """Returns how long it is."""
        return max(1, self.until_ms - self.since_ms)

    def bounds(self, part: int) -> tuple[int, int]:
        """From when to when a part is."""
        return self.since_ms + self.span_ms * part // PARTS, self.since_ms + self.span_ms * (part + 1) // PARTS


def window_of(first_ms: int | None, until_ms: int, span_ms: int | None) -> Window:
    """Returns the window of a report: since the first consumption, and a little more, so that it is not on the edge; at most as long as was
    asked.

    `first_ms` None: there is no consumption; `span_ms` None: nothing was asked."""
    if first_ms is None and span_ms is not None:
        return Window(until_ms - span_ms, until_ms)
    span = max(SHORTEST_MS, until_ms - (until_ms if first_ms is None else first_ms))
    span += span // PARTS
    return Window(until_ms - (span if span_ms is None else min(span, span_ms)), until_ms)


@dataclass(frozen=True)
class Report:
    """All that a report shows. `history` and `flows`: stream id → its consumptions, and where they went. `violations`: stream id → rows by
    the expectation that they violated."""

    overview: Overview
    window: Window
    history: Mapping[str, tuple[Bucket, ...]] = field(default_factory=dict)
    flows: Mapping[str, tuple[Flow, ...]] = field(default_factory=dict)
    violations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def buckets(self, facts: StreamFacts) -> tuple[Bucket, ...]:
        """Returns a stream's consumptions in the window."""
        return self.history.get(facts.uuid, ())
