"""Reading a stream: the interval a statement sees, and the change set over it."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamql.catalog.states import StreamState, interval_json, read_interval
from streamql.catalog.store import catalog_of
from streamql.changes import HIDDEN_COLUMNS
from streamql.errors import StreamqlError
from streamql.model import Interval, SourceRef, StreamMode, TableSource, offset_form
from streamql.shared import constants
from streamql.sources.protocol import Backlog, OpenSource
from streamql.sources.queries.dynamic import as_shown
from streamql.sources.registry import open_source, read_source, source_json
from streamql.sources.tables.image import check_files_exist, image
from streamql.sources.tables.table import OpenTable, open_table
from streamql.sources.tables.tablestore_stream import stream_at, tuples_between

PINNED_MAX = 4096


def visible_columns(changes: DataFrame) -> int:
    """Returns how many of a change set's columns SELECT * shows: the hidden ones are its last."""
    return len(changes.columns) - len(HIDDEN_COLUMNS)


class ReadForm(Enum):
    """What a read of a stream shows: its changes, the 6-tuples of its commits, or a table of its source as of the begin or the end of the
    interval."""

    CHANGES = "changes"
    RECORDS = "records"
    BEGIN = "begin"
    END = "end"


@dataclass(frozen=True)
class StreamReading:
    """A stream as one statement sees it. `details`: what the ledger shall say of a consumption besides, JSON; None: nothing."""

    state: StreamState
    interval: Interval
    source: SourceRef
    frame: DataFrame
    rows_max: int | None = None
    details: str | None = None
    form: ReadForm = ReadForm.CHANGES

    @property
    def token(self) -> str:
        """Returns what the node in the plan says of itself: JSON of the stream, its interval, and where its source is now."""
        more = {} if self.details is None else {"details": self.details}
        if self.form is not ReadForm.CHANGES:
            more["form"] = self.form.value
        return json.dumps({**_token_of(self.state, self.interval, self.source, self.rows_max), **more})

    @property
    def visible(self) -> int:
        """Returns how many of the frame's columns SELECT * shows."""
        return visible_columns(self.frame) if self.form is ReadForm.CHANGES else len(self.frame.columns) - 1


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
    form: ReadForm
    table_id: str
    frame: DataFrame

    @property
    def token(self) -> str:
        """Returns what the node in the plan says of itself: as that of a read of the stream, with the form and the table."""
        common = _token_of(self.state, self.interval, self.source, None)
        return json.dumps({**common, "form": self.form.value, "table": self.table_id})


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
    form: ReadForm = ReadForm.CHANGES
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
        ReadForm(t.get("form", "changes")),
        t.get("table", ""),
    )


@dataclass(frozen=True)
class Pin:
    """The pinned interval of a stream, and the statement that read it first. `follows`: the statement reads tables AT it or at its END,
    and has not read the stream yet."""

    interval: Interval
    statement: str
    follows: bool = False


class PinnedIntervals:
    """The intervals that have been read, by scope and stream: all references in a scope see the interval of the first one. A scope is a
    statement or a transaction. Safe for threads. Beyond `PINNED_MAX`, the oldest are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pinned: OrderedDict[tuple[str, str], Pin] = OrderedDict()

    def get(self, scope: str, uuid: str, batch_of: str | None = None) -> Pin | None:
        """Returns what the scope has read of a stream; None: nothing. `batch_of`: the statement that reads a batch of the stream, which may
        be smaller than what its own AT and END (STREAM => …) have pinned; None: the read takes what is pinned."""
        with self._lock:
            pin = self._pinned.get((scope, uuid))
        return None if pin is not None and pin.follows and pin.statement == batch_of else pin

    def put(self, scope: str, uuid: str, pin: Pin) -> Interval:
        """Pins, unless another reference of the scope was first. Returns the interval that is pinned. A read of the stream takes the place
        of what followed it in the same statement."""
        with self._lock:
            pinned = self._pinned.setdefault((scope, uuid), pin)
            if pinned.follows and not pin.follows and pinned.statement == pin.statement:
                pinned = self._pinned[scope, uuid] = pin
            while len(self._pinned) > PINNED_MAX:
                self._pinned.popitem(last=False)
            return pinned.interval


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
    form: ReadForm = ReadForm.CHANGES,
) -> StreamReading:
    """Returns a stream's change set, for an interval or for what there is now. Raises what reading it raises, before any job.

    `form` RECORDS: the 6-tuples of its commits instead, and a hidden change type by which consumed rows are counted.
    """
    source, interval = open_interval(spark, state, pinned)
    if pinned is None and rows_max is not None:
        end = source.batch_end(interval, state.stream.mode, rows_max)
        interval = Interval(interval.after, end, interval.initial)
    seen = source.seen_at(interval.through)
    if form is ReadForm.RECORDS:
        return StreamReading(state, interval, seen, _tuples(spark, state, source, interval), rows_max, form=form)
    return StreamReading(state, interval, seen, source.changes(interval, state.stream.mode), rows_max)


_CHANGE_TYPE = constants("columns")["changeType"]


def _tuples(spark: SparkSession, state: StreamState, source: OpenSource, interval: Interval) -> DataFrame:
    """Returns the 6-tuples of a stream's interval. Raises UNSUPPORTED_SOURCE if the stream shows something else than the commits of a
    table."""
    if not isinstance(source, OpenTable) or state.stream.mode is not StreamMode.STANDARD or interval.initial:
        shown = "its table's rows first" if interval.initial else "other changes"
        raise StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"the records of stream {state.name} cannot be read: they are of all commits of a Delta table, and the stream shows {shown}",
            hint="consume it once if it shows initial rows; else CREATE STREAM … ON TABLE …, in the mode STANDARD",
        )
    versions = interval.versions
    stream = stream_at(spark, source.ref.name, source.table, source.snapshot)
    return tuples_between(stream, versions.after, versions.through).withColumn(_CHANGE_TYPE, F.lit("INSERT"))


def read_image(
    spark: SparkSession,
    state: StreamState,
    form: ReadForm,
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


def _version_of(source: SourceRef, interval: Interval, form: ReadForm, table_id: str) -> tuple[TableSource, int]:
    table, versions = next(held for held in source.holds(interval) if held[0].table_id == table_id)
    return table, versions.after if form is ReadForm.BEGIN else versions.through


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
