"""What an observer notes of a statement, in the statement's thread: data alone, which another thread turns into events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from streamql.catalog.observers import NUMBER, Around, Event, Seen, work_id
from streamql.catalog.stored import StoredTable, stored_tables
from streamql.delta.names import look_up
from streamql.features.openlineage.configured import namespace
from streamql.features.openlineage.datasets import StreamRead, stream_read
from streamql.names import Name
from streamql.sources.registry import type_of
from streamql.times import now_ms

EVENTS = ("begun", "consumed", "released", "task_run")
"""The events that are lineage. Others say what became of streams."""


@dataclass(frozen=True)
class Quarantined:
    """Rows in a quarantine table. `path`: empty: the table has gone. `rows`, `version`: None: they are not known."""

    name: str
    path: str
    rows: int | None
    version: int | None


@dataclass(frozen=True)
class Note:
    """One statement or task, when it begins or has ended.

    `id`: a UUID, the same at the begin and the end. `rows`: of the table of events, one for each stream. `lineage`: as `Seen.lineages` has
    it; None: it is not known. `at_ms`: in milliseconds since 1970. `spark`: the version of Spark. `stored`: the dynamic table that is
    refreshed; None: nothing is refreshed. `quarantined`: what a consumption that has ended has written beside its target.
    """

    id: str
    has_ended: bool
    rows: Sequence[Event]
    reads: Mapping[str, StreamRead]
    lineage: str | None
    around: Around | None
    namespace: str
    at_ms: int
    spark: str
    stored: StoredTable | None = None
    quarantined: Sequence[Quarantined] = ()

    @property
    def row(self) -> Event:
        """Returns a row, for what all rows say alike."""
        return self.rows[0]

    @property
    def is_refresh(self) -> bool:
        """Returns whether it is a refresh of a dynamic table."""
        return _is_refresh(self.reads)


def notes(spark: SparkSession, seen: Seen) -> list[Note]:
    """Returns a note for each statement, with all its streams."""
    groups: dict[str, list[Event]] = {}
    lineages: dict[str, str] = {}
    counts: dict[tuple[Any, ...], int] = {}
    for i, event in enumerate(seen.events):
        if event["event"] not in EVENTS or event.get("consumption_id") is None:
            continue
        same = (
            event.get("stream_id"),
            event.get("target_path"),
            event.get("target"),
            event["operation"],
            event["statement"],
        )
        number = event.get(NUMBER, counts.get(same, 0))
        counts[same] = counts.get(same, 0) + 1
        key = work_id(event, number)
        groups.setdefault(key, []).append(event)
        if i in seen.lineages:
            lineages[key] = seen.lineages[i]
    return [_note(spark, seen, key, rows, lineages.get(key)) for key, rows in groups.items()]


def _note(spark: SparkSession, seen: Seen, key: str, rows: Sequence[Event], lineage: str | None) -> Note:
    space = namespace()
    reads = {}
    for row in rows:
        state = seen.streams.get(row.get("stream_id") or "")
        if state is not None:
            source = state.stream.source
            reads[state.stream.uuid] = stream_read(state, row, space, type_of(source).dataset(spark, source))
    ended = rows[0].get("ended_at")
    stored = None
    if _is_refresh(reads):
        stored = next((t for t in stored_tables(spark) if t.table.path == rows[0].get("target_path")), None)
    written = [one for row in rows for one in _quarantined(spark, row)] if ended is not None else []
    at_ms = ended or now_ms()
    return Note(key, ended is not None, rows, reads, lineage, seen.around, space, at_ms, spark.version, stored, written)


def _is_refresh(reads: Mapping[str, StreamRead]) -> bool:
    return any(read.is_hidden for read in reads.values())


def _quarantined(spark: SparkSession, row: Event) -> list[Quarantined]:
    said = json.loads(row.get("details") or "{}").get("quarantined", {})
    return [
        Quarantined(name, look_up(spark, Name.shown_as(name)).path, one.get("rows"), one.get("version"))
        for name, one in said.items()
    ]
