"""Makes the rows of the table of events, from which users read the ledger. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from streamql.catalog.observers import NUMBER
from streamql.catalog.states import Claim, ClaimedStatement, StreamState, position_json
from streamql.model import Interval, version_or_none


def stream_event(event: str, state: StreamState, at_ms: int, user: str, statement: str) -> dict[str, Any]:
    """Returns the row of an event that is not a consumption: created, replaced, altered, renamed, set_offset or dropped.

    If the source has several parts, the column `positions` has the offset as both begin and end.
    """
    positions = _positions(Interval(state.offset.position, state.offset.position))
    return {
        **_about(event, state),
        "positions": positions,
        "statement": statement,
        "user_name": user,
        "started_at": at_ms,
        "ended_at": at_ms,
    }


def consumption_event(
    state: StreamState,
    claim: Claim,
    outcome: str,
    ended_ms: int,
    statement: ClaimedStatement,
    error: str | None,
) -> dict[str, Any]:
    """Returns the row for one resolved statement and one of the streams of its claim. The event is `consumed` if the claim's outcome is
    CONSUMED, and `released` for any other outcome. A failed statement of a claim that was consumed has the outcome FAILED."""
    if outcome == "CONSUMED" and statement.outcome == "fenced":
        outcome = "FAILED"
    metrics = statement.metrics
    interval = claim.intervals[state.stream.uuid]
    return {
        **_about("consumed" if outcome == "CONSUMED" else "released", state),
        "consumption_id": claim.consumption_id,
        "from_version": version_or_none(interval.after),
        "through_version": version_or_none(interval.through),
        "positions": _positions(interval),
        "details": _details(claim, interval, state.stream.uuid),
        "statement": statement.text or claim.text,
        "operation": statement.operation,
        "target": statement.target or None,
        "target_path": statement.path or None,
        "target_version": statement.target_version,
        "guarantee": claim.guarantee(statement),
        "rows_written": rows_written(metrics),
        "changes": _changes(statement, state.stream.uuid),
        "metrics": json.dumps(dict(metrics), sort_keys=True) if metrics else None,
        "user_name": claim.owner.user,
        "host": claim.owner.host.split("/")[0],
        "pid": claim.owner.pid,
        "started_at": claim.started_at_ms,
        "ended_at": ended_ms,
        "outcome": outcome,
        "error": error,
    }


def begun_event(state: StreamState, claim: Claim, statement: ClaimedStatement, number: int) -> dict[str, Any]:
    """Returns the row of a statement that begins, as observers see it: it has no end and no outcome, and is not written. `number`: of
    statements with the same text and target, counted from 0."""
    row = consumption_event(state, claim, "CONSUMED", 0, statement, None)
    return {**row, "event": "begun", "ended_at": None, "outcome": None, NUMBER: number}


def _details(claim: Claim, interval: Interval, uuid: str) -> str | None:
    """Returns the JSON of the column `details`: what the claim says, what the terms of the stream add, and whether the statement took
    initial rows."""
    more = {**claim.noted.get(uuid, {}), **({"initial": True} if interval.initial else {})}
    return json.dumps({**json.loads(claim.details or "{}"), **more}) if more else claim.details


UNCHANGED = "UNCHANGED"
"""The reason that the column `details` has for a refresh that found nothing to do."""


def refresh_event(
    state: StreamState,
    consumption_id: str,
    statement: str,
    user: str,
    started_ms: int,
    ended_ms: int,
    error: str | None,
) -> dict[str, Any]:
    """Returns the row of a refresh that claimed nothing. With an error it is `released`: the refresh failed before its claim. If `error` is
    None it is `consumed`: the refresh found nothing to do after one that had failed."""
    position = state.offset.position
    done = {
        "positions": _positions(Interval(position, position)),
        "details": json.dumps({"reason": UNCHANGED}),
        "metrics": json.dumps({"numOutputRows": "0"}),
    }
    return {
        **_about("released" if error is not None else "consumed", state),
        **({} if error is not None else done),
        "consumption_id": consumption_id,
        "statement": statement,
        "operation": "REFRESH",
        "user_name": user,
        "started_at": started_ms,
        "ended_at": ended_ms,
        "outcome": "CONSUMED" if error is None else "FAILED",
        "error": error,
    }


def rows_written(metrics: Mapping[str, str]) -> int | None:
    """Returns how many rows a commit inserted, updated or deleted, by Delta's operation metrics. None: the metrics do not say."""
    merged = [k for k in ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted") if k in metrics]
    if merged:
        return sum(int(metrics[k]) for k in merged)
    return int(metrics["numOutputRows"]) if "numOutputRows" in metrics else None


def _changes(statement: ClaimedStatement, uuid: str) -> str | None:
    """Returns {change type: rows} as JSON. None: the process that ran the statement ended before it recorded them."""
    counted = statement.changes.get(uuid)
    return None if counted is None else json.dumps(dict(counted), sort_keys=True)


def _positions(interval: Interval) -> str | None:
    """Returns the begin and end of an interval whose source has several parts, as JSON; None for a source that is one table."""
    if isinstance(interval.through, int):
        return None
    return json.dumps([position_json(interval.after), position_json(interval.through)], sort_keys=True)


def _about(event: str, state: StreamState) -> dict[str, Any]:
    stream = state.stream
    return {
        "stream_id": stream.uuid,
        "sequence": state.sequence,
        "event": event,
        "stream": str(stream.name),
        "source": str(stream.source.name),
        "source_id": stream.source.identity,
        "mode": stream.mode.value,
        "comment": stream.comment,
        "definition": stream.definition,
        "offset_version": version_or_none(state.offset.position),
    }
