"""Rows of the table of events: the ledger that users read. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from streamql.catalog.states import Claim, ClaimedStatement, StreamState, position_json
from streamql.model import Interval, version_or_none


def stream_event(event: str, state: StreamState, at_ms: int, user: str, statement: str) -> dict[str, Any]:
    """created, replaced, altered, renamed, set_offset, dropped. The positions of a source of several parts are the offset, twice."""
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
    """consumed (outcome CONSUMED) or released (any other): one resolved statement's part in one stream's consumption. One that failed in a
    transaction that committed all the same has FAILED."""
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
        "details": claim.details,
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


UNCHANGED = "UNCHANGED"
"""The reason in the details of a refresh that found nothing to do."""


def refresh_event(
    state: StreamState,
    consumption_id: str,
    statement: str,
    user: str,
    started_ms: int,
    ended_ms: int,
    error: str | None,
) -> dict[str, Any]:
    """released: a refresh that failed before it claimed its stream. consumed, if `error` is None: one after it that found nothing to do."""
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
    """Rows that a commit inserted, updated or deleted, by Delta's operation metrics: None where they say nothing."""
    merged = [k for k in ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted") if k in metrics]
    if merged:
        return sum(int(metrics[k]) for k in merged)
    return int(metrics["numOutputRows"]) if "numOutputRows" in metrics else None


def _changes(statement: ClaimedStatement, uuid: str) -> str | None:
    """{change type: rows} as JSON; None if the process ended before it could say."""
    counted = statement.changes.get(uuid)
    return None if counted is None else json.dumps(dict(counted), sort_keys=True)


def _positions(interval: Interval) -> str | None:
    """Returns where an interval of several parts begins and ends, as JSON; None for versions of a table."""
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
