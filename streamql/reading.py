"""Reads a stream: the interval that a statement sees, and the change set over that interval."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState, interval_json, read_interval
from streamql.catalog.store import catalog_of
from streamql.catalog.stored import as_shown
from streamql.changes import HIDDEN_COLUMNS
from streamql.errors import StreamqlError
from streamql.model import Interval, SourceRef, TableSource, offset_form
from streamql.registered import registered
from streamql.sources.protocol import Backlog, OpenSource
from streamql.sources.registry import open_source, read_source, source_json
from streamql.sources.tables.image import check_files_exist, image
from streamql.sources.tables.table import open_table
from streamql.terms import shown_rows

CHANGES, BEGIN, END = "changes", "begin", "end"
"""What a read of a stream shows: its changes, or a table of its source as of the begin or the end of the interval. Features add other forms
of the changes (`Feature.forms`)."""

ReadForm = Callable[["StreamState", OpenSource, Interval], DataFrame]
"""Returns the changes of an interval in a form of its own, with a hidden change type as the last column. Lazy."""


def visible_columns(changes: DataFrame) -> int:
    """Returns how many columns of a change set SELECT * shows. The hidden columns are the last ones."""
    return len(changes.columns) - len(HIDDEN_COLUMNS)


@dataclass(frozen=True)
class StreamReading:
    """A stream as one statement sees it. `rows_max`: MAX_BATCH_SIZE of the read; None: it has none. `details`: JSON that the ledger shows
    besides if the read is consumed; None: nothing. `form`: one of the forms above."""

    state: StreamState
    interval: Interval
    source: SourceRef
    frame: DataFrame
    rows_max: int | None = None
    details: str | None = None
    form: str = CHANGES

    @property
    def description(self) -> str:
        """Returns the read as its node in Spark's plan carries it: JSON of the stream, the interval, and the source where it is now.
        `parse_read` reads it."""
        more: dict[str, object] = {} if self.details is None else {"details": self.details}
        if self.state.stream.terms:
            more["terms"] = dict(self.state.stream.terms)
        if self.form != CHANGES:
            more["form"] = self.form
        return json.dumps({**_described(self.state, self.interval, self.source, self.rows_max), **more})

    @property
    def visible(self) -> int:
        """Returns how many of the frame's columns SELECT * shows."""
        return visible_columns(self.frame) if self.form == CHANGES else len(self.frame.columns) - 1


def _described(state: StreamState, interval: Interval, source: SourceRef, rows_max: int | None) -> dict[str, object]:
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
    def description(self) -> str:
        """Returns the read as its node in Spark's plan carries it: as `StreamReading.description`, with the form and the table."""
        common = _described(self.state, self.interval, self.source, None)
        return json.dumps({**common, "form": self.form, "table": self.table_id})


@dataclass(frozen=True)
class PlannedRead:
    """A read in an analysed statement, as its node in the plan describes it. `description`: the JSON that the node carries. `table_id`: the
    id of the table that the form BEGIN or END shows; empty: the read shows changes. `terms`: of the stream, as they were when it was read.
    The other fields are those of `StreamReading`."""

    uuid: str
    stream: str
    interval: Interval
    source: SourceRef
    rows_max: int | None
    description: str
    details: str | None = None
    form: str = CHANGES
    table_id: str = ""
    terms: Mapping[str, str] = field(default_factory=dict)


def parse_read(description: str) -> PlannedRead:
    """Returns the read that a node of the plan describes."""
    data = json.loads(description)
    interval = read_interval((data["after"], data["through"], data["initial"]))
    return PlannedRead(
        data["uuid"],
        data["stream"],
        interval,
        read_source(data["source"]),
        data["rows_max"],
        description,
        data.get("details"),
        data.get("form", CHANGES),
        data.get("table", ""),
        data.get("terms", {}),
    )


def interval_now(spark: SparkSession, state: StreamState, source: OpenSource) -> Interval:
    """Returns the interval (offset, latest]. Raises STREAM_INVALID if the catalog was restored to before the stream's last event, and what
    `check_history` raises."""
    if catalog_of(spark).was_restored(state):
        raise StreamqlError(
            "STREAM_INVALID",
            f"the catalog was restored to a time before the last event of stream {state.name}: its offset cannot be trusted",
            hint=f"ALTER STREAM {state.name} SET OFFSET {offset_form(state.offset.position)}",
        )
    check_history(state, source)
    return Interval(state.offset.position, source.latest, state.offset.initial)


def check_history(state: StreamState, source: OpenSource) -> None:
    """Checks that the stream's offset is a position in the history of its source. Raises STREAM_STALE if the source ends before the offset,
    because it was put back from a copy. Raises STREAM_SOURCE_REPLACED if it was written since, and has another history now."""
    source.check_history(state.offset, state.stream.source, state.name)


def open_interval(spark: SparkSession, state: StreamState, pinned: Interval | None) -> tuple[OpenSource, Interval]:
    """Opens a stream's source. Returns it with the pinned interval, or, if that is None, with (offset, latest]. Raises what `interval_now`
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
    """Returns a stream's change set over the pinned interval, or, if that is None, over all changes since the offset. Raises what reading
    it raises, before any job.

    `rows_max`: if no interval is pinned, the interval ends after at most so many changes. `form`: another form of the changes. Its last
    column is a hidden change type, by which consumed rows are counted.
    """
    source, interval = open_interval(spark, state, pinned)
    if pinned is None and rows_max is not None:
        end = source.batch_end(interval, state.stream.mode, rows_max)
        interval = Interval(interval.after, end, interval.initial)
    seen = source.seen_at(interval.through)
    if form == CHANGES:
        frame = shown_rows(state, source.changes(interval, state.stream.mode))
    elif state.stream.terms:
        raise StreamqlError(
            "UNSUPPORTED_STATEMENT",
            f"stream {state.name} has {' and '.join(state.stream.terms)}, which its {form} cannot keep",
            hint=f"CREATE STREAM another one for it; or read the rows: SELECT * FROM {state.name}",
        )
    else:
        frame = _form(form)(state, source, interval)
    return StreamReading(state, interval, seen, frame, rows_max, form=form)


def read_image(
    spark: SparkSession,
    state: StreamState,
    form: str,
    table_id: str,
    pinned: Interval | None = None,
    shown_as: Interval | None = None,
) -> ImageReading:
    """Returns a table of a stream's source as of the begin or the end of an interval. Lazy.

    `pinned`: the interval; None: (offset, latest]. `shown_as`: another interval. If it has a later version of the table, the rows are shown
    in the columns of that version. Raises INCOMPATIBLE_SCHEMA_CHANGE, and what reading the stream raises.
    """
    source, interval = open_interval(spark, state, pinned)
    table, version = _version_of(source.ref, interval, form, table_id)
    shown_at = None if shown_as is None else _version_of(source.ref, shown_as, form, table_id)[1]
    found = open_table(spark, table)
    check_files_exist(found, version)
    frame = as_shown(spark, table_id, image(found, version, shown_at=shown_at))
    return ImageReading(state, interval, source.seen_at(interval.through), form, table_id, frame)


def _form(name: str) -> ReadForm:
    """Return how a stream's changes are read in a form. Raises KeyError if no feature has the form."""
    found: dict[str, ReadForm] = {known: form for forms in registered("forms") for known, form in forms().items()}
    return found[name]


def _version_of(source: SourceRef, interval: Interval, form: str, table_id: str) -> tuple[TableSource, int]:
    table, versions = next(held for held in source.holds(interval) if held[0].table_id == table_id)
    return table, versions.after if form == BEGIN else versions.through


def has_data(spark: SparkSession, state: StreamState) -> bool:
    """Returns whether there is something to consume, by the log alone, without a job. It may be True for an interval without net changes,
    and is never False for one with changes.

    It is also True for a stream with a claim, because the next consumer may have to resume that consumption. It is also True for an
    interval without rows if the stream will soon become stale unless it is consumed.
    """
    source = open_source(spark, state.stream.source)
    return is_due(state, source, interval_now(spark, state, source))


def is_due(state: StreamState, source: OpenSource, interval: Interval, waiting: Backlog | None = None) -> bool:
    """Returns what `has_data` returns, for an interval of a stream that starts at its offset. `waiting`: the interval's backlog; None: it
    is not known yet."""
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
        return True  # the interval cannot be read as a whole, but its first step can: batches can consume it up to the unreadable commit
    if waiting.has_data:
        return True
    expiry = source.expiry(interval, state.stream.mode)
    return expiry is not None and expiry.is_soon
