"""Which streams an analysed statement reads, and over which intervals: its reads are bound to one interval a stream."""

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
from streamql.reading import CHANGES, Token, read_image, read_stream, read_token
from streamql.sources.protocol import HIDDEN_TYPE
from streamql.sources.registry import open_source, type_of
from streamql.sources.views.query import QuerySource

NO_INTERVALS: Mapping[str, Interval] = {}


def tokens_of(command: Command) -> list[Token]:
    """Returns the reads of streams in a statement, each once."""
    return [read_token(text) for text in command.tokens]


def sources_of(command: Command) -> dict[str, SourceRef]:
    """Returns where the source of each stream was found when the statement was analysed."""
    return {t.uuid: t.source for t in tokens_of(command)}


def streams_of(spark: SparkSession, command: Command) -> list[StreamState]:
    """Returns the streams that a statement reads, by id, as this process last read them: what is made of them is compared and set. Raises
    STREAM_NOT_FOUND."""
    states = {}
    for token in tokens_of(command):
        state = catalog_of(spark).last_read(spark, token.uuid)
        if state is None:
            raise gone(token.stream)
        states[token.uuid] = state
    return [states[u] for u in sorted(states)]


def bind(
    spark: SparkSession, command: Command, states: Iterable[StreamState], fixed: Mapping[str, Interval] = NO_INTERVALS
) -> dict[str, Interval]:
    """Returns one interval for each of the streams: the one that is `fixed`, else one that starts at its offset.

    Reads that were made for another one (another consumer was first, or parts of the statement were made at different times) are given
    this one. So are tables that are read AT one of the streams or at its END.
    """
    intervals: dict[str, Interval] = {}
    reads = tokens_of(command)  # to bind one stream anew changes no other's
    for state in states:
        uuid = state.stream.uuid
        tokens = [t for t in reads if t.uuid == uuid]
        wanted = fixed.get(uuid)
        if len(tokens) == 1 and _fits(tokens[0], wanted, state.offset):
            intervals[uuid] = tokens[0].interval
        else:
            intervals[uuid] = _rebind(spark, command, state, tokens, wanted)
        _follow(spark, command, state, intervals[uuid])
    return intervals


def is_refresh(command: Command, states: Iterable[StreamState]) -> bool:
    """Returns whether a statement refreshes a dynamic table, which may write if no source has changed: a query may read the clock. Raises
    STREAM_MOVED if another refresh has begun since this one read the stream: the offset alone does not tell if it stays where it is."""
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


def _follow(spark: SparkSession, command: Command, state: StreamState, interval: Interval) -> None:
    """Lets the tables that are read AT a stream or at its END show the interval."""
    for old in map(read_token, command.followers):
        if old.uuid != state.stream.uuid or old.interval == interval:
            continue
        reading = read_image(spark, state, old.form, old.table_id, interval, old.interval)
        command.rebind(old.text, reading.frame, reading.token)


def _fits(token: Token, wanted: Interval | None, offset: Offset) -> bool:
    if wanted is not None:
        return token.interval == wanted
    return (token.interval.after, token.interval.initial) == (offset.position, offset.initial)


def _rebind(
    spark: SparkSession, command: Command, state: StreamState, tokens: Sequence[Token], wanted: Interval | None
) -> Interval:
    if wanted is None and state.stream.source.type_name == HIDDEN_TYPE:
        raise _was_first(state)
    rows_max = min((t.rows_max for t in tokens if t.rows_max is not None), default=None)
    now = wanted
    for old in tokens:
        reading = read_stream(spark, state, now, rows_max, old.form)
        now, frame = reading.interval, reading.frame
        if (
            old.form == CHANGES
            and now.through != old.interval.through
            and is_ordered(now.through, old.interval.through)
        ):
            frame = open_source(spark, reading.source).as_at(old.interval.through, frame, now.through)
        command.rebind(old.text, frame, reading.token)
    assert now is not None
    return now


def changes_of(command: Command, i: int) -> dict[str, dict[str, int]]:
    """Rows by change type that statement `i` took when it ran, by stream id."""
    return {read_token(token).uuid: counts for token, counts in command.changes(i).items()}


def counted_before(
    spark: SparkSession, command: Command, intervals: Mapping[str, Interval], claim: Claim
) -> dict[str, int]:
    """Counts the rows of intervals of which a second read may find less, and which a claim does not have yet: several statements will read
    them. By stream id. Raises what reading raises."""
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
    """Makes all reads show nothing while the statement runs unclaimed: it must not carry rows over even if it unexpectedly succeeds. Then
    they show what they did: a DataFrame may be written again."""
    states = {s.stream.uuid: s for s in streams_of(spark, command)}
    with command.keeping_reads():
        for token in tokens_of(command):
            end = token.interval.through  # its columns are those of the analysed read
            _rebind(spark, command, states[token.uuid], [token], Interval(end, end))
        yield
