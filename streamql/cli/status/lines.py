"""Streams as lines for display, and as records for programs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamql.cli.status.overview import Overview
from streamql.console.render import quantities
from streamql.durations import in_words
from streamql.engine.ledger import Consumption
from streamql.engine.stream_facts import StreamFacts
from streamql.errors import counted
from streamql.features.dynamic import lines as dynamic_lines

HEADER = ("stream", "source", "lag", "backlog", "state", "stale", "last consumption")

RANKS = {"stale": 0, "invalid": 0, "partial": 1, "busy": 3, "data": 4, "empty": 5}
"""What needs attention comes first. 2: a stream about to go stale, or whose newest consumption failed."""


@dataclass(frozen=True)
class Line:
    """A stream in short: one cell a column of HEADER; `trouble`: what is wrong, in a sentence, empty if nothing is."""

    cells: tuple[str, ...]
    state: str
    stale_soon: bool
    failed: bool
    trouble: str

    @property
    def rank(self) -> int:
        """Returns its place among others: lower needs attention sooner."""
        own = RANKS[self.state]
        return min(own, 2) if self.stale_soon or self.failed else own


def lines(overview: Overview, *, worst_first: bool = False) -> list[Line]:
    """Returns a line a stream: in the order of their names, or those with trouble first."""
    made = [line_of(facts, overview.at_ms) for facts in overview.streams]
    return sorted(made, key=lambda line: line.rank) if worst_first else made


def line_of(facts: StreamFacts, now_ms: int) -> Line:
    """Returns the line of one stream."""
    status, last = facts.status, facts.last
    cells = (
        facts.name,
        facts.source,
        lag_text(facts),
        backlog_text(facts),
        facts.state,
        "" if status.stale_after_ms is None else quantities.until(status.stale_after_ms, now_ms),
        "never" if last is None else consumption_text(last, now_ms),
    )
    failed = last is not None and not last.is_consumed
    return Line(cells, facts.state, status.stale_soon, failed, trouble_of(facts, now_ms))


def lag_text(facts: StreamFacts) -> str:
    """3 v, 12 min: versions of a table (v) or messages of a topic (m), and the age of the oldest of them."""
    versions, seconds = facts.status.lag_versions, facts.status.lag_seconds
    if versions is None:
        return "?"
    if not versions:
        return "0"
    return f"{quantities.count(versions)} {facts.unit[0]}" + (
        "" if seconds is None else f", {in_words(seconds * 1000)}"
    )


def backlog_text(facts: StreamFacts) -> str:
    """120 rows, 3.4 MB; rows are an upper bound where files were rewritten. A topic tells only how many messages there are, at most."""
    backlog = facts.status.backlog
    if backlog is None:
        return "initial" if facts.status.has_data else "?"
    if not backlog.has_data:
        return "0"
    rows = backlog_rows(facts)
    if facts.unit == "message" and rows is not None:
        return f"{quantities.count(rows)} message{'' if rows == 1 else 's'}"
    return (
        quantities.size(backlog.bytes)
        if rows is None
        else f"{quantities.count(rows)} row{'' if rows == 1 else 's'}, {quantities.size(backlog.bytes)}"
    )


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


def summary(overview: Overview) -> str:
    """12 streams: 3 with data, 1 busy, 1 stale."""
    names = {"data": "with data"}
    counts: dict[str, int] = {}
    for facts in overview.streams:
        counts[facts.state] = counts.get(facts.state, 0) + 1
    parts = [f"{n} {names.get(c, c)}" for c, n in sorted(counts.items(), key=lambda item: (RANKS[item[0]], item[0]))]
    return counted(len(overview.streams), "stream") + (f": {', '.join(parts)}" if parts else "")


def summary_of_all(overview: Overview) -> str:
    """Streams and dynamic tables in one line; what there is none of is left out, unless there is neither."""
    parts = [summary(overview)] if overview.streams or not overview.dynamic else []
    return "; ".join([*parts, dynamic_lines.summary(overview.dynamic)] if overview.dynamic else parts)


RECORD = (
    "name", "source", "mode", "state", "offset_version", "lag_versions", "lag_seconds", "backlog_rows", "backlog_bytes",
    "has_data", "stale", "stale_after", "stale_soon", "invalid_reason", "consumed_by", "consuming_since", "last_consumption",
    "last_outcome", "last_target", "last_rows_written", "last_error", "last_error_at", "offset_position", "latest_position",
)  # fmt: skip
"""The fields of a record, in their order."""

NUMERIC = frozenset(
    ("offset_version", "lag_versions", "lag_seconds", "backlog_rows", "backlog_bytes", "last_rows_written")
)


def record(facts: StreamFacts) -> Mapping[str, object]:
    """Returns a stream for a program: RECORD's fields; times are ISO 8601 in UTC, None: not known, or there is none."""
    status, last, failure, consumer = facts.status, facts.last, facts.failure, facts.consumer
    values: Sequence[object] = (
        facts.name,
        facts.source,
        facts.mode,
        facts.state,
        facts.offset_version,
        status.lag_versions,
        status.lag_seconds,
        backlog_rows(facts),
        None if status.backlog is None else status.backlog.bytes,
        status.has_data,
        status.stale,
        _clock(status.stale_after_ms),
        status.stale_soon,
        status.invalid_reason,
        None if consumer is None else f"{consumer.who}:{consumer.pid}",
        None if consumer is None else _clock(consumer.since_ms),
        None if last is None else _clock(last.ended_ms),
        None if last is None else last.outcome,
        None if last is None else ", ".join(last.targets) or None,
        None if last is None else last.rows_written,
        None if failure is None else failure.error or failure.outcome,
        None if failure is None else _clock(failure.ended_ms),
        facts.offset_position,
        status.latest_position,
    )
    return dict(zip(RECORD, values, strict=True))


def _clock(at_ms: int | None) -> str | None:
    return None if at_ms is None else quantities.clock(at_ms)
