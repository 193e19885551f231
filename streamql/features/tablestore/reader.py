"""The reader of TableStore streams: shards, opaque iterators, and pages of records. Its state is in the iterators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from streamql.delta.uses import TIME, VERSION
from streamql.errors import StreamqlError
from streamql.features.tablestore.failures import translated
from streamql.features.tablestore.formats.records import Cell, Record, RecordType
from streamql.features.tablestore.formats.sequence import Position
from streamql.features.tablestore.jobs.iterators import (
    ShardIterator,
    advance,
    begin,
    check_not_trimmed,
    check_parents,
    check_stream,
    decode,
)
from streamql.features.tablestore.jobs.shards import Followed, Shard
from streamql.features.tablestore.jobs.windows import trimmed
from streamql.features.tablestore.records.entries import KIND, OPS, ROW, SHARD, Key, shard_number
from streamql.features.tablestore.records.rows import records_of_commits
from streamql.features.tablestore.records.streams import open_stream
from streamql.features.tablestore.records.tuples import TableStream, rows_of
from streamql.sources.tables.retention import file_retention_ms, log_retention_ms
from streamql.times import iso

LIMIT_DEFAULT, LIMIT_MAX = 1000, 5000
"""Records in a page. The largest limit is TableStore's."""

SHARDS_DEFAULT, SHARDS_MAX = 100, 1000
"""Shards in a page of `describe_stream`."""

AHEAD_RECORDS = 10_000
"""How many records a Spark job reads at most. Those behind a page are kept for the next one."""

COMMITS_AT_ONCE = 1000
"""How many commits a Spark job reads at most."""

_TYPES = (RecordType.DELETE, RecordType.UPDATE, RecordType.PUT)


@dataclass(frozen=True)
class StreamSummary:
    """A stream: its id, and its table as SQL names it."""

    stream_id: str
    table: str


@dataclass(frozen=True)
class StreamDescription:
    """What a stream is. `shards`: a page of those that may have records, parents before children. `next_shard`: the shard that the next
    page begins with. None: this is the last page. `earliest_ms`: the time of the first commit that can be read, in milliseconds since
    1970. None: there is none yet. `expiry_ms`: for how long changes are kept at least, in milliseconds. `status` is ACTIVE."""

    stream_id: str
    table: str
    key: tuple[str, ...]
    status: str
    expiry_ms: int
    earliest_ms: int | None
    shards: tuple[Shard, ...]
    next_shard: str | None


@dataclass(frozen=True)
class Page:
    """Records of a shard in their order, and the iterator behind them. No records, and an iterator: all records so far were read.
    `next_iterator` None: the shard is closed and was read to its end. `key_names`: the columns of the records' keys."""

    records: tuple[Record, ...]
    next_iterator: str | None
    key_names: tuple[str, ...]


@dataclass(frozen=True)
class _Ahead:
    """Records that were read, from a position on. `through`: the version up to which all of them are here. None: more may follow."""

    start: Position
    records: tuple[Record, ...]
    through: int | None


class StreamReader:
    """Reads the records of tables' streams, shard by shard. Several processes may read different shards, each by a reader of its own.

    `engine`: a session of `streamql.session()`, or any that has streamql's extension.
    """

    def __init__(self, engine: SparkSession) -> None:
        self._spark = engine
        self._finished: set[tuple[str, str]] = set()
        self._known: dict[str, Followed] = {}
        self._ahead: dict[tuple[str, str], _Ahead] = {}

    def list_streams(self, table: str) -> list[StreamSummary]:
        """Returns the streams of a table: the one that it has now.

        `table`: as SQL names it. Raises TABLE_NOT_FOUND, CHANGE_TRACKING_DISABLED, PRIMARY_KEY_NOT_DECLARED and INVALID_PROPERTY.
        """
        stream = self._followed(table)
        return [StreamSummary(_id_of(stream), str(stream.name))]

    def describe_stream(
        self, stream_id: str, first_shard: str | None = None, limit: int = SHARDS_DEFAULT
    ) -> StreamDescription:
        """Returns a page of a stream's shards, and what the stream is.

        `first_shard`: the `next_shard` of the page before. None: from the first one. Raises INVALID_ARGUMENT, SHARD_NOT_FOUND, and
        STREAM_NOT_FOUND if the table has another stream now.
        """
        _check_limit(limit, SHARDS_MAX)
        stream = self._open(stream_id)
        history = stream.history
        shards = stream.tree.readable_shards(history.retained_after)
        ids = [shard.id for shard in shards]
        at = 0
        if first_shard is not None:
            stream.tree.shard(first_shard)
            at = ids.index(first_shard) if first_shard in ids else 0
        configuration = stream.latest.configuration
        expiry = min(retention(self._spark, configuration) for retention in (log_retention_ms, file_retention_ms))
        return StreamDescription(
            stream_id,
            str(stream.name),
            stream.tree.generations[-1].key,
            "ACTIVE",
            expiry,
            history.earliest_ms,
            tuple(shards[at : at + limit]),
            ids[at + limit] if at + limit < len(ids) else None,
        )

    def get_shard_iterator(
        self, stream_id: str, shard_id: str, timestamp: int | None = None, *, parents_read: bool = False
    ) -> str:
        """Returns the iterator at the first record of a shard that was committed at or after a time.

        `timestamp`: in milliseconds since 1970. None: the first record that is still there. `parents_read`: another reader has read the
        parents of the shard to their end. Raises PARENT_SHARD_UNREAD, SHARD_NOT_FOUND, STREAM_NOT_FOUND, and STREAM_STALE if the shard has
        expired or the time is before the history; it names the earliest time.
        """
        stream = self._open(stream_id)
        history = stream.history
        shard = _readable(stream, shard_id)
        read = [shard for of, shard in self._finished if of == stream_id]
        check_parents(shard, read, said_so=parents_read)
        if timestamp is None:
            return begin(stream_id, shard, history.beginning + 1).encode()
        if history.is_trimmed and (history.earliest_ms is None or timestamp < history.earliest_ms):
            raise trimmed(history, f"the time {iso(timestamp)}", str(stream.name))
        after = history.beginning
        return begin(stream_id, shard, stream.version_at(timestamp, after)).encode()

    def get_stream_record(self, iterator: str, limit: int = LIMIT_DEFAULT) -> Page:
        """Returns the records of a shard from an iterator on, up to `limit`. An iterator can be used again, and gives the same records.

        Raises INVALID_ITERATOR, INVALID_ARGUMENT, STREAM_NOT_FOUND, PRIMARY_KEY_VIOLATED, and STREAM_STALE if the records have expired.
        """
        _check_limit(limit, LIMIT_MAX)
        place = decode(iterator)
        stream = self._open(place.stream_id)
        check_stream(place, _id_of(stream))
        check_not_trimmed(place, stream.history, str(stream.name))
        shard = _readable(stream, place.shard_id)
        names = stream.tree.generations[shard.generation - stream.tree.generations[0].number].key
        records, following = self._records(stream, shard, place, limit)
        if following is None:
            self._finished.add((place.stream_id, shard.id))
        return Page(records, None if following is None else following.encode(), names)

    def _records(
        self, stream: TableStream, shard: Shard, place: ShardIterator, limit: int
    ) -> tuple[tuple[Record, ...], ShardIterator | None]:
        """Returns a page, and the place behind it; reads on until there is a record, or all so far were read."""
        end = stream.latest.version if shard.last is None else min(shard.last, stream.latest.version)
        at: ShardIterator | None = place
        while at is not None:
            ahead = self._ahead.pop((place.stream_id, shard.id), None)
            if ahead is None or ahead.start != at.position:
                ahead = self._read(stream, shard, at.position, end)
            page, rest = ahead.records[:limit], ahead.records[limit:]
            if rest or (ahead.through is None and page):  # the page is not the last one of what was read
                following = advance(at, shard, page[-1].position, end)
                assert following is not None
                if rest:
                    self._ahead[place.stream_id, shard.id] = _Ahead(following.position, rest, ahead.through)
                return page, following
            assert ahead.through is not None
            at = advance(at, shard, None, ahead.through)
            if page or at is None or ahead.through >= end:
                return page, at
        raise AssertionError("no place to read at")

    def _read(self, stream: TableStream, shard: Shard, start: Position, end: int) -> _Ahead:
        """Reads records by one Spark job: of as many commits as may have AHEAD_RECORDS."""
        if start.version > end:
            return _Ahead(start, (), end)
        history = stream.section(start.version, min(end, start.version + COMMITS_AT_ONCE - 1))
        count = rows = 0
        for commit in history.commits:
            count, rows = count + 1, rows + rows_of(commit)
            if rows >= AHEAD_RECORDS * stream.tree.generation_at(start.version).count:
                break
        history = replace(history, commits=history.commits[:count])
        found = records_of_commits(self._spark, history, stream.tree, str(stream.name))
        through = history.commits[-1].version
        if found.rows is None:
            return _Ahead(start, (), through)
        is_later = (F.col(VERSION) > start.version) | ((F.col(VERSION) == start.version) & (F.col(ROW) >= start.row))
        chosen = found.rows.where((F.col(SHARD) == shard_number(shard)) & is_later)
        records = self._collected(chosen.orderBy(VERSION, ROW).limit(AHEAD_RECORDS + 1), found.key, shard, stream)
        is_all = len(records) <= AHEAD_RECORDS
        return _Ahead(start, records[:AHEAD_RECORDS], through if is_all else None)

    def _collected(self, rows: DataFrame, key: Key, shard: Shard, stream: TableStream) -> tuple[Record, ...]:
        try:
            return tuple(_record(row, key, shard.id) for row in rows.collect())
        except Exception as e:
            known = translated(e, str(stream.name))
            if known is None:
                raise
            raise known from e

    def _open(self, stream_id: str) -> TableStream:
        """Returns the stream of an id. Raises STREAM_NOT_FOUND."""
        table, _, own = stream_id.rpartition("@")
        if not table:
            raise StreamqlError(
                "INVALID_ARGUMENT", f"{stream_id!r} is not the id of a stream", hint="list_streams returns ids"
            )
        stream = self._followed(table)
        if stream.stream_id != own:
            raise StreamqlError(
                "STREAM_NOT_FOUND",
                f"the stream {stream_id} has ended: {stream.name} was replaced, or its change tracking was switched off and on",
                hint=f"list_streams({str(stream.name)!r}) returns the stream that it has now",
            )
        return stream

    def _followed(self, table: str) -> TableStream:
        """Returns the stream of a table. Its metadata is followed from where this reader last looked."""
        stream = open_stream(self._spark, table, list(self._known.values()))
        self._known[stream.tree.table_id] = Followed(stream.latest.version, stream.tree)
        return stream


def _id_of(stream: TableStream) -> str:
    """Returns the id by which readers know a stream: it holds the table's name, so that an iterator can be used in any process."""
    return f"{stream.name}@{stream.stream_id}"


def _readable(stream: TableStream, shard_id: str) -> Shard:
    history = stream.history
    stream.tree.shard(shard_id)
    for shard in stream.tree.readable_shards(history.retained_after):
        if shard.id == shard_id:
            return shard
    raise trimmed(history, f"shard {shard_id}", str(stream.name))


def _check_limit(limit: int, limit_max: int) -> None:
    if not 1 <= limit <= limit_max:
        raise StreamqlError(
            "INVALID_ARGUMENT", f"limit is a number from 1 to {limit_max}, found {limit}", hint=f"limit={limit_max}"
        )


def _record(row: Row, key: Key, shard_id: str) -> Record:
    ops: Sequence[Row] = row[OPS]
    return Record(
        _TYPES[row[KIND]],
        tuple(bytes(v) if isinstance(v, bytearray) else v for v in (row[c] for c in key.columns)),
        tuple(Cell(op["column"], op["value"]) for op in ops if op["column"] is not None),
        shard_id,
        Position(row[VERSION], row[ROW]),
        row[TIME],
    )
