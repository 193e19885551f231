"""Questions that the rows of the table of events answer, about streams that exist or were dropped. Each answer is one job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamql.catalog.states import StreamState
from streamql.model import version_or_none


@dataclass(frozen=True)
class Shown:
    """What the newest row of a stream shows. `version`: its offset; None: there is no row, or the source is not one table."""

    version: int | None = None
    sequence: int = 0


def shown_wrongly(events: DataFrame, states: Sequence[StreamState]) -> dict[str, Shown]:
    """Returns, by stream id, the streams whose newest row shows another offset than the catalog's state has. Their rows were edited by
    hand."""
    newest = events.groupBy("stream_id").agg(
        F.max_by("offset_version", "sequence").alias("version"), F.max("sequence").alias("sequence")
    )
    shown = {row["stream_id"]: Shown(row["version"], row["sequence"] or 0) for row in newest.collect()}
    of = {s.stream.uuid: shown.get(s.stream.uuid, Shown()) for s in states}
    return {
        s.stream.uuid: of[s.stream.uuid]
        for s in states
        if of[s.stream.uuid].version != version_or_none(s.offset.position)
    }


def sources_of_dropped(events: DataFrame) -> set[tuple[str, str]]:
    """Returns (name, table id) of the sources of streams that were dropped or replaced."""
    dropped = (
        events.where("event = 'dropped' AND source IS NOT NULL AND source_id IS NOT NULL")
        .select("source", "source_id")
        .distinct()
    )
    return {(row["source"], row["source_id"]) for row in dropped.collect()}


def targets_of_consumptions(events: DataFrame) -> dict[str, str]:
    """Returns the tables that consumptions have written: {path: newest name}."""
    rows = events.where("event = 'consumed' AND target_path IS NOT NULL")
    newest = rows.groupBy("target_path").agg(F.max_by("target", "ended_at").alias("target"))
    return {row["target_path"]: row["target"] for row in newest.collect() if row["target_path"]}
