"""What transcripts do to Kafka topics: directives that create a topic, send messages and delete them, on the tests' broker.

-- @topic orders partitions=2             creates a topic, which is deleted at the end of the transcript
-- @send orders key {"id": 1}             sends a message; NULL stands for no key, and for no value: a tombstone
-- @delete orders partition=0 before=3    deletes the messages of a partition before an offset
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from tests.kafka import topics

ADDRESS = "localhost:9092"
"""Stands for the broker's address, in statements and in their results."""

NAMES = frozenset({"topic", "send", "delete"})

_VALUES = {
    "topic": re.compile(r"(?P<topic>\S+)(?:\s+partitions=(?P<partitions>\d+))?"),
    "send": re.compile(r"(?P<topic>\S+)\s+(?P<key>\S+)\s+(?P<value>\S.*)"),
    "delete": re.compile(r"(?P<topic>\S+)\s+partition=(?P<partition>\d+)\s+before=(?P<before>\d+)"),
}


@dataclass(frozen=True)
class Action:
    """A directive on a topic: its name, and what stands behind it."""

    name: str
    topic: str
    words: tuple[tuple[str, str | None], ...]


def parse_action(name: str, value: str) -> Action | None:
    """The directive `-- @name value`; None: it is not one of Kafka's, or its value cannot be read."""
    found = _VALUES[name].fullmatch(value) if name in NAMES else None
    if found is None:
        return None
    words = found.groupdict()
    return Action(name, words.pop("topic"), tuple(words.items()))


class Topics:
    """The topics of a transcript. `bootstrap` gives the broker's address; it is called only if the transcript needs a broker."""

    def __init__(self, bootstrap: Callable[[], str] | None) -> None:
        self._bootstrap = bootstrap
        self._address: str | None = None
        self._made: list[str] = []

    def __enter__(self) -> Topics:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for topic in self._made:
            topics.delete(self.address, topic)

    @property
    def address(self) -> str:
        """The broker's `host:port`. Raises RuntimeError if there is no broker."""
        if self._address is None:
            if self._bootstrap is None:
                raise RuntimeError(f"a transcript that uses Kafka, or {ADDRESS}, needs a broker")
            self._address = self._bootstrap()
        return self._address

    def do(self, action: Action) -> None:
        """Does what a directive says, and returns when other clients see it."""
        words = dict(action.words)
        if action.name == "topic":
            topics.create(self.address, action.topic, partitions=int(words["partitions"] or 1))
            self._made.append(action.topic)
        elif action.name == "send":
            key, value = (None if words[part] == "NULL" else words[part] for part in ("key", "value"))
            topics.send(self.address, action.topic, [topics.Message(value, key)])
        else:
            topics.delete_records(self.address, action.topic, {int(words["partition"] or 0): int(words["before"] or 0)})

    def to_broker(self, text: str) -> str:
        """A statement with the broker's address for the one that the transcript shows."""
        return text.replace(ADDRESS, self.address) if ADDRESS in text else text

    def from_broker(self, text: str) -> str:
        """A part of a result with the address that the transcript shows."""
        return text if self._address is None else text.replace(self._address, ADDRESS)
