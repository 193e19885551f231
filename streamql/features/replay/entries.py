"""Consumptions of a stream in the ledger: what they took, and the changes that they took, read again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from streamql.catalog.states import StreamState, read_position
from streamql.catalog.store import catalog_of
from streamql.errors import StreamqlError
from streamql.model import Interval, Offset
from streamql.sources.registry import open_source
from streamql.terms import shown_rows

_SHOWN_MAX = 5
"""So many numbers of consumptions a hint names."""
_GONE = frozenset(("STREAM_STALE", "STREAM_SOURCE_REPLACED", "STREAM_SOURCE_MISSING", "CHANGES_UNREADABLE"))
"""The errors of a source that no longer has an interval."""


@dataclass(frozen=True)
class Entry:
    """A statement that took changes of a stream, as the ledger has it.

    `sequence`: the number of the consumption among the events of the stream. `target_version`: the version that its commit made; None: it
    made none, or the ledger does not know it. `changes`: rows that it took, by change type; None: not known.
    """

    sequence: int
    consumption_id: str
    interval: Interval
    operation: str | None
    target: str | None
    target_path: str | None
    target_version: int | None
    statement: str
    changes: Mapping[str, int] | None


def entries_of(spark: SparkSession, state: StreamState, number: int | None) -> list[Entry]:
    """Returns the statements of one consumption of a stream. A transaction has several.

    `number`: the consumption's `sequence` in the ledger; None: the newest that moved the stream. Raises CONSUMPTION_NOT_FOUND.
    """
    mine = _ledger_of(spark, state)
    if mine is None:
        raise _not_found(state, number, [])
    if number is None:
        number = _newest(mine)
    rows = [] if number is None else mine.where(F.col("sequence") == number).collect()
    if not rows:
        known = mine.select("sequence").distinct().orderBy(F.desc("sequence")).limit(_SHOWN_MAX).collect()
        raise _not_found(state, number, [r["sequence"] for r in known])
    return sorted((_entry(r) for r in rows), key=lambda e: (e.target_version is None, e.target or ""))


def number_in(spark: SparkSession, state: StreamState, consumption_id: str) -> int | None:
    """Returns the number that a consumption of several streams has in the ledger of one of them. None: it did not move that stream."""
    mine = _ledger_of(spark, state)
    return None if mine is None else _newest(mine.where(F.col("consumption_id") == consumption_id))


def _ledger_of(spark: SparkSession, state: StreamState) -> DataFrame | None:
    ledger = catalog_of(spark).ledger(spark)
    return None if ledger is None else ledger.where(F.col("stream_id") == state.stream.uuid)


def _newest(ledger: DataFrame) -> int | None:
    row = ledger.where("outcome = 'CONSUMED'").agg(F.max("sequence")).first()
    return None if row is None else row[0]


def changes_again(spark: SparkSession, state: StreamState, entry: Entry) -> DataFrame:
    """Returns the changes that a consumption took, in the columns of the stream, the hidden ones last. Lazy. Raises CONSUMPTION_GONE."""
    try:
        source = open_source(spark, state.stream.source)
        source.check_history(Offset(entry.interval.through), state.stream.source, state.name)
        return shown_rows(state, source.changes(entry.interval, state.stream.mode))
    except StreamqlError as e:
        if e.code not in _GONE:
            raise
        raise StreamqlError(
            "CONSUMPTION_GONE",
            f"consumption {entry.sequence} of stream {state.name} cannot be read again: {e.message}",
            hint="ALTER TABLE … SET PROPERTIES ('data_retention_days' = '30') keeps the history of a source for so long"
            if e.code == "STREAM_STALE"
            else "its target has the rows that it wrote",
            stream=str(state.name),
        ) from e


def _entry(row: Row) -> Entry:
    found: dict[str, Any] = row.asDict()
    changes = json.loads(found["changes"]) if found["changes"] else None
    return Entry(
        found["sequence"],
        found["consumption_id"],
        _interval(found),
        found["operation"],
        found["target"],
        found["target_path"],
        found["target_version"],
        found["statement"] or "",
        changes,
    )


def _interval(row: Mapping[str, Any]) -> Interval:
    """Returns the interval of an entry. Entries of earlier releases do not say that they took initial rows."""
    details = json.loads(row["details"]) if row.get("details") else {}
    is_initial = bool(details.get("initial", False))
    if row.get("positions"):
        after, through = map(read_position, json.loads(row["positions"]))
    else:
        after, through = row["from_version"], row["through_version"]
    return Interval(after, through, is_initial)


def _not_found(state: StreamState, number: int | None, known: list[int]) -> StreamqlError:
    what = "was not consumed yet" if number is None else f"has no consumption {number}"
    numbers = ", ".join(map(str, known))
    return StreamqlError(
        "CONSUMPTION_NOT_FOUND",
        f"stream {state.name} {what}",
        hint=f"the newest are {numbers}; SELECT * FROM streamql.consumptions shows all"
        if known
        else "SELECT * FROM streamql.consumptions shows those there are",
        stream=str(state.name),
    )
