"""Binds the reads of an analysed statement: all reads of one stream get the same interval."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.claims.errors import gone
from streamql.delta.command import Command
from streamql.errors import StreamqlError
from streamql.model import Interval, Offset, SourceRef, is_ordered
from streamql.reading import CHANGES, PlannedRead, parse_read, read_image, read_stream
from streamql.sources.protocol import HIDDEN_TYPE
from streamql.sources.registry import open_source, type_of
from streamql.sources.views.query import QuerySource

NO_INTERVALS: Mapping[str, Interval] = {}


def reads_of(command: Command) -> list[PlannedRead]:
    """Returns the distinct reads of streams in a statement."""
    return [parse_read(description) for description in command.reads]


def sources_of(command: Command) -> dict[str, SourceRef]:
    """Returns the source of each stream by stream id, at the place where it was found when the statement was analysed."""
    return {read.uuid: read.source for read in reads_of(command)}


def streams_of(spark: SparkSession, command: Command) -> list[StreamState]:
    """Returns the streams that a statement reads, in the order of their ids. Raises STREAM_NOT_FOUND.

    The states are those that this process last read from the catalog. They may be outdated: the commit that is based on them is a
    compare-and-set, and is refused then.
    """
    states = {}
    for read in reads_of(command):
        state = catalog_of(spark).last_read(spark, read.uuid)
        if state is None:
            raise gone(read.stream)
        states[read.uuid] = state
    return [states[u] for u in sorted(states)]


def bind(
    spark: SparkSession, command: Command, states: Iterable[StreamState], fixed: Mapping[str, Interval] = NO_INTERVALS
) -> dict[str, Interval]:
    """Returns one interval for each of the streams, by stream id: its interval in `fixed` if it has one, else one that starts at its
    offset.

    A read may have been analysed with another interval: another consumer moved the offset since, or parts of the statement were analysed at
    different times. Such a read is bound to the returned interval. So is each table that the statement reads AT one of the streams or at
    its END.
    """
    intervals: dict[str, Interval] = {}
    all_reads = reads_of(command)  # read once: binding one stream does not change the reads of another one
    for state in states:
        uuid = state.stream.uuid
        reads = [read for read in all_reads if read.uuid == uuid]
        wanted = fixed.get(uuid)
        if len(reads) == 1 and reads[0].terms == state.stream.terms and _fits(reads[0], wanted, state.offset):
            intervals[uuid] = reads[0].interval
        else:
            intervals[uuid] = _rebind(spark, command, state, reads, wanted)
        _rebind_tables(spark, command, state, intervals[uuid])
    return intervals


def is_refresh(command: Command, states: Iterable[StreamState]) -> bool:
    """Returns whether a statement refreshes a dynamic table. A refresh may write even if no source has changed, because its query may read
    the clock.

    Raises STREAM_MOVED if another refresh has claimed the stream since this one read it. `QuerySource.attempt` shows that. The offset does
    not, because a refresh without changes leaves it where it is.
    """
    sources = sources_of(command)
    for state in states:
        own, now = sources[state.stream.uuid], state.stream.source
        if isinstance(own, QuerySource) and isinstance(now, QuerySource) and now.type_name == HIDDEN_TYPE:
            if now.attempt >= own.attempt and not state.offset.initial:
                raise _was_first(state)
            return True
    return False


def _was_first(state: StreamState) -> StreamqlError:
    message = f"another refresh of {state.stream.source.name} was first"
    return StreamqlError("STREAM_MOVED", message, hint="REFRESH it again")


def _rebind_tables(spark: SparkSession, command: Command, state: StreamState, interval: Interval) -> None:
    """Makes each table that is read AT a stream show the begin of the interval, and each that is read at its END the end."""
    for old in map(parse_read, command.table_reads):
        if old.uuid != state.stream.uuid or old.interval == interval:
            continue
        reading = read_image(spark, state, old.form, old.table_id, interval, old.interval)
        command.rebind(old.description, reading.frame, reading.description)


def _fits(read: PlannedRead, wanted: Interval | None, offset: Offset) -> bool:
    if wanted is not None:
        return read.interval == wanted
    return (read.interval.after, read.interval.initial) == (offset.position, offset.initial)


def _rebind(
    spark: SparkSession, command: Command, state: StreamState, reads: Sequence[PlannedRead], wanted: Interval | None
) -> Interval:
    """Binds all reads of a stream to one interval, and returns it: `wanted`, or (None) one that starts at the stream's offset."""
    if wanted is None and state.stream.source.type_name == HIDDEN_TYPE:
        raise _was_first(state)
    rows_max = min((read.rows_max for read in reads if read.rows_max is not None), default=None)
    now = wanted
    for old in reads:
        reading = read_stream(spark, state, now, rows_max, old.form)
        now, frame = reading.interval, reading.frame
        if (
            old.form == CHANGES
            and now.through != old.interval.through
            and is_ordered(now.through, old.interval.through)
        ):
            frame = open_source(spark, reading.source).as_at(old.interval.through, frame, now.through)
        command.rebind(old.description, frame, reading.description)
    assert now is not None
    return now


def changes_of(command: Command, i: int) -> dict[str, dict[str, int]]:
    """Returns how many rows of each change type statement `i` took when it ran: {stream id: {change type: rows}}."""
    return {parse_read(description).uuid: counts for description, counts in command.changes(i).items()}


def checked_rows(command: Command, i: int) -> dict[str, str]:
    """Returns what checks of the rows have found when statement `i` ran: {stream id: JSON}, of streams whose rows it has read to the
    end."""
    found = {parse_read(description).uuid: texts for description, texts in command.checked(i).items()}
    return {uuid: text for uuid, texts in found.items() for text in texts if text != "null"}


def counted_before(
    spark: SparkSession, command: Command, intervals: Mapping[str, Interval], claim: Claim
) -> dict[str, int]:
    """Counts the rows of intervals that several statements will read, if a later read may find fewer rows (Kafka may compact the topic
    meanwhile). Returns the counts by stream id, of streams that the claim does not have yet. Raises what reading raises."""
    found = {}
    for uuid, source in sources_of(command).items():
        count = type_of(source).count_if_shrinking
        if count is not None and uuid not in claim.intervals:
            number = count(spark, source, intervals[uuid])
            if number is not None:
                found[uuid] = number
    return found


@contextlib.contextmanager
def nothing_bound(spark: SparkSession, command: Command) -> Iterator[None]:
    """Makes all reads return no rows while the statement runs without a claim: it must not write rows, even if it unexpectedly succeeds.

    Afterwards the reads have their intervals again, because a user may write the same DataFrame a second time.
    """
    states = {s.stream.uuid: s for s in streams_of(spark, command)}
    with command.keeping_reads():
        for read in reads_of(command):
            end = read.interval.through  # an empty interval here has the columns of the analysed read
            _rebind(spark, command, states[read.uuid], [read], Interval(end, end))
        yield
