"""Streams in words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from streamql.console.render import quantities
from streamql.console.status import Line, Listing, Subject
from streamql.durations import in_words

if TYPE_CHECKING:
    from streamql.catalog.counts import Consumption
    from streamql.engine.stream_facts import StreamFacts


def listing(streams: Sequence[StreamFacts], at_ms: int) -> Listing:
    """Returns streams as they stood at a time, in milliseconds since 1970."""
    return Listing(STREAMS, [line_of(facts, at_ms) for facts in streams])


def line_of(facts: StreamFacts, now_ms: int) -> Line:
    """Returns the line of one stream."""
    status, last, failure = facts.status, facts.last, facts.failure
    marks = {"deadline": "soon"} if status.stale_soon else {}
    return Line(
        name=facts.name,
        origin=facts.source,
        lag=lag_text(facts),
        amount=backlog_text(facts),
        state=facts.state,
        deadline="" if status.stale_after_ms is None else quantities.until(status.stale_after_ms, now_ms),
        last="never" if last is None else consumption_text(last, now_ms),
        tone=STREAMS.states[facts.state],
        trouble=trouble_of(facts, now_ms),
        error="" if failure is None else f"{quantities.ago(failure.ended_ms, now_ms)}: {failure.why}",
        marks=marks if last is None or last.is_consumed else marks | {"last": "failed"},
        record={name: read(facts) for name, read in RECORD.items()},
    )


def lag_text(facts: StreamFacts) -> str:
    """3 v, 12 min: versions of a table (v) or messages of a topic (m), and the age of the oldest of them."""
    versions, seconds = facts.status.lag_versions, facts.status.lag_seconds
    if versions is None:
        return "?"
    if not versions:
        return "0"
    age = "" if seconds is None else f", {in_words(seconds * 1000)}"
    return f"{quantities.count(versions)} {facts.unit[0]}{age}"


def backlog_text(facts: StreamFacts) -> str:
    """120 rows, 3.4 MB; rows are an upper bound where files were rewritten. A topic tells only how many messages there are, at most."""
    backlog, rows = facts.status.backlog, backlog_rows(facts)
    if backlog is None:
        return "initial" if facts.status.has_data and facts.status.lag_versions is not None else "?"
    if not backlog.has_data:
        return "0"
    if rows is None:
        return quantities.size(backlog.bytes)
    plural = "" if rows == 1 else "s"
    if facts.unit == "message":
        return f"{quantities.count(rows)} message{plural}"
    return f"{quantities.count(rows)} row{plural}, {quantities.size(backlog.bytes)}"


def backlog_rows(facts: StreamFacts) -> int | None:
    """Row images that reading the stream would touch, at most; None: the log does not say."""
    backlog = facts.status.backlog
    if backlog is None or backlog.rows_added is None or backlog.rows_removed is None:
        return None
    return backlog.rows_added + backlog.rows_removed


def consumption_text(last: Consumption, now_ms: int) -> str:
    """5 min ago → sales.orders; where it failed: FAILED 5 min ago → sales.orders."""
    targets = ", ".join(last.targets) or "the client"
    return ("" if last.is_consumed else f"{last.outcome} ") + f"{quantities.ago(last.ended_ms, now_ms)} → {targets}"


def trouble_of(facts: StreamFacts, now_ms: int) -> str:
    """Returns what is wrong with a stream, in a sentence; empty: nothing."""
    if facts.status.invalid_reason is not None:
        return facts.status.invalid_reason
    consumer = facts.consumer
    if consumer is not None and consumer.abandoned is not None:
        return (
            f"a consumption of {consumer.who} was left behind: {consumer.abandoned}; streamql doctor --fix resolves it"
        )
    if facts.error is not None:
        return f"its last consumption failed: {facts.error}"
    if facts.status.stale_soon and facts.status.stale_after_ms is not None:
        return f"it goes stale {quantities.until(facts.status.stale_after_ms, now_ms)}: consume it, or retain more (streamql doctor)"
    return ""


RECORD: Mapping[str, Callable[[StreamFacts], object]] = {
    "name": lambda s: s.name,
    "source": lambda s: s.source,
    "mode": lambda s: s.mode,
    "state": lambda s: s.state,
    "offset_version": lambda s: s.offset_version,
    "lag_versions": lambda s: s.status.lag_versions,
    "lag_seconds": lambda s: s.status.lag_seconds,
    "backlog_rows": backlog_rows,
    "backlog_bytes": lambda s: s.status.backlog and s.status.backlog.bytes,
    "has_data": lambda s: s.status.has_data,
    "stale": lambda s: s.status.stale,
    "stale_after": lambda s: s.status.stale_after_ms and quantities.clock(s.status.stale_after_ms),
    "stale_soon": lambda s: s.status.stale_soon,
    "invalid_reason": lambda s: s.status.invalid_reason,
    "consumed_by": lambda s: s.consumer and f"{s.consumer.who}:{s.consumer.pid}",
    "consuming_since": lambda s: s.consumer and quantities.clock(s.consumer.since_ms),
    "last_consumption": lambda s: s.last and quantities.clock(s.last.ended_ms),
    "last_outcome": lambda s: s.last and s.last.outcome,
    "last_target": lambda s: s.last and (", ".join(s.last.targets) or None),
    "last_rows_written": lambda s: s.last and s.last.rows_written,
    "last_error": lambda s: s.failure and s.failure.why,
    "last_error_at": lambda s: s.failure and quantities.clock(s.failure.ended_ms),
    "offset_position": lambda s: s.offset_position,
    "latest_position": lambda s: s.status.latest_position,
}
"""The fields of a record, in their order; times are ISO 8601 in UTC, None: not known, or there is none."""

STREAMS = Subject(
    noun="stream",
    header={
        "name": "stream",
        "origin": "source",
        "lag": "lag",
        "amount": "backlog",
        "state": "state",
        "deadline": "stale",
        "last": "last consumption",
    },
    states={"invalid": "bad", "stale": "bad", "partial": "warn", "busy": "busy", "data": "good", "empty": "quiet"},
    words={"data": "with data"},
    fields=tuple(RECORD),
    numeric=frozenset(
        ("offset_version", "lag_versions", "lag_seconds", "backlog_rows", "backlog_bytes", "last_rows_written")
    ),
)
