"""What an entry of \\help is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """An entry. `grammars`: as error messages show them. `examples`: statements that run one after the other, topic by topic.

    `needs_kafka`: the examples run only against a Kafka broker, so tests in a plain session only parse them.
    """

    name: str
    summary: str
    grammars: tuple[str, ...]
    text: str
    examples: tuple[str, ...]
    also: tuple[str, ...] = ()
    needs_kafka: bool = False
