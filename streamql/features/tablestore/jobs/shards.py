"""The shards of a stream: hash buckets of the primary key, in generations. Pure.

The table property `tablestore.shard_count` says how many shards there are. When it changes, all shards close and a new *generation* of
shards begins; each new shard names its parents, whose records come before its own. The generations so far are a *shard tree*.

Metadata commits are what log cleanup removes first. Therefore the tree is also kept in the table property `tablestore.shards`. It is
written by compare-and-set: a commit that must be the next version after the one that was read. RESTORE brings an old property back.
`follow` sees that, since it compares each version's metadata with the version before; the tree is then written anew.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.keys import PrimaryKey, bucket, declared
from streamql.features.tablestore.formats.values import Value

SHARDS = "tablestore.shards"
SHARD_COUNT = "tablestore.shard_count"
COUNT_DEFAULT = 1
COUNT_MAX = 1024

FORMAT_VERSION = 1

_TRACKING = "delta.enableRowTracking"

Metadata = Mapping[str, Any]
"""Delta's metaData action, as JSON has it (PROTOCOL.md, "Change Metadata")."""


@dataclass(frozen=True)
class Generation:
    """Shards that were made together. `first`: the first version whose records are in them. `key`, `hashed_types`: the columns of the
    primary key, and the SQL types as which they are hashed, for as long as the generation lasts."""

    number: int
    first: int
    count: int
    key: tuple[str, ...]
    hashed_types: tuple[str, ...]

    def shard_id(self, bucket: int) -> str:
        """Returns the id of one of its shards."""
        return f"{self.number:04d}-{bucket:04d}"

    def is_like(self, other: Generation) -> bool:
        """Returns whether rows have the same buckets in both."""
        return self.count == other.count and self._hashes_like(other)

    def parents(self, bucket: int, earlier: Generation) -> tuple[int, ...]:
        """Returns the buckets of the earlier generation that a row of a bucket may have been in."""
        if not self._hashes_like(earlier):
            return tuple(range(earlier.count))
        shared = math.gcd(self.count, earlier.count)
        return tuple(range(bucket % shared, earlier.count, shared))

    def siblings(self, bucket: int, earlier: Generation) -> tuple[int, ...]:
        """Returns the other buckets that have the same parents."""
        step = math.gcd(self.count, earlier.count) if self._hashes_like(earlier) else 1
        return tuple(other for other in range(bucket % step, self.count, step) if other != bucket)

    def _hashes_like(self, other: Generation) -> bool:
        names = [[name.lower() for name in generation.key] for generation in (self, other)]
        return names[0] == names[1] and self.hashed_types == other.hashed_types


@dataclass(frozen=True)
class Shard:
    """A shard: the records of versions `first` to `last` whose keys are in a bucket. `last` None: the shard is open.

    `parents`: ids of the shards of the generation before, which are to be read first. `siblings`: ids of the shards with the same parents.
    """

    id: str
    generation: int
    bucket: int
    first: int
    last: int | None
    parents: tuple[str, ...]
    siblings: tuple[str, ...]


@dataclass(frozen=True)
class ShardTree:
    """The generations of a stream. `first`: the first version whose changes are recorded.

    `generations` is empty until the table declares a primary key. `written`: the version that the property was read from, or is to be
    written as. None: it was computed. `is_guess`: `first` is where the log begins now; an earlier process may have seen more of the log.
    """

    table_id: str
    first: int
    generations: tuple[Generation, ...] = ()
    written: int | None = field(default=None, compare=False)
    is_guess: bool = field(default=False, compare=False)

    @property
    def stream_id(self) -> str:
        """Names the stream: another one after tracking was switched off and on, or after the table was replaced."""
        return f"{self.table_id}_{self.first}"

    def generation_at(self, version: int) -> Generation:
        """Returns the generation that has the records of a version. Raises ValueError if the stream began later."""
        for generation in reversed(self.generations):
            if generation.first <= version:
                return generation
        raise ValueError(f"stream {self.stream_id} has no version {version}")

    def ranges(self, first: int, last: int) -> list[tuple[Generation, int, int]]:
        """Returns the generations of versions `first` to `last`, each with its part of them."""
        ends = [*(g.first - 1 for g in self.generations[1:]), last]
        parts = ((g, max(first, g.first), min(last, end)) for g, end in zip(self.generations, ends, strict=False))
        return [part for part in parts if part[1] <= part[2]]

    def shards(self) -> list[Shard]:
        """Returns all shards, parents before children."""
        shards = []
        earlier: Generation | None = None
        for index, generation in enumerate(self.generations):
            later = self.generations[index + 1] if index + 1 < len(self.generations) else None
            last = None if later is None else later.first - 1
            shards += [_shard(generation, number, last, earlier) for number in range(generation.count)]
            earlier = generation
        return shards

    def readable_shards(self, retained_after: int) -> list[Shard]:
        """Returns the shards that may have records after version `retained_after`; the others have expired and are no longer parents."""
        kept = [shard for shard in self.shards() if shard.last is None or shard.last > retained_after]
        ids = {shard.id for shard in kept}
        return [replace(shard, parents=tuple(p for p in shard.parents if p in ids)) for shard in kept]

    def shard(self, shard_id: str) -> Shard:
        """Returns a shard. Raises SHARD_NOT_FOUND."""
        for shard in self.shards():
            if shard.id == shard_id:
                return shard
        hint = f"shards are {self.generations[-1].shard_id(0)} and others" if self.generations else ""
        raise StreamqlError("SHARD_NOT_FOUND", f"stream {self.stream_id} has no shard {shard_id}", hint=hint)

    def shard_of(self, values: Sequence[Value | None], version: int) -> str:
        """Returns the id of the shard that has a key's records of a version. `values`: the key, of the hashed types."""
        generation = self.generation_at(version)
        return generation.shard_id(bucket(values, generation.hashed_types, generation.count))

    def resharded(self, version: int, key: PrimaryKey, count: int) -> ShardTree:
        """Returns the tree with a generation that begins at a version, if rows have other buckets from then on; else the tree."""
        made = Generation(0, self.first, count, key.names, key.hashed_types)
        if not self.generations:
            return replace(self, generations=(made,))
        last = self.generations[-1]
        # A widened column is hashed as it was, so that its rows stay where they are.
        if made.is_like(replace(last, hashed_types=made.hashed_types)):
            return self
        if version <= last.first:  # no commit came between: the generation has no records
            return replace(
                self, generations=(*self.generations[:-1], replace(made, number=last.number, first=last.first))
            )
        return replace(self, generations=(*self.generations, replace(made, number=last.number + 1, first=version)))

    def to_text(self, version: int) -> str:
        """Returns the property's value, to be written by the commit that makes `version`."""
        generations = [
            {"number": g.number, "first": g.first, "count": g.count, "key": g.key, "hashed": g.hashed_types}
            for g in self.generations
        ]
        tree = {
            "format": FORMAT_VERSION,
            "table": self.table_id,
            "first": self.first,
            "written": version,
            "generations": generations,
        }
        return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class Followed:
    """The shard tree of a table as of a version, computed from the metadata of the versions before."""

    version: int
    tree: ShardTree


def _shard(generation: Generation, number: int, last: int | None, earlier: Generation | None) -> Shard:
    parents = siblings = tuple[str, ...]()
    if earlier is not None:
        parents = tuple(map(earlier.shard_id, generation.parents(number, earlier)))
        siblings = tuple(map(generation.shard_id, generation.siblings(number, earlier)))
    return Shard(generation.shard_id(number), generation.number, number, generation.first, last, parents, siblings)


def parse_tree(text: str, table: str) -> ShardTree:
    """Returns the tree that a property holds. Raises INVALID_PROPERTY if streamql did not write it so, or a newer version did."""
    try:
        data = json.loads(text)
        if data["format"] != FORMAT_VERSION:
            raise ValueError(data["format"])
        generations = tuple(
            Generation(int(g["number"]), int(g["first"]), int(g["count"]), tuple(g["key"]), tuple(g["hashed"]))
            for g in data["generations"]
        )
        tree = ShardTree(str(data["table"]), int(data["first"]), generations, int(data["written"]))
        _check(tree)
    except (LookupError, TypeError, ValueError) as e:
        raise StreamqlError(
            "INVALID_PROPERTY",
            f"the property {SHARDS} of {table} is not one that this version of streamql wrote",
            hint=f"ALTER TABLE {table} UNSET TBLPROPERTIES ('{SHARDS}'): the stream then begins where the log does",
        ) from e
    return tree


def _check(tree: ShardTree) -> None:
    """Raises ValueError if the generations do not follow one another."""
    firsts = [g.first for g in tree.generations]
    numbers = [g.number for g in tree.generations]
    counts = [g.count for g in tree.generations]
    is_ordered = firsts == sorted(set(firsts)) and numbers == sorted(set(numbers))
    if not is_ordered or firsts[:1] > [tree.first] or not all(0 < c <= COUNT_MAX for c in counts):
        raise ValueError(f"not a shard tree: {tree}")


def shard_count(configuration: Mapping[str, str], table: str) -> int:
    """Returns how many shards the properties of a table ask for. Raises INVALID_PROPERTY."""
    text = configuration.get(SHARD_COUNT, str(COUNT_DEFAULT)).strip()
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= COUNT_MAX):
        raise StreamqlError(
            "INVALID_PROPERTY",
            f"the property {SHARD_COUNT} of {table} is a whole number from 1 to {COUNT_MAX}, found {text}",
            hint=f"ALTER TABLE {table} SET TBLPROPERTIES ('{SHARD_COUNT}' = '4')",
        )
    return int(text)


def recorded(metadata: Metadata, table: str) -> ShardTree | None:
    """Returns the tree that a version's property holds. None: it has none, or that of another table, of which this one is a copy.

    Raises INVALID_PROPERTY. `follow` needs the metadata of the versions from `written` on.
    """
    text = _configuration(metadata).get(SHARDS)
    tree = None if text is None else parse_tree(text, table)
    return tree if tree is not None and tree.table_id == metadata["id"] else None


def follow(start: int, metadata: Metadata, changes: Iterable[tuple[int, Metadata]], table: str) -> ShardTree | None:
    """Returns the shard tree at the end of a part of a table's history. None: the table does not track changes then.

    `start`: the first version known, with its metadata. `changes`: the later versions that have other metadata, in their order. A property
    that cannot be read counts as absent in all versions but the last, for which it raises INVALID_PROPERTY. A tree without generations
    means that the table declares no primary key.
    """
    versions = [(start, metadata), *changes]
    check_readable(versions[-1][1], table)
    tree: ShardTree | None = None
    before: Metadata | None = None
    for version, now in versions:
        tree = _step(tree, before, version, now, table)
        before = now
    return tree


def follow_on(
    known: Followed, changes: Sequence[tuple[int, Metadata]], latest: Metadata, table: str
) -> ShardTree | None:
    """Returns the shard tree at the end of a table's history, from one that is known. None, and raises: as `follow`.

    `changes`: the versions after the known one that have other metadata, in their order. `latest`: the newest metadata.
    """
    check_readable(latest, table)
    tree: ShardTree | None = known.tree
    before: Metadata = {"id": known.tree.table_id}
    for version, now in changes:
        tree = _step(tree, before, version, now, table)
        before = now
    return tree


def check_readable(metadata: Metadata, table: str) -> None:
    """Raises INVALID_PROPERTY if a version's properties on shards cannot be read."""
    shard_count(_configuration(metadata), table)
    recorded(metadata, table)


def needs_writing(tree: ShardTree, metadata: Metadata, table: str) -> bool:
    """Returns whether the property of the newest version is not the tree: it is missing, or RESTORE or a reshard made it outdated."""
    return recorded(metadata, table) != tree


def _step(tree: ShardTree | None, before: Metadata | None, version: int, now: Metadata, table: str) -> ShardTree | None:
    configuration = _configuration(now)
    if configuration.get(_TRACKING) != "true":
        return None
    is_new_table = version == 0 or (before is not None and before["id"] != now["id"])
    if before is None:
        tree = _quiet_recorded(now, table) or ShardTree(now["id"], version + 1, is_guess=True)
    elif tree is None:
        tree = ShardTree(now["id"], version + 1)
    elif tree.is_guess:
        tree = _quiet_recorded(now, table) or tree
    if is_new_table:
        tree = ShardTree(now["id"], version)
    return _resharded(tree, version, now, table)


def _quiet_recorded(metadata: Metadata, table: str) -> ShardTree | None:
    try:
        return recorded(metadata, table)
    except StreamqlError:
        return None


def _resharded(tree: ShardTree, version: int, metadata: Metadata, table: str) -> ShardTree:
    """Returns the tree as a version's properties ask for it. What cannot be read changes nothing."""
    configuration = _configuration(metadata)
    try:
        key = declared(configuration, json.loads(metadata["schemaString"])["fields"], table)
    except StreamqlError:
        return tree
    try:
        count = shard_count(configuration, table)
    except StreamqlError:
        count = tree.generations[-1].count if tree.generations else COUNT_DEFAULT
    return tree.resharded(version, key, count)


def _configuration(metadata: Metadata) -> Mapping[str, str]:
    return metadata.get("configuration") or {}
