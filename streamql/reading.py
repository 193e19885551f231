"""Reading a stream: the interval a statement sees, and the change set over it."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.changes import HIDDEN_COLUMNS
from streamql.errors import StreamqlError
from streamql.model import Interval, TableSource
from streamql.names import Name
from streamql.sources.table import OpenSource, backlog, open_source

PINS_MAX = 4096


def visible_columns(changes: DataFrame) -> int:
    """How many of a change set's columns SELECT * shows: the hidden ones are its last."""
    return len(changes.columns) - len(HIDDEN_COLUMNS)


@dataclass(frozen=True)
class StreamReading:
    """A stream as one statement sees it."""

    state: StreamState
    interval: Interval
    source: TableSource
    frame: DataFrame
    rows_max: int | None = None

    @property
    def token(self) -> str:
        """What the node in the plan says of itself: JSON of the stream, its interval, and where its source is now."""
        i, s = self.interval, self.source
        return json.dumps(
            {
                "stream": str(self.state.name),
                "uuid": self.state.stream.uuid,
                "after": i.after,
                "through": i.through,
                "initial": i.initial,
                "rows_max": self.rows_max,
                "source": [s.name.catalog, s.name.schema, s.name.object, s.path, s.table_id],
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
    source: TableSource
    rows_max: int | None
    text: str


def read_token(text: str) -> Token:
    """The stream and interval that a node of the plan stands for."""
    t = json.loads(text)
    *name, path, table_id = t["source"]
    interval = Interval(t["after"], t["through"], t["initial"])
    return Token(t["uuid"], t["stream"], interval, TableSource(Name(*name), path, table_id), t["rows_max"], text)


class Pins:
    """The interval of each stream a statement reads: set at the first reference, the same for all others. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._intervals: OrderedDict[tuple[str, str], Interval] = OrderedDict()

    def get(self, statement: str, uuid: str) -> Interval | None:
        """The interval pinned for a stream in a statement."""
        with self._lock:
            return self._intervals.get((statement, uuid))

    def put(self, statement: str, uuid: str, interval: Interval) -> Interval:
        """Pins, unless another reference was first; answers what is pinned."""
        with self._lock:
            pinned = self._intervals.setdefault((statement, uuid), interval)
            while len(self._intervals) > PINS_MAX:
                self._intervals.popitem(last=False)
            return pinned


def interval_now(spark: SparkSession, state: StreamState, source: OpenSource) -> Interval:
    """(offset, latest]. Raises STREAM_INVALID after a RESTORE of the catalog, STREAM_STALE where the source went back."""
    if catalog_of(spark).was_restored(state):
        raise StreamqlError(
            "STREAM_INVALID",
            f"the catalog was restored to a time before the last event of stream {state.name}: its offset cannot be trusted",
            hint=f"ALTER STREAM {state.name} SET OFFSET VERSION n",
        )
    if source.latest.version < state.offset.version:
        raise source.table.stale(state.offset.version)
    return Interval(state.offset.version, source.latest.version, state.offset.initial)


def read_stream(
    spark: SparkSession, state: StreamState, pinned: Interval | None = None, rows_max: int | None = None
) -> StreamReading:
    """A stream's change set, for an interval or for what there is now. Raises what reading it raises, before any job."""
    source = open_source(spark, state.stream.source)
    interval = pinned or interval_now(spark, state, source)
    if pinned is None and rows_max is not None:
        end = source.batch_end(interval, state.stream.mode, rows_max)
        interval = Interval(interval.after, end, interval.initial)
    return StreamReading(state, interval, source.source, source.changes(interval, state.stream.mode), rows_max)


def has_data(spark: SparkSession, state: StreamState) -> bool:
    """Whether reading the stream could show a row: from the log alone, never a false no."""
    source = open_source(spark, state.stream.source)
    interval = interval_now(spark, state, source)
    if interval.is_empty:
        return False
    if interval.initial:
        return True
    return backlog(source, interval, state.stream.mode).has_data


def commit_time_ms(source: OpenSource, version: int) -> int | None:
    """When a version was committed, in milliseconds; None where its commit is not in the log any more."""
    if version == source.latest.version:
        return source.latest.time_ms
    if version < 0:
        return None
    try:
        return source.commits(Interval(version - 1, version))[0].time_ms
    except StreamqlError:
        return None
