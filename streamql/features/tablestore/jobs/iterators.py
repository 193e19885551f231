"""Iterators: places in shards, as texts. Pure.

An iterator holds all that reading needs, so no process keeps state for it. Its text is opaque to callers: base64 of JSON, with a digest
that finds texts that were cut or changed. It is not a secret, and no code is read from it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, replace

from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.sequence import Position
from streamql.features.tablestore.jobs.shards import Shard
from streamql.features.tablestore.jobs.windows import History, trimmed

FORMAT_VERSION = 1
TEXT_MAX = 1000

_DIGEST_BYTES = 8
_PURPOSE = b"shard iterator"


@dataclass(frozen=True)
class ShardIterator:
    """The place of the next record to read in a shard."""

    stream_id: str
    shard_id: str
    position: Position

    def encode(self) -> str:
        """Returns the text that callers get: letters, digits, - and _."""
        fields = [FORMAT_VERSION, self.stream_id, self.shard_id, self.position.version, self.position.row]
        content = json.dumps(fields, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(_digest(content) + content).decode("ascii").rstrip("=")


def decode(text: str) -> ShardIterator:
    """Returns the iterator of a text. Raises INVALID_ITERATOR if it is not one, was changed, or is of a newer version of streamql."""
    try:
        if len(text) > TEXT_MAX:
            raise ValueError(len(text))
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        content = raw[_DIGEST_BYTES:]
        if raw[:_DIGEST_BYTES] != _digest(content):
            raise ValueError("digest")
        version, stream_id, shard_id, *position = json.loads(content)
        if version != FORMAT_VERSION:
            raise ValueError(version)
        found = ShardIterator(str(stream_id), str(shard_id), Position(*position))
        if found.encode() != text:  # base64 ignores some changes of its last character
            raise ValueError("spelling")
    except (LookupError, TypeError, ValueError) as e:
        raise _invalid(text, "is not an iterator", "pass the text on as it was returned") from e
    return found


def check_stream(iterator: ShardIterator, stream_id: str) -> None:
    """Checks that an iterator is of a stream. Raises INVALID_ITERATOR: the table was replaced, or its tracking was off in between."""
    if iterator.stream_id != stream_id:
        what = f"is of the stream {iterator.stream_id}, and the table's stream is {stream_id}"
        raise _invalid(iterator.encode(), what, "get_shard_iterator returns one of the new stream")


def check_not_trimmed(iterator: ShardIterator, history: History, table: str) -> None:
    """Checks that the records from an iterator on are still there. Raises STREAM_STALE, which names the earliest time."""
    if iterator.position.version <= history.beginning:
        raise trimmed(history, f"the iterator at version {iterator.position.version}", table)


def check_parents(shard: Shard, read: Collection[str], *, said_so: bool) -> None:
    """Checks that the parents of a shard were read to their end. Raises PARENT_SHARD_UNREAD.

    `read`: ids of the shards that this reader has read to their end. `said_so`: the caller says that the parents were read elsewhere.
    """
    unread = [parent for parent in shard.parents if parent not in read]
    if unread and not said_so:
        raise StreamqlError(
            "PARENT_SHARD_UNREAD",
            f"shard {shard.id} continues {', '.join(shard.parents)}, and {', '.join(unread)} has not been read to its end",
            hint="read it until its iterator is None; or pass parents_read=True, if another process has read it",
            shard=shard.id,
            unread=unread,
        )


def begin(stream_id: str, shard: Shard, version: int) -> ShardIterator:
    """Returns the iterator at the first record of a shard that is of a version or a later one."""
    start = max(shard.first, version)
    return ShardIterator(stream_id, shard.id, Position(start if shard.last is None else min(start, shard.last + 1)))


def advance(iterator: ShardIterator, shard: Shard, last: Position | None, through: int) -> ShardIterator | None:
    """Returns the iterator behind a page. None: the page ended with the last record of a closed shard.

    `last`: the position of the last record of a page that is full. None: the page has all records of versions up to `through`.
    """
    if last is not None:
        return replace(iterator, position=last.next_row)
    if shard.last is not None and through >= shard.last:
        return None
    return replace(iterator, position=max(iterator.position, Position(through + 1)))


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES, person=_PURPOSE).digest()


def _invalid(text: str, what: str, hint: str) -> StreamqlError:
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    return StreamqlError("INVALID_ITERATOR", f"{shown!r} {what}", hint=hint)
