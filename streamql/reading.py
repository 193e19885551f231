"""Reading a stream: the interval a statement sees, and the change set over it."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState, interval_json, read_interval
from streamql.catalog.store import catalog_of
from streamql.changes import HIDDEN_COLUMNS
from streamql.errors import StreamqlError
from streamql.model import Interval, SourceRef, offset_form
from streamql.sources.protocol import Backlog, OpenSource
from streamql.sources.registry import open_source, read_source, source_json

PINNED_MAX = 4096


def visible_columns(changes: DataFrame) -> int:
    """How many of a change set's columns SELECT * shows: the hidden ones are its last."""
    return len(changes.columns) - len(HIDDEN_COLUMNS)


@dataclass(frozen=True)
class StreamReading:
    """A stream as one statement sees it."""

    state: StreamState
    interval: Interval
    source: SourceRef
    frame: DataFrame
    rows_max: int | None = None

    @property
    def token(self) -> str:
        """What the node in the plan says of itself: JSON of the stream, its interval, and where its source is now."""
        after, through, initial = interval_json(self.interval)
        return json.dumps(
            {
                "stream": str(self.state.name),
                "uuid": self.state.stream.uuid,
                "after": after,
                "through": through,
                "initial": initial,
                "rows_max": self.rows_max,
                "source": source_json(self.source),
            }
        )

    @property
    def visible(self) -> int:
        """How many of the frame's columns SELECT * shows."""
        return visible_columns(self.frame)


@dataclass(frozen=True)
class Token:
    """A token read back."""

    uuid: str
    stream: str
    interval: Interval
    source: SourceRef
    rows_max: int | None
    text: str


def read_token(text: str) -> Token:
    """The stream and interval that a node of the plan stands for."""
    t = json.loads(text)
    interval = read_interval((t["after"], t["through"], t["initial"]))
    return Token(t["uuid"], t["stream"], interval, read_source(t["source"]), t["rows_max"], text)


@dataclass(frozen=True)
class Pin:
    """The pinned interval of a stream, and the statement that read it first."""

    interval: Interval
    statement: str


class PinnedIntervals:
    """The intervals that have been read, by scope and stream: all references in a scope see the interval of the first one. A scope is a
    statement or a transaction. Safe for threads. Beyond `PINNED_MAX`, the oldest are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pinned: OrderedDict[tuple[str, str], Pin] = OrderedDict()

    def get(self, scope: str, uuid: str) -> Pin | None:
        """What the scope has read of a stream; None: nothing."""
        with self._lock:
            return self._pinned.get((scope, uuid))

    def put(self, scope: str, uuid: str, pin: Pin) -> Interval:
        """Pins, unless another reference of the scope was first. Returns the interval that is pinned."""
        with self._lock:
            pinned = self._pinned.setdefault((scope, uuid), pin)
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


def read_stream(
    spark: SparkSession, state: StreamState, pinned: Interval | None = None, rows_max: int | None = None
) -> StreamReading:
    """A stream's change set, for an interval or for what there is now. Raises what reading it raises, before any job."""
    source = open_source(spark, state.stream.source)
    if pinned is not None:
        check_history(state, source)
        interval = pinned
    else:
        interval = interval_now(spark, state, source)
        if rows_max is not None:
            end = source.batch_end(interval, state.stream.mode, rows_max)
            interval = Interval(interval.after, end, interval.initial)
    seen = source.seen_at(interval.through)
    return StreamReading(state, interval, seen, source.changes(interval, state.stream.mode), rows_max)


def has_data(spark: SparkSession, state: StreamState) -> bool:
    """Whether there is something to consume, by the log alone: never False wrongly. True as well for a stream whose consumption has not
    ended, since the next consumer resumes it, and for an interval without rows that would go stale unless it is consumed."""
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
