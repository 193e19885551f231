"""Random histories of a topic and its streams, against a model that says which message each consumption must bring.

pytest tests/kafka/test_histories.py                       # a sample
STREAMQL_LONG=100 pytest tests/kafka/test_histories.py     # that many histories
STREAMQL_SEED=7 pytest tests/kafka/test_histories.py       # other ones
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.kafka import topics
from tests.kafka.support import Place
from tests.kafka.topics import Message, Position
from tests.sample import SEED, amount

HISTORIES = amount(1, 50)
STEPS = 14
STREAMS_MAX = 3
BURST_MAX = 9


@dataclass
class Partition:
    """What a partition holds: `[earliest, end)`, in which `visible` are messages that count, and the rest is nothing."""

    earliest: int = 0
    end: int = 0
    visible: set[int] = field(default_factory=set)

    def add(self, count: int, *, are_visible: bool, is_transaction: bool) -> None:
        """Messages at the end; the marker of a transaction takes one more offset."""
        if are_visible:
            self.visible |= set(range(self.end, self.end + count))
        self.end += count + is_transaction


@dataclass
class Bookmark:
    """Where a stream stands, by partition, and what it has brought, by position. `seen`: the earliest offsets when it was consumed last."""

    at: dict[int, int]
    seen: dict[int, int] = field(default_factory=dict)
    brought: Counter[Position] = field(default_factory=Counter)


@dataclass
class Model:
    """A topic and its streams as dictionaries: it knows nothing of streamql."""

    partitions: list[Partition]
    streams: dict[str, Bookmark] = field(default_factory=dict)

    def begins(self, stream: str) -> dict[int, int]:
        """Where the next consumption begins. A partition that the stream has never read begins with what is there."""
        at = self.streams[stream].at
        return {p: at.get(p, partition.earliest) for p, partition in enumerate(self.partitions)}

    def lost(self, stream: str) -> list[int]:
        """The partitions of which messages were deleted that the stream has not read: behind its offset, or, where it has none yet, behind
        what was there when a batch left them out."""
        needed = self.streams[stream].seen | self.streams[stream].at
        return [
            p for p, partition in enumerate(self.partitions) if needed.get(p, partition.earliest) < partition.earliest
        ]

    def backlog(self, stream: str) -> int:
        """The number of offsets that are left."""
        begins = self.begins(stream)
        return sum(partition.end - begins[p] for p, partition in enumerate(self.partitions))

    def consume(self, stream: str, ends: dict[int, int]) -> None:
        """Moves the stream to the ends, and notes what lies between."""
        begins, bookmark = self.begins(stream), self.streams[stream]
        for p, end in ends.items():
            bookmark.brought.update((p, o) for o in range(begins[p], end) if o in self.partitions[p].visible)
            bookmark.at[p] = end
        bookmark.seen = {p: partition.earliest for p, partition in enumerate(self.partitions)}


class History:
    """One random history, done to a topic and to the model."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place, self.rng = place, random.Random(seed)
        self.done: list[str] = [f"seed {seed}"]
        self.sizes = Counter[str]()
        count = self.rng.randint(1, 3)
        self.topic = place.topic(partitions=count)
        self.model = Model([Partition() for _ in range(count)])
        self.create()

    # -- what happens to the topic

    def send(self) -> None:
        """Messages into some partitions."""
        for p, count in self.burst().items():
            self.place.send(self.topic, *("x" * count), partition=p)
            self.model.partitions[p].add(count, are_visible=True, is_transaction=False)

    def transact(self) -> None:
        """A transaction over some partitions, committed or aborted."""
        burst, commit = self.burst(), self.rng.random() < 0.5
        messages = [Message("x", partition=p) for p, count in burst.items() for _ in range(count)]
        topics.in_transaction(self.place.broker.bootstrap, self.topic, messages, commit=commit)
        for p, count in burst.items():
            self.model.partitions[p].add(count, are_visible=commit, is_transaction=True)
        self.done[-1] += f" commit={commit}"

    def add_partition(self) -> None:
        """One more partition, most often with messages at once."""
        if len(self.model.partitions) >= 5:
            return
        self.model.partitions.append(Partition())
        topics.add_partitions(self.place.broker.bootstrap, self.topic, len(self.model.partitions))
        if self.rng.random() < 0.7:
            self.send()

    def delete(self) -> None:
        """Deletes the first messages of a partition, read or not."""
        p = self.rng.randrange(len(self.model.partitions))
        partition = self.model.partitions[p]
        if partition.earliest == partition.end:
            return
        before = self.rng.randint(partition.earliest + 1, partition.end)
        topics.delete_records(self.place.broker.bootstrap, self.topic, {p: before})
        partition.earliest = before
        self.done[-1] += f" {p} before {before}"

    def burst(self) -> dict[int, int]:
        """How many messages for which partitions."""
        every = range(len(self.model.partitions))
        chosen = self.rng.sample(every, self.rng.randint(1, len(every)))
        burst = {p: self.rng.randint(1, BURST_MAX) for p in sorted(chosen)}
        self.done[-1] += f" {burst}"
        return burst

    # -- what streams do

    def create(self) -> None:
        """One more stream: over all that is there, or from now on."""
        if len(self.model.streams) >= STREAMS_MAX:
            return
        name, initial = f"s{len(self.model.streams)}", self.rng.random() < 0.5
        self.place.stream(name, clauses="WITH (SHOW_INITIAL_ROWS = TRUE)" if initial else "")
        self.place.sink(f"sink_{name}")
        ends = {p: partition.end for p, partition in enumerate(self.model.partitions)}
        self.model.streams[name] = Bookmark({} if initial else ends)
        self.done.append(f"create {name} initial={initial}")

    def consume(self) -> None:
        """Consumes a stream, whole or by a batch."""
        stream = self.rng.choice(list(self.model.streams))
        size = self.rng.choice([None, None, 1, 2, 5, 1000])
        is_merge = self.rng.random() < 0.3
        self.done[-1] += f" {stream} size={size} merge={is_merge}"
        self.check_data(stream)
        options = "" if size is None else f"WITH (MAX_BATCH_SIZE = {size})"
        insert = f"INSERT INTO sink_{stream} SELECT partition, offset, '' FROM {stream} {options}"
        merge = (
            f"MERGE INTO sink_{stream} t USING (SELECT * FROM {stream} {options}) m ON t.p < 0 AND t.p = m.partition "
            "WHEN NOT MATCHED THEN INSERT (p, o, v) VALUES (m.partition, m.offset, '')"
        )
        lost = self.model.lost(stream)
        if lost:
            found = self.place.refused(insert)
            assert found.code == "STREAM_STALE"
            assert all(f"partition {p}: " in found.message for p in lost), found.message
            assert self.place.shown(stream)["stale"] is True
            moved = {p: self.model.partitions[p].earliest for p in lost}
            self.set_offset(stream, moved)
        begins, backlog = self.model.begins(stream), self.model.backlog(stream)
        self.place.run(merge if is_merge else insert)
        ends = {int(p): o for p, o in self.place.position(stream).items()}
        if not backlog:
            assert self.model.begins(stream) == begins | ends
            self.model.streams[stream].at |= ends
            return
        taken = {p: ends.get(p, begin) - begin for p, begin in begins.items()}
        assert all(0 <= n <= self.model.partitions[p].end - begins[p] for p, n in taken.items()), taken
        assert sum(taken.values()) == min(backlog, size or backlog), (taken, backlog)
        self.model.consume(stream, ends)

    def move(self) -> None:
        """Sets the offset of a partition of a stream, ahead or back."""
        stream = self.rng.choice(list(self.model.streams))
        if self.model.lost(stream):
            return
        p = self.rng.randrange(len(self.model.partitions))
        partition = self.model.partitions[p]
        self.set_offset(stream, {p: self.rng.randint(partition.earliest, partition.end)})

    def set_offset(self, stream: str, moved: dict[int, int]) -> None:
        """ALTER STREAM … SET OFFSET."""
        text = ", ".join(f'"{p}": {o}' for p, o in moved.items())
        self.place.run(f"ALTER STREAM {stream} SET OFFSET '{{{text}}}'")
        self.model.streams[stream].at |= moved
        self.model.streams[stream].seen = {}
        self.done[-1] += f" {stream} to {moved}"

    # -- what must hold

    def check_data(self, stream: str) -> None:
        """What SHOW STREAMS says, without reading a message."""
        shown = self.place.shown(stream)
        if self.model.lost(stream):
            assert shown["stale"], shown
            return
        backlog = self.model.backlog(stream)
        assert (shown["lag_versions"], shown["has_data"]) == (backlog, backlog > 0), shown
        assert self.place.has_data(stream) == (backlog > 0)

    def check_sinks(self) -> None:
        """Each sink has what its stream must have brought, and as often."""
        for stream, bookmark in self.model.streams.items():
            found = Counter(self.place.positions(f"sink_{stream}"))
            assert found == bookmark.brought, (
                f"{stream}: {found - bookmark.brought} more, {bookmark.brought - found} fewer"
            )

    def run(self) -> None:
        """All steps, and in the end the rest of each stream."""
        often: list[Callable[[], None]] = [self.send, self.consume, self.consume]
        deck = [*often * 3, self.transact, self.transact, self.add_partition, self.delete, self.create, self.move]
        for step in self.rng.sample(deck, STEPS):
            self.done.append(step.__name__)
            step()
        self.check_sinks()


@pytest.mark.parametrize("number", range(HISTORIES))
def test_a_history_brings_each_message_as_often_as_it_must(place: Place, number: int) -> None:
    history = History(place, 1000 * SEED + number)
    try:
        history.run()
    except AssertionError as e:
        raise AssertionError("\n".join([str(e), *history.done])) from e
