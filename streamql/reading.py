"""Reading a stream: the interval a statement sees, and the change set over it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState, interval_json, read_interval
from streamql.catalog.store import catalog_of
from streamql.catalog.stored import as_shown
from streamql.changes import HIDDEN_COLUMNS
from streamql.errors import StreamqlError
from streamql.feature import read_form
from streamql.model import Interval, SourceRef, TableSource, offset_form
from streamql.sources.protocol import Backlog, OpenSource
from streamql.sources.registry import open_source, read_source, source_json
from streamql.sources.tables.image import check_files_exist, image
from streamql.sources.tables.table import open_table

CHANGES, BEGIN, END = "changes", "begin", "end"
"""The forms of a read of a stream: its changes, or a table of its source as of the begin or the end of the interval. Features add other
forms of its changes (`Feature.forms`)."""


def visible_columns(changes: DataFrame) -> int:
    """Returns how many of a change set's columns SELECT * shows: the hidden ones are its last."""
    return len(changes.columns) - len(HIDDEN_COLUMNS)


@dataclass(frozen=True)
class StreamReading:
    """A stream as one statement sees it. `details`: what the ledger shall say of a consumption besides, JSON; None: nothing."""

    state: StreamState
    interval: Interval
    source: SourceRef
    frame: DataFrame
    rows_max: int | None = None
    details: str | None = None
    form: str = CHANGES

    @property
    def token(self) -> str:
        """Returns what the node in the plan says of itself: JSON of the stream, its interval, and where its source is now."""
        more = {} if self.details is None else {"details": self.details}
        if self.form != CHANGES:
            more["form"] = self.form
        return json.dumps({**_token_of(self.state, self.interval, self.source, self.rows_max), **more})

    @property
    def visible(self) -> int:
        """Returns how many of the frame's columns SELECT * shows."""
        return visible_columns(self.frame) if self.form == CHANGES else len(self.frame.columns) - 1


def _token_of(state: StreamState, interval: Interval, source: SourceRef, rows_max: int | None) -> dict[str, object]:
    after, through, initial = interval_json(interval)
    return {
        "stream": str(state.name),
        "uuid": state.stream.uuid,
        "after": after,
        "through": through,
        "initial": initial,
        "rows_max": rows_max,
        "source": source_json(source),
    }


@dataclass(frozen=True)
class ImageReading:
    """A table of a stream's source as of the begin or the end of the interval that one statement sees."""

    state: StreamState
    interval: Interval
    source: SourceRef
    form: str
    table_id: str
    frame: DataFrame

    @property
    def token(self) -> str:
        """Returns what the node in the plan says of itself: as that of a read of the stream, with the form and the table."""
        common = _token_of(self.state, self.interval, self.source, None)
        return json.dumps({**common, "form": self.form, "table": self.table_id})


@dataclass(frozen=True)
class Token:
    """A token read back. `table_id`: of the table that BEGIN or END shows; empty: the read shows changes."""

    uuid: str
    stream: str
    interval: Interval
    source: SourceRef
    rows_max: int | None
    text: str
    details: str | None = None
    form: str = CHANGES
    table_id: str = ""


def read_token(text: str) -> Token:
    """Returns the stream and interval that a node of the plan stands for."""
    t = json.loads(text)
    interval = read_interval((t["after"], t["through"], t["initial"]))
    return Token(
        t["uuid"],
        t["stream"],
        interval,
        read_source(t["source"]),
        t["rows_max"],
        text,
        t.get("details"),
        t.get("form", CHANGES),
        t.get("table", ""),
    )


def interval_now(spark: SparkSession, state: StreamState, source: OpenSource) -> Interval:
    """(offset, latest]. Raises STREAM_INVALID after a RESTORE of the catalog, STREAM_STALE where the source went back,
    STREAM_SOURCE_REPLACED where it went back and came on again otherwise."""
    if catalog_of(spark).was_restored(state):
        raise StreamqlError(
            "STREAM_INVALID",
            f"the catalog was restored to a time before the last event of stream {state.name}: its offset cannot be trusted",
            hint=f"ALTER STREAM {state.name} SET OFFSET {offset_form(state.offset.position)}",
        )
    check_history(state, source)
    return Interval(state.offset.position, source.latest, state.offset.initial)


def check_history(state: StreamState, source: OpenSource) -> None:
    """Raises STREAM_STALE where the source went back before the stream's offset, and STREAM_SOURCE_REPLACED where it came on again
    otherwise: the offset means nothing there."""
    source.check_history(state.offset, state.stream.source, state.name)


def open_interval(spark: SparkSession, state: StreamState, pinned: Interval | None) -> tuple[OpenSource, Interval]:
    """Opens a stream's source. Returns it with the pinned interval, or with (offset, latest] if that is None. Raises what `interval_now`
    and `check_history` raise."""
    source = open_source(spark, state.stream.source)
    if pinned is None:
        return source, interval_now(spark, state, source)
    check_history(state, source)
    return source, pinned


def read_stream(
    spark: SparkSession,
    state: StreamState,
    pinned: Interval | None = None,
    rows_max: int | None = None,
    form: str = CHANGES,
) -> StreamReading:
    """Returns a stream's change set, for an interval or for what there is now. Raises what reading it raises, before any job.

    `form`: another form of the changes, which has a hidden change type as its last column, by which consumed rows are counted.
    """
    source, interval = open_interval(spark, state, pinned)
    if pinned is None and rows_max is not None:
        end = source.batch_end(interval, state.stream.mode, rows_max)
        interval = Interval(interval.after, end, interval.initial)
    seen = source.seen_at(interval.through)
    frame = source.changes(interval, state.stream.mode) if form == CHANGES else read_form(form)(state, source, interval)
    return StreamReading(state, interval, seen, frame, rows_max, form=form)


def read_image(
    spark: SparkSession,
    state: StreamState,
    form: str,
    table_id: str,
    pinned: Interval | None = None,
    shown_as: Interval | None = None,
) -> ImageReading:
    """Returns a table of a stream's source as of the begin or the end of an interval, or of what there is now. Lazy.

    `shown_as`: an interval in whose columns the rows are shown if it has a later version of the table. Raises INCOMPATIBLE_SCHEMA_CHANGE,
    and what reading the stream raises.
    """
    source, interval = open_interval(spark, state, pinned)
    table, version = _version_of(source.ref, interval, form, table_id)
    shown_at = None if shown_as is None else _version_of(source.ref, shown_as, form, table_id)[1]
    found = open_table(spark, table)
    check_files_exist(found, version)
    frame = as_shown(spark, table_id, image(found, version, shown_at=shown_at))
    return ImageReading(state, interval, source.seen_at(interval.through), form, table_id, frame)


def _version_of(source: SourceRef, interval: Interval, form: str, table_id: str) -> tuple[TableSource, int]:
    table, versions = next(held for held in source.holds(interval) if held[0].table_id == table_id)
    return table, versions.after if form == BEGIN else versions.through


def has_data(spark: SparkSession, state: StreamState) -> bool:
    """Returns whether there is something to consume, by the log alone: never False wrongly. True as well for a stream whose consumption has
    not ended, since the next consumer resumes it. True for an interval without rows, if it would go stale unless it is consumed."""
    source = open_source(spark, state.stream.source)
    return is_due(state, source, interval_now(spark, state, source))


def is_due(state: StreamState, source: OpenSource, interval: Interval, waiting: Backlog | None = None) -> bool:
    """`has_data` for an interval of a stream that starts at its offset. `waiting`: its backlog, where it is known."""
    if state.claim is not None or interval.initial:
        return True
    if interval.is_empty:
        return False
    try:
        waiting = waiting or source.backlog(interval, state.stream.mode)
    except StreamqlError:
        step = source.first_step(interval)
        if step == interval:
            raise
        source.backlog(step, state.stream.mode)
        return True  # whole it cannot be read, but in batches, up to the commit that is the trouble
    if waiting.has_data:
        return True
    expiry = source.expiry(interval, state.stream.mode)
    return expiry is not None and expiry.is_soon
